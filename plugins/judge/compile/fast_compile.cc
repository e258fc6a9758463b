#include "judge/compile/fast_compile.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/demangle.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>

#include <kgrpo/support/sha256.h>
#include "cuda_source/lexer.h"
#include "judge/compile/elf_tables.h"
#include "judge/compile/entry_shim.h"
#include "judge/compile/nvcc_compile.h"  // kCountHostCode, kWallOfProcessorTime
#include "judge/compile/source_split.h"

namespace kgrpo::evaluator {
namespace {

using process::Helper, process::Subprocess;

constexpr size_t kKeptHostObjects = 512, kLargestKept = size_t{128} << 10;  // in bytes

// "k<16>" of "void k<16>(float const*)", where it is an instance of one of the templates.
std::string TemplateInstance(const std::string& linker_name, const std::vector<std::string>& templates) {
  const std::string text = Demangled(linker_name);
  if (text.rfind("void ", 0) != 0) return "";
  int depth = 0;
  size_t end = 5, open = std::string::npos;
  for (; end < text.size() && !(depth == 0 && text[end] == '('); ++end) {
    if (text[end] == '<' && depth++ == 0) open = end;
    if (text[end] == '>') --depth;
  }
  if (open == std::string::npos || end >= text.size()) return "";
  const std::string qualified = text.substr(5, open - 5);
  const size_t colon = qualified.rfind("::");
  const std::string name = colon == std::string::npos ? qualified : qualified.substr(colon + 2);
  return std::find(templates.begin(), templates.end(), name) == templates.end() ? "" : text.substr(5, end - 5);
}

std::string TokensKey(const Problem& problem, const std::string& text) {
  std::string tokens;
  for (const cuda_source::Token& token : cuda_source::Lex(text).tokens) {
    tokens += token.text;
    tokens += '\n';
  }
  return Sha256OfParts({problem.Signature(), tokens});
}

}  // namespace

// A compile process in its scratch folder.
struct FastCompiler::Process {
  Process(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& helper_directory,
          const std::string& architecture, double seconds)
      : scratch(sandbox), helper([&](int theirs) {
          SandboxCommand command;
          command.argv = {helper_directory + "/kgrpo_compile_worker", toolkit.nvrtc, scratch.path(), architecture,
                          std::to_string(static_cast<uint64_t>(seconds) + 1)};
          command.argv.insert(command.argv.end(), toolkit.include_directories.begin(),
                              toolkit.include_directories.end());
          // NVRTC opens its built-in declarations by name: they lie beside it, where the linker need not look.
          command.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + scratch.path(),
                                 "LD_LIBRARY_PATH=" + std::filesystem::path(toolkit.nvrtc).parent_path().string()};
          command.scratch = scratch.path();
          command.readable = toolkit.readable;
          command.descriptors = {{theirs, Helper::kSocket}};
          command.cpu_seconds = 3600;  // in all; the worker limits each compile
          Subprocess::Spec spec = sandbox.Wrap(command);
          spec.quiet = true;
          return spec;
        }) {}

  // True if it was ended because a compile exceeded its processor time.
  bool ExceededTime() {
    const std::optional<Subprocess::Result> end = helper.process().Wait(1);
    return end && (end->signal == SIGXCPU || end->exit_code == 128 + SIGXCPU);
  }

  ScratchFolder scratch;
  Helper helper;
};

FastCompiler::FastCompiler(const CudaToolkit& toolkit, const Sandbox& sandbox, std::string helper_directory,
                           int compute_capability, size_t processes, double seconds, bool count_host_code,
                           std::function<bool()> stop)
    : toolkit_(toolkit),
      helper_directory_(std::move(helper_directory)),
      seconds_(seconds),
      count_option_(count_host_code ? std::string("\n") + kCountHostCode : ""),
      stop_(std::move(stop)),
      processes_(processes, [this, &sandbox, architecture = "sm_" + std::to_string(compute_capability)] {
        return std::make_unique<Process>(toolkit_, sandbox, helper_directory_, architecture, seconds_);
      }) {
  processes_.Add(processes_.Take());
}

FastCompiler::~FastCompiler() = default;

std::optional<std::vector<std::string>> FastCompiler::Ask(const std::vector<std::string>& request) {
  constexpr size_t kMostAnswerBytes = size_t{256} << 20;
  constexpr int kMostUses = 1000;  // then a fresh one, so that no leak of NVRTC's lasts
  std::optional<std::vector<std::string>> answer;
  // A process that ended early may have been damaged by an earlier source, or the machine may have run out of
  // something: one other process is asked.
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::unique_ptr<Process> process = processes_.Take();
    const auto begin = std::chrono::steady_clock::now();
    const double wall = kWallOfProcessorTime * seconds_;
    answer = process->helper.Ask(request, wall, kMostAnswerBytes, stop_);
    if (!answer && stop_ && stop_()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    if (answer && answer->size() < 3) answer.reset();
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!answer && taken < wall && !process->ExceededTime()) continue;
    if (answer && process->helper.uses() < kMostUses) processes_.Add(std::move(process));
    break;
  }
  return answer;
}

