// Checks of a pipeline that its schema cannot express: rules over two keys, or over what the plugins offer. Used by
// loop/run_problems.cc before a run has a folder; the command check, which makes its parts one by one, calls each
// function by itself.
#ifndef KGRPO_LOOP_RUN_CONFIG_H
#define KGRPO_LOOP_RUN_CONFIG_H

#include "config/pipeline.h"
#include "loop/parts.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// Throws KGRPO_ERROR_INVALID with the first mistake.
void CheckRunConfig(const PipelineConfig& config, const PipelineParts& parts);

// Returns the first mistake of the file that does not depend on its plugins; empty if there is none.
std::string FileMistake(const PipelineConfig& config);

// Returns a message where the product of `factors`, each with its name, exceeds the number of rounds collected at once,
// all of which stay in memory; else empty. `of` names the purpose: "a step".
std::string RoundsMistake(const std::string& of, const std::vector<std::pair<std::string, uint64_t>>& factors);

// Returns a message where a stage draws suggestions from the coder's list, and the coder has none; else empty.
std::string SuggestionsMistake(const PipelineConfig& config, const Coder& coder);

// Returns a message where a stage's trainer imitates demonstrations and none are collected; else empty. `trainers`: of
// the stages.
std::string EpisodesMistake(const PipelineConfig& config, const std::vector<std::unique_ptr<Trainer>>& trainers);

// Describes settings of the loop that have no effect in this run.
std::vector<std::string> FileWarnings(const PipelineConfig& config);

}  // namespace kgrpo
#endif
