// Checks of a run that its file's schema cannot express: rules over two keys, or over what the plugins offer. Used by
// cli/open_run.cc before a run has a folder, and by cli/variant_check.cc.
#ifndef KGRPO_LOOP_RUN_CONFIG_H
#define KGRPO_LOOP_RUN_CONFIG_H

#include "config/findings.h"
#include "config/pipeline.h"
#include "plugin/parts.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// Checks what does not depend on the plugins, and notes settings of the loop that have no effect in this run.
void CheckFile(const PipelineConfig& config, Findings* findings);

// Checks the parts against each other: the coder's list, the stages' demonstrations, and each trainer's plan of its
// stage. Parts that are absent are not checked. `problems`: number of training problems that can be used, 0 if not
// known. `done`: steps of a resumed run, whose finished stages are left out.
void CheckParts(const PipelineConfig& config, const PipelineParts& parts, size_t problems, uint64_t done,
                Findings* findings);

// Returns a message if the product of `factors`, each with its name, exceeds the number of rounds collected at once,
// all of which stay in memory; else "". `of` names the purpose: "a step".
std::string RoundsMistake(const std::string& of, const std::vector<std::pair<std::string, uint64_t>>& factors);

}  // namespace kgrpo
#endif
