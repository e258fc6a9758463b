// Divides a launch's modelled time among source lines. Used by the evaluator, for users and prompts.
#pragma once

#include <string>
#include <vector>

#include "simt/state/counts.h"
#include "simt/time/time_model.h"

namespace kgrpo::simt {

struct LineTime {
  std::string file;  // "" and line 0 where the compiler names none
  int line = 0;
  double seconds = 0;
  std::string bound;  // the term that most of these seconds are for: "l1", "latency"
};

// Divides EstimateTime's seconds, less the launch's fixed cost, among lines; the most expensive first. Each term of a
// p-norm gets the share of its p-th power in the sum of powers: to first order, the time saved without it. Each line
// gets a part of a term in proportion to its amount of the counted quantity. Time that belongs to no line (the start of
// blocks) is left out.
std::vector<LineTime> TimeByLine(const Counts& counts, const TimeEstimate& estimate, const Device& device);

}  // namespace kgrpo::simt
