#include "eval/suite_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include <kgrpo/support/closest.h>      // JoinedText
#include <kgrpo/support/number_text.h>  // Format
#include "cli/command_line.h"
#include "common/table.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ResultToJson(const SuiteResult& result) {
  Json json = {{"problem", result.problem},   {"group", result.group},     {"verdict", result.verdict},
               {"compiled", result.compiled}, {"correct", result.correct}, {"seconds", result.seconds}};
  if (result.speedup) json["speedup"] = *result.speedup;
  if (IsExcessive(result)) json["excessive_speedup"] = true;
  if (result.pytorch_seconds) {
    json["pytorch_seconds"] = *result.pytorch_seconds;
    json["pytorch_listed"] = result.pytorch_listed;
  }
  json["modelled"] = result.modelled;
  json["diagnosis"] = result.diagnosis;
  return json;
}

}  // namespace

Json SuiteEntryToJson(const SuiteEntry& entry) {
  Json json = ResultToJson(entry.result);
  if (entry.published) json["as_kernelbench"] = ResultToJson(*entry.published);
  json["kernel"] = entry.kernel_file;
  json["key"] = entry.key;
  return json;
}

SuiteResult SuiteResultFromJson(const Json& json) {
  SuiteResult result;
  result.problem = json.value("problem", "");
  result.group = json.value("group", "");
  result.verdict = json.value("verdict", "");
  result.compiled = json.value("compiled", false);
  result.correct = json.value("correct", false);
  result.seconds = json.value("seconds", 0.0);
  if (json.contains("speedup")) result.speedup = json["speedup"].get<double>();
  if (json.contains("pytorch_seconds")) result.pytorch_seconds = json["pytorch_seconds"].get<double>();
  result.pytorch_listed = json.value("pytorch_listed", false);
  result.modelled = json.value("modelled", false);
  result.diagnosis = json.value("diagnosis", "");
  return result;
}

namespace {

std::vector<std::string> Header() {
  std::vector<std::string> header = {"GROUP", "PROBLEMS", "KERNELS", "COMPILED", "CORRECT"};
  for (const double p : kFastP) header.push_back("fast_" + Format("%g", p));
  header.emplace_back("GEOMEAN");
  return header;
}

std::vector<std::string> Row(const SuiteCounts& counts) {
  std::vector<std::string> row = {counts.group, std::to_string(counts.problems), std::to_string(counts.kernels),
                                  std::to_string(counts.compiled), std::to_string(counts.correct)};
  for (const Share& share : counts.fast) row.push_back(Format("%.3f (%.2f-%.2f)", share.value, share.low, share.high));
  row.push_back(counts.timed > 0 ? Format("%.3f", counts.geometric_mean) : "-");
  if (counts.timed > 1) {
    row.back() += Format(" (%.2f-%.2f)", counts.geometric_mean_low, counts.geometric_mean_high);
  }
  return row;
}

Json CountsToJson(const SuiteCounts& counts) {
  Json fast = Json::object();
  for (size_t i = 0; i < kFastP.size(); ++i) {
    const Share& share = counts.fast[i];
    fast[Format("%g", kFastP[i])] = {{"value", share.value}, {"low", share.low}, {"high", share.high}};
  }
  Json json = {{"group", counts.group},     {"problems", counts.problems},
               {"kernels", counts.kernels}, {"compiled", counts.compiled},
               {"correct", counts.correct}, {"fast_p", fast},
               {"timed", counts.timed},     {"geometric_mean", counts.geometric_mean}};
  if (counts.timed > 1) {
    json["geometric_mean_low"] = counts.geometric_mean_low;
    json["geometric_mean_high"] = counts.geometric_mean_high;
  }
  return json;
}

std::vector<SuiteCounts> CountsByGroup(const std::vector<SuiteResult>& all) {
  std::map<std::string, std::vector<SuiteResult>> groups;
  for (const SuiteResult& result : all) groups[result.group].push_back(result);
  std::vector<SuiteCounts> counts;
  counts.reserve(groups.size() + 1);
  for (const auto& [group, results] : groups) counts.push_back(CountsOf(group, results));
  if (groups.size() > 1) counts.push_back(CountsOf("all", all));
  return counts;
}

void PrintCounts(const SuiteOptions& options, const std::string& title, const std::vector<SuiteCounts>& counts) {
  if (options.kernelbench)
    std::printf("%s%s%s\n\n", options.markdown ? "**" : "", title.c_str(), options.markdown ? "**" : ":");
  std::vector<std::vector<std::string>> rows;
  rows.reserve(counts.size() + 1);
  for (const SuiteCounts& one : counts) rows.push_back(Row(one));
  PrintTable(Header(), rows, options.markdown, /*numbers=*/true);
}

// Returns the first words of a sentence or of a compiler's first line.
std::string FirstWords(const std::string& text) {
  constexpr size_t kLength = 100;
  const std::string line = text.substr(0, text.find('\n'));
  if (line.size() <= kLength) return line;
  const size_t space = line.rfind(' ', kLength);
  return line.substr(0, space == std::string::npos ? kLength : space) + " ...";
}

// Prints a line for each judged kernel.
void PrintKernels(const std::vector<SuiteResult>& all, bool markdown) {
  std::vector<std::vector<std::string>> rows;
  for (const SuiteResult& result : all) {
    if (result.verdict == kNoKernel) continue;
    std::string found = FirstWords(result.diagnosis);
    if (result.correct) found = result.speedup ? Format("%.2f", *result.speedup) : "-";
    rows.push_back({result.problem, result.verdict, found});
  }
  if (rows.empty()) return;
  PrintTable({"PROBLEM", "VERDICT", "SPEEDUP OR DIAGNOSIS"}, rows, markdown);
  std::printf("\n");
}

// Prints every kernel that only one of the two rule sets counts as correct.
void PrintDifferences(const std::vector<SuiteEntry>& entries, bool markdown) {
  std::vector<std::vector<std::string>> rows;
  for (const SuiteEntry& entry : entries) {
    if (!entry.published || entry.published->correct == entry.result.correct) continue;
    const SuiteResult& told = entry.result.correct ? *entry.published : entry.result;
    rows.push_back({entry.result.problem, entry.result.verdict, entry.published->verdict, told.diagnosis});
  }
  if (rows.empty()) return static_cast<void>(std::printf("\nboth count the same kernels as correct\n"));
  std::printf("\nkernels that only one of the two counts as correct: %zu\n\n", rows.size());
  PrintTable({"PROBLEM", "KGRPO", "KERNELBENCH", "WHY"}, rows, markdown);
}

// Prints the baselines of the speedups by KernelBench's rules.
void PrintPytorch(const SuiteOptions& options, const std::vector<SuiteResult>& published, const std::string& hardware) {
  size_t correct = 0, listed = 0, measured = 0;
  for (const SuiteResult& result : published) {
    if (!result.correct || !result.speedup) continue;
    ++correct;
    if (result.pytorch_seconds) ++(result.pytorch_listed ? listed : measured);
  }
  std::vector<std::string> parts;
  if (!options.pytorch_times.empty()) {
    parts.push_back(std::to_string(listed) + " over PyTorch's times of " + options.pytorch_times + ", measured on " +
                    (hardware.empty() ? "a device that it does not name" : hardware));
  }
  if (measured > 0) parts.push_back(std::to_string(measured) + " over PyTorch eager, measured on this device");
  if (parts.empty()) return;
  const size_t others = correct - listed - measured;
  if (others > 0)
    parts.push_back(std::to_string(others) + " over the reference (small sizes, or no time of PyTorch's)");
  std::printf("as KernelBench counts, of %zu speedups: %s\n", correct, JoinedText(parts, "; ").c_str());
}

// Prints correct kernels with implausibly large speedups. `counted`: the results of the table that was printed last.
void PrintExcessive(const std::vector<SuiteResult>& counted, bool markdown) {
  std::vector<std::vector<std::string>> rows;
  for (const SuiteResult& result : counted) {
    if (IsExcessive(result)) rows.push_back({result.problem, Format("%.1f", *result.speedup)});
  }
  if (rows.empty()) return;
  std::printf("\nspeedups above %g, which KernelBench flags as excessive (look at these kernels): %zu\n\n",
              kExcessiveSpeedup, rows.size());
  PrintTable({"PROBLEM", "SPEEDUP"}, rows, markdown);
}

}  // namespace

