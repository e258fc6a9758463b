// `kgrpo-host check FILE`: checks a pipeline file without running it. Reports all mistakes of the file and all missing
// plugins, then makes the parts and opens the problems.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/console.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/experiment.h"
#include "cli/session.h"
#include "cli/variant_check.h"
#include "config/diagnostic.h"
#include "config/hidden_keys.h"
#include "loop/context_room.h"
#include "loop/problem_set.h"
#include "loop/run_config.h"
#include "loop/worker_pool.h"
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
struct Findings {
  std::vector<Diagnostic> mistakes;      // of the file
  std::vector<std::string> failures;     // of parts and problems
  std::vector<std::string> notes;        // checks left out and the reasons; warnings
  std::optional<PipelineConfig> config;  // set where the file has no mistakes
  size_t left_out[2] = {0, 0};           // training and held-out problems that cannot be used
  std::string refusal;                   // message with which `run` would refuse output_dir; not a mistake of the file
  std::optional<std::string> experiment_refusal;  // the same, where the file describes several runs
  ExitCode exit_code = kFine;

  void Fail(const Error& error) {
    if (const auto* part = dynamic_cast<const PartError*>(&error); part != nullptr)
      failures.insert(failures.end(), part->mistakes().begin(), part->mistakes().end());
    else
      failures.push_back(error.what());
    // Bad input outranks a device or tool that is missing on this machine.
    const ExitCode code = ExitCodeOf(error.code());
    if (exit_code == kFine || code == kBadInput) exit_code = code;
  }
};

// Opens each problem and measures its reference kernel. Returns the first-round state of each, training problems first;
// nothing for a problem that cannot be used.
std::vector<std::optional<PromptState>> FirstPrompts(Evaluator& evaluator, const PipelineConfig& config,
                                                     Findings* findings) {
  std::vector<std::string> folders = config.train_problems;
  folders.insert(folders.end(), config.heldout_problems.begin(), config.heldout_problems.end());
  std::vector<std::optional<PromptState>> first_rounds(folders.size());
  std::vector<std::optional<Error>> failures(folders.size());
  std::vector<std::string> unusable(folders.size());
  std::mutex telling;
  size_t measured = 0;
  ProgressLine progress(std::cerr, /*terminal=*/true);
  WorkerPool(0, folders.size()).ForEach(folders.size(), [&](size_t i) {
    try {
      const Problem problem = evaluator.OpenProblem(folders[i]);
      const std::string refused = Copy(problem.info().refused);
      Evaluation baseline;
      unusable[i] = refused.empty() ? MeasureReference(evaluator, problem, &baseline)
                                    : folders[i] + ": the problem was refused when it was imported: " + refused;
      if (unusable[i].empty()) first_rounds[i] = FirstRound(problem.info(), config.loop);
    } catch (const Error& error) {
      failures[i] = error;
    }
    const std::lock_guard<std::mutex> lock(telling);
    if (isatty(STDERR_FILENO) != 0) progress.Show("measuring references", ++measured, folders.size());
  });
  for (const std::optional<Error>& failure : failures) {
    if (failure) findings->Fail(*failure);
  }
  for (size_t i = 0; i < unusable.size(); ++i) {
    const std::string& why = unusable[i];
    if (why.empty()) continue;
    ++findings->left_out[i < config.train_problems.size() ? 0 : 1];
    if (config.skip_unusable)
      findings->notes.push_back("left out (problems.skip_unusable): " + why);
    else
      findings->Fail(Error(KGRPO_ERROR_INVALID, why));
  }
  const size_t listed[] = {config.train_problems.size(), config.heldout_problems.size()};
  for (const size_t list : {0, 1}) {
    const bool used = config.skip_unusable && (list == 0 || config.evaluation.every > 0);
    if (used && listed[list] > 0 && findings->left_out[list] == listed[list]) {
      findings->Fail(Error(KGRPO_ERROR_INVALID, "none of the " + std::to_string(listed[list]) +
                                                    (list == 0 ? " training" : " held-out") +
                                                    " problems can be used; the notes give the reasons"));
    }
  }
  return first_rounds;
}

