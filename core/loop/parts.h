// The plugin instances of a pipeline and the host's services for the loop, which a command passes to loop/run.h and
// loop/evaluate_policy.h. Tests make it from tables within the process.
#ifndef KGRPO_LOOP_PARTS_H
#define KGRPO_LOOP_PARTS_H

#include <kgrpo/support/metric_registry.h>
#include "plugin/instances.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kgrpo {

class Ranks;

// Which library plays a role, for the run's records.
struct PluginIdentity {
  std::string role;  // "policy", "coder", "evaluator", "reward", "trainer[0]", "observers[0]"
  std::string name, version;
  std::string path;    // of the library
  std::string sha256;  // of its bytes
};

struct PipelineParts {
  std::unique_ptr<Coder> coder;
  // May be absent where nothing is generated or trained. Destroyed before the coder: its threads hand on suggestions,
  // and may still be on their way out of the coder's implement when the answer is there.
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<Reward> reward;
  std::vector<std::unique_ptr<Trainer>> trainers;    // one a stage, in order; destroyed before the policy
  std::vector<std::unique_ptr<Observer>> observers;  // in the pipeline's order
  std::vector<PluginIdentity> identities;

  Ranks* ranks = nullptr;  // of a run of several; null: this process is alone

  const MetricRegistry* metrics = nullptr;  // what the plugins call what they measure; null: they say nothing

  // In this order: true if the user asked to stop (base/cancel.h); seconds that the calling thread has waited for
  // devices (DeviceLocks::SecondsWaited) and all threads together (AllSecondsWaited), and the metrics that plugins
  // pushed since the last call (HostServices::TakeMetrics).
  std::function<bool()> cancelled = [] { return false; };
  std::function<double()> seconds_waited = [] { return 0.0; };
  std::function<double()> all_seconds_waited = [] { return 0.0; };
  std::function<std::map<std::string, double>()> take_metrics = [] { return std::map<std::string, double>(); };
};

}  // namespace kgrpo
#endif
