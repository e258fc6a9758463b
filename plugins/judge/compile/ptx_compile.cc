#include "judge/compile/ptx_compile.h"

#include <kgrpo/sdk/error.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "judge/compile/elf_tables.h"

namespace kgrpo::evaluator {

CompileOutcome AssemblePtx(const CudaToolkit& toolkit, const Sandbox& sandbox, int compute_capability,
                           const std::string& ptx, double seconds, const std::function<bool()>& stop) {
  const ScratchFolder scratch(sandbox);
  std::ofstream(scratch.path() + "/kernel.ptx", std::ios::binary) << ptx;
  std::string architecture = "sm_" + std::to_string(compute_capability);
  // PTX for an architecture's variant, such as sm_90a, is assembled for that one only.
  static const std::regex kTarget("\\.target[ \t]+(sm_[0-9]+)([af]?)\\b");
  std::smatch target;
  if (std::regex_search(ptx, target, kTarget) && target[1] == architecture) architecture += target[2];

  SandboxCommand command;
  command.argv = {toolkit.home + "/bin/ptxas", "-arch=" + architecture, "kernel.ptx", "-o", "kernel.cubin"};
  command.environment = {"PATH=" + toolkit.home + "/bin", "TMPDIR=" + scratch.path(), "LC_ALL=C"};
  command.scratch = scratch.path();
  command.readable = toolkit.readable;
  command.cpu_seconds = static_cast<uint64_t>(seconds) + 1;
  const process::Subprocess::Result result =
      process::Subprocess::Run(sandbox.Wrap(command), kWallOfProcessorTime * seconds, size_t{1} << 20, stop);
  if (stop && stop()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  if (result.exit_code == kLauncherFailed)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "ptxas cannot be run in the sandbox: " + result.output);

  CompileOutcome outcome;
  outcome.kernel.route = "ptx";
  if (result.Succeeded()) {
    std::ifstream file(scratch.path() + "/kernel.cubin", std::ios::binary);
    outcome.kernel.cubin = (std::ostringstream() << file.rdbuf()).str();
    outcome.kernel.ptx = ptx;
    outcome.kernel.usage = UsageOf(outcome.kernel.cubin, ptx);
    return outcome;
  }
  outcome.verdict = "not_compiled";
  if (result.timed_out || result.signal != 0) {
    outcome.transient = true;
    outcome.diagnosis = "ptxas did not finish within its limits of time and memory.";
  } else {
    outcome.transient = FailedForTheMoment(result.output);
    outcome.diagnosis = "The PTX does not assemble. ptxas says:" + QuoteCompilerOutput(result.output, scratch.path());
  }
  return outcome;
}

}  // namespace kgrpo::evaluator