// Checks the policy's context, as a run does before its first step. `parts`: those that could be made.
void LookAtContext(const PipelineConfig& config, const PipelineParts& parts,
                   const std::vector<std::optional<PromptState>>& first_rounds, Findings* findings) {
  if (parts.policy == nullptr || parts.trainers.empty()) return;
  std::vector<PromptState> prompted;
  for (size_t i = 0; i < first_rounds.size(); ++i) {
    const bool used = i < config.train_problems.size() ? TrainsOnPrompts(parts.trainers) : config.evaluation.every > 0;
    if (used && first_rounds[i]) prompted.push_back(*first_rounds[i]);
  }
  try {
    const ContextRoom room = RoomInContext(config, *parts.policy, prompted);
    if (!room.mistake.empty()) findings->Fail(Error(KGRPO_ERROR_INVALID, room.mistake));
    if (!room.warning.empty()) findings->notes.push_back(room.warning);
  } catch (const Error& error) {
    findings->Fail(error);
  }
}

// Checks the trainers with their stages' plans, as a run does before its first step.
void LookAtPlans(const PipelineConfig& config, const PipelineParts& parts,
                 const std::vector<std::optional<PromptState>>& first_rounds, Findings* findings) {
  if (const std::string mistake = EpisodesMistake(config, parts.trainers); !mistake.empty())
    findings->Fail(Error(KGRPO_ERROR_INVALID, mistake));
  size_t usable = 0;
  for (size_t i = 0; i < std::min(first_rounds.size(), config.train_problems.size()); ++i)
    usable += first_rounds[i] ? 1 : 0;
  try {
    Session::CheckPlans(config, parts, usable);
  } catch (const Error& error) {
    findings->Fail(error);
  }
}

// Returns the refusal of a run that `question` reports. If `question` throws KGRPO_ERROR_INVALID, output_dir is wrong:
// records a mistake of the file and returns "". Any other error means that the folder cannot be read, and is the
// refusal.
std::string RefusalBy(const std::function<std::string()>& question, Findings* findings) {
  try {
    return question();
  } catch (const Error& error) {
    if (error.code() != KGRPO_ERROR_INVALID) return error.what();
    findings->Fail(error);
    return "";
  }
}

// The runs of a file that describes several; empty for other files.
struct Experiment {
  std::vector<PlannedRun> planned;
  const PlannedRun* chosen = nullptr;  // the one that is checked as a whole
};

// If the file describes several runs, loads each. Chooses one, given.variant or the first, for the full check.
void LookAtExperiment(Session& session, const CheckOptionsGiven& given, LoadRequest* request, Experiment* experiment,
                      Findings* findings) {
  try {
    const std::optional<std::vector<ExperimentRun>> runs = ReadExperiment(*request);
    if (!runs) return;
    RequireVariant(*runs, given.variant);
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
    findings->notes.push_back(
        std::to_string(experiment->planned.size()) + " runs: " + names + "; checked in full: " + chosen->run.folder +
        (given.file_only || !several || !given.variant.empty() ? ""
                                                               : "; of the other variants only the plugins, not model "
                                                                 "and problems"));
    request->settings.insert(request->settings.end(), chosen->run.settings.begin(), chosen->run.settings.end());
    request->settings.push_back("output_dir=" + nlohmann::json(chosen->config.output_dir).dump());
    request->run_settings = chosen->run.settings.size() + 1;
    request->run_name = "run " + chosen->run.folder;
    findings->experiment_refusal = RefusalBy([&] { return RefusalOf(*chosen); }, findings);
  } catch (const ConfigError& error) {
    findings->mistakes = error.diagnostics();
    findings->exit_code = kBadInput;
  }
}

