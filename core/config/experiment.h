// Several runs described by one pipeline file: `variants` (named deltas over it), `sweep` (a grid of values) and
// `seeds`. Read by the commands run, check and compare; load.h leaves these three keys out of each run's own
// configuration.
//
//   variants: {log: {reward: {options: {formula: log}}}}    # beside the file itself, which is the variant "base"
//   sweep: {"trainer[1].options.gamma": [0, 0.4]}
//   seeds: [1, 2, 3]                                        # 2 variants x 2 points x 3 seeds: 12 runs
#ifndef KGRPO_CONFIG_EXPERIMENT_H
#define KGRPO_CONFIG_EXPERIMENT_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/diagnostic.h"
#include "config/load.h"

namespace kgrpo {

// The keys of a pipeline file that describe several runs.
inline constexpr const char* kExperimentKeys[] = {"variants", "sweep", "seeds"};

// The name of the file itself among its variants.
inline constexpr const char* kBaseVariant = "base";

struct ExperimentRun {
  std::string variant;                     // "base", "log", "log,gamma=0.4"; "gamma=0.4" where only a sweep varies
  std::optional<uint64_t> seed;            // one of `seeds`; unset: the file's seed
  std::vector<std::string> settings;       // as --set takes them: the delta, the point of the sweep, the seed
  std::string folder;                      // below the experiment's: "log/seed-2", "log"
  Position at;                             // place of the variant in the file
  std::map<std::string, Position> places;  // places of the settings' values, by key

  // Returns the position at which the variant sets this key ("reward.options.score") or a key that contains it; `at` if
  // the variant sets neither.
  Position PlaceOf(const std::string& key) const;
};

// Returns the runs in order: variants as written, points of the sweep (the last key changes fastest), seeds. Returns
// nothing if the file has none of the three keys. Uses only the file and the settings of the request. Throws
// ConfigError with every mistake of the three keys.
std::optional<std::vector<ExperimentRun>> ReadExperiment(const LoadRequest& request);

}  // namespace kgrpo

#endif  // KGRPO_CONFIG_EXPERIMENT_H
