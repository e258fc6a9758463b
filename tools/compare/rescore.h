// Scores the rounds of a run by another reward: different rewards have different scales, and only scores by one reward
// can be compared. Used by the command compare.
#ifndef KGRPO_COMPARE_RESCORE_H
#define KGRPO_COMPARE_RESCORE_H

#include <set>
#include <string>

#include "compare/run_measures.h"
#include "plugin/instances.h"

namespace kgrpo {

// Adds to the run's values, as a mean over rounds and by problem: "reward_by/LABEL", of the last tenth of its steps
// with rollouts, and "heldout_reward_by/LABEL", of its last held-out measurement. Only the time of a baseline is known,
// not its metrics. Throws kgrpo::Error where the run's database or the reward fails.
void Rescore(const Reward& reward, const std::string& label, RunMeasures* run);

// Adds the names of the metrics that the evaluations of the run's last step with rollouts hold. Throws as Rescore does.
void AddRecordedMetrics(const RunMeasures& run, std::set<std::string>* names);

// Adds the same measures to a run that was trained with this reward, from its recorded rewards.
void KeepOwnRewards(const std::string& label, RunMeasures* run);

}  // namespace kgrpo

#endif  // KGRPO_COMPARE_RESCORE_H
