#include "store/rollouts.h"

#include "store/files.h"
#include "store/json.h"

#include <kgrpo/sdk/error.h>

#include <cstdio>
#include <sstream>

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

namespace {

// A number that may be null.
double RealOf(const Json& row, const char* key) {
  return row.at(key).is_number() ? row.at(key).get<double>() : 0;
}

RoundRecord RoundOf(const Json& row) {
  RoundRecord round;
  round.round = row.at("round");
  round.messages = MessagesFromJson(row.at("prompt").dump());
  round.prompt_ids = row.at("prompt_ids").get<std::vector<int32_t>>();
  round.completion_ids = row.at("completion_ids").get<std::vector<int32_t>>();
  for (const Json& value : row.at("logprobs")) round.logprobs.push_back(value.is_number() ? value.get<float>() : 0);
  round.truncated = row.at("truncated");
  round.suggestion = row.at("completion");
  round.code_a = row.at("code_a");
  round.code_b = row.at("code_b");
  round.answer.source = row.at("code_c");
  const std::string outcome = row.at("coder_outcome");
  for (int i = 0; i <= KGRPO_CODER_FAILED; ++i) {
    if (CoderOutcomeName(static_cast<kgrpo_coder_outcome>(i)) == outcome)
      round.answer.outcome = static_cast<kgrpo_coder_outcome>(i);
  }
  round.answer.summary = row.at("coder_summary");
  round.answer.message = row.at("coder_message");
  round.speedup = RealOf(row, "speedup");
  round.reward = RealOf(row, "reward");
  round.idle_reward = RealOf(row, "idle_reward");
  if (!row.at("verdict").get<std::string>().empty()) {
    Evaluation& evaluation = round.evaluation.emplace();
    evaluation.compiled = row.at("compiled");
    evaluation.correct = row.at("correct");
    evaluation.verdict = row.at("verdict");
    evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = RealOf(row, "seconds");
    evaluation.modelled = row.at("modelled");
    evaluation.diagnosis = row.at("diagnosis");
  }
  if (row.at("return").is_number() && row.at("advantage").is_number()) {
    round.outcome.emplace();
    round.outcome->returned = row.at("return");
    round.outcome->advantage = row.at("advantage");
  }
  return round;
}

void AddRow(const Json& row, StepRecord* step) {
  const uint64_t number = row.at("trajectory");
  step->step = row.at("step");
  step->stage_name = row.at("stage");
  if (step->trajectories.empty() || step->trajectories.back().trajectory != number) {
    TrajectoryRecord& trajectory = step->trajectories.emplace_back();
    trajectory.trajectory = number;
    trajectory.problem_name = row.at("problem");
    trajectory.family = row.at("family");
    trajectory.prompted_as = row.at("prompted_as");
    trajectory.baseline_seconds = RealOf(row, "baseline_seconds");
    trajectory.rounds = row.at("rounds");
  }
  step->trajectories.back().rounds_done.push_back(RoundOf(row));
}

}  // namespace

std::optional<StepRecord> ReadRollouts(const std::filesystem::path& file) {
  StepRecord step;
  double rewards = 0;
  size_t rounds = 0;
  try {
    std::istringstream lines(ReadFile(file));
    for (std::string line; std::getline(lines, line); ++rounds) {
      const Json row = Json::parse(line);
      AddRow(row, &step);
      rewards += RealOf(row, "reward");
    }
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  if (rounds == 0) return std::nullopt;
  step.has_rollouts = true;
  step.reward_mean = rewards / static_cast<double>(rounds);
  return step;
}

}  // namespace kgrpo
