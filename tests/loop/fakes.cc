#include "fakes.h"

#include "base/files.h"
#include "fake_table.h"
#include "store/database.h"

#include <chrono>
#include <sstream>
#include <thread>

namespace kgrpo::fakes {

const std::vector<std::string> kTechniques = {"tile", "vectorise", "unroll", "fuse", "pad", "overflow"};

Knobs& knobs() {
  static Knobs knobs;
  return knobs;
}

void Reset() {
  Knobs& k = knobs();
  k.delay_seed = 0;
  k.delay_microseconds = 2000;
  k.coder_fails_every = k.coder_reuses_every = 0;
  k.coder_cost = k.coder_spent = k.coder_lost = k.coder_paid = 0;
  k.coder_accounts = false;
  k.coder_error = k.coder_doubts = k.coder_counts = k.thorough_refutes = k.forgets_state = k.cancelled =
      k.cancel_in_thorough = false;
  k.policy_fails = false;
  k.policy_suggests = k.reward_fails_after = -1;
  k.reward_scale = 1;
  k.first_answer_after = k.calls_at_first_answer = 0;
  k.not_finite_at = k.diverges_at = k.cancel_after_updates = k.cancel_after_calls = k.coder_calls = k.evaluations =
      k.thorough = k.updates = 0;
  k.evaluator_fails_every = k.reward_fails_every = 0;
  k.evaluator_fails_for = "";
  k.thorough_fails = 0;
  k.policy_has_no_end = false;
  k.reward_gives = 0;
  k.fault_code = KGRPO_ERROR_UNAVAILABLE;
  k.budget_after_evaluations = 0;
  k.written.clear();
}

uint64_t Mix(uint64_t value) {
  value ^= value >> 31;
  value *= 0x7fb5d329728ea185ull;
  value ^= value >> 27;
  value *= 0x81dadef4bc2dd44dull;
  return value ^ (value >> 33);
}

uint64_t Hash(std::string_view text, uint64_t seed) {
  uint64_t hash = Mix(seed + 0x9e3779b97f4a7c15ull);
  for (const char c : text) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

double Unit(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

void Delay(std::string_view what) {
  const uint64_t seed = knobs().delay_seed;
  if (seed == 0) return;
  const auto limit = static_cast<double>(knobs().delay_microseconds);
  std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int64_t>(Unit(Hash(what, seed)) * limit)));
}

// The prompt's bytes; what the policy looks at of them is the first word.
size_t ContextOf(const int32_t* ids, size_t count) {
  std::string word;
  for (size_t i = 0; i < count && ids[i] != ' '; ++i) word += static_cast<char>(ids[i]);
  return Hash(word) % kContexts;
}

namespace {

// A host that offers little: the fakes ask for nothing.
const kgrpo_host kHost = {};

}  // namespace

PipelineConfig Config(const std::filesystem::path& output, uint64_t demonstration_steps, uint64_t steps) {
  PipelineConfig config;
  config.name = "fake";
  config.seed = 7;
  config.policy.plugin = "fake_policy";
  config.train_problems = {"map_a", "map_b", "reduce_a", "reduce_b", "matmul_a"};
  config.heldout_problems = {"map_c", "reduce_c", "matmul_c"};
  config.loop.batch_size = 8;
  config.loop.trajectories_per_problem = 2;
  config.loop.rounds = 3;
  config.loop.generation_batch = 3;
  config.loop.workers = 3;
  config.prompt.system = "You improve kernels.";
  config.prompt.user = "{{problem.family}} {{applied_joined}}";
  config.checkpoint.every = 3;
  config.evaluation.every = 4;
  config.evaluation.episodes = 2;
  if (demonstration_steps > 0) {
    StageConfig warm;
    warm.trainer.plugin = "fake_imitation";
    warm.trainer.options = {{"source", KGRPO_TRAINER_DEMONSTRATIONS}};
    warm.steps = demonstration_steps;
    warm.suggestions = SuggestionSource::kUniform;
    warm.episodes = 6;
    warm.demonstrations_per_step = 5;
    config.stages.push_back(warm);
  }
  StageConfig climb;
  climb.trainer.plugin = "fake_climber";
  climb.trainer.options = {{"source", KGRPO_TRAINER_ROLLOUTS}};
  climb.steps = steps;
  config.stages.push_back(climb);
  config.output_dir = output;
  config.resolved_yaml = "name: fake\n";
  return config;
}

PipelineParts Parts(const PipelineConfig& config) {
  PipelineParts parts;
  const nlohmann::json none = nlohmann::json::object();
  parts.policy = std::make_unique<Policy>(&kPolicy, &kHost, none);
  parts.coder = std::make_unique<Coder>(&kCoder, &kHost, none);
  parts.evaluator = std::make_unique<Evaluator>(&kEvaluator, &kHost, none);
  parts.reward = std::make_unique<Reward>(&kReward, &kHost, none);
  for (const StageConfig& stage : config.stages) {
    parts.trainers.push_back(std::make_unique<Trainer>(&kTrainer, &kHost, stage.trainer.options));
  }
  parts.identities = {{"policy", "fake_policy", "1.0", "", ""}, {"evaluator", "fake_evaluator", "1.0", "", ""}};
  parts.cancelled = [] { return knobs().cancelled.load(); };
  parts.take_metrics = [] { return std::map<std::string, double>{{"fake/metric", 2.5}}; };
  return parts;
}

std::filesystem::path Folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(KGRPO_BINARY_DIR) / "test_runs" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder.parent_path());
  return folder;
}

RunOutcome RunIn(const PipelineConfig& config, bool resume, FaultPoints faults, Console* console) {
  PipelineParts parts = Parts(config);
  const RunFolder folder =
      resume ? RunFolder::Open(config.output_dir) : RunFolder::Create(config.output_dir, config.resolved_yaml, false);
  RunOptions options;
  options.resume = resume;
  options.faults = std::move(faults);
  options.console = console;
  RunProblems problems(config, parts);
  return Run(config, parts, problems, folder, options);
}

std::string Samples(const std::filesystem::path& output) {
  Database database(output / "run.sqlite");
  std::ostringstream text;
  Statement select(
      database,
      "SELECT purpose, step, trajectory, round, prompt, suggestion, hex(prompt_ids), hex(completion_ids), "
      "hex(logprobs), truncated, code_a, code_b, code_c, coder_outcome, unchanged, applied, speedup, reward, "
      "idle_reward, reward_parts, evaluation_seed, verdict, seconds, diagnosis, return, advantage FROM rounds "
      "ORDER BY purpose, step, trajectory, round");
  while (select.Step()) {
    for (int column = 0; column < 26; ++column) text << select.Text(column) << '|';
    text << '\n';
  }
  Statement best(database, "SELECT step, problem, trajectory, round, source, speedup FROM best_kernels ORDER BY 1, 2");
  while (best.Step()) {
    for (int column = 0; column < 6; ++column) text << best.Text(column) << '|';
    text << '\n';
  }
  return text.str();
}

std::string FinalWeights(const std::filesystem::path& output) { return ReadFile(output / "final" / "table.bin"); }

}  // namespace kgrpo::fakes