void FastCompiler::Check() {
  const auto device = Ask({"device", "__global__ void check(float* x) { *x = 1.0f; }\n", ""});
  const auto host = Ask({"host", "void check() {}\n", ""});
  std::string wrong;
  if (!device) {
    wrong = toolkit_.nvrtc + " cannot be loaded or used";
  } else if ((*device)[0] != "ok") {
    wrong = "NVRTC says:" + QuoteCompilerOutput((*device)[1], "");
  } else if (!host || (*host)[0] != "ok") {
    wrong = "g++ says:" + QuoteCompilerOutput(host ? (*host)[1] : "error: it did not finish", "");
  }
  if (wrong.empty()) return;
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "the compilers of compile: fast do not work: " + wrong +
                  "\nInstall the whole toolkit and g++ (scripts/setup does), or set compile: nvcc.");
}

FastCompiler::HostResult FastCompiler::CompileHost(const Problem& problem, const std::string& host_source) {
  const std::string key = TokensKey(problem, host_source);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = host_objects_.find(key); found != host_objects_.end()) return {found->second, "", true};
  }
  const std::string text =
      "#include \"cuda_runtime.h\"\n" + EntryPrologue(problem) + host_source + EntryEpilogue(problem);
  const std::string cuda = helper_directory_ + "/host_include", standard = helper_directory_ + "/host_include_std";
  HostResult result;
  // The first attempt replaces standard headers by small ones. The second one reads the real headers.
  for (const std::string& options : {"-I" + standard + "\n-I" + cuda, "-DKGRPO_STANDARD_HEADERS\n-I" + cuda}) {
    const auto answer = Ask({"host", text, options + count_option_});
    if (!answer || (*answer)[0] == "exceeded") return {"", "", false};
    result.log = (*answer)[1];
    if ((*answer)[0] == "ok") {
      result.object = (*answer)[2];
      break;
    }
  }
  if (result.object.empty() || result.object.size() > kLargestKept) return result;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (host_objects_.emplace(key, result.object).second) host_order_.push_back(key);
  if (host_order_.size() > kKeptHostObjects) {
    host_objects_.erase(host_order_.front());
    host_order_.pop_front();
  }
  return result;
}

std::optional<CompileOutcome> FastCompiler::Compile(const Problem& problem, const std::string& source,
                                                    std::string* why) {
  const SplitSource split = Split(source);
  if (!split.understood) {
    *why = split.why_not;
    return std::nullopt;
  }
  CompileOutcome outcome;
  outcome.kernel.route = "fast";
  const auto exceeded = [&outcome] {
    outcome.transient = true;
    outcome.verdict = "not_compiled";
    outcome.diagnosis = "The compiler did not finish within its limits of time and memory.";
    return outcome;
  };
  HostResult host;
  std::optional<std::vector<std::string>> device;
  const std::string device_source = "#line 1 \"kernel.cu\"\n" + split.device;
  if (split.kernel_templates.empty()) {
    std::future<HostResult> pending = std::async(std::launch::async, [&] { return CompileHost(problem, split.host); });
    device = Ask({"device", device_source, ""});
    host = pending.get();
  } else {
    host = CompileHost(problem, split.host);  // its object names the instances
    std::string instances;
    if (!host.object.empty()) {
      for (const std::string& function : DefinedFunctions(host.object)) {
        const bool may_be_instance =
            std::any_of(split.kernel_templates.begin(), split.kernel_templates.end(),
                        [&](const std::string& name) { return function.find(name) != std::string::npos; });
        if (may_be_instance && function.starts_with("_Z") && Demangled(function).empty()) {
          *why = "its host code: the name of a function's instance may be too long";
          return std::nullopt;
        }
        const std::string instance = TemplateInstance(function, split.kernel_templates);
        if (!instance.empty()) instances += instance + "\n";
      }
      device = Ask({"device", device_source, instances});
    }
  }
  if (!host.finished) return exceeded();
  if (host.object.empty()) {
    *why = "its host code: " + host.log.substr(0, 300);
    return std::nullopt;
  }
  if (!device || device->size() < 5) return exceeded();
  if ((*device)[0] != "ok") {
    *why = "its device code: " + (*device)[1].substr(0, 300);
    return std::nullopt;
  }
  outcome.kernel.object = std::move(host.object);
  outcome.kernel.ptx = std::move((*device)[2]);
  outcome.kernel.cubin = std::move((*device)[4]);
  if (!outcome.kernel.cubin.empty()) outcome.kernel.usage = UsageOf(outcome.kernel.cubin, outcome.kernel.ptx);
  return outcome;
}

}  // namespace kgrpo::evaluator
