// The oracle of a problem with oracle.cc, and checker.cc: compiled here, each call in a copy of this process.
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <sstream>
#include <utility>

#include "judge/process/forked_call.h"
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

constexpr char kShim[] = "(void** tensors, const double* reals, const long* wholes";
constexpr char kUnused[] = ") {\n  (void)tensors; (void)reals; (void)wholes;\n  ";

// The text appended to oracle.cc: one function of a fixed type that calls `oracle` with the problem's parameters.
std::string CallShim(const Problem& problem) {
  return std::string("\n#line 1 \"call of oracle\"\nextern \"C\" void kgrpo_call_oracle") + kShim + kUnused +
         "oracle(" + CallArguments(problem, false) + ");\n}\n";
}

// Likewise to checker.cc. `say` gets the words that `check` returns.
std::string CheckShim(const Problem& problem) {
  return std::string("\n#line 1 \"call of check\"\nextern \"C\" void kgrpo_call_check") + kShim +
         ", void (*say)(const char*, unsigned long)" + kUnused + "const std::string words = check(" +
         CallArguments(problem, true) + ");\n  say(words.data(), words.size());\n}\n";
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
  using Call = void (*)(void** tensors, const double* reals, const int64_t* wholes);
  explicit SourceOracle(std::unique_ptr<const TrustedLibrary> library)
      : Oracle(library->build()),
        library_(std::move(library)),
        call_(reinterpret_cast<Call>(library_->Symbol("kgrpo_call_oracle"))) {}

  std::vector<Expected> Run(const Problem& problem, const Bindings& size,
                            const std::vector<Argument>& arguments) const override;

 private:
  std::vector<Expected> RunOnce(const Problem& problem, const Bindings& size, const std::vector<Argument>& arguments,
                                bool guards_inputs, bool at_end) const;

  std::unique_ptr<const TrustedLibrary> library_;
  Call call_;
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

// The values of one call's parameters in the types of oracle.cc and checker.cc.
struct Values {
  std::vector<Expected> of;
  std::vector<void*> tensors;
  std::vector<double> reals;
  std::vector<int64_t> wholes;
};

// `outputs`: by parameter; null for an oracle, which may accumulate into its outputs: they are zero.
Values ValuesOf(const Problem& problem, const std::vector<Argument>& arguments,
                const std::vector<std::vector<uint8_t>>* outputs) {
  const size_t count = problem.parameters.size();
  Values values = {std::vector<Expected>(count), std::vector<void*>(count, nullptr), std::vector<double>(count, 0),
                   std::vector<int64_t>(count, 0)};
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = problem.parameters[i];
    const auto elements = static_cast<size_t>(arguments[i].elements);
    values.reals[i] = arguments[i].real;
    values.wholes[i] = arguments[i].whole;
    if (parameter.role == Role::kScalar) continue;
    const bool output = parameter.role == Role::kOutput;
    Expected& value = values.of[i];
    if (output && outputs == nullptr) {
      (Info(parameter.dtype).is_floating ? value.reals.resize(elements) : value.wholes.resize(elements));
    } else {
      value = ExpectedFrom(parameter, output ? (*outputs)[i] : arguments[i].bytes);
    }
    values.tensors[i] = value.reals.empty() ? static_cast<void*>(value.wholes.data()) : value.reals.data();
  }
  return values;
}

void Say(const char* words, unsigned long bytes) {
  for (ssize_t count = 0; bytes > 0 && (count = write(kCallWords, words, bytes)) > 0; words += count)
    bytes -= static_cast<unsigned long>(count);
}

constexpr int kCheckerSeconds = 60, kOracleSeconds = 120;  // of processor time

size_t BytesOf(const Expected& value) { return sizeof(double) * (value.reals.size() + value.wholes.size()); }
void* DataOf(Expected& value) {
  return value.reals.empty() ? static_cast<void*>(value.wholes.data()) : value.reals.data();
}

}  // namespace

// The first call is made twice, with every tensor between guard pages: at the end of its pages, and at their start.
std::vector<Expected> SourceOracle::Run(const Problem& problem, const Bindings& size,
                                        const std::vector<Argument>& arguments) const {
  if (bounds_checked_) return RunOnce(problem, size, arguments, false, true);
  RunOnce(problem, size, arguments, true, false);
  std::vector<Expected> values = RunOnce(problem, size, arguments, true, true);
  bounds_checked_ = true;
  return values;
}

std::vector<Expected> SourceOracle::RunOnce(const Problem& problem, const Bindings& size,
                                            const std::vector<Argument>& arguments, bool guards_inputs,
                                            bool at_end) const {
  static_assert(sizeof(double) == sizeof(int64_t));
  Values values = ValuesOf(problem, arguments, nullptr);
  std::vector<SharedBytes> shared;
  shared.reserve(values.of.size());
  std::vector<std::pair<size_t, void*>> outputs;
  for (size_t i = 0; i < values.of.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsTensor() || (parameter.role == Role::kInput && !guards_inputs)) continue;
    shared.emplace_back(parameter.name, BytesOf(values.of[i]), at_end);
    values.tensors[i] = shared.back().data();
    if (parameter.role != Role::kOutput) std::memcpy(values.tensors[i], DataOf(values.of[i]), BytesOf(values.of[i]));
    if (parameter.role != Role::kInput) outputs.emplace_back(i, values.tensors[i]);
  }
  const std::string file = problem.directory + "/oracle.cc";
  const CallEnd end = CallInCopy(file, kOracleSeconds,
                                 [&] { call_(values.tensors.data(), values.reals.data(), values.wholes.data()); });
  if (!end.failure.empty()) throw Error(KGRPO_ERROR_INVALID, file + ": " + end.failure + " at " + SizeText(size));
  for (const auto& [i, data] : outputs) std::memcpy(DataOf(values.of[i]), data, BytesOf(values.of[i]));
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

Checker::Checker(std::unique_ptr<const TrustedLibrary> library)
    : library_(std::move(library)), call_(reinterpret_cast<Call>(library_->Symbol("kgrpo_call_check"))) {}

Checker::~Checker() = default;

Checker::Result Checker::Check(const Problem& problem, const std::vector<Argument>& arguments,
                               const std::vector<std::vector<uint8_t>>& outputs) const {
  Values values = ValuesOf(problem, arguments, &outputs);
  CallEnd end = CallInCopy(problem.directory + "/checker.cc", kCheckerSeconds,
                           [&] { call_(values.tensors.data(), values.reals.data(), values.wholes.data(), &Say); });
  if (!end.failure.empty())
    return {false, true, "checker.cc " + end.failure + " on these outputs; it must accept any values"};
  while (!end.words.empty() && (end.words.back() == '.' || end.words.back() == '\n')) end.words.pop_back();
  return {end.words.empty(), false, end.words.empty() ? "" : "checker.cc: " + end.words};
}

}  // namespace kgrpo::evaluator
