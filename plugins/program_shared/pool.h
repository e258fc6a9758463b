// Copies of a program that answer requests: started when there is work, kept, restarted when they fail. Used by
// reward_program, coder_program and evaluator_program.
#pragma once

#include <kgrpo/sdk/host.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "program_shared/message.h"

namespace kgrpo::program {

struct PoolOptions {
  std::vector<std::string> command;
  size_t copies = 1;
  double start_seconds = 60;    // from the start to the answer to `configure`
  double request_seconds = 60;  // from sending a request to its answer
  nlohmann::json options;       // the program's own
};

// A program's description of itself, sent at its start.
struct Hello {
  std::string name, version;
  size_t concurrency = 1;  // requests that one copy takes at once
  bool idle = false;       // a reward that answers "idle"
  // As `configure` answered, once the options were known:
  nlohmann::json metrics;                // declarations; may be null
  std::vector<std::string> suggestions;  // that a coder understands
};

// Any thread, but for construction and destruction.
class Pool {
 public:
  // Gets the result of the request, or the error, exactly once, on a thread of the pool or the caller's. Must not
  // throw.
  using Done = std::function<void(nlohmann::json result, std::exception_ptr error)>;

  // Starts the first copy and waits until it has taken its options. `role`: "reward". Throws kgrpo::Error with what
  // the program said.
  Pool(const Host& host, std::string role, PoolOptions options);
  // Ends every copy. Requests that are left are answered with KGRPO_ERROR_CANCELLED.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  const Hello& hello() const { return hello_; }
  // "a program: its command (name, version 1.2)"
  const std::string& description() const { return description_; }

  // Queues a request. A copy that breaks down is started anew, and what it had not answered is sent once more to
  // another; a request that is not answered in time, or breaks down two copies, fails with KGRPO_ERROR_UNAVAILABLE.
  void Submit(std::string_view method, const nlohmann::ordered_json& params, Done done);
  void SubmitText(std::string_view method, std::string_view params, Done done);  // `params` is JSON

  // Submits and waits. Throws KGRPO_ERROR_CANCELLED soon after the user asked to stop.
  nlohmann::json Call(std::string_view method, const nlohmann::ordered_json& params);
  nlohmann::json CallText(std::string_view method, std::string_view params);

  // Answers everything with KGRPO_ERROR_CANCELLED, and tells the copies that they need not go on.
  void Cancel();

 private:
  class Copy;

  struct Request {
    uint64_t id = 0;
    std::string method, line;
    Done done;  // empty once it was cancelled
    int attempts = 0;
    std::chrono::steady_clock::time_point deadline;
  };

  void Assign();  // hands requests to copies that have room; mutex_ is held
  void Returned(Copy& copy, size_t requests);
  // Notes that the copy is down. Puts `again`, and the requests of its inbox, at the front of the queue.
  void Lost(Copy& copy, size_t requests, std::deque<Request> again);

  static void AnswerCancelled(std::deque<Request>& requests);

  const Host host_;
  const std::string role_;
  const PoolOptions options_;
  Hello hello_;
  std::string description_;
  std::mutex mutex_;
  std::deque<Request> queue_;
  std::vector<std::unique_ptr<Copy>> copies_;
  uint64_t next_id_ = 2;              // 0 and 1 are the start's
  uint64_t cancelled_below_ = 0;      // requests with a lower id are answered with KGRPO_ERROR_CANCELLED
  std::atomic<bool> ending_ = false;  // set under mutex_; nothing is assigned any more
};

}  // namespace kgrpo::program
