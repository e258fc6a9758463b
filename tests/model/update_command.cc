// `kgrpo-model update FILE --rollouts F.jsonl --out DIR`: updates a pipeline's policy by its trainer from recorded
// samples, once for each step. For comparing the algorithm with another implementation, and for training on samples
// collected elsewhere.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kgrpo/support/evaluation_json.h>
#include "base/files.h"
#include "cli/session.h"
#include "common/arguments.h"
#include "loop/checkpoint.h"
#include "loop/stage.h"
#include "model/command.h"
#include "model/recorded_samples.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct UpdateOptions {
  std::string file, rollouts, out;
  std::vector<std::string> settings;
  size_t stage = 0;
  bool stage_given = false;
};

// The samples as a trainer takes them; they point into `samples`.
std::vector<kgrpo_sample> ToC(std::span<const RecordedSample> samples) {
  std::map<uint64_t, uint32_t> rounds;  // of each trajectory: without the column, those that are there
  for (const RecordedSample& sample : samples) {
    uint32_t& count = rounds[sample.trajectory];
    count = sample.rounds > 0 ? sample.rounds : std::max(count, sample.round + 1);
  }
  std::map<std::string, uint32_t> numbers;  // of each problem, as first met
  std::vector<kgrpo_sample> c;
  for (const RecordedSample& sample : samples) {
    kgrpo_sample one{};
    one.struct_size = sizeof(one);
    one.prompt_ids = sample.prompt.data();
    one.prompt_size = sample.prompt.size();
    one.completion_ids = sample.completion.data();
    one.completion_size = sample.completion.size();
    one.logprobs = sample.logprobs.empty() ? nullptr : sample.logprobs.data();
    one.reward = sample.reward;
    one.idle_reward = sample.idle_reward;
    one.trajectory = sample.trajectory;
    one.round = sample.round;
    one.rounds = rounds[sample.trajectory];
    one.problem = numbers.emplace(sample.problem, static_cast<uint32_t>(numbers.size())).first->second;
    one.truncated = sample.truncated;
    c.push_back(one);
  }
  return c;
}

// Returns the stage to use: --stage, else the only one that learns from rollouts.
size_t ChooseStage(const UpdateOptions& options, const PipelineConfig& config, const PipelineParts& parts) {
  if (options.stage_given) {
    if (options.stage >= config.stages.size()) {
      throw Error(KGRPO_ERROR_INVALID, "--stage " + std::to_string(options.stage) + ": the pipeline has stages 0 to " +
                                           std::to_string(config.stages.size() - 1));
    }
    return options.stage;
  }
  std::vector<size_t> candidates;
  for (size_t i = 0; i < parts.trainers.size(); ++i) {
    if (parts.trainers[i]->source() == KGRPO_TRAINER_ROLLOUTS) candidates.push_back(i);
  }
  if (candidates.size() == 1) return candidates[0];
  throw Error(KGRPO_ERROR_INVALID, std::to_string(candidates.size()) +
                                       " of the pipeline's stages learn from rollouts: choose one with --stage");
}

// A trainer's error about a sample names the sample's line.
Trainer::Update Train(Trainer& trainer, const std::string& file, std::span<const RecordedSample> samples) {
  try {
    return trainer.Train(ToC(samples));
  } catch (const Error& error) {
    throw Error(error.code(), WithLine(file, samples, error.what()));
  }
}

// False if every advantage was 0, or every optimiser step was skipped. As in a run, an advantage that the trainer does
// not tell counts as one.
bool Learned(const Trainer::Update& update) {
  const auto weighs = [](const auto& sample) { return !sample || std::abs(sample->advantage) > 1e-9; };
  const auto taken = [](const std::vector<Metric>& row) {
    const auto skipped = std::ranges::find(row, "skipped", &Metric::name);
    return skipped == row.end() || skipped->value == 0;
  };
  const auto& rows = update.optimizer_steps;
  return std::ranges::any_of(update.samples, weighs) && (rows.empty() || std::ranges::any_of(rows, taken));
}

