// The oracle of a problem with oracle.cc: compiled, and run in this process.
#include <sstream>
#include <utility>

#include "evaluator_shared/oracle.h"
#include "evaluator_shared/trusted_source.h"

namespace kgrpo::evaluator {
namespace {

// The text appended to oracle.cc: one function of a fixed type that calls `oracle` with the problem's parameters.
std::string CallShim(const Problem& problem) {
  std::ostringstream text;
  text << "\n#line 1 \"call of oracle\"\nextern \"C\" void kgrpo_call_oracle(void** tensors, const double* reals, "
          "const long* wholes) {\n  (void)tensors; (void)reals; (void)wholes;\n  oracle(";
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const bool real = Info(parameter.dtype).is_floating;
    if (i > 0) text << ", ";
    if (parameter.role == Role::kScalar) {
      text << (real ? "reals[" : "wholes[") << i << "]";
    } else {
      text << "static_cast<" << (parameter.role == Role::kInput ? "const " : "") << (real ? "double*" : "int64_t*")
           << ">(tensors[" << i << "])";
    }
  }
  text << ");\n}\n";
  return text.str();
}

// The signature of the function that oracle.cc must define.
std::string Signature(const Problem& problem) {
  std::string text = "extern \"C\" void oracle(";
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const std::string type = Info(parameter.dtype).is_floating ? "double" : "int64_t";
    text += (i > 0 ? ", " : "") + std::string(parameter.role == Role::kInput ? "const " : "") + type +
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
  std::unique_ptr<const TrustedLibrary> library_;
  Call call_;
};

}  // namespace

std::shared_ptr<const Oracle> LoadSourceOracle(const Problem& problem, const std::string& cache_directory) {
  const std::string file = problem.directory + "/oracle.cc";
  const std::string text =
      "#include <cstdint>\n#include <cmath>\n#line 1 \"" + file + "\"\n" + *problem.oracle_source + CallShim(problem);
  return std::make_shared<SourceOracle>(
      std::make_unique<TrustedLibrary>(TrustedSource{file, text, Signature(problem), cache_directory}));
}

std::vector<Expected> SourceOracle::Run(const Problem& problem, const Bindings&,
                                        const std::vector<Argument>& arguments) const {
  const size_t count = problem.parameters.size();
  std::vector<Expected> values(count);
  std::vector<void*> tensors(count, nullptr);
  std::vector<double> reals(count, 0);
  std::vector<int64_t> wholes(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = problem.parameters[i];
    const DTypeInfo& info = Info(parameter.dtype);
    const auto elements = static_cast<size_t>(arguments[i].elements);
    reals[i] = arguments[i].real;
    wholes[i] = arguments[i].whole;
    if (parameter.role == Role::kScalar) continue;
    const uint8_t* bytes = arguments[i].bytes.data();
    const bool zero = parameter.role == Role::kOutput;  // an oracle may accumulate into its output
    if (info.is_floating) {
      values[i].reals.resize(elements);
      for (size_t e = 0; e < elements && !zero; ++e)
        values[i].reals[e] = LoadDouble(parameter.dtype, bytes + e * info.size);
      tensors[i] = values[i].reals.data();
    } else {
      values[i].wholes.resize(elements);
      for (size_t e = 0; e < elements && !zero; ++e)
        values[i].wholes[e] = LoadInteger(parameter.dtype, bytes + e * info.size);
      tensors[i] = values[i].wholes.data();
    }
  }
  call_(tensors.data(), reals.data(), wholes.data());
  for (size_t i = 0; i < count; ++i) {
    if (problem.parameters[i].role == Role::kInput) values[i] = Expected();
  }
  return values;
}

}  // namespace kgrpo::evaluator
