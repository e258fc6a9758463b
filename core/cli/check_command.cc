// `kgrpo-host check FILE`: checks a pipeline file without running it. Reports all faults of the file, its plugins,
// parts and problems: those for which `run` would end before its first step (cli/open_run.h).
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/cancel.h"
#include "base/console.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/experiment.h"
#include "cli/open_run.h"
#include "cli/session.h"
#include "cli/variant_check.h"
#include "config/diagnostic.h"
#include "config/hidden_keys.h"
#include "loop/run_config.h"
#include "store/run_folder.h"

namespace kgrpo::cli {
namespace {

struct CheckOptionsGiven {
  std::string file;
  std::vector<std::string> settings;
  bool resolve = false;
  bool json = false;
  bool file_only = false;
  std::string variant;
};

// Results of a check.
struct Checked {
  Findings findings{Findings::Stop::kNever};
  std::optional<PipelineConfig> config;  // set if the file has no fault
  size_t problems[2] = {0, 0};           // training and held-out problems that can be used
  std::string refusal;                   // message with which `run` would refuse output_dir; not a fault of the file
  std::optional<std::string> experiment_refusal;  // the same, for a file that describes several runs
};

// Returns the refusal of a run that `question` reports. If `question` throws KGRPO_ERROR_INVALID, output_dir is wrong:
// records a fault of the file and returns "". Any other error means that the folder cannot be read, and is the refusal.
std::string RefusalBy(const std::function<std::string()>& question, Findings* findings) {
  std::string refusal;
  findings->Try([&] {
    try {
      refusal = question();
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_INVALID) throw;
      refusal = error.what();
    }
  });
  return refusal;
}

// The runs of a file that describes several; empty for other files.
struct Experiment {
  std::vector<PlannedRun> planned;
  const PlannedRun* chosen = nullptr;  // the one that is checked as a whole
};

// If the file describes several runs, loads each. Chooses one, given.variant or the first, for the full check.
void LoadExperiment(Session& session, const CheckOptionsGiven& given, LoadRequest* request, Experiment* experiment,
                    Checked* checked) {
  const std::optional<std::vector<ExperimentRun>> runs = ReadExperiment(*request);
  RequireVariant(runs, given.variant, given.file);
  if (!runs) return;
  request->of_experiment = true;
  experiment->planned = PlanExperiment(session, *request, *runs);
  std::string names;
  const PlannedRun* chosen = nullptr;
  bool several = false;
  for (const PlannedRun& run : experiment->planned) {
    names += (names.empty() ? "" : ", ") + run.run.folder;
    if (chosen == nullptr && (given.variant.empty() || run.run.variant == given.variant)) chosen = &run;
    several = several || run.run.variant != experiment->planned.front().run.variant;
  }
  experiment->chosen = chosen;
  checked->findings.notes.push_back(
      std::to_string(experiment->planned.size()) + " runs: " + names + "; checked in full: " + chosen->run.folder +
      (given.file_only || !several || !given.variant.empty() ? ""
                                                             : "; of the other variants only the plugins, not model "
                                                               "and problems"));
  request->settings.insert(request->settings.end(), chosen->run.settings.begin(), chosen->run.settings.end());
  request->settings.push_back("output_dir=" + nlohmann::json(chosen->config.output_dir).dump());
  request->run_settings = chosen->run.settings.size() + 1;
  request->run_name = "run " + chosen->run.folder;
  checked->experiment_refusal = RefusalBy([&] { return RefusalOf(*chosen); }, &checked->findings);
}

// Makes the parts and opens the problems, as a run does.
void CheckRun(Session& session, const PipelineConfig& config, const std::set<Role>& roles, Checked* checked) {
  OpenOptions options;
  options.roles = roles;
  if (isatty(STDERR_FILENO) != 0) {
    options.opening = [line = std::make_shared<ProgressLine>(std::cerr, /*terminal=*/true)](size_t open, size_t total) {
      line->Show("measuring references", open, total);
    };
  }
  const std::unique_ptr<OpenedRun> run = OpenRun(session, config, options, &checked->findings);
  if (run->parts.coder != nullptr) {
    const std::string what = run->parts.coder->Describe();  // tells the prices of a run
    if (!what.empty()) checked->findings.notes.push_back("coder (" + config.coder.plugin + "): " + what);
  }
  if (run->problems == nullptr) return;
  checked->problems[0] = run->problems->train.size();
  checked->problems[1] = run->problems->heldout ? run->problems->heldout->size() : 0;
}

void CheckAll(Session& session, const CheckOptionsGiven& given, Checked* checked) {
  Findings& findings = checked->findings;
  LoadRequest request;
  request.file = given.file;
  request.settings = given.settings;
  Experiment experiment;
  if (!findings.Try([&] { LoadExperiment(session, given, &request, &experiment, checked); })) return;
  std::optional<PipelineConfig> evaluator_only;
  if (!findings.Try([&] { checked->config = session.Load(request); })) {
    // If only other parts are wrong, the problems can still be checked.
    request.roles = {Role::kEvaluator};
    try {
      evaluator_only = session.Load(request);
    } catch (const ConfigError&) {
      if (!given.file_only)
        findings.notes.emplace_back("the problems were not opened; correct the file's mistakes first");
    }
  }
  if (checked->config) {
    PipelineConfig& config = *checked->config;
    if (experiment.chosen != nullptr) config.option_places = experiment.chosen->config.option_places;
    checked->refusal = RefusalBy(
        [&] {
          if (checked->experiment_refusal) return *checked->experiment_refusal;
          std::string refusal = RunFolder::Refusal(config.output_dir, config.resolved_yaml, config.may_change,
                                                   config.inputs, config.removed);
          const std::string leftover = refusal.empty() ? RunFolder::Leftover(config.output_dir) : "";
          if (!leftover.empty()) findings.notes.push_back(leftover);
          return refusal;
        },
        &findings);
    if (given.file_only) CheckFile(config, &findings);
  }
  if (given.file_only) return;
  if (checked->config)
    CheckRun(session, *checked->config, request.roles, checked);
  else if (evaluator_only)
    CheckRun(session, *evaluator_only, request.roles, checked);
  if (!checked->config || experiment.chosen == nullptr || !given.variant.empty()) return;
  std::vector<const PlannedRun*> runs;
  for (const PlannedRun& run : experiment.planned) runs.push_back(&run);
  findings.Try([&] { CheckVariantParts(session, runs, experiment.chosen); });
}

// Hides API keys that a file holds at places that take any text, in all text to be printed. Diagnostics never contain
// them.
void HideKeysOf(Checked* checked) {
  for (std::string& failure : checked->findings.failures) HideKeys(&failure);
  for (std::string& note : checked->findings.notes) HideKeys(&note);
  HideKeys(&checked->refusal);
  if (checked->config) HideKeys(&checked->config->output_dir);
}

void PrintFindingsJson(const CheckOptionsGiven& given, const Checked& checked) {
  const Findings& findings = checked.findings;
  using Json = nlohmann::ordered_json;
  Json json = {{"file", given.file}, {"ok", findings.exit_code == kFine}};
  json["mistakes"] = Json::array();
  for (const Diagnostic& mistake : findings.diagnostics) {
    json["mistakes"].push_back({{"file", mistake.at.file},
                                {"line", mistake.at.line},
                                {"column", mistake.at.column},
                                {"path", mistake.path},
                                {"message", mistake.message},
                                {"suggestion", mistake.suggestion}});
  }
  json["failures"] = findings.failures;
  json["notes"] = findings.notes;
  if (checked.config) json["output_dir"] = {{"path", checked.config->output_dir}, {"refusal", checked.refusal}};
  if (given.resolve && checked.config) {
    json["resolved"] = checked.config->resolved_yaml;
    json["resolved_with_origins"] = checked.config->origins_yaml;
  }
  PrintJson(json);
}

void PrintCheck(const CheckOptionsGiven& given, const Checked& checked) {
  const Findings& findings = checked.findings;
  for (const Diagnostic& mistake : findings.diagnostics) std::fprintf(stderr, "%s\n", mistake.ToString().c_str());
  for (const std::string& failure : findings.failures) std::fprintf(stderr, "%s\n", failure.c_str());
  for (const std::string& note : findings.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const size_t count = findings.diagnostics.size() + findings.failures.size();
  if (count > 0) std::fprintf(stderr, "%s: %zu %s\n", given.file.c_str(), count, count == 1 ? "mistake" : "mistakes");
  if (!checked.config) return;
  const PipelineConfig& config = *checked.config;
  if (given.resolve) {
    std::printf("%s", config.origins_yaml.c_str());
  } else if (count == 0) {
    if (given.file_only) {
      std::printf("%s: the file has no mistake; no part was made and no problem opened%s\n", given.file.c_str(),
                  checked.refusal.empty() ? "" : (". It would not run: " + checked.refusal).c_str());
      return;
    }
    uint64_t steps = 0;
    for (const StageConfig& stage : config.stages) steps += stage.steps;
    const std::string then =
        checked.refusal.empty() ? "it would run in " + config.output_dir : "but it would not run: " + checked.refusal;
    std::printf("%s: fine. %zu training and %zu held-out problems, %llu steps in %zu %s; %s\n", given.file.c_str(),
                checked.problems[0], checked.problems[1], static_cast<unsigned long long>(steps), config.stages.size(),
                config.stages.size() == 1 ? "stage" : "stages", then.c_str());
  }
}

}  // namespace

void AddCheckCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto given = std::make_shared<CheckOptionsGiven>();
  CLI::App* command = app.add_subcommand("check", "Check a pipeline file without running it");
  command->add_option("FILE", given->file, "The pipeline file")->required();
  AddSetOption(command, &given->settings, "Changes one key of the file");
  command->add_flag(
      "--resolve", given->resolve,
      "Print the file with `extends`, --set and the variant applied and every default filled in, each value with "
      "where it came from");
  command->add_flag("--file-only", given->file_only, "Check the file and its options; load no model, open no problem");
  command->add_option("--variant", given->variant, "Check only this variant of the file")->type_name("NAME");
  command->add_flag("--json", given->json, "Print the findings as JSON");
  command->footer(
      "Examples:\n  kgrpo-host check configs/seed.yaml --resolve\n  kgrpo-host check ab.yaml --variant short "
      "--resolve");
  command->callback([=, &globals] {
    *action = [=, &globals] {
      Session session(globals);
      Checked checked;
      CheckAll(session, *given, &checked);
      if (CancelRequested()) throw Error(KGRPO_ERROR_CANCELLED, StopWords());
      HideKeysOf(&checked);
      ExitCode& code = checked.findings.exit_code;
      if (code == kFine && !checked.refusal.empty()) code = kFailed;
      if (given->json)
        PrintFindingsJson(*given, checked);
      else
        PrintCheck(*given, checked);
      return static_cast<int>(code);
    };
  });
}

}  // namespace kgrpo::cli
