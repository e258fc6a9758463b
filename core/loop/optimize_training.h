// `kgrpo-host optimize --train`: the training loop on one problem. Its kernels are the search's candidates. Called by
// cli/optimize_command.cc.
#ifndef KGRPO_LOOP_OPTIMIZE_TRAINING_H
#define KGRPO_LOOP_OPTIMIZE_TRAINING_H

#include "config/pipeline.h"
#include "loop/optimize.h"
#include "loop/parts.h"
#include "loop/run_problems.h"
#include "store/run_folder.h"

#include <cstdint>
#include <functional>

namespace kgrpo {

// Returns the number of updates that take at most `evaluations` kernels. Throws KGRPO_ERROR_INVALID where that is 0.
uint64_t UpdatesOf(const PipelineConfig& config, uint64_t evaluations);

// Runs `config` (loop/run.h) on its only problem, with `parts` made for it, in a new folder. The plan's limits on time
// and cost stop it as a user's stop does: the unfinished step is lost. `tell` as for Search.
SearchResult SearchByTraining(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems,
                              const RunFolder& folder, const SearchPlan& plan,
                              const std::function<void(const SearchCandidate&)>& tell);

}  // namespace kgrpo
#endif
