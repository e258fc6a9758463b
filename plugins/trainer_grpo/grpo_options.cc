#include "trainer_grpo/grpo_options.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "trainer_grpo/custom_advantage.h"
#include "trainer_shared/choice.h"

namespace kgrpo::grpo {
namespace {

using trainer::Choice;

constexpr const char* kSchemaHead = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "trainer_grpo",
  "description": "Group-relative policy optimisation: see docs/grpo.md for the formulas.",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "gamma": {"title": "Discount", "type": "number", "minimum": 0, "maximum": 1, "default": 0.4,
      "description": "Weight of the next round's reward in this round's return; 0 judges each round by its own reward alone."},
    "advantage_group": {"title": "Advantage group", "enum": ["batch", "problem", "problem_round"], "default": "batch",
      "description": "Which samples a return is compared with: all of the batch, those of the same problem, or those of the same problem and round."},
    "advantage_estimator": {"title": "Advantage estimator", "enum": ["mean", "max_at_k"], "default": "mean",
      "description": "What training raises: the mean return, or the expected best of best_of samples, for a search."},
    "best_of": {"title": "k of max@k", "type": "integer", "minimum": 1, "default": 2,
      "description": "Only with advantage_estimator max_at_k: how many samples the best is taken of."},
    "leave_one_out": {"title": "Leave-one-out baseline", "type": "boolean", "default": false,
      "description": "Subtract the mean of the other members of the group instead of the mean of all, which is unbiased."},
    "idle_baseline": {"title": "Do-nothing baseline", "type": "boolean", "default": false,
      "description": "Subtract the return of leaving the kernel as it is from here on before comparing, so that a late round is not credited with what earlier rounds gained."},
    "scale_rewards": {"title": "Advantage scale", "enum": ["group", "batch", "rms", "none"], "default": "group",
      "description": "What advantages are divided by: the standard deviation of the group, that of the batch, the root mean square of all advantages of the batch, or nothing."},
    "advantage": {"title": "Advantage formula", "type": ["string", "null"], "minLength": 1, "default": null,
      "examples": ["(value - group_mean) / (group_std + 1e-4)"],
      "description": "An expression in place of estimator, baseline and scale, as reward_expression's."},
    "advantage_program": {"title": "Advantage program", "type": ["array", "null"], "items": {"type": "string", "minLength": 1}, "minItems": 1, "default": null,
      "x-reads": "content", "description": "A program in place of them: the command, such as [python3, my_advantage.py]. It gets the values, rewards, groups, rounds and trajectories of the samples of an update, and answers with their advantages (docs/program_plugins.md)."},
    "advantage_cap": {"title": "Advantage cap", "type": "number", "minimum": 0, "default": 0,
      "description": "Advantages are clamped to plus or minus this; 0 leaves them as they are."},
    "loss_type": {"title": "Loss", "enum": ["grpo", "bnpo", "dr_grpo", "dapo", "cispo"], "default": "grpo",
      "description": "The loss and how it is averaged over tokens and sequences."},
    "importance_sampling_level": {"title": "Ratio level", "enum": ["token", "sequence"], "default": "token",
      "description": "Whether the importance ratio is taken token by token or once a sequence, as in GSPO."},
    "epsilon": {"title": "Clip range", "type": "number", "minimum": 0, "default": 0.2,
      "x-resume": true, "description": "Ratios are clipped below at 1 - epsilon, and above at 1 + epsilon where epsilon_high is not given."},
    "epsilon_high": {"title": "Upper clip range", "type": ["number", "null"], "minimum": 0, "default": null,
      "x-resume": true, "description": "Ratios are clipped above at 1 + epsilon_high (DAPO: 0.28); null takes epsilon. For cispo it is the largest ratio itself, and null takes 5."},
    "delta": {"title": "Two-sided clip", "type": ["number", "null"], "exclusiveMinimum": 0, "default": null,
      "x-resume": true, "description": "Upper bound of the ratio in the unclipped branch, which bounds the loss of negative advantages; null sets none. Should exceed 1 + epsilon_high."},
    "beta": {"title": "KL coefficient", "type": "number", "minimum": 0, "default": 0.04,
      "x-resume": true, "description": "Weight of the divergence from the reference policy in the loss; 0 needs no reference."},
    "kl_estimator": {"title": "KL estimator", "enum": ["k1", "k2", "k3"], "default": "k3",
      "description": "How the divergence is estimated from the sampled token: log-ratio, half its square, or the non-negative unbiased one."},
    "kl_clamp": {"title": "KL clamp", "type": ["number", "null"], "exclusiveMinimum": 0, "default": 3,
      "x-resume": true, "description": "Where the reference's log-probability exceeds the policy's by more than this, the KL estimate is linear, so that one token cannot set the direction of an optimiser step; null sets no bound (TRL)."},
    "kl_ratio_correction": {"title": "Ratio in the KL term", "type": "boolean", "default": false,
      "description": "Multiply the KL term by the importance ratio and differentiate through it (TRL's use_bias_correction_kl, which is on there)."},
    "entropy_coef": {"title": "Entropy bonus", "type": "number", "minimum": 0, "default": 0,
      "x-resume": true, "description": "Weight in the loss of the mean over tokens of the entropy of their distributions, whatever loss_type (TRL): above 0 the policy stays more varied."},
    "sync_ref_model": {"title": "Update the reference", "type": "boolean", "default": false,
      "description": "Replace the reference by the current policy every ref_model_sync_steps updates."},
    "ref_model_sync_steps": {"title": "Updates between reference updates", "type": "integer", "minimum": 1, "default": 512,
      "description": "Only with sync_ref_model."},
    "old_logprobs": {"title": "Old log-probabilities", "enum": ["behaviour", "recomputed"], "default": "behaviour",
      "description": "What importance ratios are taken against: the log-probabilities recorded when the completions were sampled, or those of the policy at the start of the update, for one forward pass more."},
    "importance_sampling_correction": {"title": "Sampler correction", "enum": ["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"], "default": "none",
      "description": "Weight tokens by the ratio of trainer to sampler probability: per token or for the whole sequence, bounded or set to 0 outside the bounds. Needs old_logprobs: recomputed."},
    "importance_sampling_min": {"title": "Lower bound of the sampler correction", "type": "number", "minimum": 0, "default": 0,
      "description": "Ratios below are raised to it (truncate) or set to 0 (mask)."},
    "importance_sampling_max": {"title": "Upper bound of the sampler correction", "type": "number", "exclusiveMinimum": 0, "default": 3.0,
      "description": "Ratios above are lowered to it (truncate) or set to 0 (mask)."},
    "off_policy_mask_threshold": {"title": "Off-policy mask", "type": ["number", "null"], "minimum": 0, "default": null,
      "x-resume": true, "description": "A completion with a negative advantage gives no policy gradient where the mean over its tokens of log sampler - log policy is above this (DeepSeek-V3.2, for stale samples; TRL). null masks none."},
    "mask_truncated_completions": {"title": "Mask truncated completions", "type": "boolean", "default": false,
      "description": "Completions that ended for their length give no gradient; they still count as sequences."},
    "drop_zero_variance_groups": {"title": "Drop groups without variance", "type": "boolean", "default": false,
      "description": "Leave out the samples of groups whose values are all equal (dynamic sampling): they have advantage 0 and only dilute the batch and its KL term."},
    "max_completion_length": {"title": "Length that dr_grpo divides by", "type": "integer", "minimum": 0, "default": 0,
      "description": "0 takes the rollout's max_new_tokens."},
    "ppo_epochs": {"title": "Epochs", "type": "integer", "minimum": 1, "default": 2,
      "description": "Passes over the samples of an update (TRL: num_iterations)."},
    "mini_batch_size": {"title": "Mini-batch size", "type": "integer", "minimum": 1, "default": 4,
      "description": "Samples of a mini-batch; mini_batch_size x gradient_accumulation_steps samples make one optimiser step."},
    "gradient_accumulation_steps": {"title": "Accumulation steps", "type": "integer", "minimum": 1, "default": 2,
      "description": "Mini-batches whose gradients make one optimiser step; the last step of an epoch takes what is left."},
    "shuffle": {"title": "Shuffle", "type": "boolean", "default": false,
      "description": "Visit the samples in a new random order each epoch (from the run's seed) instead of in the order of the rollout."},
    "max_tokens_per_forward": {"title": "Tokens per forward pass", "type": "integer", "minimum": 0, "default": 16384,
      "x-resume": true, "description": "The samples of an optimiser step go through the policy in pieces of at most this many tokens, prompts included, to bound memory; gradients stay the same. 0 does not cut."},
    )json";
constexpr const char* kSchemaTail = R"json(
  },
  "x-removed": {"report_kl": {"const": false, "description": "the divergence from the reference is reported if beta is above 0; a beta such as 1e-6 reports it and changes next to nothing"}}
})json";

