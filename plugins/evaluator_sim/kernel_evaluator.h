// Judges one kernel for one problem: compiles it, runs it in a sandboxed worker on an interpreted GPU over several
// sizes and seeds, compares with the oracle, and models its time. The steps are described in
// docs/evaluator_sim.md, the verdicts in docs/judging.md. The backend of evaluator_sim; used by tools and tests too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_sim/open_problem.h"
#include "interpreter/interpreted_cases.h"  // InterpretedCases::Options
#include "interpreter/loaded_kernel.h"
#include "interpreter/tensors.h"
#include "interpreter/timing_calls.h"
#include "interpreter/worker_pool.h"
#include "judge/compile/compiler.h"           // Compiler
#include "judge/compile/triton_recorder.h"    // TritonRecorder
#include "judge/front/evaluator.h"            // Backend
#include "judge/sandbox/sandbox.h"            // Sandbox
#include "judge/verdict/kernel_evaluation.h"  // KernelEvaluation

namespace kgrpo::evaluator_sim {

using evaluator::KernelEvaluation;
using evaluator::Trouble;
using interpreter::BlockChoice;
using interpreter::CallRecord;
using interpreter::DeviceSession;
using interpreter::Tensors;
using interpreter::Worker;
using interpreter::WorkerPool;

class KernelEvaluator : public evaluator::Backend {
 public:
  struct Options : evaluator::BackendOptions {
    uint64_t seed = 0;              // with the problem, chooses the counted blocks
    std::string device = "h100";    // devices/NAME.yaml
    bool timing_size_only = false;  // no correctness cases: for a problem under KernelBench's rules
    uint32_t sampled_blocks = 24;   // at the timing size; eight times as many if lanes of an atomic may part
    double host_seconds = 10;
    uint64_t warp_instructions = 400'000'000;         // per call at a correctness size
    uint64_t timing_warp_instructions = 400'000'000;  // per call at the timing size
    size_t concurrency = 2;                           // workers and compile processes kept ready
    std::string python;                               // of candidates in Triton; "": python3
  };

  explicit KernelEvaluator(const Options& options);

  std::unique_ptr<const evaluator::OpenProblem> Open(const evaluator::Problem& problem,
                                                     const evaluator::EvaluatorOptions& options) const override;
  // `thorough` takes twice the seeds and twice the secretly chosen blocks. `open`: an OpenProblem of this namespace.
  KernelEvaluation Evaluate(const evaluator::OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                            bool show_hidden = false) override;
  // Checks the oracle or, without one, the reference kernel.
  std::vector<evaluator::ProblemFinding> FindDegenerateOutputs(const evaluator::OpenProblem& open) override;

  // Counts the launches of one call at the timing size, without a verdict on `source`. Used to fit
  // and to try the time model (bench/calibrate). [any thread]
  Trouble Count(const OpenProblem& open, const std::string& source, CallRecord* record);

  bool modelled() const override { return true; }
  std::string TimeSource() const override;
  std::string Describe() const override;
  std::string Version() const override;

 private:
  void ThrowIfCancelled() const;
  // Evaluates a candidate in CUDA C++ or PTX. `of_triton`: it was recorded from one in Triton.
  KernelEvaluation EvaluateCompiled(const OpenProblem& open, const std::string& source,
                                    const std::vector<evaluator::CorrectnessCase>& cases, uint64_t key, bool thorough,
                                    bool show_hidden, bool of_triton);

  // The expected outputs of a correctness case: by the oracle or, without one, by the reference kernel.
  std::vector<evaluator::Expected> ExpectedOf(const evaluator::OpenProblem& open, const evaluator::CorrectnessCase& one,
                                              const std::vector<evaluator::Argument>& arguments);

  // Who says whether the outputs of `cases` are right. The arguments outlive the result.
  interpreter::InterpretedCases::Options RulesOf(const evaluator::OpenProblem& open,
                                                 const std::vector<evaluator::CorrectnessCase>& cases);

  struct Run;        // one kernel under evaluation: kernel_evaluator_run.h
  struct TimedCall;  // the kernel's call at the timing size: kernel_evaluator_run.h

  Trouble Time(Run& run, KernelEvaluation* evaluation);
  static interpreter::TimingCalls CallsOn(Run& run, std::shared_ptr<const TimingInputs> inputs);
  Trouble RunTimed(Run& run, TimedCall* timed);
  Trouble CheckHost(Run& run, const CallRecord& first, double seconds);
  Trouble CheckWholeNumbers(Run& run);
  Trouble TryFurtherSizes(Run& run, KernelEvaluation* evaluation);
  Trouble NotTimed(const std::string& why) const;
  Trouble CheckTimed(Run& run, const TimedCall& timed);
  Trouble CheckSampledBlocks(Run& run, const TimedCall& timed, bool* covered);
  Trouble CheckAllBlocks(Run& run);
  Trouble CheckByChecker(Run& run, const interpreter::Tensors& tensors);
  std::shared_ptr<const TimingExpected> ExpectedAtTiming(const OpenProblem& open, TimingSet set = TimingSet::kTimed);
  std::vector<evaluator::Expected> ReferenceOutputs(const evaluator::OpenProblem& open,
                                                    const evaluator::CorrectnessCase& one,
                                                    const std::vector<evaluator::Argument>& arguments);
  std::unique_ptr<Run> Prepare(const OpenProblem& open, const std::string& source, bool thorough,
                               KernelEvaluation* evaluation);

  const Options options_;
  const std::string helper_directory_;
  const evaluator::CudaToolkit toolkit_;
  const evaluator::Sandbox sandbox_;
  const simt::Device device_;
  evaluator::Compiler compiler_;
  evaluator::TritonRecorder triton_;
  WorkerPool workers_;
  const interpreter::Interpreter interpreter_;
};

}  // namespace kgrpo::evaluator_sim
