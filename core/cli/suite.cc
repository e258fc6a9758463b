#include "cli/suite.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <kgrpo/support/sha256.h>
#include "base/cancel.h"
#include "base/log.h"
#include "cli/parallel.h"
#include "cli/session.h"
#include "cli/suite_counts.h"
#include "cli/table.h"
#include "config/problems.h"  // ExpandFolders
#include "store/files.h"      // ReadFile

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A problem of the suite with its kernel.
struct Entry {
  std::string folder, kernel_file, source, key;  // key: what the result depends on
  std::unique_ptr<Problem> problem;
  SuiteResult result;
  bool known = false;  // from an earlier call
};

std::vector<std::string> FoldersOf(const std::string& suite) {
  std::vector<std::string> folders;
  for (const std::string& folder : ExpandFolders(IsPattern(suite) ? suite : suite + "/*")) {
    if (fs::exists(fs::path(folder) / "problem.yaml")) folders.push_back(folder);
  }
  if (folders.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, "--suite " + suite + ": holds no folder with a problem.yaml");
  std::sort(folders.begin(), folders.end());
  return folders;
}

// The rows of the table: a suite's levels where its problems name one, else their families.
std::string GroupOf(const kgrpo_problem_info& info) {
  for (size_t i = 0; i < info.trait_count; ++i) {
    const std::string trait = Copy(info.traits[i]);
    if (trait.find(" level ") != std::string::npos) return trait;
  }
  return Copy(info.family);
}

bool IsRefused(const kgrpo_problem_info& info) {
  return KGRPO_HAS_MEMBER(&info, kgrpo_problem_info, refused) && info.refused.size > 0;
}

Json ToJson(const Entry& entry) {
  const SuiteResult& result = entry.result;
  Json json = {{"problem", result.problem},   {"group", result.group},     {"verdict", result.verdict},
               {"compiled", result.compiled}, {"correct", result.correct}, {"seconds", result.seconds}};
  if (result.speedup) json["speedup"] = *result.speedup;
  json["modelled"] = result.modelled;
  json["diagnosis"] = result.diagnosis;
  json["kernel"] = entry.kernel_file;
  json["key"] = entry.key;
  return json;
}

// Results of earlier calls by key. A line that a killed process left half written is passed over.
std::map<std::string, SuiteResult> ReadResults(const fs::path& file) {
  std::map<std::string, SuiteResult> results;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("key")) continue;
    SuiteResult result;
    result.problem = json.value("problem", "");
    result.group = json.value("group", "");
    result.verdict = json.value("verdict", "");
    result.compiled = json.value("compiled", false);
    result.correct = json.value("correct", false);
    result.seconds = json.value("seconds", 0.0);
    if (json.contains("speedup")) result.speedup = json["speedup"].get<double>();
    result.modelled = json.value("modelled", false);
    result.diagnosis = json.value("diagnosis", "");
    results[json["key"].get<std::string>()] = std::move(result);
  }
  return results;
}

void Judge(Evaluator& evaluator, const SuiteOptions& options, Entry& entry) {
  SuiteResult& result = entry.result;
  const Evaluation found = evaluator.Evaluate(*entry.problem, entry.source, 0, options.thorough);
  result.verdict = found.verdict;
  result.compiled = found.compiled;
  result.correct = found.correct;
  result.diagnosis = found.diagnosis;
  if (!found.correct) return;
  result.seconds = found.seconds;
  result.modelled = found.modelled;
  try {
    const Evaluation baseline = evaluator.Baseline(*entry.problem);
    if (found.seconds > 0) result.speedup = baseline.seconds / found.seconds;
  } catch (const Error& error) {
    // A problem without a usable reference has no speedups; its kernels are correct or not all the same.
    if (ExitCodeOf(error.code()) != kBadInput) throw;
  }
}

std::string ShareText(const Share& share) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f (%.2f-%.2f)", share.value, share.low, share.high);
  return text;
}

std::string Number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::vector<std::string> Header() {
  std::vector<std::string> header = {"GROUP", "PROBLEMS", "KERNELS", "COMPILED", "CORRECT"};
  for (const double p : kFastP) header.push_back("fast_" + Number(p, "%g"));
  header.emplace_back("GEOMEAN");
  return header;
}

std::vector<std::string> Row(const SuiteCounts& counts) {
  std::vector<std::string> row = {counts.group, std::to_string(counts.problems), std::to_string(counts.kernels),
                                  std::to_string(counts.compiled), std::to_string(counts.correct)};
  for (const Share& share : counts.fast) row.push_back(ShareText(share));
  row.push_back(counts.timed > 0 ? Number(counts.geometric_mean, "%.3f") : "-");
  return row;
}

void PrintMarkdown(const std::vector<std::vector<std::string>>& rows) {
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line = "|";
    for (const std::string& cell : rows[r]) line += " " + cell + " |";
    std::printf("%s\n", line.c_str());
    if (r > 0) continue;
    line = "|";
    for (size_t i = 0; i < rows[0].size(); ++i) line += i == 0 ? "---|" : "---:|";
    std::printf("%s\n", line.c_str());
  }
}

