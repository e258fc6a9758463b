#include "loop/stage.h"

#include "base/files.h"
#include "loop/coder_cost.h"
#include "loop/draws.h"
#include "loop/ranks.h"
#include "loop/recorded_rounds.h"
#include "loop/samples.h"
#include "loop/trajectory.h"
#include "loop/wire.h"
#include "plugin/parts.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace kgrpo {
namespace {

constexpr const char* kTrainerState = "trainer.state";
constexpr const char* kBegunAhead = "begun_ahead.cbor";  // with loop.max_staleness
constexpr size_t kUselessSteps = 3;  // steps in a row in which all answers of a part failed, after which a run ends

bool ImitatesItself(const StageConfig& stage) {
  return std::ranges::find(stage.demonstrations.from, kOwnRun) != stage.demonstrations.from.end();
}

// Runs `work`, and adds the file's name to its errors.
template <typename Work>
void NamingFile(const std::filesystem::path& file, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(error.code(), file.string() + ": " + error.what());
  }
}

double MeanStaleness(const std::vector<TrajectoryRecord>& trajectories) {
  double rounds = 0, sum = 0;
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) ++rounds, sum += round.staleness;
  }
  return rounds == 0 ? 0 : sum / rounds;
}

}  // namespace

Stage::Stage(const PipelineConfig& config, PipelineParts& parts, Rollout& rollout, const ProblemSet& problems,
             RunDatabase& database, size_t index, uint64_t first_step, Console* console)
    : config_(config),
      parts_(parts),
      rollout_(rollout),
      problems_(problems),
      database_(database),
      index_(index),
      first_step_(first_step),
      console_(console),
      trainer_(*parts.trainers.at(index)),
      source_(trainer_.source()) {
  for (size_t i = 0; i < index; ++i) {
    if (parts.trainers[i]->source() == KGRPO_TRAINER_ROLLOUTS) rollouts_before_ += config.stages[i].steps;
  }
}

void Stage::Note(const std::string& text) const {
  if (console_ != nullptr) console_->Note(text);
}

void Stage::Begin() {
  const bool freeze = trainer_.needs_reference();
  InStepOnAllRanks(
      parts_.ranks, [&] { return BeginOrder(index_, freeze); },
      [&] {
        if (freeze) parts_.policy->FreezeReference();
        BeginTrainer(config_, parts_, index_);
      });
  if (source_ == KGRPO_TRAINER_DEMONSTRATIONS) GetDemonstrations(/*begins=*/true);
}

kgrpo_trainer_plan PlanOf(const PipelineConfig& config, const PipelineParts& parts, size_t stage) {
  kgrpo_trainer_plan plan{};
  plan.struct_size = sizeof(plan);
  plan.steps = config.stages.at(stage).steps;
  plan.temperature = config.loop.sampling.temperature;
  const SamplingConfig& sampling = config.loop.sampling;
  plan.max_completion_size = sampling.max_new_tokens;
  plan.cuts_support = sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0 ? 1 : 0;
  if (parts.trainers.at(stage)->source() != KGRPO_TRAINER_ROLLOUTS) return plan;
  plan.trajectories = config.loop.batch_size;
  plan.trajectories_per_problem = config.loop.trajectories_per_problem;
  plan.problems = config.skip_unusable ? 0 : config.train_problems.size();
  plan.rounds = config.loop.rounds;
  plan.max_staleness = config.loop.max_staleness;
  return plan;
}

void BeginTrainer(const PipelineConfig& config, PipelineParts& parts, size_t stage) {
  parts.trainers.at(stage)->Begin(*parts.policy, PlanOf(config, parts, stage));
}

void RestoreTrainer(Trainer& trainer, const std::filesystem::path& state) {
  std::ifstream stream(state, std::ios::binary);
  if (!stream) {
    throw Error(KGRPO_ERROR_NOT_FOUND,
                "checkpoint " + state.parent_path().string() + " lacks " + state.filename().string());
  }
  NamingFile(state, [&] { trainer.LoadState(stream); });
}

void Stage::Restore(const std::filesystem::path& checkpoint) {
  InStepOnAllRanks(
      parts_.ranks, [&] { return RestoreOrder(index_, checkpoint / kTrainerState); },
      [&] {
        BeginTrainer(config_, parts_, index_);
        RestoreTrainer(trainer_, checkpoint / kTrainerState);
      });
  if (source_ == KGRPO_TRAINER_DEMONSTRATIONS) GetDemonstrations(/*begins=*/false);
  const std::filesystem::path begun = checkpoint / kBegunAhead;
  if (std::filesystem::exists(begun)) restored_ = TrajectoriesFromJson(FromBytes(ReadFile(begun)));
}

