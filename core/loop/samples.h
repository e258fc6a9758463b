// Rounds as the samples that a trainer learns from. Used by the loop.
#ifndef KGRPO_LOOP_SAMPLES_H
#define KGRPO_LOOP_SAMPLES_H

#include "store/records.h"

#include <kgrpo/trainer.h>

#include <cstdint>
#include <vector>

namespace kgrpo {

// One round as a sample, which borrows the record's arrays.
kgrpo_sample MakeSample(const TrajectoryRecord& trajectory, const RoundRecord& round);

// Calls `use(trajectory, round)` for each round that is a sample, in the order of the samples. A round whose completion
// has no tokens is not a sample: it has no probability to change.
template <typename Trajectories, typename Use>
void ForEachSample(Trajectories& trajectories, Use use) {
  for (auto& trajectory : trajectories) {
    for (auto& round : trajectory.rounds_done) {
      if (!round.completion_ids.empty()) use(trajectory, round);
    }
  }
}

// The rounds of all trajectories, trajectory after trajectory. Samples borrow the records' arrays.
std::vector<kgrpo_sample> MakeSamples(const std::vector<TrajectoryRecord>& trajectories);

// The shuffle_rewards control: permutes (reward, idle reward) pairs among the samples, keyed by seed and step.
void ShuffleRewards(std::vector<kgrpo_sample>& samples, uint64_t seed, uint64_t step);

}  // namespace kgrpo
#endif
