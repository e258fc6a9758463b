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

// A step's account has answers of the next step; no answer is counted twice.
TEST(Staleness, AnAnswerIsPaidForOnce) {
  fakes::Reset();
  knobs().delay_seed = 5;
  knobs().coder_cost = 0.25;
  knobs().coder_accounts = true;
  PipelineConfig config = fakes::Config(fakes::Folder("paid"), 0, 6);
  config.loop.max_staleness = 1;
  fakes::RunIn(config);
  RunDatabase database(std::filesystem::path(config.output_dir) / "run.sqlite");
  double total = 0;
  for (const Metric& metric : database.Metrics(6))
    if (metric.name == "coder/cost_total") total = metric.value;
  EXPECT_GT(total, 0);
  EXPECT_DOUBLE_EQ(total, knobs().coder_paid);
  EXPECT_DOUBLE_EQ(total, 0.25 * knobs().coder_calls);
  fakes::Reset();
}

}  // namespace
}  // namespace kgrpo
