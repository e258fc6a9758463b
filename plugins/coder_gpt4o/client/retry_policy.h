// Decides when a failed request is retried: exponential backoff with full jitter, and a budget that keeps retries from
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

  // Seconds to wait before a retry; the first retry is 1. A pure function of the seed, the body and the retry number,
  // so that threads and the order of requests do not change it.
  double Seconds(std::string_view body, uint32_t retry) const;

 private:
  double base_;
  double cap_;
  uint64_t seed_;
};

// Limits retries by a budget with two parts. The reserve starts at `reserve` and refills by `per_second` up to it. Each
// request adds `ratio` for one minute: long enough for its own failures, too short for an hour of successes to pay for
// a storm of retries. Over any time at most reserve + ratio * requests + per_second * seconds retries are sent.
class RetryBudget {
 public:
  RetryBudget(double ratio, double per_second, double reserve)
      : ratio_(ratio), per_second_(per_second), reserve_(reserve), saved_(reserve) {}

  void OnRequest(double now);
  bool Take(double now);    // takes one retry if one is available
  double Wait(double now);  // seconds until one is available if no request comes; 0: now
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
  double saved_;                 // what is left of the reserve
  double earned_ = 0;            // the sum of earnings_
  std::deque<Earned> earnings_;  // one entry for each second, oldest first
  double at_ = 0;                // the time at which saved_ was computed
  bool started_ = false;
};

}  // namespace kgrpo::coder_gpt4o
#endif
