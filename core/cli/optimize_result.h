// Result files of `kgrpo-host optimize`. Used by cli/optimize_command.cc.
#ifndef KGRPO_CLI_OPTIMIZE_RESULT_H
#define KGRPO_CLI_OPTIMIZE_RESULT_H

#include "config/pipeline.h"
#include "loop/confirm.h"
#include "loop/optimize.h"
#include "loop/parts.h"
#include "loop/problem_set.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo::cli {

struct OptimizeOptions {
  std::string target, problem, policy, pipeline, screen, out, budget;
  std::vector<std::string> settings;
  std::optional<uint64_t> seed;
  uint32_t rounds = 0;  // 0: the pipeline's
  SearchPlan plan;
  bool train = false, json = false;
};

// The result, written to files and shown at the end.
struct Outcome {
  ConfirmedKernel kernel;
  bool thorough = true;  // false: stopped by the user, and the best has only the evaluation of the search
  double speedup() const { return kernel.start.seconds / kernel.evaluation.seconds; }
};

// evidence.json; docs/optimize.md describes it.
nlohmann::ordered_json EvidenceOf(const OptimizeOptions& options, const PipelineConfig& config,
                                  const PipelineParts& parts, const OpenProblem& problem, const SearchResult& result,
                                  const Outcome& outcome);

// Writes every file of the result, evidence.json last.
void WriteResult(const std::filesystem::path& folder, const OptimizeOptions& options, const OpenProblem& problem,
                 const std::string& start, PipelineParts& parts, const SearchResult& result, const Outcome& outcome,
                 const nlohmann::ordered_json& evidence);

}  // namespace kgrpo::cli
#endif
