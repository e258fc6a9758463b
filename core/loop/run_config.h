// What a pipeline file's schema cannot say, since it takes two keys together, or what the parts offer. Used by
// loop/run.cc before a run has a folder; the command check, which makes its parts one by one, asks FileMistake and
// SuggestionsMistake.
#ifndef KGRPO_LOOP_RUN_CONFIG_H
#define KGRPO_LOOP_RUN_CONFIG_H

#include "config/pipeline.h"
#include "loop/parts.h"

#include <string>

namespace kgrpo {

// Throws KGRPO_ERROR_INVALID where the run makes no sense.
void CheckRunConfig(const PipelineConfig& config, const PipelineParts& parts);

// Why a run of this file makes no sense, whatever its parts are. Empty: nothing is wrong.
std::string FileMistake(const PipelineConfig& config);

// Why a stage cannot be run with this coder: it draws suggestions from a list, and the coder has none. Empty: all can.
std::string SuggestionsMistake(const PipelineConfig& config, const Coder& coder);

}  // namespace kgrpo
#endif
