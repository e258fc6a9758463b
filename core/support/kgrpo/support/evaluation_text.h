// Words for the figures of an evaluation, as `kgrpo-host eval` and evaluators' reports show them.
#ifndef KGRPO_SUPPORT_EVALUATION_TEXT_H
#define KGRPO_SUPPORT_EVALUATION_TEXT_H

#include <optional>
#include <string>

#include <kgrpo/support/evaluation.h>

namespace kgrpo {

// " (95%: 12.2 us to 12.4 us)", where there is an interval.
std::string IntervalText(const Evaluation& evaluation);

// A correct kernel's speedup, with its interval if that is known.
std::string SpeedupText(const Evaluation& candidate);

// The largest error of a correct kernel, |got - expected| divided by the tolerance, and the output where it occurs.
// WorstErrorOf returns nothing if the evaluator does not report it.
struct WorstError {
  std::string output;
  double ratio = 0;
};
std::optional<WorstError> WorstErrorOf(const Evaluation& evaluation);

// "of the tolerance, in out", and a warning where other inputs may well exceed it.
std::string WorstErrorWords(const WorstError& error);

}  // namespace kgrpo
#endif
