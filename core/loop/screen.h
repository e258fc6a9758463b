// A cheap evaluator before the evaluator, in training (`screen:` in a pipeline). It decides kernels that it finds
// wrong, or slower than the fastest known one of the problem by more than the error of its times; the evaluator gets
// the others, and a random share of the decided ones (an audit), which measures the screen's error.
//
// Used by RoundsInFlight (AskScreen) and Stage (ScreenHistory). What a step decides depends on earlier steps only, so
// neither timing nor the number of ranks changes it.
#ifndef KGRPO_LOOP_SCREEN_H
#define KGRPO_LOOP_SCREEN_H

#include "config/pipeline.h"
#include "loop/metrics.h"
#include "loop/problem_set.h"
#include "plugin/instances.h"
#include "store/records.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kgrpo {

// Metrics of a round's evaluation. A kernel that the screen decided has kScreenDecided; one that the evaluator timed
// has kScreenSpeedup, the screen's estimate (0: not correct); an audited one also kScreenReward, the reward that the
// estimate would have earned.
inline constexpr const char* kScreenDecided = "screen/decided";
inline constexpr const char* kScreenSpeedup = "screen/speedup";
inline constexpr const char* kScreenReward = "screen/reward";

// Which kernels of a problem the screen decides.
struct ScreenLimit {
  double scale = 1;                // the evaluator's speedups over the screen's, on average
  double least = 0;                // a lower speedup, after scaling, is decided
  std::set<std::string> measured;  // digests of kernels that the evaluator has timed: it gets them again
};

struct Screening {
  Evaluation evaluation;  // the screen's; its times are scaled to the evaluator's
  bool decides = false;
};

// `problem` is open in the screen. Throws the screen's errors. [any thread, blocking]
Screening AskScreen(Evaluator& screen, const OpenProblem& problem, const ScreenLimit& limit, const std::string& source,
                    uint64_t seed);

// Statistics of the screen over the steps so far. Not thread-safe.
class ScreenHistory {
 public:
  ScreenHistory(size_t problems, const ScreenConfig& config) : config_(config), problems_(problems) {}

  // Adds the next step's rounds, and returns its metrics screen/...: counts of the step; error, bias and correlation
  // of all steps so far. docs/loop.md describes them.
  MetricMap Add(const std::vector<TrajectoryRecord>& trajectories);
  std::vector<ScreenLimit> Limits() const;  // by problem, for the next step

 private:
  struct OfProblem {
    double fastest = 1;     // speedup, as measured
    double log_ratios = 0;  // sum over kernels of log(measured speedup / the screen's)
    size_t ratios = 0;
    std::set<std::string> measured;
    double Scale() const;
  };
  double Error() const;
  void AddAdvantages(const std::vector<TrajectoryRecord>& trajectories);

  const ScreenConfig& config_;
  std::vector<OfProblem> problems_;
  double squares_ = 0;  // sum of squares of log(measured speedup / estimate)
  size_t pairs_ = 0;
  double advantages_ = 0;             // sum of squares, audited kernels with the evaluator's rewards
  double products_ = 0, errors_ = 0;  // additions of estimates to sums of products and of squares
  double bias_ = 0;                   // sum over audits of the advantage's change
  size_t audits_ = 0;
};

}  // namespace kgrpo
#endif
