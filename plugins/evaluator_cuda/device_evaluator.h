// Judges one kernel for one problem on a GPU: compiles it, runs it in a sandboxed worker on memory that this process
// owns, over several sizes and seeds, compares with the oracle, and times it beside the reference kernel. The steps
// are described in docs/evaluator_cuda.md, the verdicts in docs/judging.md. Called by the evaluator's plugin and by the
// tests.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kgrpo/sdk/error.h>

#include "evaluator_cuda/clocks.h"
#include "evaluator_cuda/device.h"
#include "evaluator_cuda/interpreted_checks.h"
#include "evaluator_cuda/profiler.h"
#include "evaluator_cuda/timer.h"
#include "evaluator_cuda/worker_pool.h"
#include "judge/compile/compiler.h"           // Compiler
#include "judge/front/evaluator.h"            // BackendOptions
#include "judge/process/torch_worker.h"       // TorchWorker
#include "judge/sandbox/sandbox.h"            // Sandbox
#include "judge/verdict/kernel_evaluation.h"  // KernelEvaluation, Trouble

namespace kgrpo::evaluator_cuda {

// The SHA-256, in hexadecimal, of the sources of evaluator_cuda and judge (version.cc).
const char* SourceDigest();

using evaluator::KernelEvaluation;
using evaluator::OpenProblem;

class DeviceEvaluator {
 public:
  struct Options : evaluator::BackendOptions {
    int device = 0;
    std::string tvm_ffi;   // evaluator::TvmFfi::Find
    size_t compilers = 2;  // compile processes kept ready
    double call_seconds = 10;
    TimingOptions timing;   // memory_bytes: of each side; less where other programs use the device
    size_t workers = 8;     // kept ready at most
    bool interpret = true;  // the correctness cases too, with every check of the interpreter
    bool profile = false;   // every correct kernel, by Nsight Compute: seconds each
    bool pytorch = false;   // DeviceEvaluators: PyTorch is timed with each baseline
    // Called when device memory is short, now and then while the evaluator waits for it. [any thread]
    std::function<void(const std::string& why)> on_wait_for_memory;
    // Takes the device for the caller's thread while the returned object lives.
    std::function<std::shared_ptr<void>(const std::string& device)> lock_device;
  };

  // Finds device and toolkit, and runs a kernel in a sandboxed worker on lent memory. Takes the device for a moment.
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where one of them cannot be had, OutOfMemory where the device has no room.
  explicit DeviceEvaluator(const Options& options);
  ~DeviceEvaluator();

  // Judges `source`. `key` is secret: inputs are drawn from it. `thorough` takes the reference compile route,
  // twice the seeds and half the timing error. Besides the time, the metrics hold "speedup", "speedup_low" and
  // "speedup_high": the ratio to the reference kernel, which ran beside it. Throws Error only where judging is
  // impossible. `show_hidden`: the diagnosis names sizes that no candidate's author may know. [any thread]
  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                            bool show_hidden = false);

  // Times PyTorch's own computation of the problem on this device, at the timing size. Adds the time to the metrics of
  // `baseline`, the reference's evaluation. If it cannot be measured, the diagnosis says why. [any thread]
  void TimePytorch(const OpenProblem& open, KernelEvaluation* baseline);

  // Ends the processes that hold reference kernels for the next evaluation of their problem. That evaluation starts new
  // ones. [any thread]
  void EndReferences();

  const Device& device() const { return device_; }
  // Compiler, sandbox, device, a line each.
  std::string Describe() const;
  // Everything but source, problem and key that an evaluation depends on.
  std::string Version() const;

 private:
  struct Case;
  struct ReferenceProcess;
  // The device, for the caller's thread alone while this lives.
  struct Held {
    std::shared_ptr<void> device_lock;
    std::unique_lock<std::mutex> lock;
  };
  Held HoldDevice();
  Held HoldNext();  // the place of the evaluation that has the device next
  // The processes that run a candidate: one, or several that take turns.
  using Workers = std::vector<std::unique_ptr<Worker>>;
  // What an evaluation needs on the device.
  struct Turn;
  std::unique_ptr<Turn> TakeTurn(const OpenProblem& open, const evaluator::CompiledKernel& kernel,
                                 const std::vector<Case>& cases, bool thorough);
  std::deque<std::unique_ptr<Worker>> TakeAhead(const OpenProblem& open, bool thorough, bool quick);

  std::vector<Case> DrawCases(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                              bool show_hidden) const;
  void LeaveOutImpossible(const OpenProblem& open, std::vector<Case>* cases);
  void StartCompiler();
  void StartDevice();
  void FindWorkerSandbox(const Worker::Options& worker);
  void PrepareInterpreter();
  void CheckWorks();
  void ReserveFor(const evaluator::Problem& problem, const std::vector<Case>& cases);
  void ReleaseLargeMemory();
  // Frees lent memory that a problem with large tensors took, while the device is still held: other evaluators of this
  // process may need it.
  class LargeMemory {
   public:
    explicit LargeMemory(DeviceEvaluator& evaluator) : evaluator_(evaluator) {}
    ~LargeMemory() { evaluator_.ReleaseLargeMemory(); }
    LargeMemory(const LargeMemory&) = delete;
    LargeMemory& operator=(const LargeMemory&) = delete;

