// Collects trajectories: the policy suggests, the coder implements, the evaluator judges.
//
// Each trajectory continues as soon as its round is over (loop/rounds_in_flight.h); none waits for another. All
// randomness is keyed, a completion does not depend on what is generated beside it (kgrpo/policy.h), and records are in
// the order of the trajectories, so the result does not depend on how long anything takes.
#ifndef KGRPO_LOOP_ROLLOUT_H
#define KGRPO_LOOP_ROLLOUT_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "loop/ranks.h"
#include "loop/worker_pool.h"
#include "prompt/template.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kgrpo {

class Screen;

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

// The problem that a trajectory works on.
struct Assignment {
  uint32_t problem = 0;    // index into the problem set
  uint32_t prompt_of = 0;  // the trajectory whose prompts it is given: its own number, but under shuffle_prompts
};

// Where the rounds under way are at a moment: with the policy, which writes suggestions, with the coder, with evaluator
// and reward, or with the screen (loop/screen.h).
struct RoundsUnderWay {
  size_t policy = 0, coder = 0, evaluator = 0, screen = 0;
  bool operator==(const RoundsUnderWay&) const = default;
};

struct RolloutRequest {
  Purpose purpose = Purpose::kTrain;
  uint64_t step = 0;  // the random streams' key, with the purpose
  Suggester suggester;
  std::vector<Assignment> assignments;  // a trajectory each
  bool encode = false;  // token ids of prompts and of given suggestions too: for demonstrations; needs the policy
  // The same step's rollout of an earlier attempt, whose coder answers and evaluations serve again where the trajectory
  // comes to the same point: so that a resumed run pays no coder twice and takes the same times. May be empty.
  std::vector<TrajectoryRecord> recorded;
  // Collect throws KGRPO_ERROR_UNAVAILABLE once the coder has answered so often with nothing but faults of its own, so
  // that no more is paid for nothing; 0: whatever it answers.
  size_t most_faults = 0;
  // Judges new kernels in place of the evaluator, and their rounds land without evaluation and score. Null: none does.
  Screen* screen = nullptr;
  // Told how many trajectories are done, of how many of this rank's; on the collecting thread. May be empty.
  std::function<void(size_t done, size_t total)> progress;
  // Told where the rounds under way are, whenever that has changed, at most every 100 ms; on the collecting thread. May
  // be empty.
  std::function<void(const RoundsUnderWay& rounds)> under_way;
};

// "with the policy 12, coder 4, evaluator 3"; empty where nothing is under way.
std::string UnderWayText(const RoundsUnderWay& rounds);

// Has the request's progress shown on a terminal while it is collected; nothing on a pipe, or for a null console, which
// outlives the request. `what`: "step 13".
void ShowUnderWay(Console* console, const std::string& what, RolloutRequest* request);

struct RolloutResult {
  std::vector<TrajectoryRecord> trajectories;  // one an assignment, in order
  double seconds = 0;                          // of the clock, for all of it
  double generate_seconds = 0;                 // of them, with a suggestion being generated
  double wait_seconds = 0;                     // for devices: of all threads, summed
};

// The policy's prompt in that state; no system message if its template renders to nothing.
std::vector<ChatMessage> PromptMessages(const PromptTemplate& system, const PromptTemplate& user,
                                        const PromptState& state);

class Rollout {
 public:
  // All of it outlives this.
  Rollout(const PipelineConfig& config, PipelineParts& parts, const ProblemSet& problems, WorkerPool& pool);

  // Throws what the policy, the coder or the evaluator failed with, or KGRPO_ERROR_CANCELLED once the user asked to
  // stop; nothing is in flight then. Of several ranks the leader calls it, and each collects its share. One thread.
  RolloutResult Collect(const RolloutRequest& request);
  // This rank's part of a Collect that the leader has ordered; all trajectories are returned on every rank.
  RolloutResult CollectShare(const RolloutRequest& request, Ranks& ranks);

 private:
  class Session;

  const PipelineConfig& config_;
  PipelineParts& parts_;
  const ProblemSet& problems_;
  WorkerPool& pool_;
  PromptTemplate system_;
  PromptTemplate user_;
  std::vector<std::string> known_suggestions_;  // the coder's
};

}  // namespace kgrpo
#endif
