#include "cli/experiment.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <kgrpo/support/closest.h>  // JoinedText
#include "base/cancel.h"
#include "base/console.h"
#include "base/files.h"
#include "base/visible_gpus.h"
#include "cli/variant_check.h"
#include "config/changes.h"
#include "store/database.h"
#include "store/inputs.h"
#include "store/run_folder.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

// "log, seed 2"
std::string RunName(const ExperimentRun& run) {
  return run.variant + (run.seed ? ", seed " + std::to_string(*run.seed) : "");
}

fs::path FileOf(const PlannedRun& planned) { return planned.config.output_dir + ".yaml"; }

// The folder that contains all runs' folders.
fs::path ExperimentFolder(const PlannedRun& planned) {
  const std::string& own = planned.config.output_dir;
  return fs::path(own.substr(0, own.size() - planned.run.folder.size() - 1));
}

enum class State { kNew, kUnfinished, kFinished };

// The state of the run. Throws KGRPO_ERROR_INVALID where its folder holds a run of another configuration.
State StateOf(const PlannedRun& planned) {
  const fs::path folder = planned.config.output_dir;
  if (!fs::exists(folder / "run.sqlite")) return State::kNew;
  const RunProgress progress = ReadProgress(folder / "run.sqlite");
  if (progress.steps == 0 && !progress.finished) return State::kNew;  // it has nothing to lose
  const std::string before = fs::exists(FileOf(planned)) ? ReadFile(FileOf(planned)) : planned.config.resolved_yaml;
  if (before != planned.config.resolved_yaml) {
    const auto changes = ChangesBetween(before, planned.config.resolved_yaml, planned.config.removed);
    const std::string differ = changes && !changes->empty()
                                   ? " (" + NamesOf(*changes) + (changes->size() == 1 ? " differs)" : " differ)")
                                   : "";
    const auto back = ChangesBetween(planned.config.resolved_yaml, before);
    const std::string settings = back ? SettingsFor(*back) : "";
    const std::string way_on = settings.empty() ? "repeat the --set options that it was started with"
                                                : "add what it was started with: " + settings;
    throw Error(KGRPO_ERROR_INVALID,
                folder.string() + " holds a run of another configuration, that in " + FileOf(planned).string() +
                    differ + ": to continue it, " + way_on +
                    "; otherwise give the experiment another output_dir, or start again with --overwrite");
  }
  RunDatabase database = RunDatabase::ToRead(folder / "run.sqlite");
  const std::vector<Change> changed = ChangedInputs(RecordedInputs(database), DigestsOf(planned.config.inputs));
  if (!changed.empty()) {
    throw Error(KGRPO_ERROR_INVALID,
                folder.string() + " holds a run that read other files than it would now: " + NamesOf(changed) +
                    (changed.size() == 1 ? " differs" : " differ") +
                    ". Put them back, give the experiment another output_dir, or start again with --overwrite");
  }
  return progress.finished ? State::kFinished : State::kUnfinished;
}

void WriteList(const fs::path& folder, const std::vector<PlannedRun>& runs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const PlannedRun& planned : runs) {
    nlohmann::ordered_json entry = {{"folder", planned.run.folder}, {"variant", planned.run.variant}};
    entry["seed"] = planned.config.seed;
    entry["settings"] = planned.run.settings;
    list.push_back(std::move(entry));
  }
  WriteFileAtomically(folder / "experiment.json",
                      nlohmann::ordered_json({{"format", 1}, {"runs", list}}).dump(2) + "\n");
}

// A run that is under way.
struct Job {
  const PlannedRun* planned = nullptr;
  std::string gpu;  // the GPU that it may use; empty: all that this process may use
};

// The GPU with the fewest jobs, the first of several; empty where there is none.
std::string FreestGpu(const std::vector<std::string>& gpus, const std::map<pid_t, Job>& under_way) {
  const auto jobs = [&](const std::string& gpu) {
    return std::ranges::count_if(under_way, [&](const auto& entry) { return entry.second.gpu == gpu; });
  };
  const auto freest = std::ranges::min_element(gpus, {}, jobs);
  return freest == gpus.end() ? "" : *freest;
}

// Checks the plugins of all waiting variants. Does nothing for a single variant, since its first run finds mistakes at
// once.
void CheckVariants(const Globals& globals, const std::vector<std::pair<const PlannedRun*, State>>& waiting) {
  std::vector<const PlannedRun*> runs(waiting.size());
  std::ranges::transform(waiting, runs.begin(), [](const auto& one) { return one.first; });
  const auto is_other = [&](const PlannedRun* planned) { return planned->run.variant != runs.front()->run.variant; };
  if (std::ranges::none_of(runs, is_other)) return;
  Session session(globals);
  CheckVariantParts(session, runs, nullptr);
}

