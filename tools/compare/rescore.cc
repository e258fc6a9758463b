#include "compare/rescore.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "loop/trajectory.h"
#include "store/database.h"

namespace kgrpo {
namespace {

struct Sum {
  double total = 0;
  size_t count = 0;
  void Add(double value) { total += value, ++count; }
  double mean() const { return total / static_cast<double>(count); }
};

// Adds the mean reward of each trajectory's rounds, as run_measures.cc does with the recorded rewards.
void ScoreStep(const Reward& reward, bool always_advances, std::vector<TrajectoryRecord> trajectories, Sum* all,
               std::map<std::string, Sum>* by_problem) {
  for (TrajectoryRecord& recorded : trajectories) {
    Evaluation baseline;
    baseline.compiled = baseline.correct = true;
    baseline.verdict = KGRPO_VERDICT_CORRECT;
    baseline.seconds = baseline.seconds_low = baseline.seconds_high = recorded.baseline_seconds;
    baseline.CompareWith(baseline);
    Evaluation current = baseline;
    Sum of_trajectory;
    std::vector<RoundRecord> rounds = std::exchange(recorded.rounds_done, {});
    for (RoundRecord& round : rounds) {
      try {
        ScoreRound(reward, baseline, current, recorded, &round, /*idle=*/false);  // the baseline's metrics are not kept
      } catch (const Error& error) {
        if (error.code() == KGRPO_ERROR_NO_SCORE) break;  // as in a run, the trajectory ends before this round
        throw Error(error.code(), "round " + std::to_string(round.round) + " of trajectory " +
                                      std::to_string(recorded.trajectory) + " (" + recorded.problem_name +
                                      "): " + error.what());
      }
      of_trajectory.Add(round.reward);
      if (round.evaluation && (always_advances || round.evaluation->correct)) current = *round.evaluation;
      recorded.rounds_done.push_back(std::move(round));
    }
    if (of_trajectory.count == 0) continue;
    all->Add(of_trajectory.mean());
    (*by_problem)[recorded.problem_name].Add(of_trajectory.mean());
  }
}

void Keep(const std::string& measure, const Sum& all, const std::map<std::string, Sum>& by_problem, RunMeasures* run) {
  if (all.count == 0) return;
  run->values[measure] = all.mean();
  for (const auto& [problem, sum] : by_problem) run->by_problem[measure][problem] = sum.mean();
}

std::vector<uint64_t> StepsWithSamples(RunDatabase& database) {
  std::vector<uint64_t> steps;
  for (const StepSummary& step : database.Steps()) {
    if (step.reward_mean) steps.push_back(step.step);
  }
  return steps;
}

}  // namespace

void KeepOwnRewards(const std::string& label, RunMeasures* run) {
  for (const std::string prefix : {"", "heldout_"}) {
    const auto value = run->values.find(prefix + "reward");
    if (value == run->values.end()) continue;
    run->values[prefix + "reward_by/" + label] = value->second;
    run->by_problem[prefix + "reward_by/" + label] = run->by_problem[prefix + "reward"];
  }
}

void AddRecordedMetrics(const RunMeasures& run, std::set<std::string>* names) {
  RunDatabase database = RunDatabase::ToRead(run.database());
  const std::vector<uint64_t> steps = StepsWithSamples(database);
  if (steps.empty()) return;
  for (const TrajectoryRecord& trajectory : database.ReadStep(Purpose::kTrain, steps.back())) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (!round.evaluation) continue;
      for (const Metric& metric : round.evaluation->metrics) names->insert(metric.name);
    }
  }
}

void Rescore(const Reward& reward, const std::string& label, RunMeasures* run) {
  RunDatabase database = RunDatabase::ToRead(run->database());
  const auto advance = run->configuration.find("loop.advance");
  const bool always = advance == run->configuration.end() || advance->second == "\"always\"";
  const std::vector<uint64_t> steps = StepsWithSamples(database);
  Sum all;
  std::map<std::string, Sum> by_problem;
  for (size_t i = steps.size() - std::min(steps.size(), TenthOf(steps.size())); i < steps.size(); ++i)
    ScoreStep(reward, always, database.ReadStep(Purpose::kTrain, steps[i]), &all, &by_problem);
  Keep("reward_by/" + label, all, by_problem, run);
  if (run->heldout_steps.empty()) return;
  all = {};
  by_problem.clear();
  for (const uint64_t step : run->heldout_steps)
    ScoreStep(reward, always, database.ReadStep(run->heldout_purpose(), step), &all, &by_problem);
  Keep("heldout_reward_by/" + label, all, by_problem, run);
}

}  // namespace kgrpo
