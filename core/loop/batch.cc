#include "loop/batch.h"

#include "loop/draws.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace kgrpo {

bool HasEqualRewards(std::span<const TrajectoryRecord> group) {
  constexpr double kEqual = 1e-9;  // as RunDatabase::StepsWithAdvantage
  for (const TrajectoryRecord& trajectory : group) {
    if (!trajectory.dropped.empty() || trajectory.rounds_done.size() != group[0].rounds_done.size()) return false;
    for (size_t i = 0; i < trajectory.rounds_done.size(); ++i) {
      const RoundRecord &round = trajectory.rounds_done[i], &first = group[0].rounds_done[i];
      if (round.answer.outcome == KGRPO_CODER_FAILED) return false;
      if (std::abs(round.reward - first.reward) > kEqual || std::abs(round.idle_reward - first.idle_reward) > kEqual)
        return false;
    }
  }
  return true;
}

std::vector<TrajectoryRecord> Played(const StepRecord& step) {
  std::vector<TrajectoryRecord> played = step.trajectories;
  played.insert(played.end(), step.redrawn.begin(), step.redrawn.end());
  return played;
}

namespace {

// Moves the trajectories of problems with equal rewards out of *batch. Trainers pool all of a problem's, also of one
// that was drawn twice.
std::vector<TrajectoryRecord> TakeEqual(std::vector<TrajectoryRecord>* batch) {
  std::ranges::sort(*batch, {}, [](const TrajectoryRecord& one) { return std::pair(one.problem, one.trajectory); });
  std::vector<TrajectoryRecord> kept, equal;
  for (auto group = batch->begin(), end = group; group != batch->end(); group = end) {
    end = std::find_if(group, batch->end(), [&](const auto& other) { return other.problem != group->problem; });
    std::move(group, end, std::back_inserter(HasEqualRewards({group, end}) ? equal : kept));
  }
  *batch = std::move(kept);
  return equal;
}

// Metrics over all that was played: what it cost, and the problems' rewards, which would otherwise lack those of
// decided problems (SavedModels::Scores).
bool IsOfAllPlayed(const std::string& metric) {
  return metric == "coder/cost" || metric == "coder/tokens" || metric == "time/implement" ||
         metric == "time/evaluate" || metric.starts_with("reward/problem/");
}

}  // namespace

BatchCollector::BatchCollector(const PipelineConfig& config, Rollout& rollout, const ProblemSet& problems,
                               RunDatabase& database, Console* console)
    : config_(config),
      rollout_(rollout),
      problems_(problems),
      database_(database),
      console_(console),
      weights_(config.loop.problem_weights, problems.size()) {
  // Rewards before a change of the reward have another scale.
  if (config.loop.problem_weights == ProblemWeighting::kRewardSpread)
    counted_ = RewardChangedAfter(database.ReadChanges());
}

std::vector<Assignment> BatchCollector::Draw(uint64_t step, uint64_t draw) {
  const LoopConfig& loop = config_.loop;
  if (loop.problem_weights == ProblemWeighting::kUniform) {
    return DrawAssignments(config_.seed, Purpose::kTrain, 0, draw, loop.batch_size, loop.trajectories_per_problem,
                           problems_.families(), config_.controls.shuffle_prompts);
  }
  KeyedStream random(config_.seed, "weighted problems", {step});
  KeyedStream shuffle(config_.seed, "shuffle prompts", {static_cast<uint64_t>(Purpose::kTrain), 0, draw});
  const std::vector<uint32_t> drawn =
      DrawByWeight(random, weights_.Get(), loop.batch_size / loop.trajectories_per_problem, {});
  return AssignmentsOf(drawn, loop.trajectories_per_problem, config_.controls.shuffle_prompts ? &shuffle : nullptr,
                       problems_.families());
}

void BatchCollector::Collect(uint64_t draw, RolloutRequest request, StepRecord* record, MetricMap* metrics) {
  const LoopConfig& loop = config_.loop;
  const uint64_t step = request.step;
  if (loop.problem_weights != ProblemWeighting::kUniform && step > counted_ + 1) {
    weights_.Add(database_.ReadPlayed(counted_ + 1, step - 1));
    counted_ = step - 1;
  }
  request.recorded = database_.ReadStep(Purpose::kTrain, step);
  std::ranges::move(database_.ReadStep(Purpose::kRedrawn, step), std::back_inserter(request.recorded));
  request.assignments = Draw(step, draw);
  RolloutResult all;
  size_t redrawn = 0, equal = 0;
  std::vector<TrajectoryRecord> batch;
  std::vector<bool> drawn(problems_.size());
  for (uint64_t attempt = 0;; ++attempt) {
    ShowUnderWay(console_, "step " + std::to_string(step) + (attempt == 0 ? "" : "  drawn again"), &request);
    RolloutResult result = rollout_.Collect(request);
    all.seconds += result.seconds;
    all.generate_seconds += result.generate_seconds;
    all.wait_seconds += result.wait_seconds;
    for (const Assignment& assignment : request.assignments) drawn[assignment.problem] = true;
    request.first_trajectory += request.assignments.size();
    std::ranges::move(result.trajectories, std::back_inserter(batch));
    if (loop.redraws == 0) break;
    std::vector<TrajectoryRecord> aside = TakeEqual(&batch);
    equal = aside.size() / loop.trajectories_per_problem;
    if (equal == 0 || attempt == loop.redraws) {  // what is left has equal rewards, and stays
      std::ranges::move(aside, std::back_inserter(batch));
      break;
    }
    redrawn += equal;
    std::ranges::move(aside, std::back_inserter(record->redrawn));
    std::vector<bool> kept(problems_.size());
    for (const TrajectoryRecord& trajectory : batch) kept[trajectory.problem] = true;
    KeyedStream random(config_.seed, "redrawn problems", {step, attempt});
    request.assignments = AssignmentsOf(DrawByWeight(random, weights_.Get(), equal, drawn, kept),
                                        loop.trajectories_per_problem, nullptr, {});
  }
  std::ranges::sort(batch, {}, &TrajectoryRecord::trajectory);
  std::ranges::sort(record->redrawn, {}, &TrajectoryRecord::trajectory);
  record->trajectories = std::move(batch);
  record->has_rollouts = true;
  *metrics = RolloutMetrics(record->trajectories);
  if (redrawn > 0) {
    for (const auto& [name, value] : RolloutMetrics(Played(*record))) {
      if (IsOfAllPlayed(name)) (*metrics)[name] = value;
    }
  }
  (*metrics)["time/rollout"] = all.seconds;
  (*metrics)["time/generate"] = all.generate_seconds;
  (*metrics)["time/device_wait"] = all.wait_seconds;
  if (loop.redraws == 0) return;
  (*metrics)[kRedrawnMetric] = static_cast<double>(redrawn);
  (*metrics)[kEqualMetric] = static_cast<double>(equal);
  if (redrawn > 0)
    spdlog::info("step {}: {} groups with equal rewards were drawn again; {} are left in the batch", step, redrawn,
                 equal);
}

}  // namespace kgrpo