void RefuseAll(const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "\n") + problem;
  throw Error(KGRPO_ERROR_INVALID, text);
}

std::string Text(double value) { return nlohmann::json(value).dump(); }

void RefuseContradictions(const GrpoOptions& options) {
  std::vector<std::string> problems;
  if (options.sampler_correction != SamplerCorrection::kNone && options.old_logprobs != OldLogprobs::kRecomputed) {
    problems.push_back(
        "importance_sampling_correction compares the sampler with recomputed log-probabilities: set old_logprobs: "
        "recomputed");
  }
  if (!options.own_advantage.empty() && !options.advantage_program.empty())
    problems.emplace_back("advantage_program: set it or advantage, not both");
  const AdvantageOptions& given = options.advantage;
  if ((!options.own_advantage.empty() || !options.advantage_program.empty()) &&
      (given.estimator != AdvantageEstimator::kMean || given.leave_one_out || given.scale != AdvantageScale::kGroup)) {
    problems.emplace_back(
        "advantage, or advantage_program, replaces advantage_estimator, leave_one_out and scale_rewards: leave them "
        "out");
  }
  if (options.sampler_correction_min > options.sampler_correction_max) {
    problems.push_back("importance_sampling_min is above importance_sampling_max");
  }
  if (options.loss.type != LossType::kCispo && options.loss.epsilon_low > 1) {
    problems.push_back("epsilon is above 1: ratios are never below 0, so nothing would be clipped below");
  }
  if (options.loss.type == LossType::kCispo && options.loss.epsilon_high < 1) {
    problems.push_back(
        "epsilon_high of cispo is the largest ratio itself, not its distance from 1: below 1 it clips every "
        "token; 5 is usual");
  }
  if (options.loss.type != LossType::kCispo && options.loss.delta < 1 + options.loss.epsilon_high) {
    problems.push_back("options.delta: " + Text(options.loss.delta) + " is below 1 + epsilon_high (" +
                       Text(1 + options.loss.epsilon_high) +
                       "): it would clip positive advantages and bound no negative one; 4 is usual");
  }
  RefuseAll(problems);
}

