// Plays a policy on held-out problems, without training, and records that as a run: `kgrpo-host eval FILE --policy
// ...`. All policies use the same random streams. compare/evaluation.h has the figures.
#ifndef KGRPO_EVAL_EVALUATE_POLICY_H
#define KGRPO_EVAL_EVALUATE_POLICY_H

#include "config/pipeline.h"
#include "loop/rollout.h"
#include "plugin/parts.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

// The models of a run's checkpoints, by step. Their labels are "step 100".
std::vector<PolicyChoice> CheckpointChoices(const std::filesystem::path& run);

// Throws KGRPO_ERROR_INVALID where the coder has a list of suggestions and a technique is not in it: no round could
// apply it. `name` is the coder's, for the message.
void RequireListed(const std::vector<std::string>& techniques, const Coder& coder, const std::string& name);

// Number and kind of the episodes to play.
struct EpisodePlan {
  uint64_t episodes = 1;               // episodes of each problem
  uint64_t repeats = 1;                // times to play all episodes, with the seeds config.seed, config.seed + 1, ...
  std::filesystem::path kernels = {};  // folder for the best kernel of each problem; empty: none is kept
  std::vector<std::string> overrides = {};  // --set, for the record
};

// Plays the plan on config.heldout_problems and records it in `folder`, a new run's (store/run_folder.h): each repeat
// is a step of the purpose "evaluation". The choice's model is loaded into parts.policy. Where plan.kernels is set,
// writes there (loop/best_kernels.h) the kernels that also beat their reference in a thorough evaluation with other
// inputs. Returns false if the user stopped before all of the fastest kernels were judged thoroughly.
bool EvaluatePolicy(const PipelineConfig& config, PipelineParts& parts, const PolicyChoice& choice,
                    const EpisodePlan& plan, const std::filesystem::path& folder);

}  // namespace kgrpo
#endif
