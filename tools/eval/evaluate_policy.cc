#include "eval/evaluate_policy.h"

#include <kgrpo/support/closest.h>
#include "base/wall_clock.h"
#include "loop/best_kernels.h"
#include "loop/coder_cost.h"
#include "loop/identity.h"
#include "loop/measurements.h"
#include "loop/metrics.h"
#include "loop/round_faults.h"
#include "plugin/parts.h"
#include "store/database.h"
#include "store/readable.h"
#include "store/run_folder.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace kgrpo {
namespace {

std::string Trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The mean entropy of the distributions that the suggestions' tokens were drawn from.
double TokenEntropy(Policy& policy, const std::vector<TrajectoryRecord>& trajectories, double temperature) {
  constexpr size_t kChunk = 32;  // sequences a forward pass
  std::vector<kgrpo_sequence> sequences;
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.completion_ids.empty()) continue;
      sequences.push_back(
          {round.prompt_ids.data(), round.prompt_ids.size(), round.completion_ids.data(), round.completion_ids.size()});
    }
  }
  double sum = 0;
  size_t count = 0;
  for (size_t first = 0; first < sequences.size(); first += kChunk) {
    const auto chunk = std::span(sequences).subspan(first, std::min(kChunk, sequences.size() - first));
    std::vector<float> entropies;
    policy.LogProbabilities(chunk, temperature > 0 ? temperature : 1.0, KGRPO_POLICY_CURRENT, &entropies);
    for (const float entropy : entropies) sum += entropy;
    count += entropies.size();
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

void RequireListed(const std::vector<std::string>& techniques, const Coder& coder, const std::string& name) {
  const std::vector<std::string> listed = coder.Suggestions();
  if (listed.empty()) return;
  for (const std::string& technique : techniques) {
    if (std::ranges::find(listed, technique) != listed.end()) continue;
    const std::string closest = Closest(technique, listed);
    throw Error(KGRPO_ERROR_INVALID,
                "--policy fixed: \"" + technique + "\" is not in " + name + "'s list" +
                    (closest.empty() ? ": " + JoinedText(listed) : "; did you mean \"" + closest + "\"?"));
  }
}

namespace {

// The models in a run's checkpoints, by step: checkpoints/step-N/policy. Leaves out unfinished ones ("step-4.partial").
std::map<uint64_t, std::string> CheckpointsOf(const std::filesystem::path& run) {
  namespace fs = std::filesystem;
  std::map<uint64_t, std::string> found;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints", code)) {
    const std::string name = entry.path().filename().string(), prefix = "step-";
    uint64_t step = 0;
    if (!name.starts_with(prefix)) continue;
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (fs::is_directory(entry.path() / "policy", code)) found[step] = (entry.path() / "policy").string();
  }
  return found;
}

// Returns the folder of a run's trained model, or of its last checkpoint's model where the run has not ended.
std::string PolicyOfRun(const std::filesystem::path& run) {
  std::error_code code;
  if (std::filesystem::is_directory(run / "final", code)) return (run / "final").string();
  const std::map<uint64_t, std::string> checkpoints = CheckpointsOf(run);
  if (checkpoints.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "--policy " + run.string() +
                                         " is a run without final/ and without a checkpoint: it contains no model yet");
  }
  spdlog::warn("{} has not ended: its policy after step {} is taken", run.string(), checkpoints.rbegin()->first);
  return checkpoints.rbegin()->second;
}

}  // namespace

PolicyChoice ParsePolicyChoice(const std::string& text) {
  PolicyChoice choice;
  choice.label = text;
  const std::string kFixed = "fixed:";
  if (text == "uniform") {
    choice.suggester.kind = Suggester::Kind::kUniform;
  } else if (text.rfind(kFixed, 0) == 0) {
    choice.suggester.kind = Suggester::Kind::kFixed;
    for (size_t at = kFixed.size(); at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      choice.suggester.sequence.push_back(Trim(text.substr(at, comma - at)));
      at = comma + 1;
    }
    for (const std::string& technique : choice.suggester.sequence) {
      if (technique.empty()) {
        throw Error(KGRPO_ERROR_INVALID, "--policy " + text +
                                             " names an empty technique: write fixed:TECHNIQUE or "
                                             "fixed:TECHNIQUE,TECHNIQUE,...");
      }
    }
  } else {
    if (!std::filesystem::exists(text) && text.find('/') != std::string::npos) {
      throw Error(KGRPO_ERROR_NOT_FOUND, "--policy " + text + ": there is no folder " + text +
                                             ". Train first (scripts/quickstart trains runs/quickstart), or use "
                                             "--policy uniform");
    }
    if (!std::filesystem::is_directory(text)) {
      throw Error(KGRPO_ERROR_NOT_FOUND,
                  "--policy " + text +
                      " is neither \"uniform\", nor \"fixed:TECHNIQUE,...\", nor a folder (a run's or a model's)");
    }
    if (const std::string runs = RunsWithin(text); !runs.empty()) throw Error(KGRPO_ERROR_INVALID, "--policy " + runs);
    choice.model = std::filesystem::exists(std::filesystem::path(text) / "run.sqlite") ? PolicyOfRun(text) : text;
  }
  return choice;
}

