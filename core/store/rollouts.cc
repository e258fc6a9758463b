#include "store/rollouts.h"

#include "store/files.h"
#include "store/json.h"

#include <cstdio>

namespace kgrpo {
using Json = nlohmann::ordered_json;

std::string RolloutLines(const StepRecord& step) {
  std::string lines;
  for (const TrajectoryRecord& trajectory : step.trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      const Evaluation none;
      const Evaluation& evaluation = round.evaluation ? *round.evaluation : none;
      Json messages = Json::array();
      for (const ChatMessage& message : round.messages) {
        messages.push_back({{"role", message.role}, {"content", message.content}});
      }
      Json row;
      row["step"] = step.step;
      row["stage"] = step.stage_name;
      row["trajectory"] = trajectory.trajectory;
      row["round"] = round.round;
      row["rounds"] = trajectory.rounds;
      row["problem"] = trajectory.problem_name;
      row["family"] = trajectory.family;
      row["prompted_as"] = trajectory.prompted_as;
      row["prompt"] = std::move(messages);
      row["completion"] = round.suggestion;
      row["prompt_ids"] = round.prompt_ids;
      row["completion_ids"] = round.completion_ids;
      row["logprobs"] = round.logprobs;
      row["truncated"] = round.truncated;
      row["code_a"] = round.code_a;
      row["code_b"] = round.code_b;
      row["code_c"] = round.answer.source;
      row["coder_outcome"] = CoderOutcomeName(round.answer.outcome);
      row["coder_summary"] = round.answer.summary;
      row["coder_message"] = round.answer.message;
      row["compiled"] = evaluation.compiled;
      row["correct"] = evaluation.correct;
      row["verdict"] = evaluation.verdict;
      row["seconds"] = evaluation.seconds;
      row["baseline_seconds"] = trajectory.baseline_seconds;
      row["modelled"] = evaluation.modelled;
      row["speedup"] = round.speedup;
      row["diagnosis"] = evaluation.diagnosis;
      row["reward"] = round.reward;
      row["idle_reward"] = round.idle_reward;
      row["return"] = round.outcome ? Json(round.outcome->returned) : Json();
      row["advantage"] = round.outcome ? Json(round.outcome->advantage) : Json();
      lines += DumpJson(row);
      lines += '\n';
    }
  }
  return lines;
}

void WriteRollouts(const std::filesystem::path& directory, const StepRecord& step) {
  if (step.trajectories.empty()) return;
  char name[64];
  std::snprintf(name, sizeof name, "step-%06llu.jsonl", static_cast<unsigned long long>(step.step));
  WriteFileAtomically(directory / name, RolloutLines(step));
}

}  // namespace kgrpo
