// Processes that run candidates' host code: started ahead of need inside the sandbox, each used for one candidate and
// then ended. Used by the evaluator.
#ifndef KGRPO_INTERPRETER_WORKER_POOL_H
#define KGRPO_INTERPRETER_WORKER_POOL_H

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "evaluator_shared/sandbox.h"     // Sandbox, ScratchFolder
#include "interpreter/client/protocol.h"  // Request, Reply
#include "process/subprocess.h"           // Subprocess, Descriptor

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

  // Reads the next request and its payload. `seconds`: the time the worker may take; the time used is subtracted.
  Event Receive(Request* request, std::vector<uint8_t>* payload, double* seconds);

  // Sends the reply to the last request. If the worker is gone, the next Receive reports it.
  void Answer(const Reply& reply, const void* payload = nullptr, size_t payload_bytes = 0);

  // Call after kEnded. Returns the process's end; an exit code of 128 + n, the shells' convention, becomes signal n.
  evaluator::Subprocess::Result End();

  // True if the last event was kEnded because of malformed bytes rather than an end.
  bool malformed() const { return malformed_; }

 private:
  bool ReadExactly(void* data, size_t bytes, double* seconds, Event* event);

  std::unique_ptr<evaluator::ScratchFolder> scratch_;
  evaluator::Descriptor socket_;
  std::unique_ptr<evaluator::Subprocess> process_;
  bool malformed_ = false;
};

// Keeps `spares` workers waiting. [any thread]
class WorkerPool {
 public:
  WorkerPool(const evaluator::Sandbox& sandbox, std::string helper_directory, size_t spares, uint64_t cpu_seconds);

  // Returns a worker that has loaded nothing yet, and starts another one for later.
  std::unique_ptr<Worker> Take();

 private:
  std::unique_ptr<Worker> Start() const;

  const evaluator::Sandbox& sandbox_;
  const std::string helper_directory_;
  const size_t spares_;
  const uint64_t cpu_seconds_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Worker>> waiting_;
};

}  // namespace kgrpo::interpreter

#endif