void PrintSuite(const SuiteOptions& options, const std::vector<SuiteEntry>& entries, size_t refused,
                const std::string& description, const std::string& hardware) {
  std::vector<SuiteResult> all, published;
  for (const SuiteEntry& entry : entries) {
    all.push_back(entry.result);
    published.push_back(entry.published.value_or(entry.result));
  }
  const std::vector<SuiteCounts> counts = CountsByGroup(all), published_counts = CountsByGroup(published);
  if (options.json) {
    Json json = {{"suite", options.suite}, {"kernels", options.kernels}, {"refused_problems", refused}};
    for (const SuiteCounts& one : counts) json["groups"].push_back(CountsToJson(one));
    for (const SuiteCounts& one : published_counts) {
      if (options.kernelbench) json["groups_as_kernelbench"].push_back(CountsToJson(one));
    }
    if (!hardware.empty()) json["pytorch_hardware"] = hardware;
    for (const SuiteEntry& entry : entries) json["results"].push_back(SuiteEntryToJson(entry));
    json["evaluator"] = description;
    PrintJson(json);
    return;
  }
  PrintKernels(all, options.markdown);
  PrintCounts(options, "as we judge", counts);
  if (options.kernelbench) {
    std::printf("\n");
    PrintCounts(options, "as KernelBench counts", published_counts);
    PrintDifferences(entries, options.markdown);
  }
  PrintExcessive(published, options.markdown);
  if (options.markdown) return;
  std::map<std::string, size_t> verdicts;
  bool modelled = false;
  for (const SuiteResult& result : all) {
    ++verdicts[result.verdict];
    modelled = modelled || result.modelled;
  }
  std::string line;
  for (const auto& [verdict, count] : verdicts)
    line += (line.empty() ? "" : ", ") + std::to_string(count) + " " + verdict;
  std::printf("\nverdicts: %s\n", line.c_str());
  if (refused > 0) std::printf("refused problems, not counted: %zu\n", refused);
  std::printf(
      "shares are of all problems of a group, with 95%% intervals; speedups are over the problems' references%s\n",
      modelled ? ", by modelled times" : "");
  if (options.kernelbench) PrintPytorch(options, published, hardware);
  std::printf("results of each kernel: %s\n", ResultsFile(options).c_str());
}

}  // namespace kgrpo::cli
