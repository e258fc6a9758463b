// Words for the figures of an evaluation, as `kgrpo-host eval` prints them and as its report has them.
#ifndef KGRPO_REPORT_EVALUATION_TEXT_H
#define KGRPO_REPORT_EVALUATION_TEXT_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kgrpo/support/line_facts.h>  // NamedNumber
#include "plugin/records.h"            // Evaluation

namespace kgrpo {

std::vector<NamedNumber> NumbersOf(const Evaluation& evaluation);

// A metric's value; 0 where it was not measured.
double MetricOf(const Evaluation& evaluation, std::string_view name);

// " (95%: 12.2 us to 12.4 us)", where there is an interval.
std::string IntervalText(const Evaluation& evaluation);

// The ratio of the times, with the interval of an evaluator that measures one.
std::string SpeedupText(const Evaluation& candidate, const Evaluation& baseline);

// How near to its tolerance a right kernel comes: the largest |got - expected| over what is allowed, and of which
// output. Nothing where the evaluator does not tell.
struct WorstError {
  std::string output;
  double ratio = 0;
};
std::optional<WorstError> WorstErrorOf(const Evaluation& evaluation);

// "of the tolerance, in out", and a warning where other inputs may well exceed it.
std::string WorstErrorWords(const WorstError& error);

}  // namespace kgrpo
#endif
