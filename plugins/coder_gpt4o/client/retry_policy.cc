#include "coder_gpt4o/client/retry_policy.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <kgrpo/support/sha256.h>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr double kEarningsLastSeconds = 60;

}  // namespace

double Backoff::Seconds(std::string_view body, uint32_t retry) const {
  // The jitter is keyed by the request's content, since the order in which threads send requests is random.
  const std::string digest = Sha256OfParts({std::to_string(seed_), body, std::to_string(retry)});
  uint64_t bits = 0;
  std::from_chars(digest.data(), digest.data() + 16, bits, 16);
  const double uniform = std::ldexp(static_cast<double>(bits >> 11), -53);
  return uniform * std::min(cap_, std::ldexp(base_, static_cast<int>(std::min(retry, 64U)) - 1));
}

void RetryBudget::Advance(double now) {
  // `now` may be earlier than at_: a request counts from the time it was sent.
  now = started_ ? std::max(at_, now) : now;
  if (started_) saved_ = std::min(reserve_, saved_ + per_second_ * (now - at_));
  at_ = now;
  started_ = true;
  while (!earnings_.empty() && earnings_.front().at <= now - kEarningsLastSeconds) {
    earned_ -= earnings_.front().amount;
    earnings_.pop_front();
  }
  if (earnings_.empty()) earned_ = 0;  // drops rounding errors
}

void RetryBudget::OnRequest(double now) {
  Advance(now);
  if (earnings_.empty() || earnings_.back().at + 1 <= at_) earnings_.push_back({at_, 0});
  earnings_.back().amount += ratio_;
  earned_ += ratio_;
}

double RetryBudget::Available(double now) {
  Advance(now);
  return saved_ + earned_;
}

bool RetryBudget::Take(double now) {
  if (Available(now) < 1) return false;
  double left = 1;
  while (left > 0 && !earnings_.empty()) {  // the earliest to expire is used first
    const double part = std::min(left, earnings_.front().amount);
    left -= part;
    earned_ -= part;
    earnings_.front().amount -= part;
    if (earnings_.front().amount <= 0) earnings_.pop_front();
  }
  saved_ -= left;
  return true;
}

double RetryBudget::Wait(double now) {
  const double missing = 1 - Available(now);
  // The 1e-9 keeps rounding from leaving less than one retry when the time is over.
  return missing <= 0 ? 0 : (missing + 1e-9) / per_second_;
}

}  // namespace kgrpo::coder_gpt4o
