// `kgrpo-host run FILE` and `kgrpo-host resume RUN`: trains, or continues training.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "base/cancel.h"
#include "base/console.h"
#include "base/faults.h"
#include "base/files.h"
#include "base/launch.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/experiment.h"
#include "cli/local_ranks.h"
#include "cli/open_run.h"
#include "cli/session.h"
#include "config/changes.h"
#include "loop/round_faults.h"
#include "loop/run.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "store/run_folder.h"

namespace kgrpo::cli {
namespace {

// Shows a run on the console, and writes the same and all log lines to the folder's run.log. At most one in a process.
class RunConsole {
 public:
  RunConsole(const RunFolder& folder, bool quiet) : quiet_(quiet) {
    static std::ofstream log_lines;  // the logger may write to it until the process ends
    for (std::ofstream* file : {&log_lines, &shown_}) {
      file->open(folder.path() / "run.log", std::ios::app);
      if (!*file) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + (folder.path() / "run.log").string());
    }
    AlsoLogTo(log_lines);
    terminal_.AlsoTo(&log_);
  }
  RunConsole(const RunConsole&) = delete;
  RunConsole& operator=(const RunConsole&) = delete;

  Console* get() { return quiet_ ? &log_ : &terminal_; }

 private:
  bool quiet_;
  std::ofstream shown_;  // separate from the logger's stream: different threads write the two
  Console log_{shown_, /*terminal=*/false};
  Console terminal_ = StandardConsole();
};

// Progress line while problems open, which may take long: the evaluator measures each reference.
RunProblems::Opening OpeningLine(bool quiet) {
  if (quiet) return {};
  return [line = std::make_shared<ProgressLine>(std::cout, isatty(STDOUT_FILENO) != 0)](size_t open, size_t total) {
    line->Show("opening problems", open, total);
  };
}

int Report(const RunOutcome& outcome) {
  if (!outcome.message.empty()) std::fprintf(stderr, "%s\n", outcome.message.c_str());
  return outcome.ExitCode();
}

// Call on the leader: ends the other ranks with this exit code.
int Ended(RankedRun* ranked, int code) {
  if (ranked != nullptr) ranked->ranks().End(code);
  return code;
}

int Run(const Globals& globals, const std::string& file, const std::vector<std::string>& settings, bool overwrite) {
  Session session(globals);
  LoadRequest request;
  request.file = file;
  request.settings = settings;
  const std::unique_ptr<RankedRun> ranked = RankedRun::Meet(session);
  if (ranked && !ranked->leads()) return ranked->Follow(session, request);
  const PipelineConfig config = session.Load(request);
  RunOptions options;
  if (!overwrite) {  // checked before any plugin starts and before any file is written
    const std::string refusal =
        RunFolder::Refusal(config.output_dir, config.resolved_yaml, config.may_change, config.inputs, config.removed);
    if (!refusal.empty()) throw Error(KGRPO_ERROR_INVALID, refusal);
    options.notice = RunFolder::Leftover(config.output_dir);
  }
  std::optional<RunFolderClaim> claim;
  if (overwrite) {
    if (const std::string kept = RunFolder::WhyKept(config.output_dir, config.inputs); !kept.empty())
      throw Error(KGRPO_ERROR_INVALID, kept);
    if (const std::string paid = RunFolder::PaidWork(config.output_dir); !paid.empty())
      spdlog::warn("--overwrite: {}", PrintableText(paid));
    claim.emplace(config.output_dir);
  }
  OpenOptions opening;
  opening.artifact_root = std::filesystem::path(config.output_dir) / "artifacts";
  opening.ranked = ranked.get();
  opening.opening = OpeningLine(globals.quiet);
  Findings findings;
  const std::unique_ptr<OpenedRun> run = OpenRun(session, config, opening, &findings);
  const RunFolder folder =
      RunFolder::Create(config.output_dir, config.resolved_yaml, overwrite, claim ? &*claim : nullptr);
  SetResumableRun(folder.path().string());
  RunConsole console(folder, globals.quiet);
  options.console = console.get();
  options.overrides = settings;
  if (ranked) ranked->SetFolder(folder.path().string());
  return Ended(ranked.get(), Report(kgrpo::Run(config, run->parts, *run->problems, folder, options)));
}

// One run, or all those that the file describes.
int RunFile(const Globals& globals, const std::string& file, const std::vector<std::string>& settings,
            const ExperimentOptions& options) {
  KeepOnWithoutReader();
  LoadRequest request;
  request.file = file;
  request.settings = settings;
  const std::optional<std::vector<ExperimentRun>> runs = ReadExperiment(request);
  RequireVariant(runs, options.variant, file);
  if (!runs) {
    if (options.jobs > 0) throw Error(KGRPO_ERROR_INVALID, "--jobs: " + file + " describes one run");
    return Run(globals, file, settings, options.overwrite);
  }
  if (ReadLaunch()) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, file +
                                             " describes several runs, and several ranks train one: start it with "
                                             "one process, or write each variant to a file of its own");
  }
  request.of_experiment = true;
  std::vector<PlannedRun> planned;
  {
    Session session(globals);
    planned = PlanExperiment(session, request, *runs);
  }
  return RunExperiment(globals, planned, options);
}

