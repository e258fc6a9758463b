// How fast requests may be sent: requests and tokens a minute, as configured and as the service reports, and its
// requests to wait. Used by dispatcher.cc, on its thread. Times are seconds of one steady clock, given by the caller.
#ifndef KGRPO_CODER_GPT4O_CLIENT_RATE_LIMITS_H
#define KGRPO_CODER_GPT4O_CLIENT_RATE_LIMITS_H

#include <cstdint>

#include "coder_gpt4o/client/response_headers.h"

namespace kgrpo::coder_gpt4o {

// The remaining budget of one limit, refilled at a constant rate up to its capacity. Unlimited until it is given a
// capacity.
class TokenBucket {
 public:
  TokenBucket() = default;
  TokenBucket(double capacity, double per_second)
      : limited_(true), capacity_(capacity), rate_(per_second), level_(capacity) {}

  // Seconds until `amount` is there; what never fits waits for a full bucket.
  double Wait(double now, double amount) const;
  void Take(double now, double amount);

  // The service says what is left. Several requests are in flight, so its word is older than ours: it never raises the
  // level, which rises by time. The rate follows from how long it takes until all is there again: a limit of 10,000
  // with 9,999 left that is whole in 8.64 s is a daily one, whatever the header's name says.
  void Learn(double now, const LimitSnapshot& snapshot);

 private:
  double Level(double now) const;

  bool limited_ = false;
  double capacity_ = 0;
  double rate_ = 0;  // per second
  double level_ = 0;
  double at_ = 0;  // when level_ was right
};

class RateLimits {
 public:
  // 0: no limit of our own.
  RateLimits(double requests_per_minute, double tokens_per_minute);

  // Seconds until a request of so many tokens may be sent; 0: now.
  double Wait(double now, uint64_t tokens) const;
  void Take(double now, uint64_t tokens);
  void Learn(double now, const ResponseHeaders& headers);

  // Nothing is sent for so long: retry-after, or our own pause after an overload that named no time. A shorter pause
  // does not end a longer one.
  void Pause(double now, double seconds);

 private:
  TokenBucket own_requests_;
  TokenBucket own_tokens_;
  TokenBucket learnt_requests_;
  TokenBucket learnt_tokens_;
  double paused_until_ = 0;
};

// How many requests may be in flight where a service says that they are too many, but not how many it wants: each
// overload takes one away, each answer gives a tenth of one back (or 1/limit, where that is more). So the limit falls
// to the number of those that were answered, and holds while a tenth of the answers are overloads.
class ConcurrencyLimit {
 public:
  // The pause after a full set of overloads: base * 2^(n-1) for the n-th without an answer between, the cap at most.
  ConcurrencyLimit(uint32_t most, double pause_base_seconds, double pause_cap_seconds)
      : most_(most), limit_(most), pause_base_(pause_base_seconds), pause_cap_(pause_cap_seconds) {}

  void OnAnswer();
  // `sent_at`: when the request was sent. Returns for how long nothing should be sent: 0 but where all that were in
  // flight were overloads, and then once for each set of them.
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
#endif
