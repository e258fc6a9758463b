#include "loop/run.h"

#include "base/cancel.h"
#include "base/wall_clock.h"
#include "config/hidden_keys.h"
#include "loop/best_kernels.h"
#include "loop/checkpoint.h"
#include "loop/coder_cost.h"
#include "loop/identity.h"
#include "loop/measurements.h"
#include "loop/metrics.h"
#include "loop/observers.h"
#include "loop/round_faults.h"
#include "loop/stage.h"
#include "loop/summary.h"
#include "loop/trajectory.h"
#include "plugin/parts.h"
#include "store/database.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace kgrpo {
namespace {

constexpr const char* kNoCheckpoint = "no checkpoint was written yet";
// The state of one call of Run.
class Runner {
 public:
  Runner(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, const RunFolder& folder,
         const RunOptions& options)
      : config_(config),
        parts_(parts),
        folder_(folder),
        options_(options),
        database_(folder.database(), options.faults),
        models_(config, parts, folder, options.faults),
        opened_(problems),
        problems_(problems.train),
        rollout_(config, parts, problems_, problems.pool),
        measurements_(config, parts, problems, database_, options.console),
        observers_(config, parts) {
    for (const StageConfig& stage : config_.stages) total_ += stage.steps;
  }

  RunOutcome Run() {
    try {
      RunOutcome outcome = RunToItsEnd();
      const bool finished =
          outcome.status == RunOutcome::Status::kFinished || outcome.status == RunOutcome::Status::kNothingLearned;
      const std::string failures = observers_.End(finished ? "finished" : "stopped");
      if (!failures.empty()) outcome.message += (outcome.message.empty() ? "" : "; ") + failures;
      return outcome;
    } catch (...) {
      observers_.End("failed");
      throw;
    }
  }

 private:
  RunOutcome RunToItsEnd() {
    Open();
    try {
      RunStages();
      if (!CancelledNow()) {
        PlayMissingMeasurements();
        ConfirmLastKernels();
      }
    } catch (const Error& error) {
      return Stopped(error);
    }
    if (CancelledNow()) return Stopped(Error(KGRPO_ERROR_CANCELLED, "stopped by the user"));
    Finish();
    const std::string nothing_learned = NothingLearned(database_);
    if (nothing_learned.empty()) return {RunOutcome::Status::kFinished, done_, ""};
    return {RunOutcome::Status::kNothingLearned, done_,
            nothing_learned + ". Fix the cause: resume with --from-step N and --set, or run again with --overwrite"};
  }

