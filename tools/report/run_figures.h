// The figures of one run as the page draws them: curves, outcomes and suggestions by step, best kernels, times, cost,
// held-out measurements. Read only. Used by report/report.cc.
#ifndef KGRPO_REPORT_RUN_FIGURES_H
#define KGRPO_REPORT_RUN_FIGURES_H

#include <kgrpo/support/sqlite.h>

#include <nlohmann/json.hpp>

#include "report/trajectory_parts.h"

namespace kgrpo {

// {"curves": {metric: [[step, value], ...]},
//  "stages": [[name, first step], ...],
//  "outcomes": {"kinds": [...], "steps": [[step, count of each kind, ...], ...]},
//  "suggestions": [{"label", "summary", "count", "applied", "reward", "correct", "speedup", "advantage", "windows"},
//  ...], "distinct_suggestions": count, "windows": rounds in each window, "rollout_steps": [first, last], "problems":
//  [{"problem", "baseline", "modelled", "time_source", ...}], "times": {metric: seconds}, "heldout": {"first": step,
//  "last": step, "problems": [...]}}
// `label`: the suggestion's text; `summary`: the coder's most frequent summary, empty where it was never applied;
// `applied`: share of its rounds in which the coder wrote a kernel. `windows`: the steps with rollouts cut into twenty.
// Kernels go to *parts, and are named by their places there.
nlohmann::ordered_json ReadFigures(Database& database, TrajectoryParts* parts);

}  // namespace kgrpo

#endif  // KGRPO_REPORT_RUN_FIGURES_H
