#include "coder_gpt4o/client/rate_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <kgrpo/support/sha256.h>

namespace kgrpo::coder_gpt4o {
double TokenBucket::Level(double now) const { return std::min(capacity_, level_ + rate_ * std::max(0.0, now - at_)); }

double TokenBucket::Wait(double now, double amount) const {
  if (!limited_) return 0;
  const double missing = std::min(amount, capacity_) - Level(now);
  // A shortage of 1e-9 of the capacity is a rounding error: waiting for it would cost an iteration of the loop.
  return missing <= 1e-9 * capacity_ ? 0 : missing / rate_;
}

void TokenBucket::Take(double now, double amount) {
  if (!limited_) return;
  level_ = Level(now) - amount;
  at_ = now;
}

void TokenBucket::Learn(double now, const LimitSnapshot& snapshot) {
  if (!snapshot.limit || !snapshot.remaining || *snapshot.limit < 1) return;
  const double limit = *snapshot.limit;
  const double remaining = std::min(*snapshot.remaining, limit);
  double rate = limited_ ? rate_ : limit / 60;
  if (snapshot.reset && *snapshot.reset > 0 && remaining < limit) rate = (limit - remaining) / *snapshot.reset;
  // From the whole limit in a month to the whole limit in a second: a header outside this range is wrong.
  rate = std::clamp(rate, limit / (31 * 86400.0), limit);
  level_ = limited_ ? std::min(Level(now), remaining) : remaining;
  at_ = now;
  capacity_ = limit;
  rate_ = rate;
  limited_ = true;
}

double RateLimits::Wait(double now, uint64_t tokens) const {
  const auto amount = static_cast<double>(tokens);
  const double learnt = std::max(learnt_requests_.Wait(now, 1), learnt_tokens_.Wait(now, amount));
  return std::max({paused_until_ - now, 0.0, learnt > longest_wait_ ? 0 : learnt});
}

void RateLimits::Take(double now, uint64_t tokens) {
  const auto amount = static_cast<double>(tokens);
  learnt_requests_.Take(now, 1);
  learnt_tokens_.Take(now, amount);
}

void RateLimits::Learn(double now, const ResponseHeaders& headers) {
  learnt_requests_.Learn(now, headers.requests);
  learnt_tokens_.Learn(now, headers.tokens);
}

void RateLimits::Pause(double now, double seconds) { paused_until_ = std::max(paused_until_, now + seconds); }

double BackoffSeconds(double base, double cap, uint64_t seed, std::string_view body, uint32_t retry) {
  // The jitter is keyed by the request's content, since the order in which threads send requests is random.
  const std::string digest = Sha256OfParts({std::to_string(seed), body, std::to_string(retry)});
  uint64_t bits = 0;
  std::from_chars(digest.data(), digest.data() + 16, bits, 16);
  const double uniform = std::ldexp(static_cast<double>(bits >> 11), -53);
  return uniform * std::min(cap, std::ldexp(base, static_cast<int>(std::min(retry, 64U)) - 1));
}

void ConcurrencyLimit::OnAnswer() {
  limit_ = std::min(most_, limit_ + std::max(0.1, 1 / limit_));
  overloads_ = 0;
  pauses_ = 0;
}

double ConcurrencyLimit::OnOverload(double now, double sent_at) {
  limit_ = std::max(1.0, limit_ - 1);
  overloads_ += 1;
  if (overloads_ <= limit_ || sent_at <= paused_at_) return 0;
  paused_at_ = now;
  return std::min(pause_cap_, std::ldexp(pause_base_, std::min(pauses_++, 30)));
}

}  // namespace kgrpo::coder_gpt4o
