// Decides when an attempt may be sent: as many at once as the service answers, none during a pause that it asks for,
// and one at a time while it is down. Used by dispatcher.cc, on its thread. Times are seconds of one steady clock,
// given by the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "coder_gpt4o/client/response_headers.h"
#include "coder_gpt4o/completion_client.h"

namespace kgrpo::coder_gpt4o {

class Limiter {
 public:
  explicit Limiter(const ClientOptions& options);

  // ---- the number in flight, learned as TCP learns its window ----
  // Nor more than the requests that the service reports as left, until its reset.
  size_t Most(double now) const { return static_cast<size_t>(now < left_until_ ? std::min(most_, left_) : most_); }
  void OnAnswer() { most_ = std::min<double>(options_.max_concurrency, most_ + std::max(0.1, 1 / most_)); }
  void OnOverload() { most_ = std::max(1.0, most_ - 1); }  // or a time-out with others in flight

  // ---- pauses ----
  // Sends nothing for `seconds`: the service's retry-after. A shorter pause does not end a longer one.
  void Pause(double now, double seconds) { paused_until_ = std::max(paused_until_, now + seconds); }
  // Pauses until the limits that the headers report have room for a request of `tokens` tokens, unless that takes
  // longer than an outage may last: then the request is sent, and a real limit is answered by 429.
  void Learn(double now, const ResponseHeaders& headers, uint64_t tokens);
  double Paused(double now) const { return std::max(0.0, paused_until_ - now); }

  // ---- outages ----
  // An outage begins after failures of several requests in a row, or of any one before the service was first reached.
  // It ends with any answer. During it attempts are probes, each after a longer pause; the last one is sent when the
  // outage has lasted as long as it may.
  bool Down() const { return down_; }
  double Wait(double now) const;  // seconds until the next attempt; infinity while a probe is in flight
  // Counts an attempt that is being sent. Returns true if it is a probe; the caller then reports its outcome by exactly
  // one of OnAlive, OnFailure and OnProbeDropped.
  bool OnSend() { return probing_ = down_; }
  void OnContact() { contacted_ = true; }  // a server answered that may be the service
  bool Contacted() const { return contacted_; }
  void OnAlive();  // the service answered, possibly with a refusal
  // The service did not answer; the attempt took `attempt_seconds`.
  void OnFailure(double now, double attempt_seconds, uint64_t request, bool probe);
  void OnProbeDropped() { probing_ = false; }

  // Seconds that the outage has lasted, as of its last failure. Time without attempts does not count: between two
  // failures at most two of the longest pauses and the attempt itself are added.
  double OutageSeconds() const { return down_ ? outage_ : 0; }
  // Seconds that the outage may still last, as of its last failure; 0 or less: waiting is given up.
  double SecondsLeft() const {
    return (contacted_ ? options_.max_outage_seconds : options_.max_first_outage_seconds) - OutageSeconds();
  }
  // Seconds that a probe sent now may wait for the service: the time left, but at least the shortest pause.
  double ProbeSeconds(double now) const {
    return std::max({1.0, options_.probe_pause_seconds, SecondsLeft() - (now - last_failure_)});
  }

 private:
  ClientOptions options_;  // without secrets
  double most_;
  double left_ = 0, left_until_ = 0;
  double paused_until_ = 0;
  bool contacted_ = false, down_ = false, probing_ = false;
  uint32_t failures_ = 0;        // since the last answer
  std::set<uint64_t> requests_;  // the ids that failed, a few
  double outage_ = 0;            // seconds from the first of these failures to the last
  double last_failure_ = 0, pause_ = 0, next_probe_ = 0;
};

// Exponential backoff with full jitter ("Exponential backoff and jitter", AWS architecture blog, 2015): seconds before
// the n-th retry of a request, uniform between 0 and min(cap, base * 2^(n-1)). A pure function of its arguments, so
// that threads and the order of requests do not change it.
double BackoffSeconds(double base, double cap, uint64_t seed, std::string_view body, uint32_t retry);

}  // namespace kgrpo::coder_gpt4o