// The samples of an update, by what trainer_grpo compares them within.
struct Groups {
  uint64_t count = 0;    // 0: not known
  uint64_t alone = 0;    // groups that have one sample for certain
  uint64_t largest = 0;  // samples of the largest
};

Groups GroupsOf(AdvantageGroup group, const kgrpo_trainer_plan& plan) {
  if (plan.trajectories == 0 || plan.trajectories_per_problem == 0 || plan.rounds == 0) return {};
  if (group == AdvantageGroup::kBatch) {
    const uint64_t samples = plan.trajectories * plan.rounds;
    return {1, samples == 1 ? 1U : 0U, samples};
  }
  const uint64_t drawn = plan.trajectories / plan.trajectories_per_problem;
  if (plan.problems == 0 || drawn == 0) return {};
  const uint64_t problems = std::min(drawn, plan.problems);
  const uint64_t again = drawn - problems;  // draws of a problem that the update has drawn before
  const bool one_each =
      plan.trajectories_per_problem == 1 && (group == AdvantageGroup::kProblemRound || plan.rounds == 1);
  const uint64_t draws = (drawn + problems - 1) / problems;  // of the problem drawn most often
  const uint64_t largest =
      draws * plan.trajectories_per_problem * (group == AdvantageGroup::kProblemRound ? 1 : plan.rounds);
  return {problems, one_each && again < problems ? problems - again : 0, largest};
}

}  // namespace

