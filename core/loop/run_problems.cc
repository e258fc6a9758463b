#include "loop/run_problems.h"

#include "loop/context_room.h"
#include "loop/run_config.h"
#include "loop/trajectory.h"

#include <kgrpo/sdk/error.h>

#include <vector>

namespace kgrpo {

RunProblems::RunProblems(const PipelineConfig& config, PipelineParts& parts)
    : pool(config.loop.workers), train(*parts.evaluator, config.train_problems, pool) {
  if (config.evaluation.every > 0 && !config.heldout_problems.empty()) {
    heldout.emplace(*parts.evaluator, config.heldout_problems, pool);
  }
  CheckRunConfig(config, parts);
  std::vector<PromptState> first_rounds;
  const auto add = [&](const ProblemSet& problems) {
    for (size_t i = 0; i < problems.size(); ++i)
      first_rounds.push_back(Trajectory(0, 0, problems[i], config.loop).Prompt(parts.metrics));
  };
  if (TrainsOnPrompts(parts.trainers)) add(train);
  if (heldout) add(*heldout);
  const ContextRoom room = RoomInContext(config, *parts.policy, first_rounds);
  if (!room.mistake.empty()) throw Error(KGRPO_ERROR_INVALID, room.mistake);
  warning = room.warning;
}

}  // namespace kgrpo
