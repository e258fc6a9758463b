// A search at inference time for one problem's fastest kernel: `kgrpo-host optimize` (cli/optimize_command.cc).
//
// A beam over kernels. A wave plays one round from each kernel of the beam with several suggestions; the fastest
// correct kernels that differ are the next beam. After loop.rounds waves the search begins at the start again, with
// other random numbers. Only kernels judged correct enter the beam. Once a policy suggests nothing new, every
// suggestion of the coder's list is tried once on each kernel: on the start, then on the fastest ones.
//
// With a screen (loop/screen.h) all kernels of a wave are screened. The promising ones, that may be faster than the
// beam's slowest, are then evaluated, the most promising first, as many at once as the beam holds. The choice depends
// on earlier results, and not on the order in which evaluations finish.
#ifndef KGRPO_LOOP_OPTIMIZE_H
#define KGRPO_LOOP_OPTIMIZE_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "loop/rollout.h"
#include "loop/worker_pool.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

class Screen;

inline constexpr const char* kScreenedOut = "screened_out";  // a candidate's outcome
inline constexpr const char* kEvaluatorFailed = "evaluator_failed";

struct SearchPlan {
  Suggester suggester;
  uint64_t beam = 4;     // kernels that a wave starts from
  uint64_t samples = 8;  // suggestions for each of them
  // Limits. A kernel that was judged before costs no evaluation. The last wave may exceed max_cost by its own cost.
  uint64_t evaluations = 200;
  double seconds = std::numeric_limits<double>::infinity();
  double max_cost = std::numeric_limits<double>::infinity();         // of the coder, US dollars
  std::function<void(const RoundsUnderWay& rounds)> under_way = {};  // as in RolloutRequest; not while it trains
  Screen* screen = nullptr;  // made for this search and its start; null: every new kernel is evaluated
};

// One suggestion and its result. The order of candidates does not depend on which finished first.
struct SearchCandidate {
  uint64_t wave = 0;     // from 0; with --train: the update that the candidate is a sample of
  uint64_t updates = 0;  // of the policy before this suggestion
  uint32_t round = 0;    // from 0, since the start
  std::string suggestion;
  bool from_list = false;  // taken from the coder's list, once the policy suggests nothing new
  std::string outcome;    // the evaluation's verdict, one of the above, or the coder's outcome where there is no kernel
  std::string message;    // the coder's, where there is no kernel
  std::string source;     // empty where there is no kernel
  bool repeated = false;  // this source was judged before, or screened out before
  std::optional<Evaluation> evaluation;  // absent where there is no kernel, and where it was screened out
  std::optional<Evaluation> screening;   // the screen's, where it judged the kernel; its times are no measurements
  double screened_speedup = 0;           // over the start, by the screen's times; 0 where it has none
  uint64_t evaluation_seed = 0;
  double speedup = 0;                    // over the reference; 0 unless correct
  std::vector<std::string> suggestions;  // the path from the start, without rounds whose kernel was not taken over
  uint64_t evaluations = 0;              // so far, this one included
  uint64_t screened_out = 0;             // kernels so far, this one included
  double best_speedup = 0;               // so far, over the reference, the start included
};

struct SearchResult {
  std::vector<SearchCandidate> candidates;
  uint64_t evaluations = 0;  // distinct kernels judged
  // Distinct kernels that the screen kept from evaluation until the end: as too slow, and as not correct.
  uint64_t screened_slow = 0, screened_wrong = 0;
  uint64_t waves = 0;
  double cost = 0;     // of the coder, US dollars
  double seconds = 0;  // of the clock
  std::string ended;   // why: "200 evaluations", "the time", "the cost", "the coder's own limit", "the evaluator's own
                       // limit", "nothing new",
                       // "all suggestions of the coder's list were tried", "stopped by the user"
  bool stopped = false;   // by the user
  bool diverged = false;  // --train: the training diverged; the candidates remain valid
};

// Searches from `start`, a correct kernel of the problem whose evaluation is given. `config.seed` keys all randomness:
// equal inputs give equal candidates, unless time ends the search. `tell` is called with each candidate, in order, on
// this thread. A stop by the user ends the search and is no error. Throws the error of a plugin that failed.
SearchResult Search(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                    const std::string& start, const Evaluation& start_evaluation, WorkerPool& pool,
                    const SearchPlan& plan, const std::function<void(const SearchCandidate&)>& tell);

}  // namespace kgrpo
#endif