std::string_view GrpoOptionsSchema() {
  static const std::string schema = [] {
    auto json =
        nlohmann::ordered_json::parse(kSchemaHead + trainer::OptimizerSchemaProperties(1e-5, "constant") + kSchemaTail);
    auto& description = json["properties"]["advantage"]["description"];
    description = description.get<std::string>() + "\n" + AdvantageVariables();
    return json.dump();
  }();
  return schema;
}

void RefusePlan(const GrpoOptions& options, const kgrpo_trainer_plan& plan) {
  std::vector<std::string> problems;
  if (!(plan.temperature > 0)) {
    problems.push_back("trainer_grpo needs completions that were sampled: the rollout's temperature is " +
                       std::to_string(plan.temperature) + ", and must be above 0");
  }
  if (options.loss.type == LossType::kDrGrpo && options.max_completion_length == 0 && plan.max_completion_size == 0) {
    problems.emplace_back(
        "options.loss_type: dr_grpo divides by the longest possible completion: set max_completion_length");
  }
  if (plan.max_staleness > 0 && options.old_logprobs == OldLogprobs::kRecomputed &&
      options.sampler_correction == SamplerCorrection::kNone) {
    problems.emplace_back(
        "options.old_logprobs: recomputed takes the ratios against the policy of the update, so that nothing corrects "
        "for the older policy that sampled (loop.max_staleness): set behaviour, or importance_sampling_correction");
  }
  const Groups groups = GroupsOf(options.advantage.group, plan);
  if (groups.count > 0 && groups.alone == groups.count) {
    problems.push_back(
        "options.advantage_group: in each update every sample would be alone in its group, with advantage 0, and "
        "nothing would be learned. Give each problem several trajectories (loop.trajectories_per_problem is " +
        std::to_string(plan.trajectories_per_problem) + ", the update's trajectories " +
        std::to_string(plan.trajectories) + ", their rounds " + std::to_string(plan.rounds) +
        "), or compare samples within a larger group");
  }
  if (options.advantage.estimator == AdvantageEstimator::kMaxAtK && groups.count > 0 &&
      options.advantage.best_of > groups.largest) {
    problems.push_back("options.best_of: " + std::to_string(options.advantage.best_of) +
                       " is above the number of samples in a group, which is " + std::to_string(groups.largest) +
                       ": lower it, or raise loop.trajectories_per_problem (" +
                       std::to_string(plan.trajectories_per_problem) + ")");
  }
  RefuseAll(problems);
}

