// `kgrpo-host optimize --train`: the training loop on one problem, whose kernels are the search's candidates.
// Called by cli/optimize_command.cc.
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

// Updates that at most `evaluations` kernels suffice for. Throws KGRPO_ERROR_INVALID where they suffice for none.
uint64_t UpdatesOf(const PipelineConfig& config, uint64_t evaluations);

// Does the run of `config` (loop/run.h) on its only problem, with `parts` made for it, in a new folder. Time and cost
// of the plan stop it as a user does; a step that is under way then counts for nothing. `tell` as for Search.
SearchResult SearchByTraining(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems,
                              const RunFolder& folder, const SearchPlan& plan,
                              const std::function<void(const SearchCandidate&)>& tell);

}  // namespace kgrpo
#endif
