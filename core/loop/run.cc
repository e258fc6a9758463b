#include "loop/run.h"

#include "loop/best_kernels.h"
#include "loop/heldout.h"
#include "loop/metrics.h"
#include "loop/stage.h"
#include "loop/stopwatch.h"
#include "loop/summary.h"
#include "store/checkpoints.h"
#include "store/database.h"
#include "store/files.h"
#include "store/json.h"
#include "store/kernels.h"
#include "store/rollouts.h"
#include "store/tensorboard.h"

#include <kgrpo/sdk/error.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Everything of a run that lives as long as it does.
class Runner {
 public:
  Runner(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, const RunFolder& folder,
         const RunOptions& options)
      : config_(config),
        parts_(parts),
        folder_(folder),
        options_(options),
        database_(folder.database(), options.faults),
        checkpoints_(folder.checkpoints(), options.faults),
        pool_(problems.pool),
        problems_(problems.train),
        heldout_(problems.heldout),
        rollout_(config, parts, problems_, pool_) {
    CheckConfig();
    for (const StageConfig& stage : config_.stages) total_ += stage.steps;
    if (heldout_) heldout_rollout_.emplace(config_, parts_, *heldout_, pool_);
  }

  RunOutcome Run() {
    Open();
    try {
      RunStages();
      if (!CancelledNow()) JudgeWhatIsLeft();
    } catch (const Error& error) {
      return Stopped(error);
    }
    if (CancelledNow()) return Stopped(Error(KGRPO_ERROR_CANCELLED, "stopped by the user"));
    Finish();
    return {RunOutcome::Status::kFinished, done_, ""};
  }

 private:
  // What the file's schema cannot say, since it takes two keys together.
  void CheckConfig() const {
    const LoopConfig& loop = config_.loop;
    if (loop.trajectories_per_problem == 0 || loop.batch_size % loop.trajectories_per_problem != 0) {
      throw Error(KGRPO_ERROR_INVALID, "loop.batch_size (" + std::to_string(loop.batch_size) +
                                           ") must be a multiple of loop.trajectories_per_problem (" +
                                           std::to_string(loop.trajectories_per_problem) + ")");
    }
    if (loop.batch_size == 0 || loop.rounds == 0) {
      throw Error(KGRPO_ERROR_INVALID, "loop.batch_size and loop.rounds must be at least 1");
    }
    const bool one_alone = problems_.size() < 2 || loop.batch_size / loop.trajectories_per_problem < 2;
    if (config_.controls.shuffle_prompts && one_alone) {
      throw Error(KGRPO_ERROR_INVALID, "controls.shuffle_prompts needs two problems in a step: problems.train has " +
                                           std::to_string(problems_.size()) +
                                           ", and loop.batch_size / loop.trajectories_per_problem is " +
                                           std::to_string(loop.batch_size / loop.trajectories_per_problem));
    }
    if (problems_.size() == 0) throw Error(KGRPO_ERROR_INVALID, "problems.train names no problem");
    if (parts_.trainers.size() != config_.stages.size()) {
      throw Error(KGRPO_ERROR_INTERNAL, "a trainer instance is needed for each stage");
    }
  }

  // Where the run stands, and the first words about it.
  void Open() {
    if (options_.console != nullptr) ShowHeader(*options_.console, config_, parts_, problems_, folder_);
    checkpoint_ = checkpoints_.Last();
    if (!options_.resume && checkpoint_) throw Error(KGRPO_ERROR_INTERNAL, "a new run's folder holds a checkpoint");
    if (checkpoint_) {
      const fs::path path = checkpoints_.PathOf(checkpoint_->step);
      parts_.policy->Load(KGRPO_POLICY_CURRENT, path / "policy");
      if (fs::exists(path / "reference")) {
        parts_.policy->Load(KGRPO_POLICY_REFERENCE, path / "reference");
        reference_present_ = true;
        saved_reference_ = path / "reference";
      }
      done_ = checkpoint_->step;
    }
    database_.WriteProblems(Purpose::kTrain, problems_.Records());
    if (heldout_) database_.WriteProblems(Purpose::kHeldout, heldout_->Records());
    WriteIdentity();
    best_.emplace(problems_, parts_, pool_, config_.seed, database_.ReadBest(done_), database_.ReadRefuted(done_));
    for (const auto& [name, kernel] : best_->best()) WriteBestKernel(folder_.kernels(), kernel);
    // Kernels of steps since the last judging wait to be judged again.
    for (uint64_t step = database_.LastJudging(done_) + 1; step <= done_; ++step) {
      best_->Add(step, database_.ReadStep(Purpose::kTrain, step));
    }
    events_.emplace(folder_.path(), Now(), options_.resume ? std::optional(done_ + 1) : std::nullopt);
    if (options_.resume) {
      Note(checkpoint_ ? "going on after step " + std::to_string(done_) + " of " + std::to_string(total_)
                       : "no checkpoint was written yet: starting again from the beginning");
    }
  }

