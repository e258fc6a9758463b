// Collects trajectories: the policy suggests, the coder implements, the evaluator judges.
//
// Each trajectory continues as soon as its round is over (loop/rounds_in_flight.h); none waits for another. All
// randomness is keyed, a completion does not depend on what is generated beside it (kgrpo/policy.h), and records are in
// the order of the trajectories, so the result does not depend on how long anything takes.
//
// With loop.max_staleness: 1 two cohorts are in flight, the trajectories of a step and of the next one. Those of step
// n+1 begin with the policy of step n-1 and wait before their round RoundsAhead, until the policy has learned from step
// n. That point is the same however long anything takes, and the policy has no request in flight there.
#ifndef KGRPO_LOOP_ROLLOUT_H
#define KGRPO_LOOP_ROLLOUT_H

#include "base/console.h"
#include "base/worker_pool.h"
#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "loop/ranks.h"
#include "plugin/parts.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kgrpo {

class RoundsInFlight;  // loop/rounds_in_flight.h

// The source of suggestions.
struct Suggester {
  enum class Kind {
    kPolicy,   // sampled by the policy
    kUniform,  // drawn from the coder's own list, uniformly over those not yet used in the trajectory
    kFixed,    // `sequence`, one a round, the last one repeated
  };
  Kind kind = Kind::kPolicy;
  std::vector<std::string> sequence;
};

// Throws if the parts cannot give such suggestions.
void RequireSuggester(const Suggester& suggester, const PipelineParts& parts);

// The problem that a trajectory works on.
struct Assignment {
  uint32_t problem = 0;    // index into the problem set
  uint32_t prompt_of = 0;  // the assignment whose prompts it gets: its own, except under shuffle_prompts
};

// Number of rounds in each stage at a moment: at the policy (writing a suggestion), at the coder, at evaluator and
// reward.
struct RoundsUnderWay {
  size_t policy = 0, coder = 0, evaluator = 0;
  bool operator==(const RoundsUnderWay&) const = default;
};
using UnderWay = std::function<void(const RoundsUnderWay& rounds)>;

// Rounds of each trajectory that begin one update early, of a step that is begun ahead.
inline uint32_t RoundsAhead(const LoopConfig& loop) { return (loop.rounds + 1) / 2; }

struct RolloutRequest {
  Purpose purpose = Purpose::kTrain;
  uint64_t step = 0;  // the random streams' key, with the purpose
  Suggester suggester;
  std::vector<Assignment> assignments;  // a trajectory each
  bool encode = false;  // also token ids of prompts and given suggestions, for demonstrations; needs the policy
  // The same step's rollout of an earlier attempt. A trajectory that reaches the same state reuses its coder answers
  // and evaluations, so that a resumed run pays for no answer twice and gets the same times. May be empty.
  std::vector<TrajectoryRecord> recorded;
  // Updates that come between the suggestions that are written when the rollout begins and the step's own update.
  uint32_t staleness = 0;
  // First rounds of an earlier attempt that was begun ahead (Rollout::BegunAhead). Their suggestions are taken instead
  // of the policy's, which has been updated since.
  std::vector<TrajectoryRecord> begun;
  // Collect throws KGRPO_ERROR_UNAVAILABLE once the first most_faults answers of the coder, the evaluator or the reward
  // all failed, to avoid paying for more useless answers. 0: no limit.
  size_t most_faults = 0;
  // Receives what there is of the trajectories when an error ends the rollout: failed_round has the answer of the round
  // that was under way. May be empty.
  std::function<void(const std::vector<TrajectoryRecord>& trajectories)> unfinished;
  // Receives the number of finished trajectories, and the total, of this rank; on the collecting thread. May be empty.
  std::function<void(size_t done, size_t total)> progress;
  // Receives the rounds under way after each change, at most every 100 ms; on the collecting thread. May be empty.
  UnderWay under_way;
};

// "with the policy 12, coder 4, evaluator 3"; empty where nothing is under way.
std::string UnderWayText(const RoundsUnderWay& rounds);

// Sets the request's callbacks so that its progress is shown on a terminal; does nothing for a pipe or a null console.
// `console` outlives the request. `what`: "step 13".
void ShowUnderWay(Console* console, const std::string& what, RolloutRequest* request);

struct RolloutResult {
  std::vector<TrajectoryRecord> trajectories;  // one an assignment, in order
  double seconds = 0;                          // seconds of the clock for the whole rollout
  double generate_seconds = 0;                 // seconds among them in which a suggestion was being generated
  double wait_seconds = 0;                     // waiting for devices, summed over all threads
};

class Rollout {
 public:
  class Cohort;  // the trajectories of one request while they are played

  // All of it outlives this.
  Rollout(const PipelineConfig& config, PipelineParts& parts, const ProblemSet& problems, WorkerPool& pool);

  // Throws a plugin's error that ends the run, or KGRPO_ERROR_CANCELLED once the user asked to stop; nothing is in
  // flight then. With several ranks only the leader calls it, and each rank collects its share. One thread.
  RolloutResult Collect(const RolloutRequest& request);
  // The parts of Collect, for cohorts of one rank that overlap. Begin sends the first rounds of the trajectories from
  // `begin` up to `end` to the policy; the request outlives the cohort. `beside`: the one that is played,
  // whose own rounds are sent first; or null. Finish plays the cohort to its end, and `ahead`, unless null, until the
  // policy has written its rounds before RoundsAhead. Both throw as Collect does.
  std::shared_ptr<Cohort> Begin(const RolloutRequest& request, Cohort* beside = nullptr, size_t begin = 0,
                                size_t end = SIZE_MAX);
  RolloutResult Finish(Cohort& cohort, Cohort* ahead = nullptr);
  // For RolloutRequest::begun: the rounds before RoundsAhead of a cohort that was begun ahead, of others nothing. A
  // failed_round without `dropped` is a suggestion without an answer.
  static std::vector<TrajectoryRecord> BegunAhead(Cohort& cohort);
  // Ends a cohort that Finish has not ended, and hands RolloutRequest::unfinished what there is of it.
  static void Abandon(Cohort& cohort);

  // Collects this rank's share of a Collect that the leader has ordered. Returns all ranks' trajectories on every rank.
  RolloutResult CollectShare(const RolloutRequest& request, Ranks& ranks);

 private:
  const PipelineConfig& config_;
  PipelineParts& parts_;
  const ProblemSet& problems_;
  WorkerPool& pool_;
  std::vector<std::string> known_suggestions_;  // the coder's
};

}  // namespace kgrpo
#endif
