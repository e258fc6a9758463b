// The plugin instances of a pipeline and the host's services for the loop, which a command passes to loop/run.h and
// eval/evaluate_policy.h. Tests make it from tables within the process.
#ifndef KGRPO_PLUGIN_PARTS_H
#define KGRPO_PLUGIN_PARTS_H

#include <kgrpo/support/metric_registry.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/instances.h"

namespace kgrpo {

class Ranks;
class RecordedRounds;

// The library behind a role, for the run's records.
struct PluginIdentity {
  std::string role;  // "policy", "coder", "evaluator", "reward", "trainer[0]", "observers[0]"
  std::string name, version;
  std::string path;    // path of the library
  std::string sha256;  // digest of the library's bytes
};

struct PipelineParts {
  std::unique_ptr<Coder> coder;
  // May be absent where nothing is generated or trained. Destroyed before the coder: the policy's threads call the
  // coder's implement, and may still be returning from it when the answer has arrived.
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<Reward> reward;
  std::vector<std::unique_ptr<Trainer>> trainers;    // one a stage, in order; destroyed before the policy
  std::vector<std::unique_ptr<Observer>> observers;  // in the pipeline's order
  std::vector<PluginIdentity> identities;
  std::map<std::string, std::string> inputs;  // digests of what the run reads, taken before its parts were made

  Ranks* ranks = nullptr;  // connection of a run with several processes; null: this process is the only one

  std::shared_ptr<const RecordedRounds> replay;  // loop.replay, made with the problems; null: off

  const MetricRegistry* metrics = nullptr;  // the plugins' declarations of their metrics; null: none

  // Respectively: true if the user asked to stop (base/cancel.h); seconds that the calling thread has waited for
  // devices (DeviceLocks::SecondsWaited); the same for all threads together (AllSecondsWaited); the metrics that
  // plugins pushed since the last call (HostServices::TakeMetrics).
  std::function<bool()> cancelled = [] { return false; };
  std::function<double()> seconds_waited = [] { return 0.0; };
  std::function<double()> all_seconds_waited = [] { return 0.0; };
  std::function<std::map<std::string, double>()> take_metrics = [] { return std::map<std::string, double>(); };
};

// Wall-clock seconds since construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Splits the time since construction, on the calling thread, into work and waiting for a device.
class CallTime {
 public:
  explicit CallTime(const PipelineParts& parts) : parts_(parts), waited_before_(parts.seconds_waited()) {}
  double waited() const { return parts_.seconds_waited() - waited_before_; }
  double worked() const { return watch_.seconds() - waited(); }

 private:
  const PipelineParts& parts_;
  double waited_before_;
  Stopwatch watch_;
};

}  // namespace kgrpo
#endif
