// Rounds as the samples that a trainer learns from, and those of a warm start. Used by the loop.
#ifndef KGRPO_LOOP_SAMPLES_H
#define KGRPO_LOOP_SAMPLES_H

#include <kgrpo/trainer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/instances.h"
#include "store/records.h"

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

// The samples of a warm start: recorded states of trajectories, each with a newly drawn suggestion.
//
// A state comes from a trajectory whose suggestions were drawn uniformly. Each time it is used, the suggestion to
// imitate is drawn again, uniformly over those that its trajectory had not used by then. So the policy learns the form
// of a suggestion and the uniform distribution over them, and cannot memorise the few draws of a small set of
// trajectories. Of rounds that other runs recorded (loop/recorded_rounds.h) the suggestions themselves are imitated.
class Demonstrations {
 public:
  // `suggestions`: the list to draw from, encoded here once; empty: each round's own completion is used. Throws
  // KGRPO_ERROR_UNAVAILABLE where no trajectory has a round with a suggestion to imitate.
  Demonstrations(std::vector<TrajectoryRecord> trajectories, const std::vector<std::string>& suggestions,
                 Policy& policy);

  // Returns the samples of update number `update` of the stage that starts at `first_step`. The result depends on the
  // arguments alone. Samples borrow from this object.
  std::vector<kgrpo_sample> Draw(uint64_t seed, uint64_t first_step, uint64_t update, size_t count) const;

 private:
  struct State {
    kgrpo_sample sample;         // the recorded round's sample; Draw replaces its completion
    std::vector<size_t> unused;  // indices of suggestions that may be drawn here; empty: the round's own
  };

  std::vector<TrajectoryRecord> trajectories_;
  std::vector<std::vector<int32_t>> completions_;  // token ids of each suggestion, the end token included
  std::vector<State> states_;
};

}  // namespace kgrpo
#endif