  // Loads the state that the run starts from, and shows the header and the first notes.
  void Open() {
    std::vector<std::string> set_aside;
    checkpoint_ = options_.resume ? models_.GoBackTo(options_.from_step, &set_aside) : models_.Last();
    if (!options_.resume && checkpoint_) throw Error(KGRPO_ERROR_INTERNAL, "a new run's folder holds a checkpoint");
    if (options_.console != nullptr) ShowHeader(*options_.console, config_, parts_, problems_, folder_);
    std::string notice = options_.notice;
    HideKeys(&notice);  // output_dir may hold any text
    Note(notice);
    for (const std::string& note : opened_.notes) Note(note);
    for (const std::string& note : set_aside) Note(note);
    if (checkpoint_) {
      done_ = checkpoint_->step;
      AdviseIfItFails([this] {
        models_.Load(done_);
        RequireUsable();
      });
      const size_t stage = checkpoint_->stage;
      const bool unfinished = checkpoint_->stage_steps < config_.stages.at(stage).steps;
      if (checkpoint_->stage_steps > 0 && unfinished && parts_.trainers.at(stage)->needs_reference())
        models_.RequireReference(config_.stages.at(stage).trainer.plugin);
    }
    if (options_.resume && config_.skip_unusable) opened_.RequireSame(database_);
    const std::vector<Change> changed =
        options_.resume ? ResumedInputs(config_, parts_, database_) : std::vector<Change>();
    models_.SetLaterAside();
    database_.WriteProblems(Purpose::kTrain, problems_.Records());
    if (opened_.heldout) database_.WriteProblems(Purpose::kHeldout, opened_.heldout->Records());
    database_.SetUnfinished();
    WriteIdentity(config_, parts_, total_, options_.overrides, options_.resume ? std::optional(done_) : std::nullopt,
                  folder_, database_);
    if (!changed.empty())
      Note("not as the run read it before, so results from here on may differ: " + NamesOf(changed) +
           " (recorded as a change after step " + std::to_string(done_) + ")");
    models_.RankAfter(RewardChangedAfter(database_.ReadChanges()));
    best_.emplace(problems_, parts_, opened_.pool, config_.seed, database_.ReadBest(done_),
                  database_.ReadRefuted(done_));
    for (const auto& [name, kernel] : best_->best()) WriteBestKernel(folder_.kernels(), kernel);
    // Kernels of steps since the last judging wait to be judged again.
    for (uint64_t step = database_.LastJudging(done_) + 1; step <= done_; ++step)
      best_->Add(step, database_.ReadStep(Purpose::kTrain, step));
    observers_.Begin(config_, folder_.path(), total_, done_, options_.resume);
    if (options_.resume) {
      std::string with;
      for (const std::string& setting : options_.overrides) with += (with.empty() ? ", now with " : ", ") + setting;
      Note((checkpoint_ ? "continuing after step " + std::to_string(done_) + " of " + std::to_string(total_)
                        : "there is no checkpoint: starting again from the beginning") +
           with);
    }
  }

  // Runs `read`, which reads the checkpoint's files. Adds to an error how to resume from an older checkpoint.
  void AdviseIfItFails(const std::function<void()>& read) {
    try {
      read();
    } catch (const Error& error) {
      cannot_go_on_ = true;
      throw models_.WithResumeAdvice(error, checkpoint_->step);
    }
  }

  void RunStages() {
    PlayMissingMeasurements();
    uint64_t first = 1;
    for (size_t i = 0; i < config_.stages.size(); ++i) {
      const uint64_t last = first + config_.stages[i].steps - 1;
      if (done_ < last) {
        const Stopwatch beginning;
        at_ = done_ + 1;
        stage_ = std::make_unique<Stage>(config_, parts_, rollout_, problems_, database_, i, first, options_.console);
        if (checkpoint_ && checkpoint_->stage == i && checkpoint_->stage_steps > 0) {
          AdviseIfItFails([this] { stage_->Restore(models_.PathOf(checkpoint_->step)); });
        } else {
          stage_->Begin();
          if (done_ == 0 && config_.checkpoint.final_best && !models_.Last()) WriteCheckpoint();
        }
        begin_seconds_ = beginning.seconds();
        spending_ = ReadSpending(database_, done_);  // includes demonstrations
        for (uint64_t step = done_ + 1; step <= last; ++step) {
          if (CancelledNow()) return;
          if (const std::string why = measurements_.EarlyStop(*stage_, done_); !why.empty()) return EndEarly(why);
          RunStep(step);
        }
      }
      first = last + 1;
    }
  }

