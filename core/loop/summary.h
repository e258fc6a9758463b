// What is said of a run: at its beginning what is in force; a line a step; at its end what became of the reward and of
// each problem. Used by loop/run.cc.
#ifndef KGRPO_LOOP_SUMMARY_H
#define KGRPO_LOOP_SUMMARY_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/metrics.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "store/database.h"
#include "store/records.h"
#include "store/run_folder.h"

#include <cstdint>

namespace kgrpo {

void ShowHeader(Console& console, const PipelineConfig& config, const PipelineParts& parts, const ProblemSet& problems,
                const RunFolder& folder);

// `steps`: of the whole run; `stage_end`: the last of the stage; `modelled`: speedups are of modelled times.
void ShowStep(Console& console, const StepRecord& record, const MetricMap& metrics, uint64_t steps, uint64_t stage_end,
              bool modelled);

void ShowSummary(Console& console, RunDatabase& database, const ProblemSet& problems, const RunFolder& folder);

}  // namespace kgrpo
#endif
