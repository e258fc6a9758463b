// What the judge finds about one kernel, and its form as JSON for the cache.
#ifndef KGRPO_EVALUATOR_SIM_JUDGEMENT_H
#define KGRPO_EVALUATOR_SIM_JUDGEMENT_H

#include <string>
#include <utility>
#include <vector>

namespace kgrpo::evaluator_sim {

struct Judgement {
  bool compiled = false;
  bool correct = false;
  std::string verdict;    // docs/judging.md lists them
  double seconds = 0;     // modelled, at the timing size; 0 unless correct
  std::string diagnosis;  // one or two sentences; compiler output quoted below
  std::vector<std::pair<std::string, double>> metrics;
  bool transient = false;      // may be the fault of a busy machine: not to be kept
  double compile_seconds = 0;  // wall clock, of this judgement: not kept

  std::string ToJson() const;
  // Throws std::exception for text that ToJson did not write.
  static Judgement FromJson(const std::string& text);
};

}  // namespace kgrpo::evaluator_sim

#endif
