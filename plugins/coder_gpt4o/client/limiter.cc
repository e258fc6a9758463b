#include "coder_gpt4o/client/limiter.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include <kgrpo/support/sha256.h>

namespace kgrpo::coder_gpt4o {

Limiter::Limiter(const ClientOptions& options) : options_(options), most_(options.max_concurrency) {
  options_.api_key.clear();
  options_.headers.clear();
  options_.secrets.clear();
}

void Limiter::Learn(double now, const ResponseHeaders& headers, uint64_t tokens) {
  const auto learn = [&](const LimitSnapshot& limit, double needed) {
    const double left = std::min(limit.remaining.value_or(needed), limit.limit.value_or(0));
    needed = std::min(needed, limit.limit.value_or(0));
    if (left >= needed || !limit.reset) return;
    // What is used comes back by the reset: 10,000 with 9,999 left, whole again in 8.64 s, is a limit of a day.
    const double wait = *limit.reset * (needed - left) / (*limit.limit - left);
    if (wait <= options_.max_outage_seconds) Pause(now, wait);
  };
  learn(headers.requests, 1);
  left_ = std::max(1.0, headers.requests.remaining.value_or(0));
  left_until_ = headers.requests.remaining ? now + headers.requests.reset.value_or(0) : 0;
  learn(headers.tokens, static_cast<double>(tokens));
}

double Limiter::Wait(double now) const {
  if (!down_) return Paused(now);
  if (probing_) return std::numeric_limits<double>::infinity();
  return std::max(Paused(now), next_probe_ - now);
}

void Limiter::OnAlive() {
  down_ = probing_ = false;
  failures_ = 0;
  requests_.clear();
}

void Limiter::OnFailure(double now, double attempt_seconds, uint64_t request, bool probe) {
  // One prompt that crashes the server at each retry is no outage. Before the service was first reached, no prompt can
  // have crashed it, and no request may use up its attempts.
  constexpr size_t kRequests = 3;
  const double most = 2 * options_.probe_pause_cap_seconds + attempt_seconds;
  outage_ = failures_ == 0 ? 0 : outage_ + std::min(now - last_failure_, most);
  last_failure_ = now;
  ++failures_;
  if (requests_.size() < kRequests) requests_.insert(request);
  if (!down_) {
    const bool many = failures_ >= options_.outage_failures && requests_.size() >= kRequests;
    down_ = many || (!contacted_ && failures_ >= std::min(options_.outage_failures, options_.max_attempts));
    pause_ = options_.probe_pause_seconds;
    if (!down_) return;
  } else if (probe && probing_) {
    probing_ = false;
    pause_ = std::min(options_.probe_pause_cap_seconds, pause_ * 2);
  } else {
    return;
  }
  next_probe_ = now + std::min(pause_, std::max(0.0, SecondsLeft()));
}

double BackoffSeconds(double base, double cap, uint64_t seed, std::string_view body, uint32_t retry) {
  // The jitter is keyed by the request's content, since the order in which threads send requests is random.
  const std::string digest = Sha256OfParts({std::to_string(seed), body, std::to_string(retry)});
  uint64_t bits = 0;
  std::from_chars(digest.data(), digest.data() + 16, bits, 16);
  const double uniform = std::ldexp(static_cast<double>(bits >> 11), -53);
  return uniform * std::min(cap, std::ldexp(base, static_cast<int>(std::min(retry, 64U)) - 1));
}

}  // namespace kgrpo::coder_gpt4o
