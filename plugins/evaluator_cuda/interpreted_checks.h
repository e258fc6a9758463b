// The interpreter's checks beside a GPU: interprets a candidate's correctness cases with every check, on CPU threads,
// while the device runs the same cases and times them. Its findings (a race, an access out of bounds that the device
// lets pass, uninitialised memory) become verdicts; outputs are judged by the device's results only. Used by the
// evaluator.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "interpreter/worker_pool.h"
#include "judge/compile/compiled_kernel.h"    // CompiledKernel
#include "judge/front/open_problem.h"         // OpenProblem
#include "judge/inputs/inputs.h"              // Argument
#include "judge/problem/cases.h"              // CorrectnessCase
#include "judge/problem/problem.h"            // Problem
#include "judge/sandbox/sandbox.h"            // Sandbox
#include "judge/verdict/comparison.h"         // Expected
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "simt/simt.h"                        // Device

namespace kgrpo::evaluator_cuda {

using evaluator::Trouble;

// The interpreter's finding on a candidate.
struct InterpretedFinding {
  Trouble trouble;                 // what ended the interpretation, or none
  bool transient = false;          // may be the moment's: a busy machine, a process that could not be started
  std::vector<std::string> notes;  // facts that accuse nobody
  std::string not_judged;          // KernelEvaluation's
};

// True for trouble that only the interpreter finds: what may have no effect on a device, such as a race, and wrong
// values at a size that only it ran. False for host code that needs something our runtime lacks.
bool IsFinding(const Trouble& interpreted);

// True if a finding could explain the device's result; else there is no need to wait for one.
bool MayBeExplained(const Trouble& device);

// Combines the verdicts of device and interpreter on the correctness cases. The device's verdict holds where no check
// could explain it (a crash, a forbidden call). Else the interpreter's finding holds, if there is one; it names line
// and thread. If both end alike, in a trap or in a time limit, the interpreter's verdict is taken, since it names the
// place.
Trouble Decide(const Trouble& device, const Trouble& interpreted);

// [any thread]
class InterpretedChecks {
 public:
  // At most `threads` candidates are interpreted at once, on a device as devices/`device`.yaml describes it. `sandbox`
  // outlives this. Throws Error where the helper programs or that file are missing.
  InterpretedChecks(const evaluator::Sandbox& sandbox, const std::string& helper_directory, const std::string& device,
                    size_t threads, std::function<bool()> cancelled);

  // The expected outputs of case `i`; null if only a GPU can compute them.
  using ExpectedOf =
      std::function<std::vector<evaluator::Expected>(size_t i, const std::vector<evaluator::Argument>& arguments)>;

  // The problem's compiled reference kernel, which tells in which of the further cases a finding counts. Called if
  // there is one.
  using ReferenceOf = std::function<std::shared_ptr<const evaluator::CompiledKernel>()>;

  // A candidate under interpretation. The destructor stops the run and waits for its end. A run that waits for a thread
  // stops at once, any other before its next case.
  class Running {
   public:
    Running() = default;
    Running(Running&&) = default;
    Running& operator=(Running&&) = default;
    ~Running() { stop_.request_stop(); }
    bool valid() const { return future_.valid(); }
    bool IsDone() const { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
    // Waits. Throws Error(KGRPO_ERROR_CANCELLED) where the user wants the run to end.
    InterpretedFinding Get() { return future_.get(); }

   private:
    friend class InterpretedChecks;
    std::stop_source stop_{std::nostopstate};
    std::future<InterpretedFinding> future_;
  };

  // Starts to interpret a candidate. `problem` and `kernel` must outlive the returned object.
  // With `open`, the problem's, lines that no call ran are named, and sizes that may reach them are tried: there the
  // problem's oracle, checker or interpreted reference decides on values, too.
  Running Start(const evaluator::Problem& problem, const evaluator::CompiledKernel& kernel,
                std::vector<evaluator::CorrectnessCase> cases, ExpectedOf expected, ReferenceOf reference = {},
                const evaluator::OpenProblem* open = nullptr);

 private:
  InterpretedFinding Run(const evaluator::Problem& problem, const evaluator::CompiledKernel& kernel,
                         const std::vector<evaluator::CorrectnessCase>& cases, const ExpectedOf& expected,
                         const ReferenceOf& reference, const evaluator::OpenProblem* open, const std::stop_token& stop);

  const simt::Device device_;
  const std::function<bool()> cancelled_;
  interpreter::WorkerPool workers_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  size_t free_;  // guarded: of the threads
};

}  // namespace kgrpo::evaluator_cuda
