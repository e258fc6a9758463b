// Judges one kernel for one problem: compiles it, runs it in a sandboxed worker on an interpreted GPU over several
// sizes and seeds, compares with the oracle, and models its time. The order of things and each verdict are described in
// docs/judging.md. Called by the evaluator's plugin and by the tests; uncached.
#ifndef KGRPO_EVALUATOR_SIM_JUDGE_H
#define KGRPO_EVALUATOR_SIM_JUDGE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_shared/compiler.h"    // Compiler
#include "evaluator_shared/inputs.h"      // Argument
#include "evaluator_shared/oracle.h"      // Oracle
#include "evaluator_shared/problem.h"     // Problem
#include "evaluator_shared/sandbox.h"     // Sandbox
#include "evaluator_shared/subprocess.h"  // Descriptor
#include "evaluator_sim/device_session.h"
#include "evaluator_sim/judgement.h"
#include "evaluator_sim/worker_pool.h"

namespace kgrpo::evaluator_sim {

// The arguments at the timing size, tensors in files (memfd) that device memory maps without copying.
struct TimingInputs {
  std::vector<evaluator::Argument> arguments;  // tensors without their bytes
  std::vector<uint64_t> bytes;                 // of each tensor, 0 for scalars
  std::vector<evaluator::Descriptor> files;    // of inputs and inouts; closed (-1) for the others
};

// A problem with what judging it needs again and again. [any thread]
class OpenProblem {
 public:
  // Throws Error for a malformed problem or an oracle that does not compile.
  OpenProblem(const std::string& directory, const std::string& cache_directory);
  ~OpenProblem();
  OpenProblem(const OpenProblem&) = delete;
  OpenProblem& operator=(const OpenProblem&) = delete;

  const evaluator::Problem& problem() const { return problem_; }
  const evaluator::Oracle* oracle() const { return oracle_.get(); }  // null: the reference kernel is the oracle

  // The inputs at the timing size: the same for every candidate, so kept as long as those of all problems together stay
  // within a gigabyte.
  std::shared_ptr<const TimingInputs> Timing() const;

 private:
  evaluator::Problem problem_;
  std::shared_ptr<const evaluator::Oracle> oracle_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const TimingInputs> timing_;
  mutable uint64_t kept_bytes_ = 0;
};

class Judge {
 public:
  struct Options {
    evaluator::SandboxMode sandbox = evaluator::SandboxMode::kAuto;
    evaluator::CompileRoute route = evaluator::CompileRoute::kFast;
    std::string cuda_home;         // "" to search
    std::string helper_directory;  // "" to search
    std::string device = "h100";   // devices/NAME.yaml
    int seeds = 2;                 // a size
    uint32_t sampled_blocks = 24;  // at the timing size
    double compile_seconds = 60;
    double host_seconds = 10;
    uint64_t warp_instructions = 400'000'000;
    size_t concurrency = 2;  // workers and compile processes kept ready
  };

  explicit Judge(const Options& options);

  // Judges `source`. `key` is secret: inputs are drawn from it. `thorough` takes the reference compile route, twice the
  // seeds and twice the sampled blocks. Throws Error only where judging is impossible. [any thread]
  Judgement Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough);

  // "H100 model"
  std::string TimeSource() const;
  // Compiler, sandbox, device, a line each.
  std::string Describe() const;
  // Everything but source, problem and key that a judgement depends on.
  std::string Version() const;

 private:
  struct Run;  // one kernel under judgement

  Trouble RunCase(Run& run, const evaluator::Bindings& size, const std::string& where, uint64_t key, int variant,
                  simt::Mode mode, bool repeat);
  Trouble Time(Run& run, Judgement* judgement);
  std::vector<evaluator::Expected> ReferenceOutputs(const OpenProblem& open,
                                                    const std::vector<evaluator::Argument>& arguments);
  std::unique_ptr<Run> Prepare(const OpenProblem& open, const std::string& source, bool thorough, Judgement* judgement);

  const Options options_;
  const std::string helper_directory_;
  const evaluator::CudaToolkit toolkit_;
  const evaluator::Sandbox sandbox_;
  const simt::Device device_;
  evaluator::Compiler compiler_;
  WorkerPool workers_;
};

}  // namespace kgrpo::evaluator_sim

#endif
