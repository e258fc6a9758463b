// Limits how fast requests are sent: requests and tokens a minute as the service reports them, and pauses that it asks
// for. Used by dispatcher.cc, on its thread. Times are seconds of one steady clock, given by the caller.
#pragma once

#include <cstdint>
#include <string_view>

#include "coder_gpt4o/client/response_headers.h"

namespace kgrpo::coder_gpt4o {

// The remaining budget of one limit, refilled at a constant rate up to its capacity. Unlimited until it is given a
// capacity.
class TokenBucket {
 public:
  // Seconds until `amount` is available. An amount above the capacity waits for a full bucket.
  double Wait(double now, double amount) const;
  void Take(double now, double amount);

  // Takes the remaining amount that the service reports. With several requests in flight the report is older than the
  // level here, so it may lower the level but never raise it. The rate is computed from the reset time: a limit of
  // 10,000 with 9,999 left that is full again in 8.64 s is a daily limit, whatever the header's name says.
  void Learn(double now, const LimitSnapshot& snapshot);

 private:
  double Level(double now) const;

  bool limited_ = false;
  double capacity_ = 0;
  double rate_ = 0;  // per second
  double level_ = 0;
  double at_ = 0;  // the time at which level_ was computed
};

class RateLimits {
 public:
  // `longest_wait`: seconds that a reported limit may hold a request back. A header that asks
  // for more is tested by sending: if the limit is real, the service answers 429 and how long to wait.
  explicit RateLimits(double longest_wait) : longest_wait_(longest_wait) {}

  // Seconds until a request of `tokens` tokens may be sent; 0: now.
  double Wait(double now, uint64_t tokens) const;
  void Take(double now, uint64_t tokens);
  void Learn(double now, const ResponseHeaders& headers);

  // Stops sending for `seconds`: the service's retry-after, or the client's own pause after an overload without one. A
  // shorter pause does not end a longer one.
  void Pause(double now, double seconds);

 private:
  TokenBucket learnt_requests_;
  TokenBucket learnt_tokens_;
  double longest_wait_;
  double paused_until_ = 0;
};

// Exponential backoff with full jitter ("Exponential backoff and jitter", AWS architecture blog, 2015): seconds before
// the n-th retry of a request, uniform between 0 and min(cap, base * 2^(n-1)). A pure function of its arguments, so
// that threads and the order of requests do not change it.
double BackoffSeconds(double base, double cap, uint64_t seed, std::string_view body, uint32_t retry);

// Limits the requests in flight for a service that reports overload without naming a limit, or lets requests time out.
// Each overload lowers the limit by one; each answer raises it by 0.1, or by 1/limit if that is more. So the limit
// falls to the number of requests that are answered, and is stable while there is one overload for ten answers.
class ConcurrencyLimit {
 public:
  // The pause when all requests in flight are overloads: min(cap, base * 2^(n-1)) for the n-th pause since an answer.
  ConcurrencyLimit(uint32_t most, double pause_base_seconds, double pause_cap_seconds)
      : most_(most), limit_(most), pause_base_(pause_base_seconds), pause_cap_(pause_cap_seconds) {}

  void OnAnswer();
  // `sent_at`: when the request was sent. Returns the seconds for which nothing should be sent: 0 unless all requests
  // in flight were overloads, and then nonzero once for each such set of requests.
  double OnOverload(double now, double sent_at);

  uint32_t Limit() const { return static_cast<uint32_t>(limit_); }

 private:
  double most_;
  double limit_;
  double pause_base_;
  double pause_cap_;
  double overloads_ = 0;  // since the last answer
  int pauses_ = 0;        // likewise
  double paused_at_ = -1;
};

}  // namespace kgrpo::coder_gpt4o
