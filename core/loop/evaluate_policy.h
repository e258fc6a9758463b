// Measures a policy on held-out problems, without training: `kgrpo-host eval FILE --policy ...`. All policies use the
// same random streams, and figures have 95% intervals over episodes.
#ifndef KGRPO_LOOP_EVALUATE_POLICY_H
#define KGRPO_LOOP_EVALUATE_POLICY_H

#include "base/console.h"
#include "config/pipeline.h"
#include "loop/coder_cost.h"
#include "loop/metrics.h"
#include "loop/parts.h"
#include "loop/refusals.h"
#include "loop/rollout.h"
#include "loop/statistics.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {

// The policy that --policy names.
struct PolicyChoice {
  Suggester suggester;
  std::string model;  // a folder to load into the pipeline's policy; empty: the policy as it is
  std::string label;  // for tables: the text of --policy, or "step 100" for a checkpoint

  bool needs_policy() const { return suggester.kind == Suggester::Kind::kPolicy; }
};

// "uniform", "fixed:TECHNIQUE[,TECHNIQUE...]" (one a round, the last one repeated), a model's folder, or a run's folder
// (its trained model). Throws KGRPO_ERROR_INVALID for an empty technique and a run without a model,
// KGRPO_ERROR_NOT_FOUND for a folder that is not there.
PolicyChoice ParsePolicyChoice(const std::string& text);

// Throws KGRPO_ERROR_INVALID where the coder has a list of suggestions and a technique is not in it: no round could
// apply it. `name` is the coder's, for the message.
void RequireListed(const std::vector<std::string>& techniques, const Coder& coder, const std::string& name);

// Number and kind of the episodes to play.
struct EpisodePlan {
  uint64_t episodes = 1;               // of each problem
  uint64_t repeats = 1;                // times to play all episodes, with the seeds config.seed, config.seed + 1, ...
  std::filesystem::path kernels = {};  // where the best kernel of each problem is kept; empty: nowhere
};

// One episode. Episodes of two policies with equal problem, repeat and episode use the same inputs and random numbers.
struct EpisodeFigures {
  std::string problem;
  uint64_t repeat = 0, episode = 0;  // from 0
  double reward = 0;                 // mean over its rounds
  double best_speedup = 1;           // at least 1: the reference itself counts
  double correct_rate = 0;           // of its rounds
  std::string dropped;               // why it ended early; empty for a whole one
};

struct ProblemFigures {
  std::string problem, family;
  uint64_t episodes = 0;
  Interval reward;        // mean over rounds
  Interval best_speedup;  // geometric mean over episodes of the best correct kernel, at least 1
  double correct_rate = 0;
  std::string favourite;             // the most frequent suggestion's text
  double favourite_share = 0;        // of the rounds
  double favourite_applied = 0;      // share of its rounds in which the coder wrote a kernel
  std::vector<std::string> samples;  // suggestions of the first episode
};

struct PolicyReport {
  std::string policy;
  uint64_t seed = 0, episodes = 0, rounds = 0;
  bool modelled = false;
  std::string time_source;
  Interval reward;
  Interval best_speedup;
  std::vector<std::pair<double, double>>
      fast_p;                // (p, share of episodes whose best kernel is correct and over p times as fast)
  double token_entropy = 0;  // mean over suggestion tokens, in nats; only of a policy
  CoderCounts coder;         // answers in all episodes
  Refusals refusals;         // among them
  MetricMap metrics;         // as loop/metrics.h names them
  std::vector<ProblemFigures> problems;
  std::vector<EpisodeFigures> all_episodes;
  // (k, expected best speedup of k episodes on a problem; geometric mean over problems), k = 1, 2, 4, ...
  std::vector<std::pair<uint64_t, double>> best_of;
  std::vector<std::pair<double, double>> repeats;       // each repeat's mean reward and geometric mean of best speedups
  std::vector<std::pair<std::string, double>> kernels;  // kept ones: problem, speedup by a thorough evaluation
  bool interrupted = false;  // by the user, before all of the fastest kernels were judged thoroughly

  nlohmann::ordered_json ToJson() const;
  void Show(Console& console) const;
};

// Plays the plan on config.heldout_problems. The choice's model is loaded into parts.policy. Where plan.kernels is set,
// writes there (store/kernels.h) the kernels that also beat their reference in a thorough evaluation with other inputs.
PolicyReport EvaluatePolicy(const PipelineConfig& config, PipelineParts& parts, const PolicyChoice& choice,
                            const EpisodePlan& plan);

}  // namespace kgrpo
#endif