std::vector<PolicyChoice> CheckpointChoices(const std::filesystem::path& run) {
  std::vector<PolicyChoice> choices;
  for (const auto& [step, folder] : CheckpointsOf(run)) {
    choices.push_back(ParsePolicyChoice(folder));
    choices.back().label = "step " + std::to_string(step);
  }
  if (choices.empty()) {
    throw Error(KGRPO_ERROR_NOT_FOUND, "--checkpoints " + run.string() +
                                           ": there are no checkpoints; a run's folder holds them in "
                                           "checkpoints/step-N");
  }
  return choices;
}

bool EvaluatePolicy(const PipelineConfig& config, PipelineParts& parts, const PolicyChoice& choice,
                    const EpisodePlan& plan, const std::filesystem::path& folder) {
  if (config.heldout_problems.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "problems.heldout names no problem: there is nothing to evaluate on");
  }
  if (plan.episodes == 0) throw Error(KGRPO_ERROR_INVALID, "the number of episodes must be at least 1");
  if (choice.needs_policy() && parts.policy == nullptr) {
    throw Error(KGRPO_ERROR_INTERNAL, "no policy was loaded for --policy " + choice.label);
  }
  RequireListed(choice.suggester.sequence, *parts.coder, config.coder.plugin);
  if (!choice.model.empty()) parts.policy->Load(KGRPO_POLICY_CURRENT, choice.model);
  WorkerPool pool(config.loop.workers);
  const ProblemSet problems(*parts.evaluator, config.heldout_problems, pool, config.skip_unusable);
  for (const std::string& why : problems.skipped()) spdlog::warn("left out (problems.skip_unusable): {}", why);
  const RunFolder run = RunFolder::Create(folder, config.resolved_yaml, /*overwrite=*/false);
  RunDatabase database(run.database());
  // The label of a checkpoint, "step 100", does not tell whose it is.
  BeginRecord(Purpose::kEvaluation, problems,
              {{"--policy", choice.model.empty() ? choice.label : choice.model}, {"--episodes", plan.episodes}},
              database);
  std::vector<Input> inputs = config.inputs;
  if (!choice.model.empty()) inputs.push_back({"--policy", choice.model});
  parts.inputs = DigestsOf(inputs);
  WriteIdentity(config, parts, plan.repeats, plan.overrides, std::nullopt, run, database);
  BestKernels best(problems, parts, pool, config.seed, {}, {});
  double cost = 0;
  for (uint64_t repeat = 0; repeat < plan.repeats; ++repeat) {
    PipelineConfig own = config;
    own.seed += repeat;
    Rollout rollout(own, parts, problems, pool);
    // Step 0 is no step of a training run: the evaluation does not reuse random streams that the policy may have been
    // trained with.
    RolloutRequest request = HeldoutRequest(own, problems.families(), 0, plan.episodes, choice.suggester);
    request.most_faults = std::min(kMostFaults, request.assignments.size());
    RolloutResult played = rollout.Collect(request);
    StepRecord step;
    step.step = repeat + 1;
    step.purpose = Purpose::kEvaluation;
    step.stage_name = PurposeName(step.purpose);
    step.has_rollouts = true;
    step.trajectories = std::move(played.trajectories);
    step.reward_mean = MeanReward(step.trajectories);
    step.finished_at = SecondsSince1970();
    MetricMap metrics = RolloutMetrics(step.trajectories);
    metrics["time/rollout"] = played.seconds;
    metrics[kCostMetric] = cost += CoderCost(step.trajectories);
    if (choice.needs_policy())
      metrics["policy/token_entropy"] = TokenEntropy(*parts.policy, step.trajectories, own.loop.sampling.temperature);
    for (const auto& [name, value] : metrics) step.metrics.push_back({name, value});
    database.WriteStep(step, {});
    if (!plan.kernels.empty()) best.Add(step.step, step.trajectories);
  }
  JudgedKernels judged;
  if (!plan.kernels.empty()) {
    best.Start();
    judged = best.Finish();
    if (!judged.failed.empty())
      throw Error(KGRPO_ERROR_UNAVAILABLE, "the fastest kernels cannot be evaluated again: " + judged.failed);
    database.WriteJudged(plan.repeats, judged);
    for (const BestKernel& kernel : judged.best) WriteBestKernel(plan.kernels, kernel);
  }
  database.SetFinished(SecondsSince1970());
  return plan.kernels.empty() || judged.complete;
}

}  // namespace kgrpo
