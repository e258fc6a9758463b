#include "loop/measurements.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/number_text.h>  // Format

#include <algorithm>
#include <limits>
#include <numeric>

#include "loop/coder_cost.h"
#include "loop/draws.h"
#include "loop/statistics.h"
#include "plugin/parts.h"

namespace kgrpo {
namespace {

// The metric that a step has once its held-out episodes were played.
constexpr const char* kHeldoutTime = "time/heldout";

}  // namespace

Measurements::Measurements(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems,
                           RunDatabase& database, Console* console)
    : config_(config), heldout_(problems.heldout), database_(database), console_(console) {
  if (heldout_) rollout_.emplace(config, parts, *heldout_, problems.pool);
}

bool Measurements::Due(uint64_t step) const {
  if (!heldout_) return false;
  if (step > 0 && step % config_.evaluation.every == 0) return true;
  uint64_t last = 0;  // last step of the stages before
  for (size_t i = 0; config_.evaluation.at_start && i < config_.stages.size(); last += config_.stages[i++].steps) {
    if (step == last) return true;
  }
  return false;
}

bool Measurements::IsLeft(uint64_t step) { return Due(step) && !database_.HasMetric(step, kHeldoutTime); }

void Measurements::Play(uint64_t step, StepRecord& record, MetricMap& metrics) {
  const Stopwatch watch;
  const auto play = [&](Purpose purpose, uint64_t episodes) {
    RolloutRequest request = HeldoutRequest(config_, heldout_->families(), step, episodes, {});
    request.purpose = purpose;
    request.recorded = database_.ReadStep(purpose, step);
    KeepUnfinished(database_, &request);
    ShowUnderWay(console_, "held-out problems after step " + std::to_string(step), &request);
    return rollout_->Collect(request).trajectories;
  };
  try {
    record.heldout = play(Purpose::kHeldout, config_.evaluation.episodes);
    if (config_.evaluation.greedy) record.greedy = play(Purpose::kGreedy, 1);
  } catch (const Error& error) {
    if (error.code() != KGRPO_ERROR_CANCELLED) throw;
    record.heldout.clear();
    return;
  }
  metrics.merge(HeldoutMetrics(record.heldout));
  for (const auto& [name, value] : HeldoutMetrics(record.greedy)) {
    if (name == "heldout/reward") metrics["heldout/greedy_reward"] = value;
    if (name == "heldout/best_speedup_geomean") metrics["heldout/greedy_best_speedup_geomean"] = value;
  }
  metrics[kHeldoutTime] = watch.seconds();
}

std::string Measurements::EarlyStop(const Stage& stage, uint64_t done) {
  if (config_.evaluation.patience == 0 || !Due(done) || stage.index() + 1 != config_.stages.size()) return "";
  double best = -std::numeric_limits<double>::infinity();
  uint64_t since = 0;
  for (const auto& [step, reward] : database_.MetricCurve("heldout/reward")) {
    if (step + 1 < stage.first_step() || step > done) continue;
    since = reward > best ? 0 : since + 1;
    best = std::max(best, reward);
  }
  if (since < config_.evaluation.patience) return "";
  return "the reward on held-out problems has not risen in " + std::to_string(config_.evaluation.patience) +
         " more measurements (evaluation.patience)";
}

std::string FinalText(const PipelineConfig& config, const FinalModel& final) {
  if (!config.checkpoint.final_best) return "";
  const std::string policy = final.is_last     ? "the last policy"
                             : final.step == 0 ? "the policy that the run began with"
                                               : "the policy of step " + std::to_string(final.step) + " (stage " +
                                                     std::to_string(final.stage + 1) + ", " +
                                                     config.stages.at(final.stage).trainer.plugin + ")";
  if (!final.score) return "final/ is " + policy + ": no kept checkpoint has a reward to choose it by";
  std::string text = "final/ is " + policy + ", which is the best kept checkpoint: " +
                     (final.by_heldout ? "held-out reward " : "training reward over the average of its problems ") +
                     Format("%.3f", *final.score);
  if (!final.is_last) text += "; the last policy's is " + (final.last ? Format("%.3f", *final.last) : "not known");
  return text;
}

RolloutRequest HeldoutRequest(const PipelineConfig& config, std::span<const std::string> families, uint64_t step,
                              uint64_t episodes, const Suggester& suggester) {
  RolloutRequest request;
  request.purpose = Purpose::kHeldout;
  request.step = step;
  request.suggester = suggester;
  std::vector<uint32_t> all(families.size());
  std::iota(all.begin(), all.end(), 0U);
  std::vector<std::vector<size_t>> others;  // by episode
  for (uint64_t episode = 0; episode < episodes && config.controls.shuffle_prompts; ++episode) {
    KeyedStream random(config.seed, "shuffle prompts", {static_cast<uint64_t>(Purpose::kHeldout), step, episode});
    others.push_back(DrawOtherProblems(random, all, families));
  }
  for (size_t problem = 0; problem < families.size(); ++problem) {
    for (uint64_t episode = 0; episode < episodes; ++episode) {
      const size_t other = others.empty() ? problem : others[episode][problem];
      request.assignments.push_back(
          {static_cast<uint32_t>(problem), static_cast<uint32_t>(other * episodes + episode)});
    }
  }
  return request;
}

MetricMap HeldoutMetrics(const std::vector<TrajectoryRecord>& trajectories) {
  const MetricMap all = RolloutMetrics(trajectories);
  MetricMap metrics;
  for (const char* name :
       {"reward", "kernel/correct_rate", "kernel/failed_rate", "kernel/fast_1", "coder/not_applicable_rate",
        "coder/unclear_rate", "coder/error_rate", "evaluator/error_rate", "reward/error_rate", "coder/cost",
        "policy/favourite_share", "policy/no_kernel_rate"}) {
    const auto found = all.find(name);
    if (found != all.end()) metrics["heldout/" + found->first] = found->second;
  }
  std::vector<double> speedups;
  for (const TrajectoryRecord& trajectory : trajectories) {
    if (!trajectory.rounds_done.empty()) speedups.push_back(BestSpeedup(trajectory));
  }
  if (!speedups.empty()) metrics["heldout/best_speedup_geomean"] = GeometricMean(speedups);
  return metrics;
}

}  // namespace kgrpo