  // run.json: what produced this folder.
  void WriteIdentity() {
    nlohmann::ordered_json plugins = nlohmann::ordered_json::array();
    for (const PluginIdentity& plugin : parts_.identities) {
      plugins.push_back({{"role", plugin.role},
                         {"name", plugin.name},
                         {"version", plugin.version},
                         {"path", plugin.path},
                         {"sha256", plugin.sha256}});
    }
    const std::string text = DumpJson(plugins);
    const std::optional<std::string> before = database_.Get("plugins");
    if (before && *before != text) {
      Note("the plugins differ from those that this run began with: what follows may not be what they would have done");
    }
    database_.Set("plugins", text);
    database_.Set("resolved_yaml", config_.resolved_yaml);
    database_.Set("evaluator", parts_.evaluator->Describe());
    const nlohmann::ordered_json identity = {{"name", config_.name},
                                             {"seed", config_.seed},
                                             {"steps", total_},
                                             {"overrides", options_.overrides},
                                             {"evaluator", parts_.evaluator->Describe()},
                                             {"plugins", plugins}};
    WriteFileAtomically(folder_.run_json(), DumpJson(identity, 2) + "\n");
  }

  void RunStages() {
    uint64_t first = 1;
    for (size_t i = 0; i < config_.stages.size(); ++i) {
      const uint64_t last = first + config_.stages[i].steps - 1;
      if (done_ < last) {
        const Stopwatch beginning;
        stage_ = std::make_unique<Stage>(config_, parts_, rollout_, problems_, database_, i, first);
        if (checkpoint_ && checkpoint_->stage == i && checkpoint_->stage_steps > 0) {
          stage_->Restore(checkpoints_.PathOf(checkpoint_->step));
        } else if (stage_->Begin()) {
          reference_present_ = true;
          saved_reference_.clear();  // another reference than the last checkpoint's
        }
        begin_seconds_ = beginning.seconds();
        for (uint64_t step = done_ + 1; step <= last; ++step) {
          if (CancelledNow()) return;
          RunStep(step);
        }
      }
      first = last + 1;
    }
  }

  void RunStep(uint64_t step) {
    const Stopwatch watch;
    parts_.take_metrics();  // what plugins pushed before the step is no part of it
    StepRecord record;
    record.step = step;
    record.stage = stage_->index();
    const PluginChoice& trainer = config_.stages[stage_->index()].trainer;
    record.stage_name = trainer.plugin;
    record.gamma = trainer.options.contains("gamma") && trainer.options["gamma"].is_number()
                       ? trainer.options["gamma"].get<double>()
                       : 1.0;
    MetricMap metrics;
    stage_->Step(step, record, metrics, [this](const StepRecord& rollouts) {
      best_->Add(rollouts.step, rollouts.trajectories);
      if (CheckpointDue(rollouts.step)) best_->Start();
    });
    if (begin_seconds_) metrics["time/begin_stage"] = *std::exchange(begin_seconds_, std::nullopt);
    if (CheckpointDue(step)) best_->Start();  // where the stage had no rollouts; else nothing is left
    if (heldout_ && step % config_.evaluation.every == 0) Measure(step, record, metrics);
    const Stopwatch judging;
    const JudgedKernels judged = best_->Finish();
    metrics["time/judge_best"] = judging.seconds();
    for (const auto& [name, value] : parts_.take_metrics()) metrics.emplace(name, value);
    metrics["step_time"] = watch.seconds();
    // From the records, not from the metrics, which a trainer may name alike.
    record.reward_mean = RewardMean(record.trajectories);
    record.finished_at = Now();
    for (const auto& [name, value] : metrics) record.metrics.push_back({name, value});

    // The database first: a checkpoint never stands for a step that is not in it. What is written from the record
    // comes before the checkpoint too, so that a resumed run need not look for what an earlier one left out.
    database_.WriteStep(record, judged);
    WriteRollouts(folder_.rollouts(), record);
    for (const BestKernel& kernel : judged.best) WriteBestKernel(folder_.kernels(), kernel);
    events_->Add(step, record.finished_at, record.metrics);
    done_ = step;
    stage_->StepRecorded();
    reward_mean_ = record.has_rollouts ? std::optional(record.reward_mean) : std::nullopt;
    if (CheckpointDue(step)) {
      const Stopwatch writing;
      WriteCheckpoint();
      const Metric time = {"time/checkpoint", writing.seconds()};
      metrics.emplace(time.name, time.value);
      database_.AddMetric(step, time);
      events_->Add(step, Now(), std::span(&time, 1));
    }
    Show(record, metrics);
  }

