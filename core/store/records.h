// The records that the loop passes to the run store: rounds, trajectories, steps. Plain data, made by loop/, written
// by store/database.h, summarised by loop/metrics.h.
#ifndef KGRPO_STORE_RECORDS_H
#define KGRPO_STORE_RECORDS_H

#include "plugin/instances.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kgrpo {

// The purpose of a rollout.
enum class Purpose {
  kTrain,          // the samples of a step
  kDemonstration,  // collected once at a stage's start, to be imitated
  kHeldout,        // measured only
  kEvaluation,     // episodes of `eval policy`: each repeat is a step
  kSearch,         // candidates of `optimize`: each wave is a step
  kGreedy,         // as kHeldout, at temperature 0
};
inline constexpr std::array kPurposes = {Purpose::kTrain,      Purpose::kHeldout, Purpose::kDemonstration,
                                         Purpose::kEvaluation, Purpose::kSearch,  Purpose::kGreedy};
const char* PurposeName(Purpose purpose);  // "train", "demonstration", "heldout", "evaluation", "search", "greedy"

// SQL for the rounds of a run's own steps, whatever the run is for.
#define KGRPO_OWN_ROUNDS "purpose IN ('train', 'evaluation', 'search')"

// The parts whose failure leaves a round without a score.
enum class RoundPart { kCoder, kEvaluator, kReward };
inline constexpr std::array kRoundParts = {RoundPart::kCoder, RoundPart::kEvaluator, RoundPart::kReward};
const char* RoundPartName(RoundPart part);  // "coder", "evaluator", "reward"
RoundPart RoundPartOf(const std::string& name);

// The message of a reward that gave a round no score (KGRPO_ERROR_NO_SCORE), which is not a failure of the reward,
// begins so.
inline constexpr std::string_view kNoScore = "no score: ";

// A failure of the evaluator or the reward in a round. One of the coder is in its answer.
struct RoundFailure {
  RoundPart part = RoundPart::kEvaluator;
  std::string message;
};

// One round of one trajectory.
struct RoundRecord {
  uint32_t round = 0;                 // from 0
  std::vector<ChatMessage> messages;  // the prompt
  std::vector<int32_t> prompt_ids;    // empty where no policy was asked
  std::vector<int32_t> completion_ids;
  std::vector<float> logprobs;  // log-probabilities of completion_ids; empty if they were not sampled
  bool truncated = false;       // the completion ended for its length
  std::string suggestion;
  uint32_t staleness = 0;      // updates of the policy between its writing and its step's own; not kept
  std::string code_a, code_b;  // the state that the round started from
  CoderAnswer answer;
  std::optional<Evaluation>
      evaluation;  // evaluation of answer.source; absent without a kernel, and if the evaluator failed
  uint64_t evaluation_seed = 0;
  double evaluate_seconds = 0;  // how long judging took
  bool unchanged = false;       // the coder's kernel equals code_b
  bool applied = false;         // the kernel became the current one
  double speedup = 0;           // the reference's time over the kernel's; 0 unless correct
  double reward = 0;
  double idle_reward = 0;
  std::vector<Metric> reward_parts;
  std::optional<RoundFailure> failure;            // set: the round has no score
  std::optional<Trainer::SampleOutcome> outcome;  // the trainer's return and advantage, if it pushed them
};

struct TrajectoryRecord {
  uint64_t trajectory = 0;  // within the step, from 0
  uint32_t problem = 0;     // index into the run's problems of that purpose
  std::string problem_name;
  std::string family;
  std::string prompted_as;  // another problem's name under the shuffle_prompts control; else empty
  double baseline_seconds = 0;
  uint32_t rounds = 0;  // as planned
  std::vector<RoundRecord> rounds_done;
  std::string dropped;                      // why the rest of the trajectory is missing; empty when it is complete
  std::optional<RoundRecord> failed_round;  // the round in which it was dropped
};

// A field's name, with the way in which it is kept. A plain name: as its type says (store/fields.h).
struct KernelText {
  const char* name;  // run.sqlite keeps the text once, in `sources`
};
struct Digits {
  const char* name;  // uses all 64 bits, which SQLite's integers would show as negative
};