std::vector<std::string> PlanWarnings(const GrpoOptions& options, const kgrpo_trainer_plan& plan) {
  const GrpoOptions defaults;
  const LossOptions& loss = options.loss;
  std::vector<std::string> warnings;
  const auto warn_if = [&](bool given, std::string warning) {
    if (given) warnings.push_back(std::move(warning));
  };
  warn_if(loss.entropy_coef > 0 && plan.cuts_support != 0,
          "entropy_coef is biased: its gradient is estimated from sampled tokens, and top_k, top_p or min_p of "
          "loop.sampling leave tokens out");
  const std::string updates = std::to_string(plan.steps) + " updates";
  warn_if(options.sync_ref_model && !options.needs_reference(),
          "sync_ref_model has no effect: beta is 0, so nothing is compared with the reference");
  warn_if(options.sync_ref_model && options.needs_reference() && options.ref_model_sync_steps >= plan.steps,
          "sync_ref_model has no effect: the stage has " + updates + ", and the reference would be replaced after " +
              std::to_string(options.ref_model_sync_steps) + " (ref_model_sync_steps)");
  warn_if(!options.sync_ref_model && options.ref_model_sync_steps != defaults.ref_model_sync_steps,
          "ref_model_sync_steps has no effect: sync_ref_model is off");
  warn_if(options.advantage.estimator == AdvantageEstimator::kMean &&
              options.advantage.best_of != defaults.advantage.best_of,
          "best_of has no effect: advantage_estimator is mean");
  warn_if(options.advantage.estimator == AdvantageEstimator::kMaxAtK && options.advantage.leave_one_out,
          "leave_one_out has no effect: advantage_estimator is max_at_k");
  warn_if(loss.kl_clamp != defaults.loss.kl_clamp && !options.needs_reference(), "kl_clamp has no effect: beta is 0");
  warn_if(loss.kl_ratio_correction && loss.beta == 0, "kl_ratio_correction has no effect: beta is 0");
  warn_if(loss.type == LossType::kCispo && loss.delta != defaults.loss.delta,
          "delta has no effect: the loss of cispo has no unclipped branch");
  warn_if(
      loss.type != LossType::kCispo && loss.epsilon_high < loss.epsilon_low,
      "epsilon_high (" + Text(loss.epsilon_high) + ") is below epsilon (" + Text(loss.epsilon_low) +
          "): ratios are clipped sooner above than below, which keeps unlikely tokens unlikely; DAPO: 0.28 and 0.2");
  warn_if(loss.type != LossType::kDrGrpo && options.max_completion_length != 0,
          "max_completion_length has no effect: only loss_type dr_grpo divides by it");
  warn_if(options.sampler_correction == SamplerCorrection::kNone &&
              (options.sampler_correction_min != defaults.sampler_correction_min ||
               options.sampler_correction_max != defaults.sampler_correction_max),
          "importance_sampling_min and _max have no effect: importance_sampling_correction is none");
  for (std::string& warning : trainer::ScheduleWarnings(options.optimizer.schedule, plan.steps))
    warnings.push_back(std::move(warning));
  const Groups groups = GroupsOf(options.advantage.group, plan);
  warn_if(groups.alone > 0, "in each update " + std::to_string(groups.alone) + " of " + std::to_string(groups.count) +
                                " problems have one trajectory: its samples are alone in their groups and have "
                                "advantage 0. Raise loop.trajectories_per_problem");
  return warnings;
}

