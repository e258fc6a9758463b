// A comparison's results as sentences and as JSON. Used by the commands compare and report.
#ifndef KGRPO_COMPARE_COMPARISON_JSON_H
#define KGRPO_COMPARE_COMPARISON_JSON_H

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "compare/compare.h"

namespace kgrpo {

// Returns a sentence for each run that finished no step: no verdict covers it.
std::vector<std::string> WithoutSteps(const std::vector<RunGroup>& groups);
// Notes on the runs for a reader of the figures: those of WithoutSteps, then `left_out`, then others.
std::vector<std::string> NotesOf(const std::vector<RunGroup>& groups, const std::vector<std::string>& left_out);

// The verdict: a sentence for each comparison of an outcome.
std::vector<std::string> WordsOf(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons);

// {"groups", "differences", "comparisons", "words", "notes"}; docs/compare.md describes it.
nlohmann::ordered_json ComparisonToJson(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons,
                                        const std::vector<std::string>& left_out);

}  // namespace kgrpo

#endif  // KGRPO_COMPARE_COMPARISON_JSON_H
