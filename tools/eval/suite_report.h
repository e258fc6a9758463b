// The table of eval suite, and its results as JSON. Used by suite.cc.
#ifndef KGRPO_EVAL_SUITE_REPORT_H
#define KGRPO_EVAL_SUITE_REPORT_H

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/suite.h"         // SuiteOptions
#include "eval/suite_counts.h"  // SuiteResult

namespace kgrpo::cli {

// A problem's kernel and its results.
struct SuiteEntry {
  std::string kernel_file, key;  // key: what the result depends on
  SuiteResult result;
  std::optional<SuiteResult> published;  // by KernelBench's rules
};

// Converts a line of results.jsonl; SuiteResultFromJson reads one of its results.
nlohmann::ordered_json SuiteEntryToJson(const SuiteEntry& entry);
SuiteResult SuiteResultFromJson(const nlohmann::ordered_json& json);

// Prints the table, as the options ask for. `refused`: problems that are not counted; `description`: of the evaluator;
// `hardware`: the device of PyTorch's times, "" without any.
void PrintSuite(const SuiteOptions& options, const std::vector<SuiteEntry>& entries, size_t refused,
                const std::string& description, const std::string& hardware);

}  // namespace kgrpo::cli
#endif
