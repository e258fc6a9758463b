// What is said of a run at its beginning and end: what is in force; what became of the reward and of each problem. Used
// by loop/run.cc.
#ifndef KGRPO_LOOP_SUMMARY_H
#define KGRPO_LOOP_SUMMARY_H

#include "config/pipeline.h"
#include "console/console.h"
#include "loop/parts.h"
#include "loop/problem_set.h"
#include "store/database.h"
#include "store/run_folder.h"

namespace kgrpo {

void ShowHeader(Console& console, const PipelineConfig& config, const PipelineParts& parts, const ProblemSet& problems,
                const RunFolder& folder);

void ShowSummary(Console& console, RunDatabase& database, const ProblemSet& problems, const RunFolder& folder);

}  // namespace kgrpo
#endif
