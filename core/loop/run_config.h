// Checks of a pipeline that its schema cannot express: rules over two keys, or over what the plugins offer. Used by
// loop/run.cc before a run has a folder; the command check, which makes its parts one by one, calls FileMistake and
// SuggestionsMistake.
#ifndef KGRPO_LOOP_RUN_CONFIG_H
#define KGRPO_LOOP_RUN_CONFIG_H

#include "config/pipeline.h"
#include "loop/parts.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo {

// Throws KGRPO_ERROR_INVALID where the run makes no sense.
void CheckRunConfig(const PipelineConfig& config, const PipelineParts& parts);

// Why a run of this file makes no sense, whatever its parts are. Empty: nothing is wrong.
std::string FileMistake(const PipelineConfig& config);

// Why the product of `factors`, each with its name, is more rounds than are collected at once; `of` names what for. All
// of them are kept in memory. Empty: they are not too many.
std::string RoundsMistake(const std::string& of, const std::vector<std::pair<std::string, uint64_t>>& factors);

// Why a stage cannot be run with this coder: it draws suggestions from a list, and the coder has none. Empty: all can.
std::string SuggestionsMistake(const PipelineConfig& config, const Coder& coder);

}  // namespace kgrpo
#endif