  // Kernels of the last steps whose judging was stopped.
  void JudgeWhatIsLeft() {
    if (database_.LastJudging(done_) == done_) return;
    if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    best_->Start();
    const JudgedKernels judged = best_->Finish();
    database_.WriteJudged(done_, judged);
    for (const BestKernel& kernel : judged.best) WriteBestKernel(folder_.kernels(), kernel);
    if (!judged.complete) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  }

  bool CheckpointDue(uint64_t step) const {
    const uint64_t every = config_.checkpoint.every;
    return (every > 0 && step % every == 0) || step == total_;
  }

  // Held-out episodes with the policy as it is now. A user's stop leaves them out: the step itself is done.
  void Measure(uint64_t step, StepRecord& record, MetricMap& metrics) {
    RolloutRequest request = HeldoutRequest(config_, heldout_->families(), step, config_.evaluation.episodes, {});
    request.recorded = database_.ReadStep(Purpose::kHeldout, step);
    const Stopwatch watch;
    try {
      record.heldout = heldout_rollout_->Collect(request).trajectories;
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_CANCELLED) throw;
      return;
    }
    metrics.merge(HeldoutMetrics(record.heldout));
    metrics["time/heldout"] = watch.seconds();
  }

  static double RewardMean(const std::vector<TrajectoryRecord>& trajectories) {
    double sum = 0;
    size_t count = 0;
    for (const TrajectoryRecord& trajectory : trajectories) {
      for (const RoundRecord& round : trajectory.rounds_done) sum += round.reward, ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }

  void WriteCheckpoint() {
    CheckpointState state;
    state.step = done_;
    state.stage = stage_->index();
    state.stage_steps = done_ + 1 - stage_->first_step();
    state.reward_mean = reward_mean_;
    checkpoints_.Write(state, [&](const fs::path& path) {
      fs::create_directory(path / "policy");
      parts_.policy->Save(KGRPO_POLICY_CURRENT, path / "policy");
      Pass(options_.faults, "checkpoint: policy written");
      if (reference_present_) SaveReference(path / "reference");
      // A stage that is over needs its trainer no more, one that has not begun has nothing to keep.
      if (state.stage_steps > 0 && done_ != stage_->last_step()) stage_->Save(path);
    });
    if (reference_present_) saved_reference_ = checkpoints_.PathOf(done_) / "reference";
    checkpoints_.Prune(config_.checkpoint.keep_last, config_.checkpoint.keep_best);
  }

  // The reference doesn't change within a stage: checkpoints share its files.
  void SaveReference(const fs::path& target) {
    fs::create_directory(target);
    if (!saved_reference_.empty() && fs::exists(saved_reference_)) {
      std::error_code error;
      for (const fs::directory_entry& entry : fs::directory_iterator(saved_reference_)) {
        fs::create_hard_link(entry.path(), target / entry.path().filename(), error);
        if (error) break;
      }
      if (!error) return;
      fs::remove_all(target);  // a file system without hard links: write it out
      fs::create_directory(target);
    }
    parts_.policy->Save(KGRPO_POLICY_REFERENCE, target);
  }

  // The end of a run that did not reach its end: with a checkpoint of the last whole step, where that can be had.
  RunOutcome Stopped(const Error& error) {
    const bool cancelled = error.code() == KGRPO_ERROR_CANCELLED;
    std::string kept;
    const std::optional<CheckpointState> last = checkpoints_.Last();
    if (stage_ != nullptr && !stage_->policy_in_doubt() && done_ > 0 && (!last || last->step < done_)) {
      WriteCheckpoint();
      kept = "a checkpoint of step " + std::to_string(done_) + " was written";
    } else if (last) {
      kept = "the last checkpoint is of step " + std::to_string(last->step);
    } else {
      kept = "there is no checkpoint yet: a resumed run starts at the beginning";
    }
    if (options_.console != nullptr) options_.console->Finish();
    if (!cancelled && error.code() != KGRPO_ERROR_NOT_FINITE && error.code() != KGRPO_ERROR_BUDGET) {
      throw Error(error.code(), "step " + std::to_string(done_ + 1) + ": " + error.what() + " (" + kept + ")");
    }
    RunOutcome outcome;
    outcome.status = cancelled ? RunOutcome::Status::kInterrupted : RunOutcome::Status::kStopped;
    outcome.steps = done_;
    outcome.message = (cancelled ? "stopped by the user" : std::string(error.what())) + "; " + kept +
                      "; to go on: kgrpo-host resume " + folder_.path().string();
    return outcome;
  }

  void Finish() {
    const fs::path partial = folder_.final_model().string() + ".partial";
    fs::remove_all(partial);
    fs::create_directories(partial);
    parts_.policy->Save(KGRPO_POLICY_CURRENT, partial);
    Pass(options_.faults, "final: filled");
    fs::remove_all(folder_.final_model());
    PublishDirectory(partial, folder_.final_model());
    Pass(options_.faults, "final: renamed");
    database_.Set("finished", std::to_string(Now()));
    if (options_.console == nullptr) return;
    options_.console->Finish();
    ShowSummary(*options_.console, database_, problems_, folder_);
  }

  bool CancelledNow() const { return done_ < total_ && parts_.cancelled(); }

  void Note(const std::string& text) {
    if (options_.console != nullptr) options_.console->Note(text);
  }

  void Show(const StepRecord& record, const MetricMap& metrics) {
    if (options_.console == nullptr) return;
    const auto value = [&](const char* name) {
      const auto found = metrics.find(name);
      return found == metrics.end() ? 0.0 : found->second;
    };
    StepLine line;
    line.step = record.step;
    line.steps = total_;
    line.stage = record.stage_name;
    line.has_rollouts = record.has_rollouts;
    line.reward = record.reward_mean;
    line.correct_rate = value("kernel/correct_rate");
    line.speedup = value("kernel/speedup_geomean");
    line.failed_rate = value("kernel/failed_rate");
    line.not_applicable_rate = value("coder/not_applicable_rate");
    line.unclear_rate = value("coder/unclear_rate");
    line.favourite_share = value("policy/favourite_share");
    line.entropy = value("policy/suggestion_entropy");
    line.has_loss = metrics.contains("loss");
    line.loss = value("loss");
    line.seconds = value("step_time");
    for (const auto& [part, name] : {std::pair{"rollout", "time/rollout"},
                                     {"generating", "time/generate"},
                                     {"training", "time/train"},
                                     {"held-out", "time/heldout"},
                                     {"judging again", "time/judge_best"},
                                     {"checkpoint", "time/checkpoint"}}) {
      if (metrics.contains(name)) line.parts.emplace_back(part, value(name));
    }
    line.modelled = problems_[0].baseline.modelled;
    options_.console->Step(line);
    if (!record.heldout.empty()) {
      char text[160];
      std::snprintf(text, sizeof text, "held-out after step %llu: reward %.3f  correct %.0f%%  best speedup %.2fx",
                    static_cast<unsigned long long>(record.step), value("heldout/reward"),
                    100 * value("heldout/kernel/correct_rate"), value("heldout/best_speedup_geomean"));
      options_.console->Note(text);
    }
  }

  const PipelineConfig& config_;
  PipelineParts& parts_;
  const RunFolder& folder_;
  const RunOptions& options_;
  RunDatabase database_;
  Checkpoints checkpoints_;
  WorkerPool& pool_;
  const ProblemSet& problems_;
  const std::optional<ProblemSet>& heldout_;
  Rollout rollout_;
  std::optional<Rollout> heldout_rollout_;
  std::optional<BestKernels> best_;
  std::optional<EventWriter> events_;
  std::optional<CheckpointState> checkpoint_;  // that the run goes on from
  std::unique_ptr<Stage> stage_;
  std::optional<double> begin_seconds_;  // what beginning the stage took, until a step's metrics hold it
  uint64_t total_ = 0;
  uint64_t done_ = 0;                  // steps in the database and in the policy
  std::optional<double> reward_mean_;  // of the last step, if it had rollouts
  bool reference_present_ = false;
  fs::path saved_reference_;  // a folder that holds the present reference; empty: none does
};

}  // namespace

RunProblems::RunProblems(const PipelineConfig& config, PipelineParts& parts)
    : pool(config.loop.workers), train(*parts.evaluator, config.train_problems, pool) {
  if (config.evaluation.every > 0 && !config.heldout_problems.empty()) {
    heldout.emplace(*parts.evaluator, config.heldout_problems, pool);
  }
}

RunOutcome Run(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, const RunFolder& folder,
               const RunOptions& options) {
  return Runner(config, parts, problems, folder, options).Run();
}

}  // namespace kgrpo
