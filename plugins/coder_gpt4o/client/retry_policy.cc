#include "coder_gpt4o/client/retry_policy.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "digest/sha256.h"
#include "random/keyed.h"

namespace kgrpo::coder_gpt4o {

double Backoff::Seconds(std::string_view body, uint32_t retry) const {
  // The request's name is its content: the order in which threads send requests is chance.
  const std::string digest = Sha256(body);
  uint64_t name = 0;
  std::from_chars(digest.data(), digest.data() + 16, name, 16);
  const double most = std::min(cap_, std::ldexp(base_, static_cast<int>(std::min(retry, 64U)) - 1));
  return most * KeyedStream(seed_, "coder_gpt4o/backoff", {name, retry}).Uniform();
}

void RetryBudget::Refill(double now) {
  level_ = Level(now);
  at_ = now;
  started_ = true;
}

double RetryBudget::Level(double now) const {
  return started_ ? std::min(reserve_, level_ + per_second_ * std::max(0.0, now - at_)) : level_;
}

void RetryBudget::OnRequest(double now) {
  Refill(now);
  level_ = std::min(reserve_, level_ + ratio_);
}

double RetryBudget::Take(double now) {
  Refill(now);
  level_ -= 1;
  return level_ >= 0 ? 0 : -level_ / per_second_;
}

}  // namespace kgrpo::coder_gpt4o