// Starts `kgrpo-host run` or `resume` for one of the runs; returns its process.
pid_t Start(const Globals& globals, const PlannedRun& planned, State state, const ExperimentOptions& options,
            const std::string& gpu) {
  std::vector<std::string> arguments = {"kgrpo-host"};
  for (const std::string& path : globals.plugin_path) arguments.insert(arguments.end(), {"--plugin-path", path});
  if (globals.verbose) arguments.emplace_back("--verbose");
  if (globals.quiet || options.jobs > 1) arguments.emplace_back("--quiet");
  if (state == State::kUnfinished && !options.overwrite) {
    arguments.insert(arguments.end(), {"resume", planned.config.output_dir});
  } else {
    arguments.insert(arguments.end(), {"run", FileOf(planned).string()});
    if (options.overwrite) arguments.emplace_back("--overwrite");
  }
  if (const double left = SecondsToDeadline(); std::isfinite(left)) {
    arguments.insert(arguments.end(), {"--time-limit", std::to_string(std::max(left, 1.0))});
  }
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot start a run: ") + std::strerror(errno));
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // an experiment that is killed ends its runs, each with a checkpoint
  if (!gpu.empty()) ::setenv(kVisibleGpus, gpu.c_str(), 1);
  ::execv("/proc/self/exe", pointers.data());
  std::fprintf(stderr, "error: cannot start %s: %s\n", "/proc/self/exe", std::strerror(errno));
  ::_exit(kUnavailable);
}

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed; }
std::string EndOf(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return CodeOf(status) == kFine ? "finished" : "ended with exit code " + std::to_string(CodeOf(status));
}

// "base, seed 1: step 12 of 270; log, seed 1: step 9 of 270".
std::string ProgressOf(const std::map<pid_t, Job>& under_way) {
  std::string text;
  for (const auto& [process, job] : under_way) {
    uint64_t steps = 0, done = 0;
    for (const StageConfig& stage : job.planned->config.stages) steps += stage.steps;
    try {
      const fs::path database = fs::path(job.planned->config.output_dir) / "run.sqlite";
      if (fs::exists(database)) done = ReadProgress(database).steps;
    } catch (const Error&) {
      // The run is creating its database.
    }
    text += (text.empty() ? "" : "; ") + RunName(job.planned->run) + ": step " + std::to_string(done) + " of " +
            std::to_string(steps);
  }
  return text;
}

// Waits for one of the processes to end; returns it and its status. After a stop request, sends SIGTERM to all of them,
// because the signal may have reached this process only; once, as `*told` keeps, since a second one would kill them.
std::pair<pid_t, int> WaitForOne(const std::map<pid_t, Job>& under_way, bool shows_progress, bool* told) {
  constexpr std::chrono::seconds kProgressEvery{30};
  auto shown = std::chrono::steady_clock::now();
  std::string last;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (under_way.contains(ended)) return {ended, status};
    if (ended < 0 && errno != EINTR)
      throw Error(KGRPO_ERROR_INTERNAL,
                  std::string("cannot wait for a run of the experiment: ") + std::strerror(errno));
    if (CancelRequested() && !std::exchange(*told, true)) {
      for (const auto& [process, job] : under_way) ::kill(process, SIGTERM);
    }
    if (const auto now = std::chrono::steady_clock::now(); shows_progress && now - shown >= kProgressEvery) {
      shown = now;
      if (const std::string progress = ProgressOf(under_way); std::exchange(last, progress) != progress) {
        std::printf("%s\n", progress.c_str());
        std::fflush(stdout);
      }
    }
    ::usleep(50'000);
  }
}

}  // namespace

std::vector<PlannedRun> PlanExperiment(Session& session, const LoadRequest& request,
                                       const std::vector<ExperimentRun>& runs) {
  std::vector<PlannedRun> planned;
  std::vector<Diagnostic> mistakes;
  const auto add = [&mistakes](const Diagnostic& mistake) {  // each mistake once, not for each seed
    const bool known =
        std::ranges::any_of(mistakes, [&](const Diagnostic& other) { return other.ToString() == mistake.ToString(); });
    if (!known) mistakes.push_back(mistake);
  };
  std::map<std::string, const ExperimentRun*> by_configuration;
  const std::string output_dir = session.Load(request).output_dir;
  for (const ExperimentRun& run : runs) {
    LoadRequest own = request;
    own.settings.insert(own.settings.end(), run.settings.begin(), run.settings.end());
    own.settings.push_back("output_dir=" + nlohmann::json(output_dir).dump());
    own.run_settings = run.settings.size() + 1;
    own.run_name = NameOfVariant(run);
    try {
      const auto [same, is_new] = by_configuration.emplace(session.Load(own).resolved_yaml, &run);
      if (!is_new) {
        add({run.at, "",
             "the variant \"" + run.variant + "\" changes nothing: it is the same as \"" + same->second->variant + "\"",
             ""});
      }
      own.settings.back() = "output_dir=" + nlohmann::json((fs::path(output_dir) / run.folder).string()).dump();
      planned.push_back({run, session.Load(own)});
      for (auto& [option, place] : planned.back().config.option_places) {
        if (place == own.run_name) place = run.PlaceOf(option).ToString() + ": " + own.run_name;
      }
    } catch (const ConfigError& error) {
      for (const Diagnostic& mistake : error.diagnostics()) {
        if (mistake.at.line > 0)
          add(mistake);
        else
          add({run.PlaceOf(mistake.path), mistake.path, run.variant + ": " + mistake.message, mistake.suggestion});
      }
    }
  }
  if (!mistakes.empty()) {
    SortDiagnostics(&mistakes);
    throw ConfigError(std::move(mistakes));
  }
  return planned;
}

