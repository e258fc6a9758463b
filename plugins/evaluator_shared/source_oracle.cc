#include "evaluator_shared/oracle.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <kgrpo/support/sha256.h>
#include "evaluator_shared/subprocess.h"

namespace kgrpo::evaluator {
namespace {

namespace fs = std::filesystem;

// The same bits on every machine: nothing that reorders sums, fuses multiplications and additions, or takes what this
// processor has beyond others. Independent outputs are still computed side by side.
constexpr auto kFlags = std::to_array<const char*>({"-std=c++20", "-O3", "-ffp-contract=off", "-shared", "-fPIC"});

// What is appended to oracle.cc: one function of a fixed type that calls `oracle` with the problem's parameters.
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

// What oracle.cc has to define.
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
  SourceOracle(void* library, Call call, std::string build)
      : Oracle(std::move(build)), library_(library), call_(call) {}
  ~SourceOracle() override { dlclose(library_); }

  std::vector<Expected> Run(const Problem& problem, const Bindings& size,
                            const std::vector<Argument>& arguments) const override;

 private:
  void* library_;
  Call call_;
};

}  // namespace

std::shared_ptr<const Oracle> LoadSourceOracle(const Problem& problem, const std::string& cache_directory) {
  const char* from_environment = std::getenv("CXX");
  const std::string compiler = from_environment != nullptr && *from_environment != '\0' ? from_environment : "g++";
  const std::string source = "#include <cstdint>\n#include <cmath>\n#line 1 \"" + problem.directory + "/oracle.cc\"\n" +
                             *problem.oracle_source + CallShim(problem);
  const fs::path folder = fs::path(cache_directory) / "oracles";
  std::string flags;
  for (const char* flag : kFlags) flags += std::string(flag) + " ";
  const std::string build = Sha256OfParts({source, compiler, flags}).substr(0, 40);
  const fs::path library = folder / (build + ".so");
  std::error_code code;
  if (!fs::exists(library, code)) {
    fs::create_directories(folder);
    static std::atomic<uint64_t> counter{0};
    const std::string unique = library.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
    const std::string source_file = unique + ".cc", built = unique + ".so";
    std::ofstream(source_file) << source;
    Subprocess::Result result;
    try {
      std::vector<std::string> command = {compiler};
      command.insert(command.end(), kFlags.begin(), kFlags.end());
      command.insert(command.end(), {source_file, "-o", built});
      result = Subprocess::Run({command}, 120);
    } catch (const Error& error) {
      fs::remove(source_file, code);
      throw Error(KGRPO_ERROR_UNAVAILABLE, problem.directory + "/oracle.cc: cannot run the C++ compiler \"" + compiler +
                                               "\": " + error.what() + "; install g++ or set CXX");
    }
    fs::remove(source_file, code);
    if (!result.Succeeded()) {
      throw Error(KGRPO_ERROR_INVALID, problem.directory + "/oracle.cc: does not compile; it must define " +
                                           Signature(problem) + ". The compiler says:\n" + result.output);
    }
    fs::rename(built, library);  // atomic: several processes may do this at once
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Error(KGRPO_ERROR_INVALID, problem.directory + "/oracle.cc: cannot be loaded; it must define " +
                                         Signature(problem) + ": " + dlerror());
  void* symbol = dlsym(handle, "kgrpo_call_oracle");
  if (symbol == nullptr) {
    dlclose(handle);
    throw Error(KGRPO_ERROR_INTERNAL, library.string() + ": has no kgrpo_call_oracle; remove it");
  }
  return std::make_shared<SourceOracle>(handle, reinterpret_cast<SourceOracle::Call>(symbol), build);
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
