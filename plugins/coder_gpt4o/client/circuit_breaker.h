// Distinguishes an outage of the service from failures of single requests; during an outage it lets only probes out.
// Used by dispatcher.cc, on its thread. Times are seconds of one steady clock, given by the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

namespace kgrpo::coder_gpt4o {

struct BreakerOptions {
  uint32_t failures = 8;
  uint32_t failures_at_first = 8;  // before the service was first reached; any number of requests
  double pause_seconds = 5;
  double pause_cap_seconds = 60;
  double max_outage_seconds = std::numeric_limits<double>::infinity();        // after this, waiting is given up
  double max_first_outage_seconds = std::numeric_limits<double>::infinity();  // before the service was first reached
};

// Closed: requests are sent. Open: none is sent until the pause is over; then a single request is sent as a probe. A
// failed probe doubles the pause. The pause never extends beyond the longest permitted outage, at whose end the last
// probe is sent. Any answer of the service, to a probe or to an earlier request, closes the breaker.
class CircuitBreaker {
 public:
  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  bool Open() const { return open_; }
  double Wait(double now) const;  // seconds until the next request may go; infinity while a probe is under way

  // Counts a request that is being sent. Returns true if it is a probe; the caller then reports its outcome by exactly
  // one of OnAlive, OnFailure and OnProbeDropped.
  bool OnSend();
  void OnContact() { contacted_ = true; }  // a server answered that may be the service
  bool Contacted() const { return contacted_; }
  void OnAlive();  // the service answered, possibly with a refusal
  // The service did not answer; the attempt took `attempt_seconds`.
  void OnFailure(double now, double attempt_seconds, uint64_t request, bool probe);
  void OnProbeDropped();  // the probe was cancelled

  // Seconds that the outage has lasted, as of its last failure; 0 while closed. Time without attempts does not count:
  // between two failures at most two of the longest pauses and the attempt itself are added.
  double OutageSeconds() const { return open_ ? outage_ : 0; }
  // Seconds that the outage may still last, as of its last failure; 0 or less: waiting is given up.
  double SecondsLeft() const {
    return (contacted_ ? options_.max_outage_seconds : options_.max_first_outage_seconds) - OutageSeconds();
  }
  // Seconds that a probe sent now may wait for the service: the time left, but at least the shortest pause.
  double ProbeSeconds(double now) const;

 private:
  // The number of distinct requests that must have failed: one prompt that crashes the server at each retry is not an
  // outage. Not required before the service was first reached, since no prompt can have crashed it.
  static constexpr size_t kRequests = 3;

  void Pause(double now) { next_probe_ = now + std::min(pause_, std::max(0.0, SecondsLeft())); }

  BreakerOptions options_;
  bool contacted_ = false;
  bool open_ = false;
  bool probing_ = false;
  uint32_t failures_ = 0;        // since the last answer
  std::set<uint64_t> requests_;  // the ids that failed, at most kRequests
  double last_failure_ = 0;
  double outage_ = 0;  // seconds from the first of these failures to the last
  double pause_ = 0;
  double next_probe_ = 0;
};

}  // namespace kgrpo::coder_gpt4o