GrpoOptions ReadGrpoOptions(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  GrpoOptions options;

  options.advantage.gamma = json.at("gamma").get<double>();
  options.advantage.group = Choice<AdvantageGroup>(json, "advantage_group",
                                                   {{"batch", AdvantageGroup::kBatch},
                                                    {"problem", AdvantageGroup::kProblem},
                                                    {"problem_round", AdvantageGroup::kProblemRound}});
  options.advantage.scale = Choice<AdvantageScale>(json, "scale_rewards",
                                                   {{"group", AdvantageScale::kGroup},
                                                    {"batch", AdvantageScale::kBatch},
                                                    {"rms", AdvantageScale::kRootMeanSquare},
                                                    {"none", AdvantageScale::kNone}});
  options.advantage.estimator = Choice<AdvantageEstimator>(
      json, "advantage_estimator", {{"mean", AdvantageEstimator::kMean}, {"max_at_k", AdvantageEstimator::kMaxAtK}});
  options.advantage.best_of = json.at("best_of").get<uint32_t>();
  options.advantage.leave_one_out = json.at("leave_one_out").get<bool>();
  options.advantage.idle_baseline = json.at("idle_baseline").get<bool>();
  options.advantage.cap = json.at("advantage_cap").get<double>();

  options.loss.type = Choice<LossType>(json, "loss_type",
                                       {{"grpo", LossType::kGrpo},
                                        {"bnpo", LossType::kBnpo},
                                        {"dr_grpo", LossType::kDrGrpo},
                                        {"dapo", LossType::kDapo},
                                        {"cispo", LossType::kCispo}});
  options.loss.level = Choice<RatioLevel>(json, "importance_sampling_level",
                                          {{"token", RatioLevel::kToken}, {"sequence", RatioLevel::kSequence}});
  options.loss.epsilon_low = json.at("epsilon").get<double>();
  const auto& high = json.at("epsilon_high");
  const double default_high = options.loss.type == LossType::kCispo ? 5.0 : options.loss.epsilon_low;
  options.loss.epsilon_high = high.is_null() ? default_high : high.get<double>();
  const auto& delta = json.at("delta");
  if (!delta.is_null()) options.loss.delta = delta.get<double>();
  options.loss.beta = json.at("beta").get<double>();
  options.loss.kl_estimator = Choice<KlEstimator>(
      json, "kl_estimator", {{"k1", KlEstimator::kK1}, {"k2", KlEstimator::kK2}, {"k3", KlEstimator::kK3}});
  const auto& clamp = json.at("kl_clamp");
  options.loss.kl_clamp = clamp.is_null() ? std::numeric_limits<double>::infinity() : clamp.get<double>();
  options.loss.kl_ratio_correction = json.at("kl_ratio_correction").get<bool>();

  options.loss.entropy_coef = json.at("entropy_coef").get<double>();
  options.sync_ref_model = json.at("sync_ref_model").get<bool>();
  options.ref_model_sync_steps = json.at("ref_model_sync_steps").get<uint32_t>();
  options.old_logprobs = json.at("old_logprobs") == "behaviour" ? OldLogprobs::kBehaviour : OldLogprobs::kRecomputed;
  options.sampler_correction = Choice<SamplerCorrection>(json, "importance_sampling_correction",
                                                         {{"none", SamplerCorrection::kNone},
                                                          {"token_truncate", SamplerCorrection::kTokenTruncate},
                                                          {"token_mask", SamplerCorrection::kTokenMask},
                                                          {"sequence_truncate", SamplerCorrection::kSequenceTruncate},
                                                          {"sequence_mask", SamplerCorrection::kSequenceMask}});
  options.sampler_correction_min = json.at("importance_sampling_min").get<double>();
  options.sampler_correction_max = json.at("importance_sampling_max").get<double>();
  if (!json.at("advantage").is_null()) options.own_advantage = json.at("advantage").get<std::string>();
  if (!json.at("advantage_program").is_null())
    options.advantage_program = json.at("advantage_program").get<std::vector<std::string>>();
  if (const auto& threshold = json.at("off_policy_mask_threshold"); !threshold.is_null())
    options.off_policy_mask_threshold = threshold.get<double>();
  options.mask_truncated_completions = json.at("mask_truncated_completions").get<bool>();
  options.drop_zero_variance_groups = json.at("drop_zero_variance_groups").get<bool>();
  options.max_completion_length = json.at("max_completion_length").get<uint32_t>();
  options.ppo_epochs = json.at("ppo_epochs").get<uint32_t>();
  options.mini_batch_size = json.at("mini_batch_size").get<uint32_t>();
  options.gradient_accumulation_steps = json.at("gradient_accumulation_steps").get<uint32_t>();
  options.shuffle = json.at("shuffle").get<bool>();
  options.max_tokens_per_forward = json.at("max_tokens_per_forward").get<uint32_t>();
  options.optimizer = trainer::ReadOptimizerOptions(json);

  RefuseContradictions(options);
  return options;
}

}  // namespace kgrpo::grpo
