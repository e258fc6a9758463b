#include "coder_gpt4o/client/circuit_breaker.h"

#include <algorithm>
#include <limits>

namespace kgrpo::coder_gpt4o {
namespace {

constexpr double kLeastProbeSeconds = 1;  // a distant service needs this long to answer

}  // namespace

double CircuitBreaker::Wait(double now) const {
  if (!open_) return 0;
  if (probing_) return std::numeric_limits<double>::infinity();
  return std::max(0.0, next_probe_ - now);
}

bool CircuitBreaker::OnSend() {
  probing_ = open_;
  return open_;
}

void CircuitBreaker::OnAlive() {
  open_ = false;
  probing_ = false;
  failures_ = 0;
  requests_.clear();
}

void CircuitBreaker::OnFailure(double now, double attempt_seconds, uint64_t request, bool probe) {
  const double most = 2 * options_.pause_cap_seconds + attempt_seconds;
  outage_ = failures_ == 0 ? 0 : outage_ + std::min(now - last_failure_, most);
  last_failure_ = now;
  ++failures_;
  if (requests_.size() < kRequests) requests_.insert(request);
  if (!open_) {
    const bool many = failures_ >= options_.failures && requests_.size() >= kRequests;
    if (many || (!contacted_ && failures_ >= options_.failures_at_first)) {
      open_ = true;
      pause_ = options_.pause_seconds;
      Pause(now);
    }
  } else if (probe && probing_) {
    probing_ = false;
    pause_ = std::min(options_.pause_cap_seconds, pause_ * 2);
    Pause(now);
  }
}

double CircuitBreaker::ProbeSeconds(double now) const {
  return std::max({kLeastProbeSeconds, options_.pause_seconds, SecondsLeft() - (now - last_failure_)});
}

void CircuitBreaker::OnProbeDropped() { probing_ = false; }

}  // namespace kgrpo::coder_gpt4o
