#include "cli/optimize_result.h"

#include <kgrpo/support/sha256.h>
#include "cli/line_diff.h"
#include "loop/screen.h"
#include "store/files.h"
#include "store/json.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The screen's evaluation as JSON. Its speedup, over the start, is not a measurement.
Json ScreeningOf(const SearchCandidate& candidate) {
  const Evaluation& screening = *candidate.screening;
  Json json = {{"verdict", screening.verdict}};
  if (screening.correct) {
    json["speedup_over_start"] = candidate.screened_speedup;
    json["seconds"] = screening.seconds;
    json["modelled"] = screening.modelled;
  } else {
    json["diagnosis"] = screening.diagnosis;
  }
  return json;
}

// Null where no screen was used.
Json ScreenOf(const SearchPlan& plan, const SearchResult& result) {
  if (plan.screen == nullptr) return nullptr;
  return {{"plugin", plan.screen->name()},
          {"evaluator", plan.screen->Describe()},
          {"screened_out_slow", result.screened_slow},
          {"screened_out_wrong", result.screened_wrong}};
}

Json LineOf(const SearchCandidate& candidate) {
  Json line = {{"wave", candidate.wave},
               {"updates", candidate.updates},
               {"round", candidate.round},
               {"suggestion", candidate.suggestion},
               {"from_list", candidate.from_list},
               {"outcome", candidate.outcome},
               {"speedup", candidate.speedup},
               {"repeated", candidate.repeated},
               {"evaluations", candidate.evaluations},
               {"best_speedup", candidate.best_speedup},
               {"suggestions", candidate.suggestions}};
  if (!candidate.message.empty()) line["message"] = candidate.message;
  if (candidate.evaluation) {
    line["evaluation_seed"] = candidate.evaluation_seed;
    line["seconds"] = {candidate.evaluation->seconds_low, candidate.evaluation->seconds,
                       candidate.evaluation->seconds_high};
    line["diagnosis"] = candidate.evaluation->diagnosis;
    line["source_sha256"] = Sha256(candidate.source);
    if (!candidate.repeated) line["source"] = candidate.source;
  } else if (!candidate.source.empty()) {
    line["source_sha256"] = Sha256(candidate.source);
    if (!candidate.repeated) line["source"] = candidate.source;
  }
  if (candidate.screening) line["screening"] = ScreeningOf(candidate);
  return line;
}

}  // namespace

Json EvidenceOf(const OptimizeOptions& options, const PipelineConfig& config, const PipelineParts& parts,
                const OpenProblem& problem, const SearchResult& result, const Outcome& outcome) {
  return {{"problem", problem.name},
          {"speedup", outcome.speedup()},
          {"speedup_is_over", "the start"},
          {"thorough", outcome.thorough},
          {"modelled", outcome.kernel.evaluation.modelled},
          {"suggestions", outcome.kernel.suggestions},
          {"source_sha256", Sha256(outcome.kernel.source)},
          {"evaluation", EvaluationToJson(outcome.kernel.evaluation)},
          {"start", EvaluationToJson(outcome.kernel.start)},
          {"input_seed", outcome.kernel.seed},
          {"refuted", outcome.kernel.refuted},
          {"policy", options.policy},
          {"seed", config.seed},
          {"rounds", config.loop.rounds},
          {"beam", options.plan.beam},
          {"samples", options.plan.samples},
          {"evaluations", result.evaluations},
          {"screen", ScreenOf(options.plan, result)},
          {"candidates", result.candidates.size()},
          {"updates", options.train ? result.waves : 0},
          {"cost", result.cost},
          {"ended", result.ended},
          {"evaluator", parts.evaluator->Describe()}};
}

void WriteResult(const fs::path& folder, const OptimizeOptions& options, const OpenProblem& problem,
                 const std::string& start, PipelineParts& parts, const SearchResult& result, const Outcome& outcome,
                 const Json& evidence) {
  std::string lines;
  for (const SearchCandidate& candidate : result.candidates) lines += DumpJson(LineOf(candidate)) + "\n";
  WriteFileAtomically(folder / "candidates.jsonl", lines);
  WriteFileAtomically(folder / "best.cu", outcome.kernel.source);
  const std::string name = options.target.ends_with(".cu") ? options.target : "reference.cu";
  WriteFileAtomically(folder / "best.diff", UnifiedDiff(start, outcome.kernel.source, name, "best.cu"));
  const auto page = outcome.thorough ? parts.evaluator->Report(problem.problem, outcome.kernel.source, "best.cu",
                                                               outcome.kernel.evaluation, outcome.kernel.start)
                                     : std::nullopt;
  if (page) WriteFileAtomically(folder / "report.html", *page);
  WriteFileAtomically(folder / "evidence.json", DumpJson(evidence, 2) + "\n");
}

}  // namespace kgrpo::cli
