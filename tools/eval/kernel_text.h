// The output of `kgrpo-host eval kernel` on a terminal. Used by kernel_eval.cc.
#ifndef KGRPO_EVAL_KERNEL_TEXT_H
#define KGRPO_EVAL_KERNEL_TEXT_H

#include <string>

#include <kgrpo/support/metric_registry.h>
#include "plugin/records.h"  // Evaluation

namespace kgrpo::cli {

// Prints verdict, times and the source lines that take most of the time, in at most 25 lines for a diagnosis of a few
// lines; with `verbose` every metric in groups, all such lines, and the conditions of the measurement, too.
// `evaluator`: its description.
void PrintKernelText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem,
                     const std::string& source, const std::string& evaluator, bool thorough, bool verbose,
                     const MetricRegistry& registry);

}  // namespace kgrpo::cli
#endif
