// Decides which request is sent when (dispatcher.cc) and what follows from its outcome (dispatcher_outcomes.cc): the
// client's logic, without its thread. Used by completion_client.cc, which calls everything but Wake and Address from
// one thread.
#ifndef KGRPO_CODER_GPT4O_CLIENT_DISPATCHER_H
#define KGRPO_CODER_GPT4O_CLIENT_DISPATCHER_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coder_gpt4o/client/circuit_breaker.h"
#include "coder_gpt4o/client/endpoint.h"
#include "coder_gpt4o/client/rate_limits.h"
#include "coder_gpt4o/client/retry_policy.h"
#include "coder_gpt4o/client/transfer.h"
#include "coder_gpt4o/completion_client.h"

namespace kgrpo::coder_gpt4o {

class Dispatcher {
 public:
  using Done = std::function<void(Completion)>;

  explicit Dispatcher(const ClientOptions& options);  // throws as CompletionClient's constructor
  ~Dispatcher();                                      // every request was answered before

  // Takes a request; ids rise. It goes out in a Turn, at the earliest.
  void Accept(uint64_t id, CompletionRequest asked, Done done, double sent_at);

  // Answers every request with a smaller id: kCancelled, but where its answer is there.
  void CancelBefore(uint64_t id);

  // Sends what may go, waits until something happens and acts on it. Callbacks run in here.
  void Turn();

  void Wake() { curl_multi_wakeup(multi_.get()); }                // [any thread] ends the waiting of a Turn
  const std::string& Address() const { return endpoint_.Url(); }  // [any thread] for people: without its query

 private:
  using Outcome = Completion::Outcome;
  struct Request {
    uint64_t id = 0;
    CompletionRequest asked;
    Done done;
    double sent_at = 0;
    Completion result;          // as far as it is known: attempts and losses, then the rest
    uint32_t charged = 0;       // of the attempts: those that failed while there was no outage
    bool needs_budget = false;  // the next attempt is a retry that the budget must allow

    Losses Lost() const { return {result.lost_attempts, result.lost_silent, result.lost_bytes}; }
  };
  struct Attempt {
    Request request;
    std::unique_ptr<Transfer> transfer;
    bool probe = false;
    bool asked_usage = false;
  };
  using Waiting = std::map<uint64_t, Request>;  // by id: the oldest first
  struct End {                                  // of the run: what every further request is answered
    std::string word, message;
    int status = 0;
  };

  void WakeDelayed(double now);
  double StartWhatMay(double now);
  Waiting::iterator Next();
  void Start(Waiting::iterator next, double now);
  double NextEvent(double now);
  std::vector<CURL*> Silent() const;
  void ConcludeDone();
  void Conclude(CURL* handle, bool silent, CURLcode code);
  static bool NoteLost(Attempt& attempt);
  void OnFailure(Attempt attempt, Failure failure, double now);
  void TellLongWait(double now, double wait);
  void OnOverload(const Attempt& attempt, const Failure& failure, double now);
  void Retry(Attempt attempt, const Failure& failure, double now);
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
  RateLimits limits_;
  ConcurrencyLimit concurrency_;
  Backoff backoff_;
  RetryBudget budget_;
  CircuitBreaker breaker_;

  Waiting ready_;
  std::multimap<double, Request> delayed_;  // by the time when they are ready
  std::map<CURL*, Attempt> running_;

  bool answered_ = false;  // the service has answered a request
  bool stream_usage_;
  uint32_t refusals_ = 0;  // in a row
  std::string last_failure_;
  bool told_of_limit_ = false;  // a 429, whatever pause it brought
  double told_until_ = 0;       // the end of the last wait of all requests that was told
  std::optional<End> end_;
};

}  // namespace kgrpo::coder_gpt4o
#endif
