#include "config/read.h"

#include <string>
#include <utility>
#include <vector>

#include "base/role.h"
#include "config/emit.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

PluginChoice ReadChoice(const Json& json) {
  return {json.at("plugin").get<std::string>(), nlohmann::json(json.at("options"))};
}

}  // namespace

PipelineConfig ReadPipeline(const Node& root) {
  const Json json = root.ToJson();
  PipelineConfig config;
  config.name = json.at("name");
  config.seed = json.at("seed");
  for (auto [role, choice] :
       {std::pair(Role::kPolicy, &config.policy), std::pair(Role::kCoder, &config.coder),
        std::pair(Role::kEvaluator, &config.evaluator), std::pair(Role::kReward, &config.reward)}) {
    if (json.contains(RoleName(role))) *choice = ReadChoice(json.at(RoleName(role)));
  }
  const Json& loop = json.at("loop");
  config.loop.max_steps = loop.at("max_steps");
  config.loop.batch_size = loop.at("batch_size");
  config.loop.rounds = loop.at("rounds");
  config.loop.trajectories_per_problem = loop.at("trajectories_per_problem");
  config.loop.max_staleness = loop.at("max_staleness");
  config.loop.generation_batch = loop.at("generation_batch");
  config.loop.workers = loop.at("workers");
  const Json& sampling = loop.at("sampling");
  config.loop.sampling = {sampling.at("max_new_tokens"), sampling.at("temperature"), sampling.at("top_k"),
                          sampling.at("top_p"), sampling.at("min_p")};
  config.loop.advance = loop.at("advance") == "always" ? Advance::kAlways : Advance::kCorrect;
  config.loop.hang_seconds = loop.at("hang_seconds");
  config.loop.replay = {loop.at("replay").at("from"), loop.at("replay").at("unrecorded") == "refuse"};
  config.loop.on_coder_failure = loop.at("on_coder_failure") == "drop" ? CoderFailure::kDrop : CoderFailure::kPunish;
  if (json.contains("trainer")) {
    const Json& trainer = json.at("trainer");
    for (const Json& stage : trainer.is_array() ? trainer : Json::array({trainer})) {
      config.stages.push_back(
          {ReadChoice(stage),
           stage.value("steps", config.loop.max_steps),
           stage.at("suggestions") == "uniform" ? SuggestionSource::kUniform : SuggestionSource::kPolicy,
           stage.at("episodes"),
           stage.at("demonstrations_per_step"),
           {stage.at("demonstrations").at("from")}});
    }
  }
  config.train_problems = json.at("problems").at("train").get<std::vector<std::string>>();
  config.heldout_problems = json.at("problems").at("heldout").get<std::vector<std::string>>();
  config.skip_unusable = json.at("problems").at("skip_unusable");
  const Json& prompt = json.at("prompt");
  config.prompt.system = prompt.at("system");
  config.prompt.user = prompt.at("user");
  if (!prompt.at("enable_thinking").is_null()) config.prompt.enable_thinking = prompt.at("enable_thinking").get<bool>();
  config.prompt.max_tokens = prompt.at("max_tokens");
  const Json& checkpoint = json.at("checkpoint");
  config.checkpoint = {checkpoint.at("every"), checkpoint.at("keep_last"), checkpoint.at("keep_best"),
                       checkpoint.at("final") == "best"};
  const Json& evaluation = json.at("evaluation");
  config.evaluation = {evaluation.at("every"), evaluation.at("episodes"), evaluation.at("at_start"),
                       evaluation.at("greedy"), evaluation.at("patience")};
  const Json& controls = json.at("controls");
  config.controls = {controls.at("shuffle_prompts"), controls.at("shuffle_rewards")};
  for (const Json& observer : json.at("observers")) config.observers.push_back(ReadChoice(observer));
  config.output_dir = json.at("output_dir");
  config.resolved_yaml = EmitYaml(json);
  return config;
}

}  // namespace kgrpo
