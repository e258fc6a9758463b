// A search at inference time for one problem's fastest kernel: `kgrpo-host optimize` (main.cc).
//
// A beam over kernels. A wave plays one round from each kernel of the beam with several suggestions; the fastest
// correct kernels that differ are the next beam. After loop.rounds waves the search begins at the start again, with
// other random numbers. Only kernels judged correct enter the beam. Once a policy suggests nothing new, suggestions are
// drawn from the coder's list.
#ifndef KGRPO_OPTIMIZE_OPTIMIZE_H
#define KGRPO_OPTIMIZE_OPTIMIZE_H

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "loop/rollout.h"
#include "plugin/parts.h"
#include "store/records.h"

namespace kgrpo {

struct SearchPlan {
  Suggester suggester;
  uint64_t beam = 4;     // kernels that a wave starts from
  uint64_t samples = 8;  // suggestions for each of them
  // Limits. A kernel that was judged before costs no evaluation. The last wave may exceed max_cost by its own cost.
  uint64_t evaluations = 200;
  double seconds = std::numeric_limits<double>::infinity();
  double max_cost = std::numeric_limits<double>::infinity();         // limit of the coder's cost, US dollars
  std::function<void(const RoundsUnderWay& rounds)> under_way = {};  // as in RolloutRequest
};

// One suggestion and its result. The order of candidates does not depend on which finished first.
struct SearchCandidate {
  RoundRecord round;                     // its number counts from the start
  bool from_list = false;                // drawn from the coder's list, once the policy suggests nothing new
  bool repeated = false;                 // this kernel was judged before
  std::vector<std::string> suggestions;  // the path from the start, without rounds whose kernel was not taken over
  uint64_t evaluations = 0;              // so far, this one included
  double best_speedup = 0;               // so far, over the reference, the start included

  // The evaluation's verdict, "evaluator_failed", or the coder's outcome if there is no kernel.
  std::string outcome() const;
};

struct SearchResult {
  std::vector<SearchCandidate> candidates;
  uint64_t evaluations = 0;  // distinct kernels judged
  uint64_t waves = 0;
  double cost = 0;       // sum of the coder's cost, US dollars
  double seconds = 0;    // seconds of the clock
  std::string ended;     // why: "200 evaluations", "nothing new", "stopped by the user", or the limit that ended it
  bool stopped = false;  // by the user
};

struct SearchListener {
  std::function<void(const SearchCandidate&)> candidate;  // each, in order
  std::function<void(const StepRecord&)> wave;  // each, for the record: its rounds are of the purpose "search"
};

// Throws KGRPO_ERROR_INVALID or _UNSUPPORTED if Search cannot begin: `start` is the evaluation of its first kernel.
void RequireSearchable(const SearchPlan& plan, const Evaluation& start, const PipelineParts& parts);

// Searches from `start`, a correct kernel of the problem whose evaluation is given. `config.seed` keys all randomness:
// equal inputs give equal candidates, unless time ends the search. The listener is called on this thread. A stop by the
// user ends the search and is no error. Throws the error of a plugin that failed.
SearchResult Search(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                    const std::string& start, const Evaluation& start_evaluation, WorkerPool& pool,
                    const SearchPlan& plan, const SearchListener& listener);

// The fastest kernel that a thorough evaluation with other inputs confirms.
struct ConfirmedKernel {
  std::string source;
  Evaluation evaluation, start;          // thorough ones, of the same inputs
  std::vector<std::string> suggestions;  // empty for the start itself
  uint64_t seed = 0;                     // seed of the inputs
  uint64_t refuted = 0;                  // faster candidates that were not confirmed
};

// Judges the start and then the fastest candidates thoroughly, until one is correct and faster than the start; if none
// is, returns the start. Judges at most 16 candidates. Throws KGRPO_ERROR_INVALID where the start itself is not
// correct.
ConfirmedKernel Confirm(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                        const std::string& start, const std::vector<SearchCandidate>& candidates);

}  // namespace kgrpo
#endif
