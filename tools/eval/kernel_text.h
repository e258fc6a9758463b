// The output of `kgrpo-host eval kernel` on a terminal. Used by kernel_eval.cc.
#ifndef KGRPO_EVAL_KERNEL_TEXT_H
#define KGRPO_EVAL_KERNEL_TEXT_H

#include <string>

#include <kgrpo/support/metric_registry.h>
#include "plugin/records.h"  // Evaluation

namespace kgrpo::cli {

// Prints the whole evidence: verdict, times, metrics in groups, a table of the source lines that take the time, and the
// conditions of the measurement. `evaluator`: its description.
void PrintKernelText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem,
                     const std::string& source, const std::string& evaluator, bool thorough,
                     const MetricRegistry& registry);

}  // namespace kgrpo::cli
#endif
