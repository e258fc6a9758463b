// loop.max_staleness: 1 in whole runs of the fake pipeline. Other tests of runs take it as a parameter.
#include "base/keyed.h"
#include "fakes.h"
#include "loop/run.h"
#include "store/database.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace kgrpo {
namespace {

using fakes::knobs;

// Three rounds: of every step but the first the first two are written one update early, the third is not, and no
// suggestion is being written while the policy changes.
TEST(Staleness, EveryRoundIsWrittenByTheWeightsOfItsStepNumber) {
  for (const uint32_t rounds : {1, 3}) {
    fakes::Reset();
    knobs().delay_seed = rounds;
    PipelineConfig config = fakes::Config(fakes::Folder("weights"), 0, 6);
    config.loop.max_staleness = 1;
    config.loop.rounds = rounds;
    fakes::RunIn(config);
    RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
    for (uint64_t step = 1; step <= 6; ++step) {
      double stale = 0, all = 0;
      for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, step)) {
        for (const RoundRecord& round : trajectory.rounds_done) {
          const int early = step > 1 && round.round < (rounds + 1) / 2 ? 1 : 0;
          const int updates = static_cast<int>(step) - 1 - early;
          EXPECT_EQ(knobs().written.at(
                        Keyed(config.seed, "generate",
                              {static_cast<uint64_t>(Purpose::kTrain), step, trajectory.trajectory, round.round}, 0)),
                    std::pair(updates, updates))
              << step << ", " << round.round;
          stale += early, ++all;
        }
      }
      std::map<std::string, double> metrics;
      for (const Metric& metric : database.Metrics(step)) metrics[metric.name] = metric.value;
      EXPECT_DOUBLE_EQ(metrics.at("policy/staleness"), stale / all);
      EXPECT_LE(metrics.at("policy/staleness"), 1);
    }
  }
  fakes::Reset();
}

}  // namespace
}  // namespace kgrpo
