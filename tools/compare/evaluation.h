// The figures of one evaluation, the run that `kgrpo-host eval policy` writes: its intervals are over episodes on the
// same problems. Read only. Used by the command eval.
#ifndef KGRPO_COMPARE_EVALUATION_H
#define KGRPO_COMPARE_EVALUATION_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "compare/run_measures.h"
#include "loop/metrics.h"
#include "loop/statistics.h"
#include "store/database.h"

namespace kgrpo {

struct EvaluationFigures {
  struct OfProblem {
    std::string problem;
    uint64_t episodes = 0;  // with a round; 0: there is no figure
    Interval reward;        // mean over rounds
    Interval best_speedup;  // geometric mean over episodes of the best correct kernel, at least 1
    double correct_rate = 0;
    Tally suggested, applied;  // counts of its rounds, by the suggestion's text; applied: the coder wrote a kernel
  };
  std::vector<OfProblem> problems;  // in the run's order
  uint64_t episodes = 0;
  Interval reward, best_speedup;
  // (p, share of episodes whose best kernel is correct and over p times as fast)
  std::vector<std::pair<double, double>> fast_p;
  // (k, expected best speedup of k episodes on a problem; geometric mean over problems), k = 1, 2, 4, ...
  std::vector<std::pair<uint64_t, double>> best_of;
  MetricMap metrics;  // metrics of all rounds, as loop/metrics.h names them; of a policy also "policy/token_entropy"
  CoderTotals coder;
  Tally refusals;                                       // the coder's messages in answers without a kernel
  std::vector<std::pair<std::string, double>> kernels;  // confirmed by a thorough evaluation: problem, speedup
};

// Throws as ReadMeasures does.
EvaluationFigures ReadEvaluation(const RunMeasures& run);

nlohmann::ordered_json FiguresToJson(const EvaluationFigures& figures, const RunMeasures& run);

}  // namespace kgrpo
#endif  // KGRPO_COMPARE_EVALUATION_H
