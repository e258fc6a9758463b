// What a pipeline file's schema cannot say, since it takes two keys together, or what the parts offer. Used by
// loop/run.cc before anything is done; the command check, which makes its parts one by one, asks SuggestionsMistake.
#ifndef KGRPO_LOOP_RUN_CONFIG_H
#define KGRPO_LOOP_RUN_CONFIG_H

#include "config/pipeline.h"
#include "loop/parts.h"

#include <cstddef>
#include <string>

namespace kgrpo {

// Throws KGRPO_ERROR_INVALID where the run makes no sense. `problems`: how many it trains on.
void CheckRunConfig(const PipelineConfig& config, const PipelineParts& parts, size_t problems);

// Why a stage cannot be run with this coder: it draws suggestions from a list, and the coder has none. Empty: all can.
std::string SuggestionsMistake(const PipelineConfig& config, const Coder& coder);

}  // namespace kgrpo
#endif
