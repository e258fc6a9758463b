// The oracle of a problem with oracle.cc, compiled and run in this process; and checker.cc, which runs in a copy of
// this process, since it reads what a candidate computed.
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <utility>

#include "judge/process/trusted_source.h"
#include "judge/verdict/oracle.h"
#include "process/subprocess.h"  // MakePipe

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

constexpr int kWords = 3;  // the copy's only descriptor after standard error: where its words go

void Say(const char* words, unsigned long bytes) {
  for (ssize_t count = 0; bytes > 0 && (count = write(kWords, words, bytes)) > 0; words += count)
    bytes -= static_cast<unsigned long>(count);
}

constexpr int kSaid = 0, kThrew = 1;  // exit codes of the copy
constexpr int kCheckerSeconds = 60;   // of processor time
constexpr double kCheckerWall = 5;    // on a busy machine
constexpr size_t kMostWords = 1000;

}  // namespace

std::vector<Expected> SourceOracle::Run(const Problem& problem, const Bindings&,
                                        const std::vector<Argument>& arguments) const {
  Values values = ValuesOf(problem, arguments, nullptr);
  call_(values.tensors.data(), values.reals.data(), values.wholes.data());
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
  auto [reader, writer] = process::MakePipe();
  const pid_t copy = fork();
  if (copy < 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot make a process for checker.cc: ") + std::strerror(errno));
  if (copy == 0) {
    // Keeps no other descriptor: a copy of another thread's pipe would delay that pipe's end.
    dup2(writer.get(), kWords);
    closefrom(kWords + 1);
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM}) std::signal(signal, SIG_DFL);
    // SIGXCPU comes at the first limit, SIGKILL at the second.
    const struct rlimit seconds = {kCheckerSeconds, kCheckerSeconds + 1}, none = {0, 0};
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    try {
      call_(values.tensors.data(), values.reals.data(), values.wholes.data(), &Say);
    } catch (...) {
      _exit(kThrew);
    }
    _exit(kSaid);
  }
  writer.Close();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kCheckerSeconds) * kCheckerWall;
  std::string words;
  bool late = false;
  for (char part[512];;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    struct pollfd wait = {reader.get(), POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    late = ready <= 0;
    const ssize_t count = late ? 0 : read(reader.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    words.append(part, static_cast<size_t>(count));
  }
  reader.Close();
  if (late) kill(copy, SIGKILL);
  int status = 0;
  while (waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  const auto failed = [](const std::string& how) {
    return Result{false, true, "checker.cc " + how + " on these outputs; it must accept any values"};
  };
  if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) return failed("did not finish");
  if (WIFSIGNALED(status)) return failed(std::string("crashed (") + strsignal(WTERMSIG(status)) + ")");
  if (WEXITSTATUS(status) == kThrew) return failed("threw an exception");
  if (WEXITSTATUS(status) != kSaid) return failed("called exit");
  if (words.size() > kMostWords) words.resize(kMostWords);
  while (!words.empty() && (words.back() == '.' || words.back() == '\n')) words.pop_back();
  return {words.empty(), false, words.empty() ? "" : "checker.cc: " + words};
}

}  // namespace kgrpo::evaluator