// Makes the parts one by one and opens the problems. A coder that takes a device's memory is made before the policy and
// kept, as in a run, so that the policy reports what is left.
void LookAtParts(Session& session, const PipelineConfig& config, Findings* findings) {
  session.StartServices(config.seed);
  PipelineParts made;  // the coder, the policy, and the trainers that it is trained by
  std::vector<std::optional<PromptState>> first_rounds;
  std::array<Role, kRoles.size()> roles = kRoles;
  std::stable_partition(roles.begin(), roles.end(), [](Role role) { return role == Role::kCoder; });
  for (const Role role : roles) {
    if (!findings->config && role != Role::kEvaluator) continue;
    try {
      PipelineParts parts = session.MakeParts(config, {role});
      if (role == Role::kCoder) {
        if (const std::string mistake = SuggestionsMistake(config, *parts.coder); !mistake.empty())
          findings->Fail(Error(KGRPO_ERROR_INVALID, mistake));
        const std::string what = parts.coder->Describe();  // tells the prices of a run
        if (!what.empty()) findings->notes.push_back("coder (" + config.coder.plugin + "): " + what);
        made.coder = std::move(parts.coder);
      }
      if (role == Role::kEvaluator) first_rounds = FirstPrompts(*parts.evaluator, config, findings);
      if (role == Role::kPolicy) made.policy = std::move(parts.policy);
      if (role == Role::kTrainer) made.trainers = std::move(parts.trainers);
    } catch (const Error& error) {
      findings->Fail(error);
      if (role == Role::kEvaluator) findings->notes.push_back("the problems were not opened: there is no evaluator");
    }
  }
  LookAtContext(config, made, first_rounds, findings);
  LookAtPlans(config, made, first_rounds, findings);
}

// Checks the plugins of the variants that were not chosen.
void LookAtVariants(Session& session, const Experiment& experiment, Findings* findings) {
  std::vector<const PlannedRun*> runs;
  runs.reserve(experiment.planned.size());
  for (const PlannedRun& run : experiment.planned) runs.push_back(&run);
  try {
    CheckVariantParts(session, runs, experiment.chosen);
  } catch (const Error& error) {
    findings->Fail(error);
  }
}

Findings CheckFile(Session& session, const CheckOptionsGiven& given) {
  Findings findings;
  LoadRequest request;
  request.file = given.file;
  request.settings = given.settings;
  Experiment experiment;
  LookAtExperiment(session, given, &request, &experiment, &findings);
  if (!findings.mistakes.empty()) return findings;
  std::optional<PipelineConfig> evaluator_alone;
  try {
    findings.config = session.Load(request);
    if (experiment.chosen != nullptr) findings.config->option_places = experiment.chosen->config.option_places;
  } catch (const ConfigError& error) {
    findings.mistakes = error.diagnostics();
    findings.exit_code = kBadInput;
    // If only other parts are wrong, the problems can still be checked.
    request.roles = {Role::kEvaluator};
    try {
      evaluator_alone = session.Load(request);
    } catch (const ConfigError&) {
      if (!given.file_only) findings.notes.push_back("the problems were not opened; correct the file's mistakes first");
    }
  }
  if (findings.config) {
    const PipelineConfig& config = *findings.config;
    findings.refusal = RefusalBy(
        [&] {
          if (findings.experiment_refusal) return *findings.experiment_refusal;
          std::string refusal = RunFolder::Refusal(config.output_dir, config.resolved_yaml, config.may_change);
          const std::string leftover = refusal.empty() ? RunFolder::Leftover(config.output_dir) : "";
          if (!leftover.empty()) findings.notes.push_back(leftover);
          return refusal;
        },
        &findings);
  }
  if (findings.config) {
    if (const std::string mistake = FileMistake(*findings.config); !mistake.empty())
      findings.Fail(Error(KGRPO_ERROR_INVALID, mistake));
    for (std::string& warning : FileWarnings(*findings.config)) findings.notes.push_back(std::move(warning));
  }
  if (given.file_only) return findings;

  const PipelineConfig* config = findings.config ? &*findings.config : evaluator_alone ? &*evaluator_alone : nullptr;
  if (config == nullptr) return findings;
  LookAtParts(session, *config, &findings);
  if (experiment.chosen != nullptr && given.variant.empty()) LookAtVariants(session, experiment, &findings);
  return findings;
}

