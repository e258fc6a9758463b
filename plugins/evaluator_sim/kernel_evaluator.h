// Judges one kernel for one problem: compiles it, runs it in a sandboxed worker on an interpreted GPU over several
// sizes and seeds, compares with the oracle, and models its time. The steps are described in
// docs/evaluator_sim.md, the verdicts in docs/judging.md. Called by the evaluator's plugin and by the tests; uncached.
#ifndef KGRPO_EVALUATOR_SIM_KERNEL_EVALUATOR_H
#define KGRPO_EVALUATOR_SIM_KERNEL_EVALUATOR_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_shared/compiler.h"           // Compiler
#include "evaluator_shared/kernel_evaluation.h"  // KernelEvaluation
#include "evaluator_shared/sandbox.h"            // Sandbox
#include "evaluator_sim/open_problem.h"
#include "interpreter/loaded_kernel.h"
#include "interpreter/tensors.h"
#include "interpreter/worker_pool.h"

namespace kgrpo::evaluator_sim {

using evaluator::KernelEvaluation;
using evaluator::Trouble;
using interpreter::BlockChoice;
using interpreter::CallRecord;
using interpreter::DeviceSession;
using interpreter::Tensors;
using interpreter::Worker;
using interpreter::WorkerPool;

class KernelEvaluator {
 public:
  struct Options {
    evaluator::SandboxMode sandbox = evaluator::SandboxMode::kAuto;
    evaluator::CompileRoute route = evaluator::CompileRoute::kFast;
    std::string cuda_home;          // "" to search
    std::string helper_directory;   // "" to search
    std::string device = "h100";    // devices/NAME.yaml
    int seeds = 2;                  // per size
    bool timing_size_only = false;  // no correctness cases: for a problem under KernelBench's rules
    uint32_t sampled_blocks = 24;   // at the timing size
    std::string compile_cache;      // evaluator::Compiler::Options::cache_file
    double compile_seconds = 60;
    double host_seconds = 10;
    uint64_t warp_instructions = 400'000'000;                         // per call at a correctness size
    uint64_t timing_warp_instructions = 400'000'000;                  // per call at the timing size
    size_t concurrency = 2;                                           // workers and compile processes kept ready
    std::function<void(const std::string& why)> on_compile_fallback;  // evaluator::Compiler::Options::on_fallback
    std::function<bool()> cancelled;                                  // asked between the runs of an evaluation
  };

  explicit KernelEvaluator(const Options& options);

  // Judges `source`. `key` is secret: inputs are drawn from it. `thorough` takes the reference compile route, twice the
  // seeds and twice the secretly chosen blocks. `show_hidden`: the diagnosis may name sizes that are hidden from
  // candidates' authors. Throws Error only if judging is impossible, with KGRPO_ERROR_CANCELLED if the user wants the
  // run to end. [any thread]
  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                            bool show_hidden = false);

  // Counts the launches of one call at the timing size, without a verdict on `source`. Used to fit
  // and to try the time model (tools/calibrate). [any thread]
  Trouble Count(const OpenProblem& open, const std::string& source, CallRecord* record);

  // The expected outputs of a correctness case: by the oracle or, without one, by the reference kernel. [any
  // thread]
  std::vector<evaluator::Expected> ExpectedOf(const OpenProblem& open, const evaluator::CorrectnessCase& one,
                                              const std::vector<evaluator::Argument>& arguments);

  // "H100 model"
  std::string TimeSource() const;
  // Compiler, sandbox, device, a line each.
  std::string Describe() const;
  // Names everything that an evaluation depends on, except source, problem and key.
  std::string Version() const;

 private:
  void ThrowIfCancelled() const;

  struct Run;        // one kernel under evaluation: kernel_evaluator_run.h
  struct TimedCall;  // the kernel's call at the timing size: kernel_evaluator_run.h

  Trouble Time(Run& run, KernelEvaluation* evaluation);
  Trouble RunTimed(Run& run, TimedCall* timed);
  Trouble StartAgain(Run& run);
  Trouble NotTimed(const std::string& why) const;
  Trouble CheckTimed(Run& run, const TimedCall& timed);
  Trouble CheckSampledBlocks(Run& run, const TimedCall& timed, bool* covered);
  Trouble CheckAllBlocks(Run& run);
  Trouble CheckByChecker(Run& run, const interpreter::Tensors& tensors);
  std::shared_ptr<const TimingExpected> ExpectedAtTiming(const OpenProblem& open);
  std::vector<evaluator::Expected> ReferenceOutputs(const OpenProblem& open, const evaluator::CorrectnessCase& one,
                                                    const std::vector<evaluator::Argument>& arguments);
  std::unique_ptr<Run> Prepare(const OpenProblem& open, const std::string& source, bool thorough,
                               KernelEvaluation* evaluation);

  const Options options_;
  const std::string helper_directory_;
  const evaluator::CudaToolkit toolkit_;
  const evaluator::Sandbox sandbox_;
  const simt::Device device_;
  evaluator::Compiler compiler_;
  WorkerPool workers_;
  const interpreter::Interpreter interpreter_;
};

}  // namespace kgrpo::evaluator_sim

#endif
