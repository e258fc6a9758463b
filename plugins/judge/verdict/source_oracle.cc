// The oracle of a problem with oracle.cc, and checker.cc: compiled here, called in a process of their own.
#include <kgrpo/sdk/error.h>

#include <atomic>
#include <sstream>
#include <utility>

#include "judge/process/trusted_call.h"
#include "judge/process/trusted_source.h"
#include "judge/verdict/oracle.h"

namespace kgrpo::evaluator {
namespace {

// The arguments of oracle.cc's and checker.cc's functions, taken from arrays.
std::string CallArguments(const Problem& problem, bool checks) {
  std::ostringstream text;
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const bool real = Info(parameter.dtype).is_floating;
    if (i > 0) text << ", ";
    if (parameter.role == Role::kScalar) {
      text << (real ? "reals[" : "wholes[") << i << "]";
    } else {
      text << "static_cast<" << (parameter.role == Role::kInput || checks ? "const " : "")
           << (real ? "double*" : "int64_t*") << ">(tensors[" << i << "])";
    }
  }
  return text.str();
}

constexpr char kShim[] =
    "(void** tensors, const double* reals, const long* wholes, void (*say)(const char*, unsigned long)) {\n"
    "  (void)tensors; (void)reals; (void)wholes; (void)say;\n  ";

// The text appended to oracle.cc: one function of a fixed type that calls `oracle` with the problem's parameters.
std::string CallShim(const Problem& problem) {
  return std::string("\n#line 1 \"call of oracle\"\nextern \"C\" void kgrpo_call_oracle") + kShim + "oracle(" +
         CallArguments(problem, false) + ");\n}\n";
}

// Likewise to checker.cc. `say` gets the words that `check` returns.
std::string CheckShim(const Problem& problem) {
  return std::string("\n#line 1 \"call of check\"\nextern \"C\" void kgrpo_call_check") + kShim +
         "const std::string words = check(" + CallArguments(problem, true) +
         ");\n  say(words.data(), words.size());\n}\n";
}

// The signature of the function that oracle.cc or checker.cc must define.
std::string Signature(const Problem& problem, bool checks = false) {
  std::string text = checks ? "std::string check(" : "extern \"C\" void oracle(";
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const std::string type = Info(parameter.dtype).is_floating ? "double" : "int64_t";
    text += (i > 0 ? ", " : "") +
            std::string(parameter.role == Role::kInput || (checks && parameter.IsTensor()) ? "const " : "") + type +
            (parameter.role == Role::kScalar ? " " : "* ") + parameter.name;
  }
  return text + ")";
}

class SourceOracle : public Oracle {
 public:
  explicit SourceOracle(std::unique_ptr<const TrustedLibrary> library)
      : Oracle(library->build()), library_(std::move(library)) {}

  std::vector<Expected> Run(const Problem& problem, const Bindings& size,
                            const std::vector<Argument>& arguments) const override;

 private:
  std::vector<Expected> RunOnce(const Problem& problem, const Bindings& size, const std::vector<Argument>& arguments,
                                bool at_end) const;

  std::unique_ptr<const TrustedLibrary> library_;
  mutable std::atomic<bool> bounds_checked_{false};
};

}  // namespace

std::shared_ptr<const Oracle> LoadSourceOracle(const Problem& problem, const std::string& cache_directory) {
  const std::string file = problem.directory + "/oracle.cc";
  const std::string text =
      "#include <cstdint>\n#include <cmath>\n#line 1 \"" + file + "\"\n" + *problem.oracle_source + CallShim(problem);
  return std::make_shared<SourceOracle>(
      std::make_unique<TrustedLibrary>(TrustedSource{file, text, Signature(problem), cache_directory}));
}

