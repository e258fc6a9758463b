// A skeleton writes all kernels of one kind (row reductions, matrix products, ...) around the functions of a problem.
// One file a kind in skeletons/; called by coder.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coder_offline/program.h"
#include "coder_offline/techniques.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {

using enum Technique;

// The reason why a technique can't be applied to a program now; empty if it can. Null: it always can.
using Obstacle = std::function<std::string(const Program&)>;

// How one technique changes the schedule of one kind of kernel. It sets the option OptionOf(technique).
struct Rule {
  Technique technique;
  std::string done;              // the summary; @value@ stands for the value
  std::vector<int> values = {};  // the option's permitted values, ascending; empty: a flag
  int preferred = 1;             // the value if the suggestion names none; 1 for a flag
  Obstacle why_not = nullptr;
};

struct Skeleton {
  std::string_view name;  // the first word of the schedule line
  // Options that a source may start with and that no technique sets, such as the length of a thread's chunk.
  std::vector<std::string> starting_options;
  std::vector<Rule> rules;
  // The reasons why techniques without a rule do nothing for this kind of kernel; `never_else` for those not listed.
  std::vector<std::pair<std::vector<Technique>, std::string>> never;
  std::string never_else;
  // The missing parts of a source of this kind ("a function load(...)"); empty if none.
  std::function<std::string(const Program&)> missing;
  // The text from "// kernels:" to the end of the file.
  std::function<std::string(const Program&)> kernels;

  const Rule* FindRule(Technique technique) const;  // null when there is none
  std::string WhyNever(Technique technique) const;
};

const Skeleton* MapSkeleton();        // out[i] = f(a[i], b[i], ...), in one stage or several
const Skeleton* BroadcastSkeleton();  // out[r][c] = f(x[r][c], a costly coefficient of c)
const Skeleton* ReductionSkeleton();  // one number from whole arrays
const Skeleton* RowsSkeleton();       // one number from each row
const Skeleton* SoftmaxSkeleton();    // rows normalised by their maximum and their sum of exponentials
const Skeleton* MomentsSkeleton();    // rows normalised by their mean and variance
const Skeleton* MatmulSkeleton();     // matrix products
const Skeleton* TransposeSkeleton();  // a matrix with its axes swapped
const Skeleton* ScanSkeleton();       // prefix sums of rows
const Skeleton* HistogramSkeleton();  // counts of bins
const Skeleton* StencilSkeleton();    // two-dimensional windows: convolution, pooling
const Skeleton* GatherSkeleton();     // rows of a table picked by index
const Skeleton* AttentionSkeleton();  // weighted means over keys, weights by softmax

// All kinds, in a fixed order.
const std::vector<const Skeleton*>& AllSkeletons();
const Skeleton* FindSkeleton(std::string_view name);  // null when there is none

// ---- rules and reasons that several skeletons share ----

Obstacle If(const std::string& option, const std::string& reason);
Obstacle Unless(const std::vector<std::string>& options, const std::string& reason);  // unless it has one of these
Obstacle NeedsTile();
Obstacle NeedsSecondKernel(const std::string& function);  // for fusion: the problem has this function
Obstacle NeedsChunk();                                    // for coalescing, with the starting option chunk
Rule RestrictRule();
Rule BlockRule(int preferred = 256);
Rule UnrollRule(const std::string& what, Obstacle why_not = nullptr);
Rule VectorRule(const std::string& done);
Rule GridStrideRule();
Rule InterchangeRule();  // coalescing by swapping row and column
Rule FastRule();         // applies where the problem's own part calls functions that have an approximate form

constexpr const char* kUsedOnce = "every element is used once, so there is nothing to share between threads";
constexpr const char* kTileUsedOnce = "every element is used once, so a shared-memory tile would not be read twice";
constexpr const char* kIndependent = "elements are independent of each other, so threads have nothing to combine";
constexpr const char* kOneKernel = "there is one kernel only, so nothing to fuse";
constexpr const char* kNoSecondOutput = "no loaded value serves two outputs, so there is nothing to keep in registers";
constexpr const char* kFloatTraffic = "the arrays are float32, so the traffic would stay the same";
constexpr const char* kSamePath = "the threads of a warp take the same path";
constexpr const char* kOneLoop = "a thread has one element and no loop to unroll";
constexpr const char* kOwnRow = "there is one row for each worker, so there is nothing to stride over";

// ---- text that several skeletons share ----

constexpr int kGridStrideThreads = 132 * 1024;  // half of what the device holds at once

// The values that most kernels need: parameters, arguments, launch (its line), out, unroll, block; then `more`.
Values CommonValues(const Program& program, int default_block, const Values& more = {});
// "const float* __restrict__ x, float* out, int n".
std::string ParameterList(const std::vector<Parameter>& parameters, bool restrict);
// "x, out, n".
std::string ArgumentList(const std::vector<Parameter>& parameters);
// "name(a, b)" with the text of each argument given by `argument`.
std::string CallText(const Function& function, const std::function<std::string(const Parameter&)>& argument);
// ".x", ".y", ".z", ".w": component k of a float4 or int2.
std::string Component(int k);
// `const float4 x_vector = reinterpret_cast<const float4*>(x)[i];`, a line.
std::string VectorLoad(const std::string& type, const std::string& variable, const std::string& pointer);
// "#pragma unroll 4" when the schedule unrolls, else "".
std::string UnrollPragma(const Schedule& schedule);
// The loop by which a thread gets its indices i below n: `body` works on i, or with vectors on the i-th vector,
// `single` on element i. `plain` is the loop's text for one index a thread, with the placeholders @body@ and @count@.
std::string ElementLoop(const Schedule& schedule, const std::string& plain, const std::string& body,
                        const std::string& single);
// Vectors of a thread's chunk; 1 without the starting option.
int ChunkOf(const Schedule& schedule);
// "const int blocks = (n + 255) / 256;", with a grid-stride loop at most `most` of them.
std::string BlocksText(const Schedule& schedule, const std::string& units, int per_block, int most);
// The missing functions and parameters of a program: "a function load, a parameter n"; empty when nothing.
std::string MissingNames(const Program& program, const std::vector<std::string>& functions,
                         const std::vector<std::string>& parameters);
// "each parameter of load to be <what>; x is not", for the first parameter of the function that `good` refuses; empty
// if there is none. `good` receives the launch parameter of the same name, or null.
std::string Refused(const Program& program, const Function& function, const std::string& what,
                    const std::function<bool(const std::string& name, const Parameter* given)>& good);
// The first const pointer; null if there is none.
const Parameter* FirstInput(const Program& program);
// The problem's own part; if the schedule has "fast", with functions replaced by their approximate forms.
std::string ProblemText(const Program& program);

}  // namespace kgrpo::coder_offline
