// Distinguishes an outage of the service from failures of single requests; during an outage it lets only probes out.
// Used by dispatcher.cc, on its thread. Times are seconds of one steady clock, given by the caller.
#ifndef KGRPO_CODER_GPT4O_CLIENT_CIRCUIT_BREAKER_H
#define KGRPO_CODER_GPT4O_CLIENT_CIRCUIT_BREAKER_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

namespace kgrpo::coder_gpt4o {

struct BreakerOptions {
  uint32_t failures = 8;
  uint32_t failures_at_first = 8;  // while the service was never there: of however few requests
  double pause_seconds = 5;
  double pause_cap_seconds = 60;
  double max_outage_seconds = std::numeric_limits<double>::infinity();        // then there is no use in waiting
  double max_first_outage_seconds = std::numeric_limits<double>::infinity();  // while the service was never there
};

// Closed: requests go out. Open: none does until the pause is over; then one does, the probe. A probe that fails
// doubles the pause, which never lasts beyond the longest outage: the last probe begins at its end. Any answer of the
// service, to a probe or to a request from before, closes.
class CircuitBreaker {
 public:
  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  bool Open() const { return open_; }
  double Wait(double now) const;  // seconds until the next request may go; infinity while a probe is under way

  // A request goes out; true: as a probe, of which the caller reports exactly one of the following.
  bool OnSend();
  void OnContact() { contacted_ = true; }  // something answered that may be the service
  bool Contacted() const { return contacted_; }
  void OnAlive();  // the service answered, if only with a refusal
  // It did not, after an attempt of so long.
  void OnFailure(double now, double attempt_seconds, uint64_t request, bool probe);
  void OnProbeDropped();  // the probe was cancelled

  // How long the outage is known to have lasted, as of its last failure; 0 while closed. Time in which nothing was
  // tried is no outage: between two failures two of the longest pauses and the attempt itself count at most.
  double OutageSeconds() const { return open_ ? outage_ : 0; }
  // How long it may still last until waiting is of no use, as of its last failure; not positive: it is not.
  double SecondsLeft() const {
    return (contacted_ ? options_.max_outage_seconds : options_.max_first_outage_seconds) - OutageSeconds();
  }
  // How long a probe that is sent now may wait for a sign of the service: what is left, but one that begins at the end
  // still as long as the shortest pause.
  double ProbeSeconds(double now) const;

 private:
  // One prompt that breaks the server, tried again and again, is not an outage: these many must have failed. Where no
  // server ever was, no prompt can have broken it.
  static constexpr size_t kRequests = 3;

  void Pause(double now) { next_probe_ = now + std::min(pause_, std::max(0.0, SecondsLeft())); }

  BreakerOptions options_;
  bool contacted_ = false;
  bool open_ = false;
  bool probing_ = false;
  uint32_t failures_ = 0;        // since the last answer
  std::set<uint64_t> requests_;  // of them, kRequests at most
  double last_failure_ = 0;
  double outage_ = 0;  // from the first of them to the last
  double pause_ = 0;
  double next_probe_ = 0;
};

}  // namespace kgrpo::coder_gpt4o
#endif