namespace {

constexpr int kCheckerSeconds = 60, kOracleSeconds = 120;  // of processor time

// The values of one call's parameters in the types of oracle.cc and checker.cc, and the call, whose tensors they are.
struct Values {
  std::vector<Expected> of;
  TrustedCall call;
};

// `outputs`: by parameter; null for an oracle, which may accumulate into its outputs: they are zero.
Values ValuesOf(const Problem& problem, const std::vector<Argument>& arguments,
                const std::vector<std::vector<uint8_t>>* outputs) {
  static_assert(sizeof(double) == sizeof(int64_t));
  const size_t count = problem.parameters.size();
  Values values;
  values.of.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = problem.parameters[i];
    const auto elements = static_cast<size_t>(arguments[i].elements);
    values.call.reals.push_back(arguments[i].real);
    values.call.wholes.push_back(arguments[i].whole);
    TrustedCall::Tensor& tensor = values.call.tensors.emplace_back();
    if (parameter.role == Role::kScalar) continue;
    const bool output = parameter.role == Role::kOutput;
    Expected& value = values.of[i];
    if (output && outputs == nullptr) {
      (Info(parameter.dtype).is_floating ? value.reals.resize(elements) : value.wholes.resize(elements));
    } else {
      value = ExpectedFrom(parameter, output ? (*outputs)[i] : arguments[i].bytes);
    }
    tensor = {parameter.name, value.reals.empty() ? static_cast<void*>(value.wholes.data()) : value.reals.data(),
              sizeof(double) * (value.reals.size() + value.wholes.size()),
              outputs == nullptr && parameter.role != Role::kInput};
  }
  return values;
}

}  // namespace

// The first call is made twice: with every tensor at the start of its pages, and at their end.
std::vector<Expected> SourceOracle::Run(const Problem& problem, const Bindings& size,
                                        const std::vector<Argument>& arguments) const {
  if (!bounds_checked_) RunOnce(problem, size, arguments, false);
  std::vector<Expected> values = RunOnce(problem, size, arguments, true);
  bounds_checked_ = true;
  return values;
}

std::vector<Expected> SourceOracle::RunOnce(const Problem& problem, const Bindings& size,
                                            const std::vector<Argument>& arguments, bool at_end) const {
  Values values = ValuesOf(problem, arguments, nullptr);
  values.call.function = "kgrpo_call_oracle";
  values.call.at_end = at_end;
  values.call.processor_seconds = kOracleSeconds;
  const CallEnd end = CallTrusted(library_->path(), values.call);
  if (!end.failure.empty())
    throw Error(KGRPO_ERROR_INVALID, problem.directory + "/oracle.cc: " + end.failure + " at " + SizeText(size));
  for (size_t i = 0; i < values.of.size(); ++i) {
    if (problem.parameters[i].role == Role::kInput) values.of[i] = Expected();
  }
  return std::move(values.of);
}

std::shared_ptr<const Checker> Checker::Load(const Problem& problem, const std::string& cache_directory) {
  if (problem.oracle != OracleKind::kChecker) return nullptr;
  const std::string file = problem.directory + "/checker.cc";
  const std::string text =
      "#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <string>\n#include "
      "<vector>\n#line 1 \"" +
      file + "\"\n" + *problem.checker_source + CheckShim(problem);
  return std::shared_ptr<const Checker>(new Checker(
      std::make_unique<TrustedLibrary>(TrustedSource{file, text, Signature(problem, true), cache_directory})));
}

Checker::Checker(std::unique_ptr<const TrustedLibrary> library) : library_(std::move(library)) {}

Checker::~Checker() = default;

Checker::Result Checker::Check(const Problem& problem, const std::vector<Argument>& arguments,
                               const std::vector<std::vector<uint8_t>>& outputs) const {
  Values values = ValuesOf(problem, arguments, &outputs);
  values.call.function = "kgrpo_call_check";
  values.call.processor_seconds = kCheckerSeconds;
  values.call.last = true;
  CallEnd end = CallTrusted(library_->path(), values.call);
  if (!end.failure.empty())
    return {false, true, "checker.cc " + end.failure + " on these outputs; it must accept any values"};
  while (!end.words.empty() && (end.words.back() == '.' || end.words.back() == '\n')) end.words.pop_back();
  return {end.words.empty(), false, end.words.empty() ? "" : "checker.cc: " + end.words};
}

}  // namespace kgrpo::evaluator
