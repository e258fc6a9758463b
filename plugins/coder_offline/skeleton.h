// A skeleton writes all kernels of one kind (row reductions, matrix products, ...) around the functions of a problem.
// One file a kind in skeletons/; called by coder.cc.
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_SKELETON_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_SKELETON_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "coder_offline/program.h"
#include "coder_offline/techniques.h"

namespace kgrpo::coder_offline {

// How one technique changes the schedule of one kind of kernel.
struct Rule {
  Technique technique;
  std::string option;       // the schedule's option that it sets
  std::vector<int> values;  // the option's permitted values, ascending; empty: a flag
  int preferred;            // the value if the suggestion names none; 1 for a flag
  std::string done;         // the summary; @value@ stands for the value
  // Returns the reason why the technique can't be applied to this program now; empty if it can. Null: always
  // applicable.
  std::function<std::string(const Program&)> why_not;
};

class Skeleton {
 public:
  virtual ~Skeleton() = default;
  virtual std::string_view name() const = 0;  // the first word of the schedule line
  virtual const std::vector<Rule>& rules() const = 0;
  // Options that a source may start with and that no technique sets, such as the length of a thread's chunk.
  virtual std::vector<std::string> starting_options() const { return {}; }
  // The missing parts of a source of this kind ("a function load(...)"); empty if none.
  virtual std::string Missing(const Program& program) const = 0;
  // The reason why a technique without a rule does nothing for this kind of kernel.
  virtual std::string WhyNever(Technique technique) const = 0;
  // The text from "// kernels:" to the end of the file.
  virtual std::string Kernels(const Program& program) const = 0;
};

// All kinds, in a fixed order.
const std::vector<const Skeleton*>& AllSkeletons();
const Skeleton* FindSkeleton(std::string_view name);  // null when there is none

// ---- text helpers shared by the skeletons ----

// "const float* __restrict__ x, float* out, int n".
std::string ParameterList(const std::vector<Parameter>& parameters, bool restrict);
// "x, out, n".
std::string ArgumentList(const std::vector<Parameter>& parameters);
// `extern "C" void launch(...)` as the source had it, without a body.
std::string LaunchLine(const Program& program);
// "name(a, b)" with the text of each argument given by `argument`.
std::string CallText(const Function& function, const std::function<std::string(const Parameter&)>& argument);
// ".x", ".y", ".z", ".w": component k of a float4 or int2.
std::string Component(int k);
// `const float4 x_vector = reinterpret_cast<const float4*>(x)[i];`, a line.
std::string VectorLoad(const std::string& type, const std::string& variable, const std::string& pointer);
// "#pragma unroll 4" when the schedule unrolls, else "".
std::string UnrollPragma(const Schedule& schedule);
// The missing functions and parameters of a program: "a function load, a parameter n"; empty when nothing.
std::string MissingNames(const Program& program, const std::vector<std::string>& functions,
                         const std::vector<std::string>& parameters);

// Rules that are the same for every kind.
Rule RestrictRule();
Rule BlockRule();
Rule UnrollRule(const std::string& what);
Rule FastRule();  // applies where the problem's own part calls functions that have an approximate form

// The problem's own part; if the schedule has "fast", with functions replaced by their approximate forms.
std::string ProblemText(const Program& program);

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_SKELETON_H_
