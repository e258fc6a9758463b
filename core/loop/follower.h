// The loop of a follower rank: carries out the leader's orders (loop/ranks.h) until the run ends. Called by the
// commands `run` and `resume` on every rank but the first.
#ifndef KGRPO_LOOP_FOLLOWER_H
#define KGRPO_LOOP_FOLLOWER_H

#include "config/pipeline.h"
#include "loop/ranks.h"
#include "loop/run_problems.h"
#include "plugin/parts.h"

namespace kgrpo {

// Returns the process's exit code. Writes nothing. One thread.
int Follow(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, Ranks& ranks);

}  // namespace kgrpo
#endif
