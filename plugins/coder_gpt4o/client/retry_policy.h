// When a failed request is tried again: exponential backoff with full jitter, and a budget that keeps retries from
// multiplying the load on a service that struggles. Used by dispatcher.cc, on its thread. Times are seconds of
// one steady clock, given by the caller.
#ifndef KGRPO_CODER_GPT4O_CLIENT_RETRY_POLICY_H
#define KGRPO_CODER_GPT4O_CLIENT_RETRY_POLICY_H

#include <cstdint>
#include <deque>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// Full jitter ("Exponential backoff and jitter", AWS architecture blog, 2015): the n-th retry waits a time that is
// uniform between 0 and min(cap, base * 2^(n-1)), so that requests which failed together do not come back together.
class Backoff {
 public:
  Backoff(double base_seconds, double cap_seconds, uint64_t seed)
      : base_(base_seconds), cap_(cap_seconds), seed_(seed) {}

  // A pure function of the seed, the request's body and the number of the retry (1 is the first): neither threads nor
  // the order of requests change it.
  double Seconds(std::string_view body, uint32_t retry) const;

 private:
  double base_;
  double cap_;
  uint64_t seed_;
};

// The retries that may be sent: `reserve` at first, which time fills up again by `per_second`, and `ratio` for each
// request, for a minute: failures come after the requests that earn them, but an hour without one must not pay for a
// storm. So over any time at most reserve + ratio * requests + per_second * seconds are sent.
class RetryBudget {
 public:
  RetryBudget(double ratio, double per_second, double reserve)
      : ratio_(ratio), per_second_(per_second), reserve_(reserve), saved_(reserve) {}

  void OnRequest(double now);
  bool Take(double now);    // takes one retry, if one is there
  double Wait(double now);  // seconds until one is, if no request comes meanwhile; 0: now
  double Available(double now);

 private:
  struct Earned {
    double at;
    double amount;
  };

  void Advance(double now);

  double ratio_;
  double per_second_;
  double reserve_;
  double saved_;                 // of the reserve
  double earned_ = 0;            // the sum of those below
  std::deque<Earned> earnings_;  // of a second each, oldest first
  double at_ = 0;                // when saved_ was right
  bool started_ = false;
};

}  // namespace kgrpo::coder_gpt4o
#endif