// Hides API keys that a file holds at places that take any text, in all text to be printed. Mistakes never contain
// them.
void HideKeysOf(Findings* findings) {
  for (std::string& failure : findings->failures) HideKeys(&failure);
  for (std::string& note : findings->notes) HideKeys(&note);
  HideKeys(&findings->refusal);
  if (findings->config) HideKeys(&findings->config->output_dir);
}

void PrintFindingsJson(const CheckOptionsGiven& given, const Findings& findings) {
  using Json = nlohmann::ordered_json;
  Json json = {{"file", given.file}, {"ok", findings.exit_code == kFine}};
  json["mistakes"] = Json::array();
  for (const Diagnostic& mistake : findings.mistakes) {
    json["mistakes"].push_back({{"file", mistake.at.file},
                                {"line", mistake.at.line},
                                {"column", mistake.at.column},
                                {"path", mistake.path},
                                {"message", mistake.message},
                                {"suggestion", mistake.suggestion}});
  }
  json["failures"] = findings.failures;
  json["notes"] = findings.notes;
  if (findings.config) json["output_dir"] = {{"path", findings.config->output_dir}, {"refusal", findings.refusal}};
  if (given.resolve && findings.config) {
    json["resolved"] = findings.config->resolved_yaml;
    json["resolved_with_origins"] = findings.config->origins_yaml;
  }
  PrintJson(json);
}

void PrintCheck(const CheckOptionsGiven& given, const Findings& findings) {
  for (const Diagnostic& mistake : findings.mistakes) std::fprintf(stderr, "%s\n", mistake.ToString().c_str());
  for (const std::string& failure : findings.failures) std::fprintf(stderr, "%s\n", failure.c_str());
  for (const std::string& note : findings.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const size_t count = findings.mistakes.size() + findings.failures.size();
  if (count > 0) std::fprintf(stderr, "%s: %zu %s\n", given.file.c_str(), count, count == 1 ? "mistake" : "mistakes");
  if (!findings.config) return;
  const PipelineConfig& config = *findings.config;
  if (given.resolve) {
    std::printf("%s", config.origins_yaml.c_str());
  } else if (count == 0) {
    if (given.file_only) {
      std::printf("%s: the file has no mistake; no part was made and no problem opened%s\n", given.file.c_str(),
                  findings.refusal.empty() ? "" : (". It would not run: " + findings.refusal).c_str());
      return;
    }
    uint64_t steps = 0;
    for (const StageConfig& stage : config.stages) steps += stage.steps;
    const std::string then =
        findings.refusal.empty() ? "it would run in " + config.output_dir : "but it would not run: " + findings.refusal;
    std::printf("%s: fine. %zu training and %zu held-out problems, %llu steps in %zu %s; %s\n", given.file.c_str(),
                config.train_problems.size() - findings.left_out[0],
                config.heldout_problems.size() - findings.left_out[1], static_cast<unsigned long long>(steps),
                config.stages.size(), config.stages.size() == 1 ? "stage" : "stages", then.c_str());
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
      Findings findings = CheckFile(session, *given);
      HideKeysOf(&findings);
      if (findings.exit_code == kFine && !findings.refusal.empty()) findings.exit_code = kFailed;
      if (given->json)
        PrintFindingsJson(*given, findings);
      else
        PrintCheck(*given, findings);
      return static_cast<int>(findings.exit_code);
    };
  });
}

}  // namespace kgrpo::cli