void Stage::Save(const std::filesystem::path& checkpoint) {
  std::ofstream state(checkpoint / kTrainerState, std::ios::binary);
  NamingFile(checkpoint / kTrainerState, [&] {
    // Ranks wait for each other while they save, so this rank must finish the save even if writing the file fails.
    const bool keep_going = parts_.ranks != nullptr;
    InStepOnAllRanks(
        parts_.ranks, [&] { return SaveOrder(index_); }, [&] { trainer_.SaveState(state, keep_going); });
    state.close();
    if (!state) throw Error(KGRPO_ERROR_UNAVAILABLE, std::strerror(errno));
  });
  // The rounds begun ahead belong to the first step that is not recorded.
  if (begun_.empty() || begun_.front()->cohort == nullptr) return;
  const std::vector<TrajectoryRecord> begun = Rollout::BegunAhead(*begun_.front()->cohort);
  if (!begun.empty()) WriteFileAtomically(checkpoint / kBegunAhead, ToBytes(TrajectoriesToJson(begun)));
}

Suggester Stage::MakeSuggester() const {
  Suggester suggester;
  if (config_.stages[index_].suggestions == SuggestionSource::kUniform) suggester.kind = Suggester::Kind::kUniform;
  return suggester;
}

// `begins`: before the stage's first step, where recorded demonstrations may be of steps that were repeated since.
void Stage::GetDemonstrations(bool begins) {
  const bool imitates_runs = !config_.stages[index_].demonstrations.from.empty();
  std::vector<TrajectoryRecord> trajectories = database_.ReadStep(Purpose::kDemonstration, first_step_);
  if (trajectories.empty() || (begins && ImitatesItself(config_.stages[index_]))) {
    if (imitates_runs) {
      ImitatedRounds imitated = ReadImitatedRounds(config_, index_, first_step_, problems_, parts_);
      Note("imitating suggestions at " + std::to_string(imitated.states) + " of " + std::to_string(imitated.recorded) +
           " recorded states" + imitated.left_out);
      trajectories = std::move(imitated.trajectories);
    } else {
      trajectories = CollectDemonstrations();
    }
    database_.WriteDemonstrations(first_step_, trajectories);
  }
  demonstrations_.emplace(std::move(trajectories),
                          imitates_runs ? std::vector<std::string>() : parts_.coder->Suggestions(), *parts_.policy);
}

std::vector<TrajectoryRecord> Stage::CollectDemonstrations() {
  const uint64_t episodes = config_.stages[index_].episodes;
  RolloutRequest request;
  request.purpose = Purpose::kDemonstration;
  request.step = first_step_;
  request.suggester = MakeSuggester();
  request.encode = true;
  request.assignments = DrawAssignments(config_.seed, Purpose::kDemonstration, first_step_, 0, episodes, 1,
                                        problems_.families(), config_.controls.shuffle_prompts);
  KeepUnfinished(database_, &request);
  Note("collecting " + std::to_string(episodes) + (episodes == 1 ? " trajectory" : " trajectories") + " to learn from");
  if (console_ != nullptr)
    request.progress = [this](size_t done, size_t total) { console_->Progress("trajectories", done, total); };
  std::vector<TrajectoryRecord> trajectories = rollout_.Collect(request).trajectories;
  // Checked before they are recorded, so that a resumed run asks again. If no round is left, there is nothing to
  // imitate.
  const bool none = std::ranges::none_of(trajectories, [](const TrajectoryRecord& trajectory) {
    return std::ranges::any_of(trajectory.rounds_done,
                               [](const RoundRecord& round) { return !CoderFailed(round.answer); });
  });
  const std::string useless = faults_.Add(trajectories, none ? 1 : kUselessSteps);
  if (!useless.empty()) Note(useless);
  return trajectories;
}

void Stage::Step(uint64_t step, StepRecord& record, MetricMap& metrics,
                 const std::function<void(const StepRecord&)>& before_training) {
  switch (source_) {
    case KGRPO_TRAINER_OWN_DATA: return Train({}, record, metrics);
    case KGRPO_TRAINER_DEMONSTRATIONS:
      return Train(demonstrations_->Draw(config_.seed, first_step_, step - first_step_,
                                         config_.stages[index_].demonstrations_per_step),
                   record, metrics);
    case KGRPO_TRAINER_ROLLOUTS: break;
  }
  if (begun_.empty()) Prepare(step, /*staleness=*/0);
  RolloutRequest& request = begun_.front()->request;
  ShowUnderWay(console_, "step " + std::to_string(step), &request);
  RolloutResult rollout =
      config_.loop.max_staleness == 0 ? rollout_.Collect(request) : FinishBesideNext(step, *begun_.front());
  record.trajectories = std::move(rollout.trajectories);
  record.has_rollouts = true;
  metrics = RolloutMetrics(record.trajectories);
  if (config_.loop.max_staleness > 0) metrics["policy/staleness"] = MeanStaleness(record.trajectories);
  metrics["time/rollout"] = rollout.seconds;
  metrics["time/generate"] = rollout.generate_seconds;
  metrics["time/device_wait"] = rollout.wait_seconds;
  if (request.recorded.empty() && rollout.generate_seconds > 0) {  // else a part of the tokens was read, not generated
    size_t tokens = 0;
    ForEachSample(record.trajectories,
                  [&](const TrajectoryRecord&, const RoundRecord& round) { tokens += round.completion_ids.size(); });
    metrics["policy/tokens_per_second"] = static_cast<double>(tokens) / rollout.generate_seconds;
  }
  before_training(record);
  if (console_ != nullptr) console_->UnderWay("step " + std::to_string(step) + "  training");
  std::vector<kgrpo_sample> samples = MakeSamples(record.trajectories);
  if (config_.controls.shuffle_rewards) ShuffleRewards(samples, config_.seed, step);
  if (samples.empty()) {
    metrics["train/skipped"] = 1;  // every trajectory was dropped in its first round: there is nothing to learn from
    return;
  }
  try {
    Train(std::move(samples), record, metrics);
  } catch (...) {
    request.unfinished(record.trajectories);
    throw;
  }
}

