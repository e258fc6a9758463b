#include "judge/compile/nvcc_compile.h"

#include <kgrpo/sdk/error.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "judge/compile/fatbin.h"

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

CompileOutcome CompileOnce(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& library_directory,
                           const std::string& architecture, const NvccSource& source, double seconds, bool as_nvrtc) {
  ScratchFolder scratch(sandbox);
  const std::string input = scratch.path() + "/kernel.cu", output = scratch.path() + "/kernel.so";
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
                  "-Xptxas",
                  "-v",
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
  command.cpu_seconds = static_cast<uint64_t>(seconds) + 1;
  const Subprocess::Result result = Subprocess::Run(sandbox.Wrap(command), kWallOfProcessorTime * seconds);

  CompileOutcome outcome;
  outcome.kernel.route = "nvcc";
  if (result.Succeeded()) {
    outcome.kernel.object = ReadWhole(output);
    std::vector<std::string> texts = ExtractPtx(outcome.kernel.object);
    if (texts.size() > 1)
      throw Error(KGRPO_ERROR_INTERNAL, "nvcc made " + std::to_string(texts.size()) + " PTX modules of one source");
    if (!texts.empty()) outcome.kernel.ptx = std::move(texts[0]);
    outcome.kernel.usage = ParsePtxasUsage(result.output);
    for (const std::string& cubin : ExtractCubins(outcome.kernel.object))
      ReadConstantBytes(cubin, &outcome.kernel.usage);
    return outcome;
  }
  if (result.output.find("sandbox_launcher:") != std::string::npos) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "nvcc cannot be run in the sandbox: " + result.output);
  }
  outcome.verdict = "not_compiled";
  if (result.timed_out || result.signal != 0 || (result.exit_code > 128 && result.exit_code != kPtxasRefuses)) {
    outcome.transient = true;
    outcome.diagnosis = "The compiler did not finish within its limits of time and memory.";
  } else {
    outcome.transient = FailedForTheMoment(result.output);
    outcome.diagnosis = "It does not compile. The compiler says:" + QuoteCompilerOutput(result.output, scratch.path());
  }
  return outcome;
}

}  // namespace

bool NeedsArchitectureVariant(const CompileOutcome& outcome, int compute_capability) {
  const std::string refusal = "not supported on .target 'sm_" + std::to_string(compute_capability) + "'";
  return compute_capability >= 90 && outcome.diagnosis.find(refusal) != std::string::npos;
}

CompileOutcome CompileWithNvcc(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& library_directory,
                               int compute_capability, const NvccSource& source, double seconds, bool as_nvrtc) {
  std::string architecture = std::to_string(compute_capability);
  const auto compile = [&] {
    return CompileOnce(toolkit, sandbox, library_directory, architecture, source, seconds, as_nvrtc);
  };
  CompileOutcome outcome = compile();
  // The option is not documented: a toolkit may not have it.
  if (as_nvrtc && outcome.diagnosis.find("invalid option: --sharedmem32") != std::string::npos) {
    as_nvrtc = false;
    outcome = compile();
  }
  if (NeedsArchitectureVariant(outcome, compute_capability)) {
    architecture += "a";
    outcome = compile();
  }
  return outcome;
}

}  // namespace kgrpo::evaluator
