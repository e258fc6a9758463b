// The origin of a run's folder: its plugins, seed, command line. Written to run.json and to the database when a run
// begins and when it is resumed. Used by loop/run.cc, tools/eval and tools/optimize.
#ifndef KGRPO_LOOP_IDENTITY_H
#define KGRPO_LOOP_IDENTITY_H

#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "plugin/parts.h"
#include "store/database.h"
#include "store/inputs.h"
#include "store/run_folder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {

// `steps`: of the whole run; `overrides`: settings of the command line. `resumed_after`: the step that a resumed run
// continues after. A resumed run adds the settings that it changes to the run's record (the table `changes`, and
// `resumed` in run.json), with the inputs whose content differs, and rewrites resolved.yaml.
void WriteIdentity(const PipelineConfig& config, const PipelineParts& parts, uint64_t steps,
                   const std::vector<std::string>& overrides, std::optional<uint64_t> resumed_after,
                   const RunFolder& folder, RunDatabase& database);

// What differs from the inputs that the run recorded last; empty for a new run. Throws KGRPO_ERROR_INVALID if a resumed
// run may not adopt a difference (store/inputs.h).
std::vector<Change> ResumedInputs(const PipelineConfig& config, const PipelineParts& parts, RunDatabase& database);

// Begins the record of a run that does not train: its purpose, its problems, and the options of its command, which
// comparisons take for a part of its configuration.
void BeginRecord(Purpose purpose, const ProblemSet& problems, const nlohmann::ordered_json& options,
                 RunDatabase& database);

}  // namespace kgrpo
#endif
