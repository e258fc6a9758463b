// `kgrpo-host problems list | check [DIR...]`: shows what the evaluator finds in problem folders.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/closest.h>      // JoinedText
#include <kgrpo/support/number_text.h>  // FormatSeconds
#include "base/cancel.h"
#include "base/default_plugins.h"
#include "base/directories.h"  // ShippedProblems
#include "base/worker_pool.h"
#include "cli/command_line.h"
#include "cli/session.h"
#include "common/table.h"
#include "config/problems.h"  // ProblemFolders
#include "eval/command.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ProblemsOptions {
  std::vector<std::string> folders = {(ShippedProblems() / "*").string()};
  std::string evaluator = KGRPO_DEFAULT_EVALUATOR;
  std::vector<std::string> settings;
  bool json = false;
};

std::vector<std::string> Expand(const std::vector<std::string>& patterns) {
  std::vector<std::string> folders;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> found = ProblemFolders(pattern);
    folders.insert(folders.end(), found.begin(), found.end());
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

std::vector<std::string> Copies(const kgrpo_str* texts, size_t count) {
  std::vector<std::string> copies;
  for (size_t i = 0; i < count; ++i) copies.push_back(Copy(texts[i]));
  return copies;
}

// Returns the traits, then the warning flags.
std::string Words(const kgrpo_problem_info& info) {
  std::string words = JoinedText(Copies(info.traits, info.trait_count));
  for (const std::string& flag : Copies(info.flags, info.flag_count)) words += (words.empty() ? "! " : "; ! ") + flag;
  return words;
}

Json InfoToJson(const kgrpo_problem_info& info, const std::string& folder, const std::string& evaluator) {
  Json json = {{"name", Copy(info.name)},   {"folder", folder},
               {"title", Copy(info.title)}, {"family", Copy(info.family)},
               {"split", Copy(info.split)}, {"signature", Copy(info.signature)},
               {"task", Copy(info.task)},   {"traits", Copies(info.traits, info.trait_count)}};
  if (info.refused.size > 0) json["refused"] = Copy(info.refused);
  if (info.flag_count > 0) json["flags"] = Copies(info.flags, info.flag_count);
  json["evaluator"] = evaluator;
  return json;
}

Json FindingsToJson(const std::vector<ProblemFinding>& findings) {
  Json json = Json::array();
  for (const ProblemFinding& finding : findings)
    json.push_back({{"code", finding.code}, {"sentence", finding.sentence}, {"advice", finding.advice}});
  return json;
}

// Results for one folder.
struct Looked {
  std::optional<Problem> problem;
  std::optional<Evaluation> baseline;
  std::vector<ProblemFinding> findings;
  std::string error;  // why the folder cannot be read
};

// A mistake of the problem is a result of the check; a missing compiler or device is a failure of the command.
void RequireBadInput(const Error& error) {
  if (ExitCodeOf(error.code()) != kBadInput) throw error;
}

void CheckProblem(Evaluator& evaluator, Looked* looked) {
  if (looked->problem->info().refused.size > 0) return;
  const auto found = [looked](const char* code) {
    return std::ranges::any_of(looked->findings,
                               [code](const ProblemFinding& finding) { return finding.code == code; });
  };
  try {
    looked->findings = evaluator.CheckProblem(*looked->problem).value_or(std::vector<ProblemFinding>());
    // Such a reference has no baseline, and Baseline would judge it again.
    if (found("reference_wrong") || found("bound_beaten")) return;
    looked->baseline = evaluator.Baseline(*looked->problem);
  } catch (const Error& error) {
    RequireBadInput(error);
    if (found("oracle_not_written")) return;  // without an oracle the reference cannot be checked
    looked->findings.push_back(
        {"reference_wrong", error.what(), "Correct the reference kernel or what its results are compared with."});
  }
}

// Opens each folder. With `judge`, also checks whether the problem is degenerate, and judges its reference kernel.
std::vector<Looked> Look(Evaluator& evaluator, const std::vector<std::string>& folders, bool judge) {
  std::vector<Looked> looked(folders.size());
  WorkerPool(0, folders.size()).ForEach(folders.size(), [&](size_t i) {
    if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted");
    try {
      looked[i].problem.emplace(evaluator.OpenProblem(folders[i]));
    } catch (const Error& error) {
      RequireBadInput(error);
      looked[i].error = error.what();
      return;
    }
    if (judge) CheckProblem(evaluator, &looked[i]);
  });
  return looked;
}

void PrintFindings(const std::vector<Looked>& looked) {
  std::vector<std::vector<std::string>> rows;
  for (const Looked& one : looked) {
    for (const ProblemFinding& finding : one.findings)
      rows.push_back({Copy(one.problem->info().name), finding.code, finding.sentence + " " + finding.advice});
  }
  if (rows.empty()) return;
  std::printf("\n");
  PrintTable({"PROBLEM", "FINDING", "WHAT IS WRONG, WHAT TO DO"}, rows);
}

// Reports on standard error the folders that cannot be read, and the counts. Returns the exit code. `judge`: of
// `check`.
int Conclude(const std::vector<Looked>& looked, bool judge) {
  size_t unreadable = 0, degenerate = 0;
  for (const Looked& one : looked) {
    unreadable += !one.error.empty();
    degenerate += !one.findings.empty();
    if (!one.error.empty()) std::fprintf(stderr, "%s\n", one.error.c_str());
  }
  const char* const noun = looked.size() == 1 ? "problem" : "problems";
  if (judge) {
    std::fprintf(stderr, "%zu %s, %zu with findings, %zu unreadable\n", looked.size(), noun, degenerate, unreadable);
  } else if (unreadable > 0) {
    std::fprintf(stderr, "%zu %s, %zu unreadable\n", looked.size(), noun, unreadable);
  }
  return unreadable > 0 ? kBadInput : degenerate > 0 ? kFailed : kFine;
}

int Show(const Globals& globals, const ProblemsOptions& options, bool judge) {
  const std::vector<std::string> folders = Expand(options.folders);
  Session session(globals);
  session.StartServices(0);
  const std::unique_ptr<Evaluator> evaluator =
      session.MakeEvaluator(options.evaluator, OptionsFromSettings(options.settings));
  const std::vector<Looked> looked = Look(*evaluator, folders, judge);
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < folders.size(); ++i) {
    const Looked& one = looked[i];
    Json json =
        one.problem ? InfoToJson(one.problem->info(), folders[i], evaluator->Describe()) : Json{{"folder", folders[i]}};
    if (!one.error.empty()) json["error"] = one.error;
    if (one.baseline) {
      json["baseline"] = {{"seconds", one.baseline->seconds},
                          {"modelled", one.baseline->modelled},
                          {"time_source", one.baseline->time_source},
                          {"diagnosis", one.baseline->diagnosis}};
    }
    if (judge) json["findings"] = FindingsToJson(one.findings);
    all.push_back(std::move(json));
    if (!one.error.empty()) continue;
    const kgrpo_problem_info& info = one.problem->info();
    const bool refused = info.refused.size > 0;
    std::vector<std::string> row = {Copy(info.name), Copy(info.family), refused ? "refused" : Copy(info.split)};
    if (judge && !one.baseline) row.emplace_back("-");
    if (one.baseline)
      row.push_back(FormatSeconds(one.baseline->seconds) + (one.baseline->modelled ? " (modelled)" : ""));
    row.push_back(refused        ? Copy(info.refused)
                  : !judge       ? Words(info)
                  : one.baseline ? one.baseline->diagnosis
                                 : "below");
    rows.push_back(std::move(row));
  }
  if (options.json) {
    PrintJson(all);
  } else {
    if (!rows.empty() && judge) PrintTable({"PROBLEM", "FAMILY", "SPLIT", "REFERENCE", "FOUND"}, rows);
    if (!rows.empty() && !judge) PrintTable({"PROBLEM", "FAMILY", "SPLIT", "TRAITS, ! FLAGS"}, rows);
    PrintFindings(looked);
  }
  return Conclude(looked, judge);
}

}  // namespace

void AddProblemsCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ProblemsOptions>();
  CLI::App* command = app.add_subcommand("problems", "List and check problem folders");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, const char* footer, bool judge) {
    CLI::App* part = command->add_subcommand(name, description);
    part->add_option("DIR", options->folders, "Problem folders, folders of them, or patterns")->capture_default_str();
    part->add_option("--evaluator", options->evaluator, "The evaluator plugin, which owns the problem format")
        ->capture_default_str();
    AddSetOption(part, &options->settings, "An option of the evaluator");
    part->add_flag("--json", options->json, "Print as JSON");
    part->footer(footer);
    part->callback([=, &globals] { *action = [=, &globals] { return Show(globals, *options, judge); }; });
  };
  add("list", "Name, family, split and traits of each", "Example:\n  kgrpo-host problems list 'problems/*'", false);
  add("check", "Find degenerate problems, and judge each one's reference kernel",
      "Finds outputs that are constant or do not depend on an input, tolerances that zeros or a copied input pass, a\n"
      "reference that is not correct, and one that is too short to time. Exit code 1 where there is any.\n"
      "Examples:\n  kgrpo-host problems check problems/matmul\n  kgrpo-host problems check 'mine/*' --json",
      true);
}

}  // namespace kgrpo::cli
