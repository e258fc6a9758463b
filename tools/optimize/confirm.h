// The end of a search: judges the fastest candidates thoroughly until one is confirmed. Used by main.cc.
#ifndef KGRPO_OPTIMIZE_CONFIRM_H
#define KGRPO_OPTIMIZE_CONFIRM_H

#include "config/pipeline.h"
#include "loop/problem_set.h"
#include "optimize/optimize.h"
#include "plugin/parts.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

// The fastest kernel that a thorough evaluation with other inputs confirms.
struct ConfirmedKernel {
  std::string source;
  Evaluation evaluation, start;          // thorough ones, of the same inputs
  std::vector<std::string> suggestions;  // empty for the start itself
  uint64_t seed = 0;                     // seed of the inputs
  uint64_t refuted = 0;                  // faster candidates that were not confirmed
};

// Judges the start and then the fastest candidates thoroughly, until one is correct and faster than the start; if none
// is, returns the start. Judges at most 16 candidates. Throws KGRPO_ERROR_INVALID where the start itself is not
// correct.
ConfirmedKernel Confirm(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                        const std::string& start, const std::vector<SearchCandidate>& candidates);

}  // namespace kgrpo
#endif