   private:
    DeviceEvaluator& evaluator_;
  };
  Trouble RunCase(Worker& worker, const LentMemory& memory, const OpenProblem& open, const Case& one,
                  std::vector<std::vector<uint8_t>>* outputs, bool staged = false,
                  evaluator::WorstErrors* worst = nullptr);
  Trouble FindUnwritten(Worker& worker, const LentMemory& memory, const OpenProblem& open, const Case& one,
                        const std::vector<std::vector<uint8_t>>& outputs, std::vector<std::vector<bool>>* unwritten);
  Trouble Check(const OpenProblem& open, Worker& worker, const std::vector<Case>& cases, KernelEvaluation* evaluation);
  InterpretedChecks::Running Interpret(const OpenProblem& open, const evaluator::CompiledKernel& kernel,
                                       const std::vector<Case>& cases, bool thorough);
  Trouble LoadInto(std::unique_ptr<Worker> worker, const evaluator::CompiledKernel& kernel, Workers* workers);
  Trouble LoadInFreshWorker(const evaluator::CompiledKernel& kernel, bool quick, Workers* workers);
  std::optional<double> LaunchShare(const evaluator::Problem& problem);
  void Retire(Workers* workers);
  struct Look;
  Trouble TimeUntilSure(const OpenProblem& open, const evaluator::CompiledKernel& kernel, Workers* workers,
                        const std::vector<Case>& cases, Look look, KernelEvaluation* evaluation);
  Trouble Time(const OpenProblem& open, const evaluator::CompiledKernel& kernel, Workers* workers,
               const std::vector<Case>& cases, const Look& look, KernelEvaluation* evaluation);
  Trouble BlameFor(const Error& error, const OpenProblem& open, Workers* workers, const std::vector<Case>& cases,
                   const Look& look);
  void DrawOneSet(const TimingInputs& inputs, const LentMemory& memory);  // set 0 of round 0
  bool RunsAtTimingSize(const OpenProblem& open, Worker& reference, const Look& look);
  Trouble DescribeLaunch(const TimingInputs& inputs, Worker& worker, KernelEvaluation* evaluation);
  Profiler::Options ProfilerOptions(const Worker::Options& worker) const;
  void Profile(const OpenProblem& open, const evaluator::CompiledKernel& kernel, uint64_t key,
               KernelEvaluation* evaluation);
  Trouble Report(const OpenProblem& open, const Timing& timing, KernelEvaluation* evaluation) const;
  std::unique_ptr<Worker> WorkerFor(const evaluator::CompiledKernel& kernel, bool quick);
  using ReferenceKernel = std::shared_ptr<const evaluator::CompiledKernel>;
  ReferenceKernel CompiledReference(const OpenProblem& open, bool thorough);
  size_t CountReferences(const evaluator::Problem& problem, bool thorough, bool quick);
  Worker& ReferenceWorker(const OpenProblem& open, bool thorough, size_t which = 0);
  void GiveUpReferences(const OpenProblem& open);
  void DropReferences();
  std::vector<evaluator::Expected> ReferenceOutputs(const OpenProblem& open, Case one);
  void ThrowIfCancelled() const;
  bool OthersHeldUp() const;

  const Options options_;
  const std::string helper_directory_;
  const evaluator::CudaToolkit toolkit_;
  const evaluator::TvmFfi tvm_ffi_;
  const evaluator::Sandbox sandbox_;   // of compilers
  std::string no_gates_;               // why workers cannot use gates; "": they can
  evaluator::Sandbox worker_sandbox_;  // for workers: weaker than sandbox_ if CUDA does not work inside that one
  Device device_;
  bool busy_ = false;          // other programs' kernels ran on the device when the evaluator began
  uint64_t memory_bytes_ = 0;  // options_.timing.memory_bytes, or what the device has room for
  const uint64_t order_key_;   // Timer's
  Clocks clocks_;
  std::unique_ptr<evaluator::Compiler> compiler_;
  std::mutex next_mutex_;  // whose turn is next; taken before mutex_
  std::mutex launch_share_mutex_;
  std::map<std::string, double> launch_share_;  // of launches in a reference's time, by the problem's digest
  std::mutex kernels_mutex_;
  std::map<std::pair<std::string, bool>, std::shared_future<ReferenceKernel>>
      reference_kernels_;  // by digest, thorough
  std::mutex mutex_;       // guards what follows: the device serves one evaluation at a time
  LentMemory candidate_memory_, reference_memory_;
  std::deque<std::unique_ptr<Worker>> ahead_;        // taken for the evaluation at hand before it had the device
  std::mutex references_mutex_;                      // also guards the list, whose workers mutex_ guards
  std::list<ReferenceProcess> reference_processes_;  // the last one used first
  // A problem's reference after it has been timed.
  struct Reference {
    // Seconds of a call while no candidate lives, by [thorough][gated]; 0: not measured yet.
    double alone[2][2] = {{0, 0}, {0, 0}};
  };
  std::map<std::string, Reference> reference_;  // by the problem's digest
  std::unique_ptr<WorkerPool> workers_;
  evaluator::TorchWorker pytorch_;
  std::unique_ptr<Profiler> profiler_;  // where it is asked for
  std::unique_ptr<InterpretedChecks> interpreted_checks_;
  std::string not_interpreted_;  // why interpreted_checks_ is null although it is asked for
};

}  // namespace kgrpo::evaluator_cuda
