// A pipeline file, read and checked: everything that `kgrpo-host FILE` selects. Made by config/load.h; used by the
// commands (cli/), the loop (loop/) and the run store (store/).
//
// The structs mirror the YAML key by key; docs/pipeline.md describes each for users.
#ifndef KGRPO_CONFIG_PIPELINE_H
#define KGRPO_CONFIG_PIPELINE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>  // nlohmann::json: options as plugins receive them

#include "config/node.h"

namespace kgrpo {

// A part of the pipeline: `{plugin: NAME or path, options: {...}}`.
struct PluginChoice {
  std::string plugin;
  nlohmann::json options = nlohmann::json::object();  // satisfies the plugin's schema, defaults filled in
};

// The source of a stage's suggestions while it collects trajectories.
enum class SuggestionSource {
  kPolicy,   // the policy samples them
  kUniform,  // drawn from the coder's own list, uniformly over those not yet used in the trajectory
};

inline constexpr const char* kOwnRun = "output_dir";  // in demonstrations.from: this run

// Rounds of other runs that a stage imitates.
struct DemonstrationConfig {
  std::vector<std::string> from;  // folders of runs, "output_dir": this one; empty: the stage collects some
};

// One entry of `trainer:`; a single mapping is a list of one.
struct StageConfig {
  PluginChoice trainer;
  uint64_t steps = 0;  // `steps:` of the entry, else loop.max_steps
  SuggestionSource suggestions = SuggestionSource::kPolicy;
  // For demonstrations (suggestions: uniform): how many trajectories are collected once, when the stage starts, and how
  // many of their rounds each update gets.
  uint64_t episodes = 0;
  uint64_t demonstrations_per_step = 32;
  DemonstrationConfig demonstrations;
};

// How completions are sampled; the meaning is kgrpo_sampling's.
struct SamplingConfig {
  uint32_t max_new_tokens = 256;
  double temperature = 1.0;
  uint32_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
};

// How to treat a trajectory whose coder gave no kernel for a fault of its own (refused, truncated, no code, failed).
enum class CoderFailure { kDrop, kPunish };

// When a kernel that the coder wrote becomes the current one (A <- B, B <- C): `always`, as in configs/seed.yaml,
// where a broken kernel is the next round's to repair, or when it is `correct`, so that the current kernel is the last
// correct one.
enum class Advance { kAlways, kCorrect };

// Answers of recorded runs in place of the coder and the evaluator, in training.
struct ReplayConfig {
  std::vector<std::string> from;  // folders of runs; empty: off
  bool only = false;              // refuse a suggestion that none of them recorded; else ask the coder
};

struct LoopConfig {
  uint64_t max_steps = 100;
  uint64_t batch_size = 16;               // trajectories a step
  uint32_t rounds = 4;                    // refinement rounds a trajectory
  uint64_t trajectories_per_problem = 1;  // batch_size / this problems are drawn a step, in epochs (loop/draws.h)
  uint32_t max_staleness = 0;  // 0 or 1: updates that a step's first rounds may lack, since they begin before them
  // Suggestions that the policy writes at the same time, at most; 0: all of a step. Changes no result.
  uint64_t generation_batch = 16;
  uint32_t workers = 0;  // threads that judge kernels; 0: as many as cores
  SamplingConfig sampling;
  CoderFailure on_coder_failure = CoderFailure::kDrop;
  Advance advance = Advance::kAlways;
  // With several ranks: how long one rank may be in one call of a plugin while others wait for it; 0: for ever.
  uint32_t hang_seconds = 600;
  ReplayConfig replay;
};

// Mustache templates over a trajectory's state; docs/prompts.md lists the variables.
struct PromptConfig {
  std::string system;  // empty: no system message of ours (the chat template may have its own)
  std::string user;
  std::optional<bool> enable_thinking;  // unset: as the template has it
  uint64_t max_tokens = 0;              // limit of a prompt; 0: the context without a completion
};

struct CheckpointConfig {
  uint64_t every = 10;  // steps; one is always written at the end and when the run stops early
  uint32_t keep_last = 2;
  uint32_t keep_best = 1;   // by the reward of their weights (loop/checkpoint.h)
  bool final_best = false;  // final/ is the best of them, not the last policy
};

// Held-out episodes during training. every = 0: only where a command asks for them.
struct EvaluationConfig {
  uint64_t every = 0;
  uint64_t episodes = 4;  // per held-out problem
  bool at_start = false;  // also before the first step of each stage
  bool greedy = false;    // also an episode of each problem without sampling
  uint64_t patience = 0;  // evaluations without a better reward, after which the last stage ends; 0: never
};

// Experiments that must fail to learn: a check on what was learned. Off in every real run.
struct ControlsConfig {
  bool shuffle_prompts = false;  // each trajectory is given the prompts of one on another problem
  bool shuffle_rewards = false;  // rewards are permuted among the samples of a step
};

// What a key of the pipeline names, and the run reads: a file or a folder, or a command's words.
struct Input {
  std::string key;  // "reward.options.command", "problems.softmax_long", "coder.plugin"
  nlohmann::ordered_json value;
  bool content = true;  // false: its content does not count (a cache grows); it is only kept from deletion
};

struct PipelineConfig {
  std::string name;
  uint64_t seed = 0;
  PluginChoice policy;
  PluginChoice coder;
  PluginChoice evaluator;
  PluginChoice reward;
  std::vector<StageConfig> stages;          // `trainer:`
  std::vector<std::string> train_problems;  // folders, globs expanded, sorted, no duplicates
  std::vector<std::string> heldout_problems;
  bool skip_unusable = false;  // problems without a usable reference are left out
  LoopConfig loop;
  PromptConfig prompt;
  CheckpointConfig checkpoint;
  EvaluationConfig evaluation;
  ControlsConfig controls;
  std::vector<PluginChoice> observers;
  std::string output_dir;
  // Positions of each part's options: "reward.options.score" -> "mine.yaml:7:12", "--set"; defaults are left out. For a
  // text, the position of its first character. Trainers and observers have an index: "trainer[0].options.gamma".
  std::map<std::string, std::string> option_places;
  // Keys whose values may differ between two steps of a run, with all below them: "reward", "trainer[1].options.beta".
  std::vector<std::string> may_change;
  std::vector<RemovedKey> removed;  // keys that a record of an earlier version may have
  std::vector<Input> inputs;        // load.cc's, and the plugins' libraries (cli/session.cc)
  std::string origins_yaml;         // resolved_yaml with a comment behind each value: where it came from
  std::string resolved_yaml;        // the whole file with `extends` and `--set` applied and every default filled in
};

}  // namespace kgrpo
#endif
