// The client's logic on a thread of its own: which request is sent when (dispatcher.cc), and what follows from its
// outcome (dispatcher_outcomes.cc). Used by completion_client.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coder_gpt4o/client/endpoint.h"
#include "coder_gpt4o/client/limiter.h"
#include "coder_gpt4o/client/transfer.h"
#include "coder_gpt4o/completion_client.h"

namespace kgrpo::coder_gpt4o {

class Dispatcher {
 public:
  using Done = std::function<void(Completion)>;

  explicit Dispatcher(const ClientOptions& options);  // throws as CompletionClient's constructor
  ~Dispatcher();                                      // cancels and answers all requests, then joins the thread

  // As CompletionClient's functions. [any thread]
  void Send(CompletionRequest asked, Done done);
  void Cancel();
  const std::string& Address() const { return endpoint_.Url(); }

 private:
  using Outcome = Completion::Outcome;
  struct Request {
    uint64_t id = 0;
    CompletionRequest asked;
    Done done;
    double sent_at = 0;
    Completion result;            // filled as it becomes known: attempts and losses first
    uint32_t charged = 0;         // attempts that failed outside of outages
    std::string unreadable = {};  // why the last success could not be read, and its text
  };
  struct Attempt {
    Request request;
    std::unique_ptr<Transfer> transfer;
    bool probe = false;
    bool asked_usage = false;
    uint32_t key = 0;  // the number of its key
  };
  using Waiting = std::map<uint64_t, Request>;  // by id: the oldest first
  struct End {                                  // the end of the run, which every further request is answered with
    std::string word, message;
    int status = 0;
  };

  void Run();
  // Ends every request with a smaller id: by its answer if that is complete, otherwise by kCancelled.
  void CancelBefore(uint64_t id);
  // Sends the requests that may be sent, waits for an event and handles it. Callbacks run within this call.
  void Turn();
  void WakeDelayed(double now);
  double StartWhatMay(double now);
  Waiting::iterator Next();
  void Start(Waiting::iterator next, double now);
  double NextEvent(double now);
  std::vector<CURL*> Silent() const;
  void ConcludeDone();
  void Conclude(CURL* handle, bool silent, CURLcode code);
  static void NoteLost(Attempt& attempt);
  void OnFailure(Attempt attempt, Failure failure, double now);
  bool RenewKey();
  bool MayRenewKey(const Attempt& attempt);
  void OnTimeout(Failure& failure);
  void TellLongWait(double now, double wait);
  void OnOverload(const Attempt& attempt, const Failure& failure, double now);
  void Retry(Attempt attempt, const Failure& failure, double now);
  void SendAgain(Request request, double when);
  void CheckOutage();
  void NoteAlive();
  void EndRun(std::string word, std::string message, int status);
  void Finish(Request& request, Outcome outcome, std::string failure = {}, std::string message = {});
  void FinishAsEnded(Request& request);
  void Notice(std::string message) const;
  void TellRetry(const Request& request, const Failure& failure, double wait) const;
  void Poll(double seconds);

  struct EndMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };

  ClientOptions options_;  // without the key
  bool resolved_ = false;  // the service's name is known
  Endpoint endpoint_;
  std::unique_ptr<CURLM, EndMulti> multi_;  // curl's many transfers on one thread
  Limiter limiter_;

  Waiting ready_;
  std::multimap<double, Request> delayed_;  // by the time when they are ready
  std::map<CURL*, Attempt> running_;

  bool answered_ = false;  // the service has answered a request
  bool stream_usage_;
  uint32_t refusals_ = 0;  // in a row
  std::string last_failure_;
  uint32_t key_ = 0;         // the number of the present key; 0: api_key_command has not run yet
  bool key_worked_ = false;  // it was answered
  bool key_expired_ = false;
  bool told_of_limit_ = false;  // a notice of a 429 was given
  bool told_of_timeouts_ = false;
  double told_until_ = 0;  // the end of the last wait that a notice announced
  std::optional<End> end_;

  std::mutex mutex_;            // guards the members below
  std::vector<Request> inbox_;  // sent, and not seen by the thread
  uint64_t next_id_ = 1, cancel_before_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kgrpo::coder_gpt4o
