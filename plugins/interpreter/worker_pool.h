// Processes that run candidates' host code: started ahead of need inside the sandbox, each used for one candidate and
// then ended. Used by the evaluator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interpreter/client/protocol.h"  // Request, Reply
#include "judge/sandbox/sandbox.h"        // Sandbox, ScratchFolder
#include "process/pool.h"                 // ProcessPool, Subprocess, Descriptor

namespace kgrpo::interpreter {

// One worker. Destroying it ends the process. One thread at a time.
class Worker {
 public:
  Worker(const evaluator::Sandbox& sandbox, const std::string& helper_directory, uint64_t cpu_seconds);

  enum class Event {
    kRequest,  // a request was read
    kEnded,    // the process is gone, or sent a malformed request
    kTimeout,  // no complete request within the time
  };

  // Waits up to `most` seconds for the next request, or the process's end. False: not yet, and `seconds` are left.
  bool HasRequest(double most, double* seconds);

  // Processor time of the process so far; nothing where the system does not say.
  std::optional<double> ProcessorSeconds() const { return process_->ProcessorSeconds(); }

  // Reads the next request and its payload. `seconds`: the time the worker may take; the time used is subtracted.
  Event Receive(Request* request, std::vector<uint8_t>* payload, double* seconds);

  // Sends the reply to the last request. If the worker is gone, the next Receive reports it.
  void Answer(const Reply& reply, const void* payload = nullptr, size_t payload_bytes = 0);

  // Call after kEnded. Returns the process's end; an exit code of 128 + n, the shells' convention, becomes signal n.
  process::Subprocess::Result End();

  // True if the last event was kEnded because of malformed bytes rather than an end.
  bool malformed() const { return malformed_; }

 private:
  std::unique_ptr<evaluator::ScratchFolder> scratch_;
  process::Descriptor socket_;
  std::unique_ptr<process::Subprocess> process_;
  bool malformed_ = false;
};

// Keeps `spares` workers that have loaded nothing yet; each is taken by TakeAndReplace. [any thread]
class WorkerPool : public process::ProcessPool<Worker> {
 public:
  WorkerPool(const evaluator::Sandbox& sandbox, std::string helper_directory, size_t spares, uint64_t cpu_seconds);
};

}  // namespace kgrpo::interpreter