  void RunStep(uint64_t step) {
    const Stopwatch watch;
    at_ = step;
    NoteStepUnderWay(step);
    // Discards metrics that plugins pushed before the step; those of a step begun ahead count in this one.
    if (config_.loop.max_staleness == 0 || begin_seconds_) parts_.take_metrics();
    const auto shared = std::make_shared<StepRecord>();  // shared with the observers once it is recorded
    StepRecord& record = *shared;
    record.step = step;
    record.stage = stage_->index();
    record.stage_name = config_.stages[stage_->index()].trainer.plugin;
    MetricMap metrics;
    stage_->Step(step, record, metrics, [this](const StepRecord& rollouts) {
      best_->Add(rollouts.step, rollouts.trajectories);
      if (CheckpointDue(rollouts.step)) best_->Start();
    });
    if (begin_seconds_) metrics["time/begin_stage"] = *std::exchange(begin_seconds_, std::nullopt);
    if (record_seconds_) metrics["time/record"] = *std::exchange(record_seconds_, std::nullopt);
    if (CheckpointDue(step)) best_->Start();  // for stages without rollouts; otherwise nothing is pending
    if (measurements_.Due(step)) measurements_.Play(step, record, metrics);
    const Stopwatch judging;
    const JudgedKernels judged = best_->Finish();
    metrics["time/judge_best"] = judging.seconds();
    if (!judged.failed.empty()) {
      Note("step " + std::to_string(step) + ": the evaluator failed for the fastest kernels, which wait for the next " +
           "checkpoint: " + judged.failed);
    }
    AddSpending(record, metrics);
    for (const auto& [name, value] : parts_.take_metrics()) metrics.emplace(name, value);
    metrics["step_time"] = watch.seconds();
    // Taken from the records: a trainer may report a metric of the same name.
    record.reward_mean = MeanReward(record.trajectories);
    record.finished_at = SecondsSince1970();
    for (const auto& [name, value] : metrics) record.metrics.push_back({name, value});

    const Stopwatch recording;
    double checkpointing = 0;
    // The database comes first: no checkpoint may be of a step that is not in the database. Files made from the record
    // come before the checkpoint too, so that a resumed run need not check for missing ones.
    database_.WriteStep(record, judged);
    for (const BestKernel& kernel : judged.best) WriteBestKernel(folder_.kernels(), kernel);
    done_ = step;
    stage_->StepRecorded();
    observers_.Step(shared);
    if (options_.recorded) options_.recorded(record);
    if (CheckpointDue(step)) {
      const Stopwatch all;
      const Metric time = {"time/checkpoint", WriteCheckpoint()};
      metrics.emplace(time.name, time.value);
      database_.AddMetric(step, time);
      checkpointing = all.seconds();
    }
    if (options_.console != nullptr) {
      ShowStep(*options_.console, record, metrics, total_, stage_->last_step(), problems_[0].baseline.modelled);
    }
    record_seconds_ = recording.seconds() - checkpointing;
    observers_.ThrowFailure();
    if (done_ < total_) stage_->CheckAnswers(record);
  }

  // Writes the checkpoint of the step `done_`, and returns the seconds that it took. Drains the observers first: a
  // resumed run does not report steps up to its checkpoint again.
  double WriteCheckpoint() {
    RequireUsable();
    observers_.Drain();
    Pass(options_.faults, "observers: told");
    const Stopwatch writing;
    models_.WriteCheckpoint(*stage_, done_, database_);
    const double seconds = writing.seconds();
    observers_.Checkpoint(done_, models_.PathOf(done_), seconds);
    return seconds;
  }

  // Throws KGRPO_ERROR_NOT_FINITE if the policy has diverged: such weights replace no others. A policy to which this
  // text means nothing is not looked at.
  void RequireUsable() {
    const std::vector<int32_t> text = parts_.policy->Encode("kernel");
    if (text.empty()) return;
    const kgrpo_sequence sequence = {text.data(), text.size(), text.data(), text.size()};
    try {
      parts_.policy->LogProbabilities(std::span(&sequence, 1));
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_INVALID) return;
      if (error.code() != KGRPO_ERROR_NOT_FINITE) throw;
      throw Error(error.code(), "the weights after step " + std::to_string(done_) + " have diverged: " + error.what());
    }
  }

  // Judges the kernels of the last steps, whose judging was stopped.
  void ConfirmLastKernels() {
    if (database_.LastJudging(done_) == done_) return;
    if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    best_->Start();
    const JudgedKernels judged = best_->Finish();
    database_.WriteJudged(done_, judged);
    for (const BestKernel& kernel : judged.best) WriteBestKernel(folder_.kernels(), kernel);
    if (!judged.failed.empty())
      throw Error(KGRPO_ERROR_UNAVAILABLE, "the evaluator failed for the fastest kernels: " + judged.failed);
    if (!judged.complete) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  }