// Refuses a run that would end before its last recorded step, and `changes` of a finished run that add no step.
void RequireStepsLeft(const PipelineConfig& config, const RunProgress& progress, bool changes,
                      const std::string& directory, const std::string& longer) {
  uint64_t total = 0;
  for (const StageConfig& stage : config.stages) total += stage.steps;
  if (total < progress.steps) {
    throw Error(KGRPO_ERROR_INVALID, "the run in " + directory + " has " + std::to_string(progress.steps) +
                                         " recorded steps, so it cannot end after " + std::to_string(total) +
                                         ". For an earlier policy evaluate a checkpoint, " + directory +
                                         "/checkpoints/step-N/policy, or start a new run with fewer steps");
  }
  if (progress.finished && changes && total == progress.steps) {
    throw Error(KGRPO_ERROR_INVALID,
                "the run in " + directory + " is finished, and these settings add no step; " + longer);
  }
}

int Resume(const Globals& globals, const std::string& directory, const std::vector<std::string>& settings,
           std::optional<uint64_t> from_step) {
  KeepOnWithoutReader();
  Session session(globals);
  LoadRequest request;
  request.settings = settings;
  request.resumes = true;
  const std::unique_ptr<RankedRun> ranked = RankedRun::Meet(session);
  if (ranked && !ranked->leads()) {  // only the leader opens the folder; this rank only reads its pipeline
    request.file = RunFolder::ResolvedYamlOf(directory).string();
    return ranked->Follow(session, request, directory);
  }
  const RunFolder folder = RunFolder::Open(directory);
  request.file = folder.resolved_yaml().string();
  const RunProgress progress = ReadProgress(folder.database());
  const std::optional<CheckpointState> last = Checkpoints(folder.checkpoints()).Last();
  request.steps_done = from_step.value_or(last ? last->step : 0);
  std::string longer =
      "to train longer: kgrpo-host resume " + directory + " --set '" + StepsKey(ReadFile(request.file)) + "=N'";
  std::optional<std::string> early;
  if (progress.finished) early = RunDatabase::ToRead(folder.database()).Get(kEndedEarly);
  if (early) longer = "to train on: kgrpo-host resume " + directory + " --set evaluation.patience=0";
  if (progress.finished && settings.empty() && !from_step && std::filesystem::is_directory(folder.final_model())) {
    RunDatabase database = RunDatabase::ToRead(folder.database());
    const std::string nothing = NothingLearned(database);
    const std::string but = nothing.empty() ? "and final/ contains the trained model" : "but " + nothing;
    std::fprintf(nothing.empty() ? stdout : stderr,
                 "%s is finished: %s, %s. --from-step N repeats the steps after N%s%s\n", directory.c_str(),
                 early ? ("it stopped early " + *early).c_str()
                       : ("all " + std::to_string(progress.steps) + " steps are done").c_str(),
                 but.c_str(), nothing.empty() ? "; " : ", with --set KEY=VALUE under other settings; ", longer.c_str());
    return Ended(ranked.get(), nothing.empty() ? kFine : kFailed);
  }
  PipelineConfig config = session.Load(request);
  RequireStepsLeft(config, progress, !settings.empty() && !from_step, directory, longer);
  config.output_dir = directory;  // the folder may have been moved
  OpenOptions opening;
  opening.artifact_root = folder.path() / "artifacts";
  opening.ranked = ranked.get();
  opening.done = request.steps_done;
  opening.opening = OpeningLine(globals.quiet);
  Findings findings;
  const std::unique_ptr<OpenedRun> run = OpenRun(session, config, opening, &findings);
  SetResumableRun(folder.path().string());
  RunConsole console(folder, globals.quiet);
  RunOptions options;
  options.resume = true;
  options.from_step = from_step;
  options.overrides = settings;  // kgrpo::Run writes them into resolved.yaml
  options.console = console.get();
  if (ranked) ranked->SetFolder(directory);
  return Ended(ranked.get(), Report(kgrpo::Run(config, run->parts, *run->problems, folder, options)));
}

