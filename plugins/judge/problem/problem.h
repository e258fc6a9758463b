// A problem: parameters, sizes, tolerance, needs. Read from problems/<name>/problem.yaml by LoadProblem; used
// by every evaluator. The format is described in docs/problems.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/problem/dtype.h"       // DType
#include "judge/problem/expression.h"  // Expression, Bindings

namespace kgrpo::evaluator {

enum class Role { kInput, kOutput, kInout, kScalar };

class SourceInputs;  // source_inputs.h

// How a tensor's values are drawn. What `low`, `high` and the others mean for each kind is in docs/problems.md.
struct Distribution {
  enum class Kind {
    kNormal,
    kUniform,
    kIntegers,
    kLargeOffset,
    kSparse,
    kPermutation,
    kOffsets,
    kConstant,
    kDenormals,
    kExtremes,
    kTorchScript,
    kSource
  };
  Kind kind = Kind::kNormal;
  std::optional<Expression> low, high;                  // uniform, integers; high of offsets
  std::optional<double> mean, deviation;                // normal
  double offset = 1000;                                 // large_offset
  double density = 0.1;                                 // sparse
  double value = 0;                                     // constant
  double ordinary = 0.1;                                // denormals: the share of values from a bell curve
  double step = 0;                                      // above 0: floating values are rounded to multiples of it
  bool by_row = false;                                  // one value for all elements of a row
  bool infinities = false, nans = false;                // extremes: some of these too
  std::vector<std::pair<Bindings, std::string>> tapes;  // torchscript: the file that draws it at each size
  std::shared_ptr<const SourceInputs> source;           // source: its function, once WithSourceInputs has compiled it
};

// "large_offset": what problem.yaml calls it.
const std::string& DistributionName(const Distribution& distribution);

// The memory layout of a tensor: its rows (of the last dimension) begin every `pitch` elements.
struct Rows {
  int64_t count = 1, elements = 1, pitch = 1;  // elements of a row; pitch - elements between it and the next
  bool operator==(const Rows&) const = default;
  bool HasGaps() const { return pitch != elements; }
  int64_t MemoryElements() const { return count * pitch; }
};

struct Parameter {
  std::string name;
  std::string
      list;  // of a tensor that the signature has in an array of pointers, with those before and after it: its name
  Role role = Role::kInput;
  DType dtype = DType::kFloat32;
  std::vector<Expression> shape;                   // empty for scalars
  std::optional<Expression> pitch;                 // of a tensor with gaps between its rows
  Distribution distribution;                       // of inputs and inouts
  std::vector<Distribution> also;                  // what they are drawn from in further correctness cases
  std::optional<size_t> may_alias;                 // of an output: the input whose memory it may be given
  Expression value;                                // of scalars
  std::optional<std::pair<double, double>> range;  // of scalars: what further cases draw them from

  // True for a scalar that further cases give other values than the listed one.
  bool HasSeveralValues() const;
  bool IsTensor() const { return role != Role::kScalar; }
  bool IsWritten() const { return role == Role::kOutput || role == Role::kInout; }
  // Elements of the tensor at a size; 1 for a scalar.
  int64_t Elements(const Bindings& size) const;
  // Its dimensions at a size; none for a scalar.
  std::vector<int64_t> ShapeAt(const Bindings& size) const;
  // Its memory layout at a size; one row of one element for a scalar.
  Rows RowsAt(const Bindings& size) const;
  // The bytes of memory it takes, gaps included.
  uint64_t MemoryBytes(const Bindings& size) const;
};

// "rows=5, cols=256": how sentences name a size.
std::string SizeText(const Bindings& size);

struct Tolerance {
  std::optional<double> relative, absolute;
  double differing = 0;               // this share of an output's elements may be off by more
  std::optional<DType> accumulation;  // of sums: the arithmetic of the error model

  // Returns how many of `elements` may be off by more.
  int64_t Differing(int64_t elements) const { return static_cast<int64_t>(differing * static_cast<double>(elements)); }
};

// The source of the expected outputs.
enum class OracleKind {
  kReference,    // the reference kernel itself
  kSource,       // oracle.cc
  kTorchScript,  // oracle/*.pt, a file a size
  kChecker,      // none: checker.cc decides whether outputs are right
};

struct Problem {
  std::string directory;  // absolute
  std::string name, title, family, split, description;
  std::vector<std::string> traits;
  std::string entry = "launch";  // the function with the problem's signature
  std::string own_entry;         // of a problem with launcher.cu: the function that this calls, with its own signature
  std::string launcher;          // the text of launcher.cu, which defines `entry`; "" without the file
  std::vector<Parameter> parameters;
  std::vector<Bindings> visible, hidden;
  Bindings timing;
  std::vector<Bindings> further_timing;                       // timed too: timing_sizes.h
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;  // of symbols: what drawn sizes keep to
  bool further_cases = true;  // judged by cases beyond the listed sizes and values, too: cases.h
  Tolerance tolerance;
  Expression accumulations{1};
  Expression needed_bytes, needed_flops;
  bool allow_device_malloc = false;
  std::vector<std::string> allowed_libraries;

  std::string refused;             // why an import refused it; then parameters, sizes, needs and files may be missing
  std::vector<std::string> flags;  // what its author warns of: "zeros pass KernelBench's tolerance"

  bool has_reference = true;     // false: reference.cu says what is to be computed, and computes nothing
  std::string reference_source;  // the text of reference.cu
  OracleKind oracle = OracleKind::kReference;
  std::optional<std::string> oracle_source;                    // the text of oracle.cc, where there is one
  std::optional<std::string> checker_source;                   // the text of checker.cc, where there is one
  std::vector<std::pair<Bindings, std::string>> oracle_files;  // of kTorchScript: a size's file, absolute
  std::optional<std::string> inputs_source;                    // the text of inputs.cc, where there is one
  DType oracle_dtype = DType::kFloat64;                        // what kTorchScript computes in
  std::string eager_file;  // PyTorch's own computation as TorchScript, absolute; "" where there is none
  std::string digest;      // SHA-256 over all its files

  // Returns each size with its name for files: "visible_0", "hidden_2", "timing", "timing_1" (the second).
  std::vector<std::pair<std::string, const Bindings*>> SizesByName() const;

  // `extern "C" void launch(const float* a, float* out, int n)`: what reference.cu and every candidate define. Tensors
  // of a list are one parameter, `const float* const* weights`.
  std::string Signature() const;
  // Returns how many parameters from `first` on are one in the signature: 1, or those of its list.
  size_t ListLength(size_t first) const;

  // The source with launcher.cu appended, if it defines `own_entry` and not `entry`.
  std::string WithLauncher(const std::string& source) const;

  // The task text for prompts: description, signature, what each parameter is, the visible sizes.
  std::string TaskText() const;
};

// Reads and checks a problem's folder. Throws Error(KGRPO_ERROR_INVALID) with every mistake found, a line each, as
// `file:line:column: path: message`; Error(KGRPO_ERROR_NOT_FOUND) where there is no such folder. [any thread]
Problem LoadProblem(const std::string& directory);

// Throws Error(KGRPO_ERROR_INVALID) for a problem that an import refused.
void RequireNotRefused(const Problem& problem);
// Likewise, and for one with `reference: none`.
void RequireReference(const Problem& problem);

}  // namespace kgrpo::evaluator