  bool CheckpointDue(uint64_t step) const {
    const uint64_t every = config_.checkpoint.every;
    return (every > 0 && step % every == 0) || step == total_;
  }

  // The step's answers, also those that an earlier process or the step before asked for, and what was lost since.
  void AddSpending(const StepRecord& record, MetricMap& metrics) {
    for (const auto* all : {&record.trajectories, &record.heldout, &record.greedy})
      spending_.cost = SumOfDollars(spending_.cost, CoderCost(*all));
    if (const std::optional<CoderSpending> account = parts_.coder->Spending()) {
      const double lost = account->lost_cost - std::exchange(lost_before_, account->lost_cost);
      spending_.cost = SumOfDollars(spending_.cost, lost);
      spending_.lost_cost = SumOfDollars(spending_.lost_cost, lost);
    }
    // The account knows calls of a killed process, too. It has answers that count later while a step is begun ahead or
    // a stop has cut the measurements short.
    const bool ahead = config_.loop.max_staleness > 0 && stage_ != nullptr && record.step < stage_->last_step();
    if (!ahead && !parts_.cancelled()) TakeSpending(*parts_.coder, &spending_);
    metrics[kCostMetric] = spending_.cost;
    metrics[kLostCostMetric] = spending_.lost_cost;
  }

  // Answers of steps that were begun are kept, and their cost counts.
  void AbandonStage() {
    if (stage_ != nullptr) stage_->Abandon();
    stage_.reset();
    spending_.cost = SumOfDollars(spending_.cost, UnfinishedCost(database_));
    TakeSpending(*parts_.coder, &spending_);
    KeepCost(database_, &spending_);
  }

  // Makes the step `done_` the run's last.
  void EndEarly(const std::string& why) {
    const std::string step = "after step " + std::to_string(done_);
    Note("stopped early " + step + ": " + why + ". To train on: resume with --set evaluation.patience=0");
    const std::optional<CheckpointState> last = models_.Last();
    if (!last || last->step < done_) WriteCheckpoint();
    AbandonStage();
    database_.Set(kEndedEarly, step + " of " + std::to_string(total_) + ": " + why);
    total_ = done_;
  }