// For a cluster that ends jobs at a fixed time: the run stops before that, with a checkpoint.
void AddTimeLimit(CLI::App& command) {
  command
      .add_option_function<double>(
          "--time-limit", [](const double& seconds) { SetDeadline(seconds); },
          "Stop after this time, as Ctrl-C does: 90m, 3.5h, 600 (seconds)")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}},
                                        CLI::AsNumberWithUnit::CASE_INSENSITIVE, "DURATION"))
      ->check(CLI::PositiveNumber);
}

void AddRanks(CLI::App* command, unsigned* ranks) {
  command
      ->add_option("--ranks", *ranks,
                   "Number of processes on this machine; for several machines use torchrun, srun or mpirun")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
}

}  // namespace

void AddRunCommand(CLI::App& app, const Globals& globals, Action* action) {
  struct Options {
    std::string file;
    std::vector<std::string> settings;
    ExperimentOptions experiment;
    unsigned ranks = 1;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Train as a pipeline file says");
  command->add_option("FILE", options->file, "The pipeline file")->required();
  AddSetOption(command, &options->settings, "Changes one key of the file: --set 'trainer[1].steps=20'");
  command->add_flag("--overwrite", options->experiment.overwrite, "Delete the run in output_dir and start a new one");
  command->add_option("--variant", options->experiment.variant, "Run only this variant of the file")->type_name("NAME");
  command
      ->add_option("--jobs", options->experiment.jobs,
                   "Runs at a time, of a file with variants or seeds; each logs to its folder's run.log")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  AddTimeLimit(*command);
  AddRanks(command, &options->ranks);
  command->footer(
      "Example:\n  kgrpo-host configs/quickstart.yaml --set output_dir=runs/first\n"
      "  (the same as: kgrpo-host run configs/quickstart.yaml --set output_dir=runs/first)\n"
      "  kgrpo-host ab.yaml --jobs 2                  every variant and seed; called again, it continues");
  command->callback([=, &globals] {
    *action = [=, &globals] {
      if (ShouldStartRanks(options->ranks)) return RunLocalRanks(options->ranks);
      return RunFile(globals, options->file, options->settings, options->experiment);
    };
  });
}

void AddResumeCommand(CLI::App& app, const Globals& globals, Action* action) {
  struct Options {
    std::string directory;
    std::vector<std::string> settings;
    std::optional<uint64_t> from_step;
    unsigned ranks = 1;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("resume", "Continue a run that was stopped or killed");
  command->add_option("RUN", options->directory, "The run's folder")->required();
  AddSetOption(
      command, &options->settings,
      "Changes one key from here on: of coder.options, reward, evaluation, checkpoint or observers; loop.max_steps (or "
      "the last stage's steps), loop.generation_batch, loop.workers, loop.hang_seconds; or a plugin's option that "
      "`plugins describe` marks");
  command
      ->add_option("--from-step", options->from_step,
                   "Continue after this step's checkpoint, not the last whole one; later ones are set aside")
      ->type_name("N");
  AddTimeLimit(*command);
  AddRanks(command, &options->ranks);
  command->footer(
      "Examples:\n"
      "  kgrpo-host resume runs/quickstart --time-limit 3.5h\n"
      "  kgrpo-host resume runs/quickstart --from-step 120\n"
      "  kgrpo-host resume runs/seed --set coder.options.max_cost=80\n"
      "  kgrpo-host resume runs/seed --set loop.max_steps=200          train longer, also a finished run");
  command->callback([=, &globals] {
    *action = [=, &globals] {
      if (ShouldStartRanks(options->ranks)) return RunLocalRanks(options->ranks);
      return Resume(globals, options->directory, options->settings, options->from_step);
    };
  });
}

}  // namespace kgrpo::cli
