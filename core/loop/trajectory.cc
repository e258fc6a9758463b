#include "loop/trajectory.h"

#include "loop/round_faults.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kgrpo {
namespace {

// The outcome of a round, in the words that prompts use.
std::string OutcomeWords(const RoundRecord& round) {
  if (round.evaluation) return round.evaluation->verdict;
  if (round.answer.outcome == KGRPO_CODER_NOT_APPLICABLE) return "not applicable";
  if (round.answer.outcome == KGRPO_CODER_UNCLEAR) return "unclear";
  if (round.answer.outcome == KGRPO_CODER_NO_KERNEL) return "no kernel";
  return "coder failed";
}

}  // namespace

bool CoderFailed(const CoderAnswer& answer) {
  return answer.outcome >= KGRPO_CODER_REFUSED && answer.outcome <= KGRPO_CODER_FAILED;
}

Trajectory::Trajectory(uint64_t number, uint32_t problem_index, const OpenProblem& problem, const LoopConfig& loop)
    : problem_(&problem),
      advance_(loop.advance),
      on_coder_failure_(loop.on_coder_failure),
      code_a_(problem.source),
      code_b_(problem.source),
      current_(problem.baseline) {
  record_.trajectory = number;
  record_.problem = problem_index;
  record_.problem_name = problem.name;
  record_.family = problem.family;
  record_.baseline_seconds = problem.baseline.seconds;
  record_.rounds = loop.rounds;
}

void Trajectory::StartFrom(const std::string& source, const Evaluation& evaluation) {
  code_a_ = code_b_ = source;
  current_ = evaluation;
  current_.CompareWith(problem_->baseline);
}

Trajectory Trajectory::Fork(uint64_t number) const {
  Trajectory fork = *this;
  fork.record_.trajectory = number;
  return fork;
}

std::vector<std::string> Trajectory::Unused(const std::vector<std::string>& suggestions) const {
  std::vector<std::string> unused;
  std::ranges::copy_if(suggestions, std::back_inserter(unused), [&](const std::string& suggestion) {
    return std::ranges::find(record_.rounds_done, suggestion, &RoundRecord::suggestion) == record_.rounds_done.end();
  });
  return unused.empty() ? suggestions : unused;
}

PromptState Trajectory::Prompt(const MetricRegistry* metrics) const {
  PromptState state;
  state.problem = problem_->prompt;
  state.reference = problem_->source;
  state.code_a = code_a_;
  state.code_b = code_b_;
  state.last_suggestion = last_suggestion_;
  state.round = round() + 1;
  state.rounds = record_.rounds;
  for (const RoundRecord& round : record_.rounds_done) {
    PromptRound& past = state.history.emplace_back();
    past.round = round.round + 1;
    past.suggestion = round.suggestion;
    past.summary = round.answer.summary;
    past.outcome = OutcomeWords(round);
    past.applied = round.applied;
    past.speedup = round.speedup;
    past.diagnosis = round.evaluation ? round.evaluation->diagnosis : round.answer.message;
    past.kernel = round.answer.source;
    if (round.evaluation) past.evaluation = *round.evaluation;
  }
  state.current = current_;
  state.metrics = metrics;
  return state;
}

bool Trajectory::Drops(const RoundRecord& round) const {
  const std::optional<RoundFault> fault = FaultOf(round);
  return fault && (fault->part != RoundPart::kCoder || on_coder_failure_ == CoderFailure::kDrop);
}

void ScoreRound(const Reward& reward, const Evaluation& baseline, const Evaluation& current,
                const TrajectoryRecord& before, RoundRecord* round, bool idle) {
  if (round->evaluation) round->evaluation->CompareWith(baseline);
  const EvaluationView baseline_view = baseline.ToC();
  const EvaluationView current_view = current.ToC();
  const Evaluation none;
  const EvaluationView candidate = round->evaluation ? round->evaluation->ToC() : none.ToC();
  std::vector<EvaluationView> earlier;
  std::vector<const kgrpo_evaluation*> history;
  for (const RoundRecord& past : before.rounds_done) {
    if (past.evaluation) earlier.push_back(past.evaluation->ToC());
  }
  size_t next = 0;
  for (const RoundRecord& past : before.rounds_done) history.push_back(past.evaluation ? earlier[next++].c() : nullptr);
  const kgrpo_coder_answer answer = round->answer.ToC();
  kgrpo_reward_request request{};
  request.struct_size = sizeof(request);
  request.baseline = baseline_view.c();
  request.answer = &answer;
  request.candidate = round->evaluation ? candidate.c() : nullptr;
  request.current = current_view.c();
  request.unchanged = round->unchanged;
  request.round = round->round;
  request.rounds = before.rounds;
  request.history = history.data();
  request.suggestion = Str(round->suggestion);
  request.suggestion_tokens = round->completion_ids.size();
  Reward::Scored scored = reward.Score(request);
  try {
    if (idle) round->idle_reward = reward.Idle(request);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("the reward of an unchanged kernel (idle): ") + error.what());
  }
  round->reward = scored.score;
  round->reward_parts = std::move(scored.parts);
}

void Trajectory::Score(RoundRecord& round, const Reward& reward) const {
  ScoreRound(reward, problem_->baseline, current_, record_, &round);
}

void Trajectory::Finish(RoundRecord round) {
  if (Drops(round)) {
    const RoundFault fault = *FaultOf(round);
    record_.dropped = "round " + std::to_string(round.round) + ": the " + RoundPartName(fault.part) +
                      (fault.kind.empty()                 ? " failed: "
                       : fault.part == RoundPart::kReward ? " gave no score: "
                                                          : " gave no kernel (" + fault.kind + "): ") +
                      fault.message;
    record_.failed_round = std::move(round);
    return;
  }
  if (round.evaluation) {
    round.speedup = round.evaluation->speedup;
    const bool advances = advance_ == Advance::kAlways || round.evaluation->correct;
    round.applied = advances && !round.unchanged;
    if (advances) {
      code_a_ = std::exchange(code_b_, round.answer.source);
      last_suggestion_ = round.suggestion;
      current_ = *round.evaluation;
    }
  }
  record_.rounds_done.push_back(std::move(round));
}

}  // namespace kgrpo
