// One trajectory: a problem, the state (code A, code B, last suggestion), and the rounds so far. A state machine
// without threads: the rollout (loop/rollout.h) drives it.
//
//   prompt from the state -> suggestion -> the coder's kernel C -> its evaluation -> reward -> A <- B, B <- C
#ifndef KGRPO_LOOP_TRAJECTORY_H
#define KGRPO_LOOP_TRAJECTORY_H

#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "plugin/instances.h"
#include "store/records.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

class Trajectory {
 public:
  // `problem` outlives this.
  Trajectory(uint64_t number, uint32_t problem_index, const OpenProblem& problem, const LoopConfig& loop);

  bool done() const { return !record_.dropped.empty() || record_.rounds_done.size() == record_.rounds; }
  uint32_t round() const { return static_cast<uint32_t>(record_.rounds_done.size()); }  // the next one to play, from 0

  const OpenProblem& problem() const { return *problem_; }
  const Evaluation& current() const { return current_; }  // evaluation of code B
  const std::string& code_a() const { return code_a_; }
  const std::string& code_b() const { return code_b_; }
  const std::string& last_suggestion() const { return last_suggestion_; }
  const TrajectoryRecord& record() const { return record_; }
  // Returns the suggestions that no earlier round had; all, if each was had.
  std::vector<std::string> Unused(const std::vector<std::string>& suggestions) const;

  PromptState Prompt(const MetricRegistry* metrics) const;
  // Call before the first round: starts from another correct kernel than the reference.
  void StartFrom(const std::string& source, const Evaluation& evaluation);
  // Returns an independent copy under another number.
  Trajectory Fork(uint64_t number) const;
  // Records that this trajectory gets the prompts of one on that other problem.
  void SetPromptedAs(const std::string& problem) { record_.prompted_as = problem; }

  // True for a round that has no score: the evaluator or the reward failed, or the coder did and the loop drops such
  // trajectories (loop.on_coder_failure).
  bool Drops(const RoundRecord& round) const;

  // Scores a round that has its answer and evaluation, and is not dropped. [any thread, blocking]
  void Score(RoundRecord& round, const Reward& reward) const;

  // Ends a round: advances the state, and keeps the round. At a round that is dropped the trajectory ends instead,
  // without this round.
  void Finish(RoundRecord round);

  TrajectoryRecord Take() { return std::move(record_); }

 private:
  const OpenProblem* problem_;
  Advance advance_;
  CoderFailure on_coder_failure_;
  std::string code_a_, code_b_, last_suggestion_;
  Evaluation current_;
  TrajectoryRecord record_;
};

// Sets the reward, its parts and the idle reward of a round that has its answer and evaluation. `current`: of the
// kernel that the round started from. `before`: the trajectory with its earlier rounds. Without `idle`, leaves
// idle_reward unchanged. [any thread, blocking]
void ScoreRound(const Reward& reward, const Evaluation& baseline, const Evaluation& current,
                const TrajectoryRecord& before, RoundRecord* round, bool idle = true);

// True if the coder gave no kernel because of a fault of its own, not of the suggestion.
bool CoderFailed(const CoderAnswer& answer);

// Calls `use` with every answer of the coder, including those for which trajectories were dropped.
template <typename Use>
void ForEachAnswer(const std::vector<TrajectoryRecord>& trajectories, Use use) {
  for (const TrajectoryRecord& trajectory : trajectories) {
    if (trajectory.failed_round) use(trajectory.failed_round->answer);
    for (const RoundRecord& round : trajectory.rounds_done) use(round.answer);
  }
}

}  // namespace kgrpo
#endif
