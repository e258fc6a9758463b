#include "evaluator_shared/nvcc_compile.h"

#include <kgrpo/sdk/error.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "evaluator_shared/entry_shim.h"
#include "evaluator_shared/fatbin.h"

namespace kgrpo::evaluator {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

CompileOutcome CompileWithNvcc(const CudaToolkit& toolkit, const Sandbox& sandbox, const std::string& library_directory,
                               int compute_capability, const Problem& problem, const std::string& source,
                               double seconds) {
  ScratchFolder scratch(sandbox);
  const std::string input = scratch.path() + "/kernel.cu", output = scratch.path() + "/kernel.so";
  std::ofstream(input, std::ios::binary) << EntryPrologue(problem) << source << EntryEpilogue(problem);

  const std::string architecture = std::to_string(compute_capability);
  SandboxCommand command;
  command.argv = {toolkit.nvcc,
                  "-shared",
                  "-Xcompiler",
                  "-fPIC,-fno-diagnostics-show-caret",  // carets would quote whatever file a #line names
                  "-std=c++17",
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
  // nvcc with the runtime library is told to link none of its own: a PyPI toolkit lacks the development link.
  command.environment = {"PATH=" + toolkit.home + "/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + scratch.path(),
                         "HOME=" + scratch.path(), "LC_ALL=C"};
  command.scratch = scratch.path();
  command.readable = toolkit.readable;
  command.readable.push_back(library_directory);
  command.cpu_seconds = static_cast<uint64_t>(seconds) + 1;
  const Subprocess::Result result = Subprocess::Run(sandbox.Wrap(command), seconds);

  CompileOutcome outcome;
  outcome.kernel.route = "nvcc";
  if (result.Succeeded()) {
    outcome.kernel.object = ReadWhole(output);
    std::vector<std::string> texts = ExtractPtx(outcome.kernel.object);
    if (texts.size() > 1)
      throw Error(KGRPO_ERROR_INTERNAL, "nvcc made " + std::to_string(texts.size()) + " PTX modules of one source");
    if (!texts.empty()) outcome.kernel.ptx = std::move(texts[0]);
    outcome.kernel.usage = ParsePtxasUsage(result.output);
    return outcome;
  }
  if (result.output.find("sandbox_launcher:") != std::string::npos) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "nvcc cannot be run in the sandbox: " + result.output);
  }
  outcome.verdict = "not_compiled";
  if (result.timed_out || result.signal != 0 || result.exit_code > 128) {
    outcome.transient = true;
    outcome.diagnosis = "The compiler did not finish within its limits of time and memory.";
  } else {
    outcome.diagnosis = "It does not compile. The compiler says:" + QuoteCompilerOutput(result.output, scratch.path());
  }
  return outcome;
}

}  // namespace kgrpo::evaluator
