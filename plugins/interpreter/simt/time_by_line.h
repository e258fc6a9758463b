// Divides a launch's modelled time among source lines. Used by the evaluator, for users and prompts.
#ifndef KGRPO_INTERPRETER_SIMT_TIME_BY_LINE_H_
#define KGRPO_INTERPRETER_SIMT_TIME_BY_LINE_H_

#include <string>
#include <vector>

#include "interpreter/simt/counts.h"
#include "interpreter/simt/time_model.h"

namespace kgrpo::simt {

struct LineTime {
  std::string file;  // "" and line 0 where the compiler names none
  int line = 0;
  double seconds = 0;
  std::string bound;  // the term that most of these seconds are for: "l1", "latency"
};

// Shares EstimateTime's seconds, less the launch's fixed cost, among lines; the most expensive first. A term of a
// p-norm stands for the part that its p-th power is of the sum of powers, which is by how much the time would shrink
// with it, to first order; a line has of each term the part that it has of what the term counts. What belongs to no
// line (that blocks are started) is left out.
std::vector<LineTime> TimeByLine(const Counts& counts, const TimeEstimate& estimate, const Device& device);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_TIME_BY_LINE_H_