Json ToJson(const SuiteCounts& counts) {
  Json fast = Json::object();
  for (size_t i = 0; i < kFastP.size(); ++i) {
    const Share& share = counts.fast[i];
    fast[Number(kFastP[i], "%g")] = {{"value", share.value}, {"low", share.low}, {"high", share.high}};
  }
  return {{"group", counts.group},       {"problems", counts.problems}, {"kernels", counts.kernels},
          {"compiled", counts.compiled}, {"correct", counts.correct},   {"fast_p", fast},
          {"timed", counts.timed},       {"geometric_mean", counts.geometric_mean}};
}

void Print(const SuiteOptions& options, const std::vector<Entry>& entries, size_t refused,
           const std::string& description) {
  std::map<std::string, std::vector<SuiteResult>> groups;
  std::vector<SuiteResult> all;
  for (const Entry& entry : entries) {
    groups[entry.result.group].push_back(entry.result);
    all.push_back(entry.result);
  }
  std::vector<SuiteCounts> counts;
  for (const auto& [group, results] : groups) counts.push_back(CountsOf(group, results));
  if (groups.size() > 1) counts.push_back(CountsOf("all", all));
  if (options.json) {
    Json json = {{"suite", options.suite}, {"kernels", options.kernels}, {"refused_problems", refused}};
    for (const SuiteCounts& one : counts) json["groups"].push_back(ToJson(one));
    for (const Entry& entry : entries) json["results"].push_back(ToJson(entry));
    json["evaluator"] = description;
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const SuiteCounts& one : counts) rows.push_back(Row(one));
  if (options.markdown) {
    rows.insert(rows.begin(), Header());
    return PrintMarkdown(rows);
  }
  PrintTable(Header(), rows);
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
  std::printf("shares are of all problems of a group, with 95%% intervals; speedups are over the problems' references%s\n",
              modelled ? ", by modelled times" : "");
}

}  // namespace

int EvaluateSuite(const Globals& globals, const SuiteOptions& options) {
  const fs::path kernels(options.kernels);
  if (!fs::is_directory(kernels))
    throw Error(KGRPO_ERROR_NOT_FOUND, "--kernels " + options.kernels + ": there is no such folder; it holds PROBLEM.cu");
  const std::vector<std::string> folders = FoldersOf(options.suite);
  Session session(globals);
  session.StartServices(0);
  const std::unique_ptr<Evaluator> evaluator =
      session.MakeEvaluator(options.evaluator, OptionsFromSettings(options.settings));
  const fs::path results_file = kernels / "results.jsonl";
  const std::map<std::string, SuiteResult> known = ReadResults(results_file);

  std::vector<Entry> entries(folders.size());
  ParallelFor(
      folders.size(),
      [&](size_t i) {
        Entry& entry = entries[i];
        entry.folder = folders[i];
        entry.problem = std::make_unique<Problem>(evaluator->OpenProblem(folders[i]));
        const kgrpo_problem_info& info = entry.problem->info();
        entry.result.problem = Copy(info.name);
        entry.result.group = GroupOf(info);
        entry.result.verdict = "no kernel";
        entry.kernel_file = (kernels / (entry.result.problem + ".cu")).string();
        if (!fs::exists(entry.kernel_file) || IsRefused(info)) return;
        entry.source = ReadFile(entry.kernel_file);
        entry.key = Sha256OfParts({entry.source, Copy(info.task), Copy(info.source), evaluator->Describe(),
                                   options.thorough ? "thorough" : "quick"})
                        .substr(0, 32);
        if (const auto found = known.find(entry.key); found != known.end()) {
          entry.result = found->second;
          entry.known = true;
        }
      },
      options.jobs);
  const size_t before = entries.size();
  std::erase_if(entries, [](const Entry& entry) { return IsRefused(entry.problem->info()); });
  const size_t refused = before - entries.size();

  std::vector<size_t> open;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].source.empty() && !entries[i].known) open.push_back(i);
  }
  std::mutex mutex;
  size_t done = 0;
  const bool terminal = isatty(STDERR_FILENO) != 0 && !globals.quiet;
  std::ofstream file(results_file, std::ios::app);
  if (!file) throw Error(KGRPO_ERROR_UNAVAILABLE, results_file.string() + ": cannot be written");
  ParallelFor(
      open.size(),
      [&](size_t i) {
        if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted; the same command goes on from here");
        Entry& entry = entries[open[i]];
        Judge(*evaluator, options, entry);
        const std::lock_guard<std::mutex> lock(mutex);
        file << ToJson(entry).dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
        if (terminal)
          std::fprintf(stderr, "\r%zu/%zu %-60.60s", ++done, open.size(), entry.result.problem.c_str());
      },
      options.jobs);
  if (terminal && !open.empty()) std::fprintf(stderr, "\r%-80s\r", "");
  Print(options, entries, refused, evaluator->Describe());
  return kFine;
}

}  // namespace kgrpo::cli
