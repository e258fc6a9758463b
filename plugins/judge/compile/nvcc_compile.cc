#include "judge/compile/nvcc_compile.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "judge/compile/elf_tables.h"

namespace kgrpo::evaluator {
namespace {

using process::Subprocess;

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// nvcc's front end gives pointers to shared memory 32 bits, NVRTC's 64, and no option of NVRTC's changes that: their
// optimisers then choose other induction variables and address arithmetic. With this, machine code is the same.
constexpr char kAsNvrtc[] = "--sharedmem32=0";

constexpr int kPtxasRefuses = 255;  // nvcc's exit code; above 128 it is a signal otherwise

Subprocess::Result RunCompiler(const Sandbox& sandbox, SandboxCommand& command, double seconds,
                               const std::function<bool()>& stop) {
  command.cpu_seconds = static_cast<uint64_t>(seconds) + 1;
  Subprocess::Result result =
      Subprocess::Run(sandbox.Wrap(command), kWallOfProcessorTime * seconds, size_t{1} << 20, stop);
  if (stop && stop()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  if (result.exit_code == kLauncherFailed)
    throw Error(KGRPO_ERROR_UNAVAILABLE, command.argv[0] + " cannot be run in the sandbox: " + result.output);
  return result;
}

void Diagnose(const Subprocess::Result& result, const std::string& scratch, CompileOutcome* outcome) {
  outcome->verdict = "not_compiled";
  if (result.timed_out || result.signal != 0 || (result.exit_code > 128 && result.exit_code != kPtxasRefuses)) {
    outcome->transient = true;
    outcome->diagnosis = "The compiler did not finish within its limits of time and memory.";
  } else {
    outcome->transient = FailedForTheMoment(result.output);
    outcome->diagnosis = "It does not compile. The compiler says:" + QuoteCompilerOutput(result.output, scratch);
  }
}

CompileOutcome CompileOnce(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& library_directory,
                           const std::string& architecture, const NvccSource& source, double seconds, bool as_nvrtc,
                           const std::function<bool()>& stop) {
  ScratchFolder scratch(sandbox);
  const std::string input = scratch.path() + "/kernel.cu", output = scratch.path() + "/kernel.so",
                    cubin_path = scratch.path() + "/kernel.sm_" + architecture + ".cubin";
  std::ofstream(input, std::ios::binary) << source.prologue << source.text << source.epilogue;

  SandboxCommand command;
  command.argv = {toolkit.nvcc,
                  "-shared",
                  "-Xcompiler",
                  "-fPIC,-fno-diagnostics-show-caret",  // carets would quote whatever file a #line names
                  "-std=c++17",
                  "--expt-relaxed-constexpr",
                  "--extended-lambda",
                  "-DNVTX_DISABLE",  // cub.cuh includes NVTX, which looks functions up by dlsym
                  "--cudart",
                  "none",
                  "-L" + library_directory,
                  "-l:libcudart.so.13",
                  "--no-compress",
                  "-lineinfo",
                  "--keep",  // kernel.ptx and kernel.sm_90.cubin are what cicc and ptxas wrote
                  "-gencode",
                  "arch=compute_" + architecture + ",code=[compute_" + architecture + ",sm_" + architecture + "]",
                  "kernel.cu",
                  "-o",
                  "kernel.so"};
  command.argv.insert(command.argv.end(), source.arguments.begin(), source.arguments.end());
  if (as_nvrtc) command.argv.insert(command.argv.end(), {"-Xcicc", kAsNvrtc});
  // nvcc with the runtime library is told to link none of its own: a PyPI toolkit lacks the development link.
  command.environment = {"PATH=" + toolkit.home + "/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + scratch.path(),
                         "HOME=" + scratch.path(), "LC_ALL=C"};
  command.scratch = scratch.path();
  command.readable = toolkit.readable;
  command.readable.push_back(library_directory);
  command.readable.insert(command.readable.end(), source.readable.begin(), source.readable.end());
  const Subprocess::Result result = RunCompiler(sandbox, command, seconds, stop);
  CompileOutcome outcome;
  outcome.kernel.route = "nvcc";
  if (result.Succeeded()) {
    outcome.kernel.object = ReadWhole(output);
    // Not from the object, whose sections a candidate's host assembly can add to.
    const std::string cubin = ReadWhole(cubin_path);
    outcome.kernel.ptx = ReadWhole(scratch.path() + "/kernel.ptx");
    if (cubin.empty() || outcome.kernel.ptx.empty()) {
      throw Error(KGRPO_ERROR_UNAVAILABLE,
                  toolkit.nvcc + " --keep left no kernel.ptx or no " + cubin_path + "; is the disk full?");
    }
    outcome.kernel.usage = UsageOf(cubin, outcome.kernel.ptx);
    return outcome;
  }
  outcome.verdict = "not_compiled";
  // The linker refuses an object whose variables are larger than its address space.
  if (const std::string cubin = ReadWhole(cubin_path); !cubin.empty()) {
    if (const Trouble trouble = CheckVariables(VariableBytesOf(cubin), true)) {
      outcome.verdict = trouble.code;
      outcome.diagnosis = trouble.sentence;
      return outcome;
    }
  }
  Diagnose(result, scratch.path(), &outcome);
  return outcome;
}

// Returns whether the compiler's words name instructions of the architecture's variant: wgmma and setmaxnreg of sm_90a.
bool MayNeedVariant(const CompileOutcome& outcome, int compute_capability) {
  const std::string refusal = "not supported on .target 'sm_" + std::to_string(compute_capability) + "'";
  return compute_capability >= 90 && outcome.diagnosis.find(refusal) != std::string::npos;
}

// The variant allows 227 KiB of static shared memory, which no device does for a plain build.
bool FitsPlainLimits(const CompileOutcome& outcome) {
  static constexpr int kMostStaticShared = 48 * 1024;
  return std::all_of(outcome.kernel.usage.begin(), outcome.kernel.usage.end(),
                     [](const auto& kernel) { return kernel.second.static_shared_bytes <= kMostStaticShared; });
}

}  // namespace

CompileOutcome CompileWithNvcc(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& library_directory,
                               int compute_capability, const NvccSource& source, double seconds, bool as_nvrtc,
                               const std::function<bool()>& stop) {
  std::string architecture = std::to_string(compute_capability);
  const auto compile = [&] {
    return CompileOnce(toolkit, sandbox, library_directory, architecture, source, seconds, as_nvrtc, stop);
  };
  CompileOutcome outcome = compile();
  // The option is not documented: a toolkit may not have it.
  if (as_nvrtc && outcome.diagnosis.find("invalid option: --sharedmem32") != std::string::npos) {
    as_nvrtc = false;
    outcome = compile();
  }
  if (!MayNeedVariant(outcome, compute_capability)) return outcome;
  architecture += "a";
  CompileOutcome variant = compile();
  return !variant.Succeeded() || FitsPlainLimits(variant) ? variant : outcome;
}

CompileOutcome AssemblePtx(const CudaToolkit& toolkit, const Sandbox& sandbox, int compute_capability,
                           const std::string& ptx, double seconds, const std::function<bool()>& stop) {
  const ScratchFolder scratch(sandbox);
  std::ofstream(scratch.path() + "/kernel.ptx", std::ios::binary) << ptx;
  std::string architecture = "sm_" + std::to_string(compute_capability);
  // PTX for an architecture's variant, such as sm_90a, is assembled for that one only.
  for (const char* variant : {"a", "f"})
    if (ptx.find(".target " + architecture + variant) != std::string::npos) architecture += variant;
  SandboxCommand command;
  command.argv = {toolkit.home + "/bin/ptxas", "-arch=" + architecture, "kernel.ptx", "-o", "kernel.cubin"};
  command.environment = {"TMPDIR=" + scratch.path(), "LC_ALL=C"};
  command.scratch = scratch.path();
  command.readable = toolkit.readable;
  const Subprocess::Result result = RunCompiler(sandbox, command, seconds, stop);
  CompileOutcome outcome;
  outcome.kernel.route = "ptx";
  if (result.Succeeded()) {
    outcome.kernel.ptx = ptx;
    outcome.kernel.cubin = ReadWhole(scratch.path() + "/kernel.cubin");
    outcome.kernel.usage = UsageOf(outcome.kernel.cubin, ptx);
  } else {
    Diagnose(result, scratch.path(), &outcome);
  }
  return outcome;
}

}  // namespace kgrpo::evaluator
