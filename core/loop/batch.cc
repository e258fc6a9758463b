#include "loop/batch.h"

#include "loop/draws.h"

#include <spdlog/spdlog.h>

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
      if (std::abs(round.reward - first.reward) > kEqual || std::abs(round.idle_reward - first.idle_reward) > kEqual)
        return false;
    }
  }
  return true;
}

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

void BatchCollector::SetAside(std::vector<TrajectoryRecord>* played, std::vector<TrajectoryRecord>* aside) const {
  const auto size = static_cast<std::ptrdiff_t>(config_.loop.trajectories_per_problem);
  std::vector<TrajectoryRecord> kept;
  for (auto group = played->begin(); group != played->end(); group += size)
    std::move(group, group + size, std::back_inserter(HasEqualRewards({group, group + size}) ? *aside : kept));
  *played = std::move(kept);
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
  std::vector<TrajectoryRecord> kept;
  std::vector<bool> drawn(problems_.size());
  for (uint64_t attempt = 0;; ++attempt) {
    ShowUnderWay(console_, "step " + std::to_string(step) + (attempt == 0 ? "" : "  drawn again"), &request);
    RolloutResult result = rollout_.Collect(request);
    all.seconds += result.seconds;
    all.generate_seconds += result.generate_seconds;
    all.wait_seconds += result.wait_seconds;
    for (const Assignment& assignment : request.assignments) drawn[assignment.problem] = true;
    request.first_trajectory += request.assignments.size();
    std::vector<TrajectoryRecord> aside;
    if (loop.redraws > 0) SetAside(&result.trajectories, &aside);
    equal = aside.size() / loop.trajectories_per_problem;
    std::ranges::move(result.trajectories, std::back_inserter(kept));
    if (equal == 0 || attempt == loop.redraws) {  // what is left has equal rewards, and stays
      std::ranges::move(aside, std::back_inserter(kept));
      break;
    }
    redrawn += equal;
    std::ranges::move(aside, std::back_inserter(record->redrawn));
    KeyedStream random(config_.seed, "redrawn problems", {step, attempt});
    request.assignments =
        AssignmentsOf(DrawByWeight(random, weights_.Get(), equal, drawn), loop.trajectories_per_problem, nullptr, {});
  }
  std::ranges::sort(kept, {}, &TrajectoryRecord::trajectory);
  record->trajectories = std::move(kept);
  record->has_rollouts = true;
  *metrics = RolloutMetrics(record->trajectories);
  (*metrics)["time/rollout"] = all.seconds;
  (*metrics)["time/generate"] = all.generate_seconds;
  (*metrics)["time/device_wait"] = all.wait_seconds;
  if (loop.redraws == 0) return;
  (*metrics)["coder/cost"] += CoderCost(record->redrawn);
  (*metrics)[kRedrawnMetric] = static_cast<double>(redrawn);
  (*metrics)[kEqualMetric] = static_cast<double>(equal);
  if (redrawn > 0)
    spdlog::info("step {}: {} groups with equal rewards were drawn again; {} are left in the batch", step, redrawn,
                 equal);
}

}  // namespace kgrpo