// Makes the request of a step, which is kept until the step is recorded.
Stage::Begun& Stage::Prepare(uint64_t step, uint32_t staleness) {
  RolloutRequest request;
  request.purpose = Purpose::kTrain;
  request.step = step;
  request.suggester = MakeSuggester();
  request.encode = true;
  request.staleness = staleness;
  request.begun = std::exchange(restored_, {});
  request.recorded = request.begun;
  std::ranges::move(database_.ReadStep(Purpose::kTrain, step), std::back_inserter(request.recorded));
  KeepUnfinished(database_, &request);
  request.assignments =
      DrawAssignments(config_.seed, Purpose::kTrain, 0, rollouts_before_ + step - first_step_, config_.loop.batch_size,
                      config_.loop.trajectories_per_problem, problems_.families(), config_.controls.shuffle_prompts);
  return *begun_.emplace_back(new Begun{std::move(request), nullptr});
}

// Plays a step to its end, and begins the next one ahead.
RolloutResult Stage::FinishBesideNext(uint64_t step, Begun& begun) {
  if (begun.cohort == nullptr) begun.cohort = rollout_.Begin(begun.request);
  if (step == last_step()) return rollout_.Finish(*begun.cohort);
  Begun& next = Prepare(step + 1, /*staleness=*/1);
  next.cohort = rollout_.Begin(next.request, begun.cohort.get());
  return rollout_.Finish(*begun.cohort, next.cohort.get());
}

void Stage::Abandon() {
  for (const auto& begun : begun_) {
    if (begun->cohort != nullptr) Rollout::Abandon(*begun->cohort);
  }
}

void Stage::StepRecorded() {
  policy_in_doubt_ = false;
  if (!begun_.empty()) begun_.pop_front();
}

void Stage::CheckAnswers(const StepRecord& record) {
  const std::string step = "step " + std::to_string(record.step);
  const std::string useless = faults_.Add(record.trajectories, kUselessSteps);
  if (!useless.empty()) Note(step + ": " + useless);
  try {
    const std::string heldout = heldout_faults_.Add(record.heldout, kUselessSteps);
    if (!heldout.empty()) Note("held-out problems after " + step + ": " + heldout);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("held-out problems: ") + error.what());
  }
}

void Stage::Train(std::vector<kgrpo_sample> samples, StepRecord& record, MetricMap& metrics) {
  const CallTime time(parts_);
  policy_in_doubt_ = true;
  Trainer::Update update;
  try {
    InStepOnAllRanks(
        parts_.ranks, [&] { return TrainOrder(index_, samples); }, [&] { update = trainer_.Train(samples); });
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_NOT_FINITE) policy_in_doubt_ = false;
    throw;
  }
  for (const Metric& metric : update.metrics) metrics[metric.name] = metric.value;
  record.optimizer_steps = std::move(update.optimizer_steps);
  if (source_ == KGRPO_TRAINER_ROLLOUTS) {
    size_t sample = 0;
    ForEachSample(record.trajectories,
                  [&](const TrajectoryRecord&, RoundRecord& round) { round.outcome = update.samples.at(sample++); });
  }
  if (time.worked() > 0) {
    size_t tokens = 0;
    for (const kgrpo_sample& sample : samples) tokens += sample.prompt_size + sample.completion_size;
    metrics["train/tokens_per_second"] = static_cast<double>(tokens) / time.worked();
    // 6 operations a parameter and token: 2 forward, 4 backward (Kaplan et al., arXiv 2001.08361, section 2.1).
    metrics["train/tflops"] =
        6e-12 * static_cast<double>(parts_.policy->info().parameter_count) * metrics["train/tokens_per_second"];
  }
  metrics["time/train"] = time.worked() + time.waited();
  metrics["time/train_wait"] = time.waited();
}

}  // namespace kgrpo
