// The origin of a run's folder: its plugins, seed, command line. Written to run.json and to the database when a run
// begins and when it is resumed. Used by loop/run.cc.
#ifndef KGRPO_LOOP_IDENTITY_H
#define KGRPO_LOOP_IDENTITY_H

#include "config/pipeline.h"
#include "loop/parts.h"
#include "store/database.h"
#include "store/run_folder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// `steps`: of the whole run; `overrides`: of the command line. Of a run that goes on, `resumed_after` is the step that
// it does so after: its overrides, and the values that they replace, are added to those that it began with, and
// resolved.yaml is written anew where there are any. Returns whether the plugins, observers left out, are those that
// the run began with.
bool WriteIdentity(const PipelineConfig& config, const PipelineParts& parts, uint64_t steps,
                   const std::vector<std::string>& overrides, std::optional<uint64_t> resumed_after,
                   const RunFolder& folder, RunDatabase& database);

}  // namespace kgrpo
#endif
