#include "config/pipeline_keys.h"

#include "base/default_plugins.h"
#include "config/emit.h"
#include "config/keys.h"

namespace kgrpo {
namespace {

constexpr const char* kDefaultUser =
    "Suggest the one change that would make this CUDA kernel fastest. Answer with the change alone, in one or two "
    "sentences, without code.\n\nTask: {{problem.task}}\n\nPrevious kernel:\n```cuda\n{{code_a}}\n```\n\nCurrent "
    "kernel:\n```cuda\n{{code_b}}\n```\n{{#last_suggestion}}\nThe last suggestion was: "
    "{{last_suggestion}}\n{{/last_suggestion}}{{#current.diagnosis}}\nWhat was found about the current kernel: "
    "{{current.diagnosis}}\n{{/current.diagnosis}}";

// Each row: the key, its member (whose value is the default), what it means, and its range. docs/pipeline.md shows the
// same sentence.

void Rows(Keys& keys, PluginChoice& part) {
  keys.Optional("plugin", part.plugin,
                "a name is searched in the plugin folders ([plugins.md](plugins.md#where-plugins-are-found)); a value "
                "that contains `/` or ends in `.so` is a path",
                {{"minLength", 1}});
  const Schema* options = keys.Own("options", {{"type", "object"}, {"default", Schema::object()}},
                                   "the plugin's options; `kgrpo-host plugins describe NAME` lists them");
  if (options != nullptr) part.options = *options;
}

void Rows(Keys& keys, StageConfig& stage) {
  Rows(keys, stage.trainer);
  keys.Optional("steps", stage.steps, "updates of this stage", Range(1, 10'000'000));
  keys.OneOf<SuggestionSource>(
      "suggestions", stage.suggestions,
      "the source of suggestions while trajectories are collected: the policy's own samples, or the coder's list, "
      "drawn uniformly from the suggestions not yet used in the trajectory",
      {{"policy", SuggestionSource::kPolicy}, {"uniform", SuggestionSource::kUniform}});
  keys.Add("episodes", stage.episodes, "with `uniform`: trajectories collected once, when the stage starts",
           Range(0, 1'000'000));
  keys.Add("demonstrations_per_step", stage.demonstrations_per_step,
           "how many of the demonstrated rounds each update gets", Range(1, 1'000'000));
  keys.Mapping("demonstrations",
               "for a trainer that imitates: rounds of other runs in place of collected ones "
               "([reuse.md](reuse.md#imitate-what-was-found))",
               [&](Keys& inner) {
                 inner.Add("from", stage.demonstrations.from,
                           "runs of any purpose: training, `eval policy`, `optimize`; `output_dir` is this run: what "
                           "its earlier stages recorded");
                 inner.Removed("select", "best_of_group",
                               "at each recorded kernel the suggestion that led to the fastest one is imitated; "
                               "imitating all that gained had a lower mean reward and slower kernels (docs/reuse.md)");
                 inner.Removed("min_gain", 1.05,
                               "suggestions are imitated that made their kernel at least 1.05 times as fast; with "
                               "other bounds from 0 to 1.2 no kernel was faster beyond noise (docs/reuse.md)");
               });
}

void Rows(Keys& keys, SamplingConfig& sampling) {
  keys.Add("max_new_tokens", sampling.max_new_tokens,
           "maximum tokens of a suggestion; fewer if prompt and completion would exceed the policy's context, which "
           "`check` and `run` report",
           Range(1, 1'048'576));
  keys.Add("temperature", sampling.temperature, "logits are divided by it", Above(0, 100));
  keys.Add("top_k", sampling.top_k, "only the k most likely tokens; 0: all", Range(0, 4'294'967'295));
  keys.Add("top_p", sampling.top_p, "only the most likely tokens that together reach this probability", Above(0, 1));
  keys.Add("min_p", sampling.min_p, "only tokens with at least this probability relative to the most likely one",
           Range(0, 1));
}

void Rows(Keys& keys, LoopConfig& loop) {
  keys.Add("max_steps", loop.max_steps,
           "updates of a stage that has no `steps`; `--set loop.max_steps` is refused if every stage has `steps`",
           Range(1, 10'000'000));
  keys.Add("batch_size", loop.batch_size, "trajectories collected for each update", Range(1, 1'000'000));
  keys.Add("rounds", loop.rounds, "refinement rounds of a trajectory", Range(1, 1000));
  keys.Add("trajectories_per_problem", loop.trajectories_per_problem,
           "trajectories that share a problem within a step; divides `batch_size`", Range(1, 1'000'000));
  keys.Add("max_staleness", loop.max_staleness,
           "1: a step's first rounds begin [before the policy has learned from the step "
           "before](loop.md#train-beside-a-slow-coder). One rank only",
           Range(0, 1));
  keys.Add("generation_batch", loop.generation_batch,
           "maximum number of suggestions generated at the same time; 0: all of a step. Results do not depend on it",
           Range(0, 1'000'000));
  keys.Add("workers", loop.workers, "threads that judge kernels; 0: one per core", Range(0, 4096));
  keys.Mapping("sampling", "how suggestions are sampled", [&](Keys& inner) { Rows(inner, loop.sampling); });
  keys.OneOf<CoderFailure>(
      "on_coder_failure", loop.on_coder_failure,
      "what to do if the coder fails (refused, cut off, no code, no answer): drop the trajectory, or let the reward "
      "score the failure ([loop.md](loop.md#when-a-part-fails)). A failure of evaluator or reward always ends the "
      "trajectory",
      {{"drop", CoderFailure::kDrop}, {"punish", CoderFailure::kPunish}});
  keys.OneOf<Advance>("advance", loop.advance,
                      "which kernels of the coder become the current kernel: all, so the next round can repair a "
                      "broken one, or only correct ones",
                      {{"always", Advance::kAlways}, {"correct", Advance::kCorrect}});
  keys.Removed("fresh_inputs", false,
               "all kernels of a problem are evaluated on the same secret inputs within a run, so that their times "
               "compare and repeats are cached; another `seed` draws others");
  keys.Add("hang_seconds", loop.hang_seconds,
           "with several ranks: maximum seconds a rank may spend in one call of a plugin while others wait for it; "
           "then the run ends ([scale.md](scale.md#when-something-dies)). 0: no limit",
           Range(0, 4'294'967'295));
  keys.Mapping("replay",
               "recorded answers in place of coder and evaluator, in training "
               "([reuse.md](reuse.md#train-without-coder-and-evaluator))",
               [&](Keys& inner) {
                 inner.Add("from", loop.replay.from, "runs whose rounds are replayed; none: off");
                 inner.OneOf<bool>("unrecorded", loop.replay.only,
                                   "a suggestion that was not recorded for that kernel: ask the coder, or refuse it as "
                                   "the coder's failure",
                                   {{"ask", false}, {"refuse", true}});
               });
}

void Rows(Keys& keys, PromptConfig& prompt) {
  keys.Add("system", prompt.system,
           "the system message; empty: none is sent (the model's chat template may have its own)");
  keys.Add("user", prompt.user, "the user message", {{"minLength", 1}, {"default", kDefaultUser}});
  keys.Add("enable_thinking", prompt.enable_thinking,
           "the thinking switch of chat templates that have one; null: the template's default. The policy's "
           "[`chat_template_arguments`](policy.md#chat-templates) set it for saved folders, too");
  keys.Add("max_tokens", prompt.max_tokens,
           "[tokens of a prompt](prompts.md#prompts-of-several-turns), at most; 0: what the policy's context leaves "
           "beside `loop.sampling.max_new_tokens`",
           Range(0, 10'000'000));
  keys.Removed("best_rounds", 3, "the list `best` has up to three rounds, fewer where a prompt would not fit");
}

void Rows(Keys& keys, CheckpointConfig& checkpoint) {
  keys.Add("every", checkpoint.every,
           "steps between checkpoints; a checkpoint is always written at the end and when the run stops early",
           {{"minimum", 1}});
  keys.Add("keep_last", checkpoint.keep_last, "how many of the newest checkpoints are kept", Range(1, 100'000));
  keys.Add("keep_best", checkpoint.keep_best,
           "how many checkpoints with the highest reward of their weights are kept ([run_folder.md](run_folder.md))",
           Range(0, 100'000));
  keys.OneOf<bool>("final", checkpoint.final_best,
                   "what `final/` contains: the last policy, or that of the kept checkpoint that `keep_best` ranks "
                   "first, of any stage; a note names its step, stage and score",
                   {{"last", false}, {"best", true}});
}

void Rows(Keys& keys, EvaluationConfig& evaluation) {
  keys.Add("every", evaluation.every,
           "steps between evaluations on the held-out problems; 0: none. Above 0, `problems.heldout` must name some; "
           "`at_start`, `greedy` and `patience` need it above 0");
  keys.Add("episodes", evaluation.episodes, "episodes of each held-out problem", Range(1, 1'000'000));
  keys.Add("at_start", evaluation.at_start, "also evaluate before the first step of each stage");
  keys.Add("greedy", evaluation.greedy,
           "also play one episode of each held-out problem at temperature 0: metrics `heldout/greedy_reward`, "
           "`heldout/greedy_best_speedup_geomean`");
  keys.Add("patience", evaluation.patience,
           "end the last stage after so many evaluations in a row without a higher held-out reward; 0: never. The "
           "learning rate's schedule still counts the stage's planned steps");
}

void Rows(Keys& keys, PipelineConfig& config);

template <typename Struct>
Schema Described(Schema schema = Schema::object()) {
  Keys keys;
  Struct defaults;
  Rows(keys, defaults);
  schema.update(keys.schema());
  schema["required"] = Schema::array({"plugin"});
  return schema;
}

template <typename Struct>
void ReadPart(const Schema& value, Struct* part) {
  Keys keys(value);
  Rows(keys, *part);
}

void Rows(Keys& keys, PipelineConfig& config) {
  const Schema choice = {{"$ref", "#/definitions/choice"}}, stage = {{"$ref", "#/definitions/stage"}};
  keys.Optional("name", config.name, "the run's name", {{"pattern", "^[A-Za-z0-9][A-Za-z0-9._-]*$"}});
  keys.Add("seed", config.seed, "all randomness in the run follows from it");
  const auto part = [&](const char* key, PluginChoice* member, const char* sentence) {
    if (const Schema* value = keys.Own(key, choice, sentence)) ReadPart(*value, member);
  };
  part("policy", &config.policy, "the language model that learns to suggest");
  part("coder", &config.coder, "writes the kernel that a suggestion describes");
  part("evaluator", &config.evaluator, "compiles, checks and times kernels");
  part("reward", &config.reward, "turns an evaluated kernel into a number");
  const Schema* trainer =
      keys.Own("trainer", {{"anyOf", {stage, {{"type", "array"}, {"minItems", 1}, {"items", stage}}}}},
               "what updates the policy");
  if (trainer != nullptr) {
    for (const Schema& one : trainer->is_array() ? *trainer : Schema::array({*trainer}))
      ReadPart(one, &config.stages.emplace_back());
  }
  keys.Mapping("problems", "the kernels to optimise", [&](Keys& inner) {
    inner.Add("train", config.train_problems, "trained on");
    inner.Add("heldout", config.heldout_problems, "never trained on: what evaluation uses");
    inner.Add(
        "skip_unusable", config.skip_unusable,
        "`true` excludes unusable problems, with a note for each; `false`: an unusable problem ends the run before its "
        "first step");
  });
  keys.Mapping("loop", "how much is collected for each update", [&](Keys& inner) { Rows(inner, config.loop); });
  keys.Mapping("prompt", "what the policy reads", [&](Keys& inner) { Rows(inner, config.prompt); });
  keys.Mapping("checkpoint", "when the run's state is saved", [&](Keys& inner) { Rows(inner, config.checkpoint); });
  keys.Mapping("evaluation", "held-out episodes while training", [&](Keys& inner) { Rows(inner, config.evaluation); });
  keys.Mapping("controls", "switches for experiments that must learn less: prompts or rewards are shuffled",
               [&](Keys& inner) {
                 inner.Add("shuffle_prompts", config.controls.shuffle_prompts,
                           "each trajectory gets the prompts of a trajectory on another problem");
                 inner.Add("shuffle_rewards", config.controls.shuffle_rewards,
                           "rewards are permuted among the samples of a step");
               });
  const Schema* observers =
      keys.Own("observers",
               {{"type", "array"},
                {"items", choice},
                {"default", {{{"plugin", KGRPO_DEFAULT_OBSERVER}}, {{"plugin", KGRPO_DEFAULT_SECOND_OBSERVER}}}}},
               "what records each step");
  if (observers != nullptr) {
    for (const Schema& one : *observers) ReadPart(one, &config.observers.emplace_back());
  }
  keys.Optional("output_dir", config.output_dir, "the run folder: [run_folder.md](run_folder.md)", {{"minLength", 1}});
}

}  // namespace

const Schema& PipelineSchema() {
  static const Schema schema = [] {
    Schema whole = Described<PipelineConfig>({{"title", "a kgrpo pipeline"}});
    whole.erase("required");
    whole["definitions"] = {{"choice", Described<PluginChoice>()},
                            {"stage", Described<StageConfig>()},
                            {"folders", {{"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}}}};
    return whole;
  }();
  return schema;
}

PipelineConfig ReadPipeline(const Node& root) {
  const Schema values = root.ToJson();
  PipelineConfig config;
  ReadPart(values, &config);
  for (StageConfig& stage : config.stages) {
    if (stage.steps == 0) stage.steps = config.loop.max_steps;
  }
  config.resolved_yaml = EmitYaml(values);
  return config;
}

}  // namespace kgrpo