  // Plays the held-out episodes of the step `done_` where a stop kept them from it.
  void PlayMissingMeasurements() {
    if (!measurements_.IsLeft(done_)) return;
    if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    at_ = done_;
    NoteStepUnderWay(done_);
    spending_ = ReadSpending(database_, done_);
    StepRecord record;
    record.step = done_;
    record.stage_name = config_.stages.front().trainer.plugin;
    MetricMap metrics;
    measurements_.Play(done_, record, metrics);
    if (metrics.empty()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    AddSpending(record, metrics);
    for (const auto& [name, value] : metrics) record.metrics.push_back({name, value});
    database_.AddHeldout(record);
    observers_.Step(std::make_shared<StepRecord>(record));
    if (options_.console != nullptr) ShowHeldout(*options_.console, done_, metrics);
  }

  // Writes a checkpoint of the last whole step, if that is possible. Describes the checkpoint that the run, which ends
  // with `error`, can be resumed from.
  std::string KeepCheckpoint(const Error& error) {
    const std::optional<CheckpointState> last = models_.Last();
    std::string failed;
    if (stage_ != nullptr && !stage_->policy_in_doubt() && done_ > 0 && (!last || last->step < done_)) {
      try {
        WriteCheckpoint();
        return "a checkpoint of step " + std::to_string(done_) + " was written";
      } catch (const Error& failure) {
        failed = "no checkpoint of step " + std::to_string(done_) + " could be written";
        if (failure.what() != std::string(error.what())) failed += std::string(" (") + failure.what() + ")";
        failed += "; ";
      }
    }
    if (last) return failed + "the last checkpoint is of step " + std::to_string(last->step);
    return failed + kNoCheckpoint;
  }

  // Ends a run early, with a checkpoint of the last whole step where that is possible.
  RunOutcome Stopped(const Error& error) {
    if (cannot_go_on_) throw error;
    const bool cancelled = error.code() == KGRPO_ERROR_CANCELLED;
    std::string kept = KeepCheckpoint(error);
    AbandonStage();
    const bool again = kept.ends_with(kNoCheckpoint);
    // The message of a coder's own limit includes the cost.
    if (error.code() != KGRPO_ERROR_BUDGET) kept += CostSoFarText(spending_);
    // An invalid input needs a corrected file; without a checkpoint, starting again loses nothing.
    if (again && error.code() == KGRPO_ERROR_INVALID) {
      kept += "; correct this and start the run again";
    } else {
      const char* then = again ? "to start again" : "to continue";
      if (error.code() == KGRPO_ERROR_UNAVAILABLE) then = "fix the cause, then";
      kept += std::string("; ") + then + ": " + models_.Resume();
      // The same settings would end the same way.
      if (error.code() == KGRPO_ERROR_NOT_FINITE) kept += " --set KEY=VALUE, where KEY is one of " + TrainerKeys();
    }
    if (options_.console != nullptr) options_.console->Finish();
    if (!cancelled && error.code() != KGRPO_ERROR_NOT_FINITE && error.code() != KGRPO_ERROR_BUDGET) {
      throw Error(error.code(), "step " + std::to_string(at_) + ": " + error.what() + " (" + kept + ")");
    }
    RunOutcome outcome;
    outcome.status = cancelled ? RunOutcome::Status::kInterrupted : RunOutcome::Status::kStopped;
    outcome.steps = done_;
    outcome.diverged = error.code() == KGRPO_ERROR_NOT_FINITE;
    outcome.message = (cancelled ? StopWords() : std::string(error.what())) + "; " + kept;
    return outcome;
  }

  // The options of the trainer that a resumed run may change.
  std::string TrainerKeys() const {
    std::string keys;
    for (const std::string& key : config_.may_change) {
      if (key.starts_with("trainer")) keys += (keys.empty() ? "" : ", ") + key;
    }
    return keys;
  }

  void Finish() {
    Note(FinalText(config_, models_.WriteFinal(done_, database_)));
    database_.SetFinished(SecondsSince1970());
    if (options_.console == nullptr) return;
    options_.console->Finish();
    ShowSummary(*options_.console, database_, problems_, folder_);
  }

  bool CancelledNow() const { return done_ < total_ && parts_.cancelled(); }

  void Note(const std::string& text) {
    if (options_.console != nullptr && !text.empty()) options_.console->Note(text);
  }

  const PipelineConfig& config_;
  PipelineParts& parts_;
  const RunFolder& folder_;
  const RunOptions& options_;
  RunDatabase database_;
  SavedModels models_;
  RunProblems& opened_;
  const ProblemSet& problems_;  // problems of training
  Rollout rollout_;
  Measurements measurements_;
  Observers observers_;
  std::optional<BestKernels> best_;
  std::optional<CheckpointState> checkpoint_;  // the one that the run resumes from
  std::unique_ptr<Stage> stage_;
  std::optional<double> begin_seconds_;   // seconds to begin the stage, until a step's metrics have them
  std::optional<double> record_seconds_;  // seconds to record the last step, until a step's metrics have them
  uint64_t total_ = 0;
  uint64_t at_ = 1;            // the step that is being done
  bool cannot_go_on_ = false;  // a checkpoint's files could not be read
  uint64_t done_ = 0;          // steps in the database and in the policy
  CoderSpending spending_;     // costs of the run so far
  double lost_before_ = 0;     // the lost cost of the coder's own account, as last read
};

}  // namespace

RunOutcome Run(const PipelineConfig& config, PipelineParts& parts, RunProblems& problems, const RunFolder& folder,
               const RunOptions& options) {
  return Runner(config, parts, problems, folder, options).Run();
}

}  // namespace kgrpo
