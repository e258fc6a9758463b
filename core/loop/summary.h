// A run's messages: the configuration at the beginning, one line for each step, and at the end the reward and each
// problem's result. Used by loop/run.cc.
#ifndef KGRPO_LOOP_SUMMARY_H
#define KGRPO_LOOP_SUMMARY_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/metrics.h"
#include "loop/problem_set.h"
#include "plugin/parts.h"
#include "store/database.h"
#include "store/records.h"
#include "store/run_folder.h"

#include <cstdint>

namespace kgrpo {

void ShowHeader(Console& console, const PipelineConfig& config, const PipelineParts& parts, const ProblemSet& problems,
                const RunFolder& folder);

// The line on a step's held-out episodes, from its metrics.
void ShowHeldout(Console& console, uint64_t step, const MetricMap& metrics);

// `steps`: of the whole run; `stage_end`: the last of the stage; `modelled`: speedups are of modelled times.
void ShowStep(Console& console, const StepRecord& record, const MetricMap& metrics, uint64_t steps, uint64_t stage_end,
              bool modelled);

void ShowSummary(Console& console, RunDatabase& database, const ProblemSet& problems, const RunFolder& folder);

}  // namespace kgrpo
#endif