int Update(const Globals& globals, const UpdateOptions& options) {
  RequireEmpty("--out", options.out);
  Session session(globals);
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.roles = {Role::kPolicy, Role::kTrainer};
  request.ignore_problems = true;
  const PipelineConfig config = session.Load(request);
  const std::vector<RecordedSample> samples = ReadRecordedSamples(options.rollouts);

  session.StartServices(config.seed);
  PipelineParts parts = session.MakeParts(config, request.roles);
  const size_t stage = ChooseStage(options, config, parts);
  Trainer& trainer = *parts.trainers[stage];
  RequireFit(options.rollouts, samples, parts.policy->info());
  if (trainer.needs_reference()) parts.policy->FreezeReference();
  kgrpo_trainer_plan plan = PlanOf(config, parts, stage);
  plan.trajectories = plan.trajectories_per_problem = plan.problems = plan.rounds =
      0;  // the file's, not the pipeline's
  trainer.Begin(*parts.policy, plan);
  Json metrics = {{"samples", samples.size()}, {"updates", 0}, {"steps", Json::array()}};
  size_t updates = 0, learned = 0;
  for (auto begin = samples.begin(); begin != samples.end(); ++updates) {
    const auto end = std::find_if(begin, samples.end(), [&](const RecordedSample& s) { return s.step != begin->step; });
    const Trainer::Update update = Train(trainer, options.rollouts, {begin, end});
    for (const std::vector<Metric>& row : update.optimizer_steps) metrics["steps"].push_back(MetricsJson(row));
    learned += Learned(update) ? 1 : 0;
    metrics["update"] = MetricsJson(update.metrics);
    for (const auto& [name, value] : parts.take_metrics()) metrics["update"][name] = value;
    begin = end;
  }
  metrics["updates"] = updates;

  MakeDirectories(options.out);
  SaveModel(*parts.policy, options.out, &config.loop.sampling);
  WriteFileAtomically(std::filesystem::path(options.out) / "metrics.json", metrics.dump(2) + "\n");
  std::fprintf(stderr, "%zu samples, %zu updates, %zu optimiser steps; the model and metrics.json are in %s\n",
               samples.size(), updates, metrics["steps"].size(), options.out.c_str());
  if (learned > 0) return kFine;
  std::fprintf(stderr,
               "nothing was learned: in every update all advantages are 0, or all optimiser steps were skipped\n");
  return kFailed;
}

}  // namespace

void AddUpdateCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<UpdateOptions>();
  CLI::App* command = app.add_subcommand("update", "Replay recorded samples through a pipeline's policy and trainer");
  command->add_option("FILE", options->file, "The pipeline file; only its policy and trainer are used")->required();
  command->add_option("--rollouts", options->rollouts, "Samples, JSON lines; - is standard input")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("-o,--output,--out", options->out, "Where the updated model goes, with metrics.json; empty or new")
      ->required()
      ->type_name("DIR");
  CLI::Option* stage = command->add_option("--stage", options->stage, "Which of several trainers, counted from 0");
  AddSetOption(command, &options->settings, "Changes one key of the file");
  command->footer(
      "Reads {\"prompt_ids\", \"completion_ids\", \"logprobs\", \"reward\", \"trajectory\", \"round\", \"problem\"} a "
      "line, in order; makes an update for each \"step\".\n"
      "Examples:\n  kgrpo-model update configs/quickstart.yaml --rollouts rollouts.jsonl --out updated\n"
      "  kgrpo-host export runs/quickstart | kgrpo-model update configs/quickstart.yaml --rollouts - --out again");
  command->callback([=, &globals] {
    options->stage_given = stage->count() > 0;
    *action = [=, &globals] { return Update(globals, *options); };
  });
}

}  // namespace kgrpo::cli
