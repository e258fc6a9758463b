// The evaluator's side of one worker process (worker/worker_main.cc): starts it in the sandbox, sends requests, waits
// for answers with a deadline, and reports how it ended. Used by the pool, the evaluator and the timer. One thread at a
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_cuda/gates.h"
#include "evaluator_cuda/worker/protocol.h"
#include "judge/compile/compiled_kernel.h"    // CompiledKernel
#include "judge/sandbox/sandbox.h"            // Sandbox, ScratchFolder
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "process/subprocess.h"               // Descriptor, Subprocess

namespace kgrpo::evaluator_cuda {

using evaluator::Trouble;

// One or more calls of the launch function.
struct Plan {
  struct Value {
    uint32_t memory = 0;  // which of the memories that the worker has opened, from 1; 0: a scalar
    uint64_t value = 0;   // an offset in it, or the scalar's bytes
  };
  std::vector<std::vector<Value>> calls;
  std::vector<PlanCopy> copies;  // on the default stream, right after the last call,
  // On the default stream before the first call: work that does not wait for that stream finds the old contents.
  std::vector<PlanCopy> staged;
  uint32_t copy_memory = 1;  // where both kinds of copies are made
  // The device waits before the staged copies, and again before the first call. Not allowed where Worker::no_gates()
  // gives a reason.
  bool gated = false;
};

constexpr int kFewConnections = 2, kUsualConnections = 8;

class Worker {
 public:
  struct Options {
    std::string helper_directory;
    std::string runtime_library;             // libcudart.so.13 of the toolkit
    std::vector<std::string> readable = {};  // further folders that it may read
    std::string device_uuid;                 // for CUDA_VISIBLE_DEVICES
    std::string device_node;   // /dev/nvidia0, the only one that it sees; "" where that is not known: all of them
    double call_seconds = 10;  // limit for one run of a plan
    // Hardware queues, as CUDA_DEVICE_MAX_CONNECTIONS sets them: streams beyond that number may wait for one another. A
    // context with fewer is made sooner.
    int connections = kFewConnections;
  };

  // Starts the process; its context is made while we go on. Throws Error(KGRPO_ERROR_UNAVAILABLE) where it cannot be.
  Worker(const evaluator::Sandbox& sandbox, const Options& options);

  // True if WaitReady returns, or throws, at once.
  bool HasAnswered() const;

  // Waits for the context. Throws Error(KGRPO_ERROR_UNAVAILABLE) with the reason where there will be none, OutOfMemory
  // where the device has no room for it.
  void WaitReady();

  // Time of a launch in this process, measured before anything was loaded. Processes are of two kinds: 1.6 or 1.9 us on
  // an H100.
  double launch_seconds() const { return launch_seconds_; }

  // The reason why plans cannot have gates. "": they can, since the memory that opens gates is sealed and this device
  // can read it.
  const std::string& no_gates() const { return no_gates_; }

  int connections() const { return options_.connections; }

  // Ends it at once; what it had comes back a little later.
  void Kill() { process_->Kill(); }
  // True if the process is gone, so that the destructor does not wait for its end.
  bool HasEnded() { return process_->Wait(0).has_value(); }

  // Has the worker open lent memory; the first one becomes its memory 1. Throws Error(KGRPO_ERROR_UNAVAILABLE): a
  // failure here is ours, not a candidate's.
  void Open(const std::vector<uint8_t>& ipc_handle);

  // Loads a candidate.
  Trouble Load(const evaluator::CompiledKernel& kernel);

  // Sends a plan ahead of time, so that only one short message is left to send when the clock runs.
  Trouble Prepare(const Plan& plan);

  // Runs the prepared plan, and returns when the worker says that its device has nothing left to do.
  Trouble Run(Done* done);

  // The same for a plan with gates, in three parts. Queue returns when all calls are launched. Stage lets the device
  // come to the gate before them, and returns whether it got there. Finish opens that gate. If the calls are not
  // launched soon, for example because they wait for the device, Queue opens all gates and sets `queued` to false: the
  // plan runs as one without gates.
  Trouble Queue(bool* queued);
  bool Stage();
  Trouble Finish(Done* done);

 private:
  enum class Heard { kMessage, kEnded, kLate, kNonsense };
  Heard Hear(Message* message, std::vector<char>* payload, double seconds);
  bool Send(Ask kind, const void* payload, size_t bytes);
  Trouble Expect(Say wanted, std::vector<char>* payload, double seconds);
  Trouble EndOf(Heard how);
  Trouble HearDone(Done* done);

  const Options options_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unique_ptr<evaluator::ScratchFolder> scratch_;
  Gates gates_;
  process::Descriptor socket_;
  std::unique_ptr<process::Subprocess> process_;
  double launch_seconds_ = 0;
  std::string no_gates_;
};

}  // namespace kgrpo::evaluator_cuda