std::string NameOfVariant(const ExperimentRun& run) { return "variant \"" + run.variant + "\""; }

std::string RefusalOf(const PlannedRun& planned) {
  try {
    if (StateOf(planned) != State::kNew) return "";
  } catch (const Error& error) {
    return error.what();
  }
  return RunFolder::Refusal(planned.config.output_dir, planned.config.resolved_yaml, planned.config.may_change,
                            planned.config.inputs, planned.config.removed);
}

void RequireVariant(const std::optional<std::vector<ExperimentRun>>& runs, const std::string& name,
                    const std::string& file) {
  if (name.empty()) return;
  if (!runs) throw Error(KGRPO_ERROR_INVALID, "--variant: " + file + " has no variants");
  std::vector<std::string> names;
  for (const ExperimentRun& run : *runs) {
    if (names.empty() || names.back() != run.variant) names.push_back(run.variant);
  }
  if (std::ranges::find(names, name) != names.end()) return;
  throw Error(KGRPO_ERROR_INVALID, "--variant " + name + ": no such variant; the file has " + JoinedText(names));
}

int RunExperiment(const Globals& globals, const std::vector<PlannedRun>& runs, const ExperimentOptions& options) {
  const fs::path folder = ExperimentFolder(runs.front());
  std::vector<std::pair<const PlannedRun*, State>> waiting;
  size_t finished = 0;
  for (const PlannedRun& planned : runs) {
    if (!options.variant.empty() && planned.run.variant != options.variant) continue;
    const State state = options.overwrite ? State::kNew : StateOf(planned);
    if (state == State::kFinished) {
      ++finished;
    } else {
      waiting.emplace_back(&planned, state);
    }
  }
  for (const auto& [planned, state] : waiting) {  // none of the runs may read what another one overwrites
    for (const PlannedRun& reader : runs) {
      const std::string kept = RunFolder::WhyKept(planned->config.output_dir, reader.config.inputs);
      if (options.overwrite && !kept.empty()) throw Error(KGRPO_ERROR_INVALID, kept);
    }
  }
  CheckVariants(globals, waiting);
  fs::create_directories(folder);
  WriteList(folder, runs);
  const size_t total = waiting.size() + finished;
  if (finished > 0) std::printf("%zu of %zu runs are finished\n", finished, total);

  int code = kFine;
  // A single run at a time may use all GPUs.
  const std::vector<std::string> gpus =
      options.jobs > 1 ? VisibleGpus(std::getenv(kVisibleGpus)) : std::vector<std::string>();
  std::map<pid_t, Job> under_way;
  bool told = false;
  std::vector<std::string> failed;
  for (auto next = waiting.begin(); next != waiting.end() || !under_way.empty();) {
    if (next != waiting.end() && under_way.size() < std::max<size_t>(options.jobs, 1) && !CancelRequested()) {
      const auto& [planned, state] = *next++;
      fs::create_directories(FileOf(*planned).parent_path());
      WriteFileAtomically(FileOf(*planned), planned->config.resolved_yaml);
      const std::string gpu = FreestGpu(gpus, under_way);
      std::printf("[%zu/%zu] %s%s%s: %s\n", finished + static_cast<size_t>(next - waiting.begin()), total,
                  RunName(planned->run).c_str(), state == State::kUnfinished ? " goes on" : "",
                  gpu.empty() ? "" : (", on GPU " + gpu).c_str(),
                  (planned->config.output_dir + (options.jobs > 1 ? "/run.log" : "")).c_str());
      under_way.emplace(Start(globals, *planned, state, options, gpu), Job{planned, gpu});
      continue;
    }
    if (under_way.empty()) break;  // stopped before all began
    const auto [process, status] = WaitForOne(under_way, options.jobs > 1 && !globals.quiet, &told);
    const int result = CodeOf(status);
    const PlannedRun& ended = *under_way.at(process).planned;
    if (options.jobs > 1 || WIFSIGNALED(status)) {  // else it has said so itself
      std::printf("%s: %s\n", RunName(ended.run).c_str(), EndOf(status).c_str());
      std::fflush(stdout);
    }
    if (result != kFine) {
      failed.push_back(RunName(ended.run));
      if (code == kFine) code = result;
    }
    under_way.erase(process);
  }
  if (CancelRequested()) code = kInterrupted;
  if (!failed.empty()) {
    std::fprintf(stderr, "not finished: %s. The same command%s continues them\n", JoinedText(failed, "; ").c_str(),
                 options.overwrite ? " without --overwrite" : "");
  } else if (code == kFine) {
    std::printf("next: kgrpo-host compare %s\n", folder.string().c_str());
  }
  return code;
}

}  // namespace kgrpo::cli
