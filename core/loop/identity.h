// What produced a run's folder: its plugins, seed, command line. Written to run.json and to the database when a run
// begins and when it goes on. Used by loop/run.cc.
#ifndef KGRPO_LOOP_IDENTITY_H
#define KGRPO_LOOP_IDENTITY_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "store/database.h"
#include "store/run_folder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

// `steps`: of the whole run; `overrides`: of the command line. Returns whether the plugins are those that the run began
// with.
bool WriteIdentity(const PipelineConfig& config, const PipelineParts& parts, uint64_t steps,
                   const std::vector<std::string>& overrides, const RunFolder& folder, RunDatabase& database);

}  // namespace kgrpo
#endif
