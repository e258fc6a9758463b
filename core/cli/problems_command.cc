// `kgrpo-host problems list | check [DIR...]`: what the evaluator finds in problem folders. `problems import` is in
// import_command.cc.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/number_text.h>  // FormatSeconds
#include "base/cancel.h"
#include "base/directories.h"  // ShippedProblems
#include "cli/command.h"
#include "cli/parallel.h"
#include "cli/session.h"
#include "cli/table.h"
#include "config/problems.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ProblemsOptions {
  std::vector<std::string> folders = {(ShippedProblems() / "*").string()};
  std::string evaluator = "evaluator_sim";
  std::vector<std::string> settings;
  bool json = false;
};

std::vector<std::string> Expand(const std::vector<std::string>& patterns) {
  std::vector<std::string> folders;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> found = ExpandFolders(pattern);
    if (found.empty()) {
      throw Error(KGRPO_ERROR_NOT_FOUND, (IsPattern(pattern) ? "no folder matches " : "there is no folder ") + pattern);
    }
    folders.insert(folders.end(), found.begin(), found.end());
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

std::string Traits(const kgrpo_problem_info& info, const char* separator) {
  std::string traits;
  for (size_t i = 0; i < info.trait_count; ++i) traits += (i == 0 ? "" : separator) + Copy(info.traits[i]);
  return traits;
}

// Why the problem cannot be judged; empty where it can.
std::string RefusalOf(const kgrpo_problem_info& info) {
  return KGRPO_HAS_MEMBER(&info, kgrpo_problem_info, refused) ? Copy(info.refused) : std::string();
}

std::vector<std::string> FlagsOf(const kgrpo_problem_info& info) {
  std::vector<std::string> flags;
  if (!KGRPO_HAS_MEMBER(&info, kgrpo_problem_info, flag_count)) return flags;
  for (size_t i = 0; i < info.flag_count; ++i) flags.push_back(Copy(info.flags[i]));
  return flags;
}

// Traits, then what to beware of.
std::string Words(const kgrpo_problem_info& info) {
  std::string words = Traits(info, ", ");
  for (const std::string& flag : FlagsOf(info)) words += (words.empty() ? "! " : "; ! ") + flag;
  return words;
}

Json ToJson(const kgrpo_problem_info& info, const std::string& folder) {
  Json json = {{"name", Copy(info.name)},     {"folder", folder},          {"title", Copy(info.title)},
               {"family", Copy(info.family)}, {"split", Copy(info.split)}, {"signature", Copy(info.signature)},
               {"task", Copy(info.task)}};
  json["traits"] = Json::array();
  for (size_t i = 0; i < info.trait_count; ++i) json["traits"].push_back(Copy(info.traits[i]));
  if (const std::string refused = RefusalOf(info); !refused.empty()) json["refused"] = refused;
  if (const std::vector<std::string> flags = FlagsOf(info); !flags.empty()) json["flags"] = flags;
  return json;
}

void PrintJson(const Json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

// What is known of one folder.
struct Looked {
  std::optional<Problem> problem;
  std::optional<Evaluation> baseline;
  std::string error;
};

// Opens each folder, and with `judge` its reference kernel is judged too.
std::vector<Looked> Look(Evaluator& evaluator, const std::vector<std::string>& folders, bool judge) {
  std::vector<Looked> looked(folders.size());
  ParallelFor(folders.size(), [&](size_t i) {
    if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, "interrupted");
    try {
      looked[i].problem.emplace(evaluator.OpenProblem(folders[i]));
      if (judge && RefusalOf(looked[i].problem->info()).empty())
        looked[i].baseline = evaluator.Baseline(*looked[i].problem);
    } catch (const Error& error) {
      // A mistake of the problem is a finding; a missing compiler or device is a failure of the command.
      if (ExitCodeOf(error.code()) != kBadInput) throw;
      looked[i].error = error.what();
    }
  });
  return looked;
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
  size_t bad = 0;
  for (size_t i = 0; i < folders.size(); ++i) {
    const Looked& one = looked[i];
    bad += !one.error.empty();
    Json json = one.problem ? ToJson(one.problem->info(), folders[i]) : Json{{"folder", folders[i]}};
    if (!one.error.empty()) json["error"] = one.error;
    if (one.baseline) {
      json["baseline"] = {{"seconds", one.baseline->seconds},
                          {"modelled", one.baseline->modelled},
                          {"time_source", one.baseline->time_source},
                          {"diagnosis", one.baseline->diagnosis}};
    }
    all.push_back(std::move(json));
    if (!one.error.empty()) continue;
    const kgrpo_problem_info& info = one.problem->info();
    const bool refused = !RefusalOf(info).empty();
    std::vector<std::string> row = {Copy(info.name), Copy(info.family), refused ? "refused" : Copy(info.split)};
    if (judge && !one.baseline) row.emplace_back("-");
    if (one.baseline)
      row.push_back(FormatSeconds(one.baseline->seconds) + (one.baseline->modelled ? " (modelled)" : ""));
    row.push_back(refused ? RefusalOf(info) : judge ? one.baseline->diagnosis : Words(info));
    rows.push_back(std::move(row));
  }
  if (options.json) {
    PrintJson(all);
  } else {
    if (!rows.empty() && judge) PrintTable({"PROBLEM", "FAMILY", "SPLIT", "REFERENCE", "FOUND"}, rows);
    if (!rows.empty() && !judge) PrintTable({"PROBLEM", "FAMILY", "SPLIT", "TRAITS, ! FLAGS"}, rows);
    for (const Looked& one : looked) {
      if (!one.error.empty()) std::fprintf(stderr, "%s\n", one.error.c_str());
    }
    if (judge || bad > 0) std::fprintf(stderr, "%zu problems, %zu bad\n", folders.size(), bad);
  }
  return bad == 0 ? kFine : kBadInput;
}

}  // namespace

void AddProblemsCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ProblemsOptions>();
  CLI::App* command = app.add_subcommand("problems", "List, check and import problem folders");
  command->require_subcommand(1);
  command->footer("Example:\n  kgrpo-host problems list");
  const auto add = [&](const char* name, const char* description, const char* footer, bool judge) {
    CLI::App* part = command->add_subcommand(name, description);
    part->add_option("DIR", options->folders, "Problem folders or patterns")->capture_default_str();
    part->add_option("--evaluator", options->evaluator, "The evaluator plugin, which owns the problem format")
        ->capture_default_str();
    AddSetOption(part, &options->settings, "An option of the evaluator");
    part->add_flag("--json", options->json, "Print as JSON");
    part->footer(footer);
    part->callback([=, &globals] { *action = [=, &globals] { return Show(globals, *options, judge); }; });
  };
  add("list", "Name, family, split and traits of each", "Example:\n  kgrpo-host problems list 'problems/*'", false);
  AddImportCommand(command, action);
  add("check", "Open each and judge its reference kernel", "Example:\n  kgrpo-host problems check problems/matmul",
      true);
}

}  // namespace kgrpo::cli