// Calls visit(NAME, member) for each field of a round (without answer.text, which no record keeps), and
// visit.Group(optional, FIELDS) for fields that are present together or not at all. The order is that of run.sqlite's
// columns: large ones last, so that a query of small ones reads little. Tables, exports and messages between ranks are
// made from this list; a new field is one line here.
template <typename Round, typename Visitor>
void VisitFields(Round& round, Visitor& visit) {
  visit("round", round.round);
  visit("truncated", round.truncated);
  visit(KernelText{"code_a"}, round.code_a);
  visit(KernelText{"code_b"}, round.code_b);
  visit(KernelText{"code_c"}, round.answer.source);
  visit("coder_outcome", round.answer.outcome);
  visit("coder_prompt_tokens", round.answer.prompt_tokens);
  visit("coder_completion_tokens", round.answer.completion_tokens);
  visit("coder_cost", round.answer.cost);
  visit("coder_seconds", round.answer.seconds);
  visit("coder_attempts", round.answer.attempts);
  visit("coder_reused", round.answer.reused);
  visit("coder_estimated", round.answer.estimated);
  visit(Digits{"evaluation_seed"}, round.evaluation_seed);
  visit("evaluate_seconds", round.evaluate_seconds);
  visit("unchanged", round.unchanged);
  visit("applied", round.applied);
  visit("speedup", round.speedup);
  visit("reward", round.reward);
  visit("idle_reward", round.idle_reward);
  visit("reward_parts", round.reward_parts);
  visit.Group(round.outcome, [&visit](auto& outcome) {
    visit("return", outcome.returned);
    visit("advantage", outcome.advantage);
  });
  visit.Group(round.failure, [&visit](auto& failure) {
    visit("failed_part", failure.part);
    visit("failed_message", failure.message);
  });
  visit.Group(round.evaluation, [&visit](auto& evaluation) {
    visit("verdict", evaluation.verdict);
    visit("compiled", evaluation.compiled);
    visit("correct", evaluation.correct);
    visit("seconds", evaluation.seconds);
    visit("seconds_low", evaluation.seconds_low);
    visit("seconds_high", evaluation.seconds_high);
    visit("modelled", evaluation.modelled);
    visit("time_source", evaluation.time_source);
    visit("paired_speedup", evaluation.speedup);
    visit("paired_speedup_low", evaluation.speedup_low);
    visit("paired_speedup_high", evaluation.speedup_high);
    visit("diagnosis", evaluation.diagnosis);
    visit("metrics", evaluation.metrics);
    visit("remarks", evaluation.remarks);
  });
  visit("suggestion", round.suggestion);
  visit("coder_summary", round.answer.summary);
  visit("coder_message", round.answer.message);
  visit("completion_ids", round.completion_ids);
  visit("logprobs", round.logprobs);
  visit("prompt_ids", round.prompt_ids);
  visit("prompt", round.messages);
}

// The same for the fields of a trajectory, without its rounds.
template <typename Trajectory, typename Visitor>
void VisitTrajectoryFields(Trajectory& trajectory, Visitor& visit) {
  visit("trajectory", trajectory.trajectory);
  visit("problem", trajectory.problem);
  visit("problem_name", trajectory.problem_name);
  visit("family", trajectory.family);
  visit("prompted_as", trajectory.prompted_as);
  visit("baseline_seconds", trajectory.baseline_seconds);
  visit("rounds", trajectory.rounds);
  visit("dropped", trajectory.dropped);
}

struct StepRecord {
  uint64_t step = 0;                  // number in the whole run, from 1
  Purpose purpose = Purpose::kTrain;  // purpose of `trajectories`
  uint64_t stage = 0;                 // index into the pipeline's stages
  std::string stage_name;             // the trainer's plugin
  double reward_mean = 0;             // mean reward of the step's samples; 0 if there are none
  bool has_rollouts = false;
  double finished_at = 0;  // seconds since 1970
  std::vector<TrajectoryRecord> trajectories;
  std::vector<TrajectoryRecord> heldout;  // trajectories of the measurement after this step, if there was one
  std::vector<TrajectoryRecord> greedy;   // likewise
  std::vector<Metric> metrics;
  std::vector<std::vector<Metric>> optimizer_steps;
};

// A setting that `resume` changed on the way, after that step; 0: before the first one was done.
struct SettingChange {
  uint64_t after_step = 0;
  std::string key;            // as --set takes it: "trainer[1].options.beta"
  std::string before, after;  // JSON; "null" where the key was or is absent
};

// The step after which the reward was last changed: rewards of steps up to it have another scale. 0: never on the way.
inline uint64_t RewardChangedAfter(const std::vector<SettingChange>& changes) {
  uint64_t last = 0;
  for (const SettingChange& change : changes) {
    if (change.key == "reward" || change.key.starts_with("reward.")) last = std::max(last, change.after_step);
  }
  return last;
}

// A verified kernel: the best of its problem so far.
struct BestKernel {
  std::string problem;
  std::string source;
  uint64_t step = 0, trajectory = 0;
  uint32_t round = 0;
  Evaluation evaluation;  // the thorough one
  Evaluation baseline;
  double speedup = 0;
  std::vector<std::string> suggestions;  // suggestions that led to it, in order
};

// Results of judging kernels again at the end of a step.
struct JudgedKernels {
  bool complete = false;         // no kernel was left to judge: a resumed run has none to judge from earlier steps
  std::vector<BestKernel> best;  // kernels that are the best of their problem now
  std::vector<std::pair<std::string, std::string>> refuted;  // (problem, source): failed the second judging
  std::string failed;  // the evaluator's error, for which some kernels wait for the next time; empty: none do
};

}  // namespace kgrpo
#endif
