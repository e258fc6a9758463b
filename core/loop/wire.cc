#include "loop/wire.h"

#include <kgrpo/support/evaluation_json.h>

#include <cstring>
#include <utility>

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// Arrays are sent as bytes: token ids and log-probabilities are most of a message.
template <typename T>
Json Binary(const T* values, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), values, bytes.size());
  return Json::binary(std::move(bytes));
}
template <typename T>
Json Binary(const std::vector<T>& values) {
  return Binary(values.data(), values.size());
}
template <typename T>
std::vector<T> FromBinary(const Json& json) {
  const auto& bytes = json.get_binary();
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Json AnswerToJson(const CoderAnswer& answer) {
  return {static_cast<int>(answer.outcome),
          answer.source,
          answer.summary,
          answer.message,
          answer.prompt_tokens,
          answer.completion_tokens,
          answer.cost,
          answer.lost_cost,
          answer.seconds,
          answer.attempts,
          answer.text,
          answer.reused,
          answer.estimated};
}

CoderAnswer AnswerFromJson(const Json& json) {
  CoderAnswer answer;
  answer.outcome = static_cast<kgrpo_coder_outcome>(json.at(0).get<int>());
  json.at(1).get_to(answer.source);
  json.at(2).get_to(answer.summary);
  json.at(3).get_to(answer.message);
  json.at(4).get_to(answer.prompt_tokens);
  json.at(5).get_to(answer.completion_tokens);
  json.at(6).get_to(answer.cost);
  json.at(7).get_to(answer.lost_cost);
  json.at(8).get_to(answer.seconds);
  json.at(9).get_to(answer.attempts);
  json.at(10).get_to(answer.text);
  json.at(11).get_to(answer.reused);
  json.at(12).get_to(answer.estimated);
  return answer;
}

Json RoundToJson(const RoundRecord& round) {
  Json messages = Json::array();
  for (const ChatMessage& message : round.messages) messages.push_back({message.role, message.content});
  return {{"round", round.round},
          {"messages", std::move(messages)},
          {"prompt_ids", Binary(round.prompt_ids)},
          {"completion_ids", Binary(round.completion_ids)},
          {"logprobs", Binary(round.logprobs)},
          {"truncated", round.truncated},
          {"suggestion", round.suggestion},
          {"code_a", round.code_a},
          {"code_b", round.code_b},
          {"answer", AnswerToJson(round.answer)},
          {"evaluation", round.evaluation ? EvaluationToJson(*round.evaluation) : Json()},
          {"evaluation_seed", round.evaluation_seed},
          {"evaluate_seconds", round.evaluate_seconds},
          {"unchanged", round.unchanged},
          {"applied", round.applied},
          {"speedup", round.speedup},
          {"reward", round.reward},
          {"idle_reward", round.idle_reward},
          {"reward_parts", MetricsJson(round.reward_parts)},
          {"failure", round.failure ? Json{static_cast<int>(round.failure->part), round.failure->message} : Json()}};
}

RoundRecord RoundFromJson(const Json& json) {
  RoundRecord round;
  json.at("round").get_to(round.round);
  for (const Json& message : json.at("messages")) round.messages.push_back({message.at(0), message.at(1)});
  round.prompt_ids = FromBinary<int32_t>(json.at("prompt_ids"));
  round.completion_ids = FromBinary<int32_t>(json.at("completion_ids"));
  round.logprobs = FromBinary<float>(json.at("logprobs"));
  json.at("truncated").get_to(round.truncated);
  json.at("suggestion").get_to(round.suggestion);
  json.at("code_a").get_to(round.code_a);
  json.at("code_b").get_to(round.code_b);
  round.answer = AnswerFromJson(json.at("answer"));
  if (!json.at("evaluation").is_null()) round.evaluation = EvaluationFromJson(json.at("evaluation"));
  json.at("evaluation_seed").get_to(round.evaluation_seed);
  json.at("evaluate_seconds").get_to(round.evaluate_seconds);
  json.at("unchanged").get_to(round.unchanged);
  json.at("applied").get_to(round.applied);
  json.at("speedup").get_to(round.speedup);
  json.at("reward").get_to(round.reward);
  json.at("idle_reward").get_to(round.idle_reward);
  round.reward_parts = MetricsFrom(json.at("reward_parts"));
  if (const Json& failure = json.at("failure"); !failure.is_null())
    round.failure = {static_cast<RoundPart>(failure.at(0).get<int>()), failure.at(1)};
  return round;
}

}  // namespace

Json TrajectoriesToJson(const std::vector<TrajectoryRecord>& trajectories) {
  Json all = Json::array();
  for (const TrajectoryRecord& trajectory : trajectories) {
    Json rounds = Json::array();
    for (const RoundRecord& round : trajectory.rounds_done) rounds.push_back(RoundToJson(round));
    all.push_back({{"trajectory", trajectory.trajectory},
                   {"problem", trajectory.problem},
                   {"problem_name", trajectory.problem_name},
                   {"family", trajectory.family},
                   {"prompted_as", trajectory.prompted_as},
                   {"baseline_seconds", trajectory.baseline_seconds},
                   {"rounds", trajectory.rounds},
                   {"rounds_done", std::move(rounds)},
                   {"dropped", trajectory.dropped},
                   {"failed_round", trajectory.failed_round ? RoundToJson(*trajectory.failed_round) : Json()}});
  }
  return all;
}

std::vector<TrajectoryRecord> TrajectoriesFromJson(const Json& all) {
  std::vector<TrajectoryRecord> trajectories;
  for (const Json& json : all) {
    TrajectoryRecord& trajectory = trajectories.emplace_back();
    json.at("trajectory").get_to(trajectory.trajectory);
    json.at("problem").get_to(trajectory.problem);
    json.at("problem_name").get_to(trajectory.problem_name);
    json.at("family").get_to(trajectory.family);
    json.at("prompted_as").get_to(trajectory.prompted_as);
    json.at("baseline_seconds").get_to(trajectory.baseline_seconds);
    json.at("rounds").get_to(trajectory.rounds);
    for (const Json& round : json.at("rounds_done")) trajectory.rounds_done.push_back(RoundFromJson(round));
    json.at("dropped").get_to(trajectory.dropped);
    if (!json.at("failed_round").is_null()) trajectory.failed_round = RoundFromJson(json.at("failed_round"));
  }
  return trajectories;
}

Json RequestToJson(const RolloutRequest& request) {
  Json assignments = Json::array();
  for (const Assignment& assignment : request.assignments)
    assignments.push_back({assignment.problem, assignment.prompt_of});
  return {{"purpose", static_cast<int>(request.purpose)},
          {"step", request.step},
          {"suggester", static_cast<int>(request.suggester.kind)},
          {"sequence", request.suggester.sequence},
          {"assignments", std::move(assignments)},
          {"encode", request.encode},
          {"recorded", TrajectoriesToJson(request.recorded)},
          {"most_faults", request.most_faults}};
}

RolloutRequest RequestFromJson(const Json& json) {
  RolloutRequest request;
  request.purpose = static_cast<Purpose>(json.at("purpose").get<int>());
  json.at("step").get_to(request.step);
  request.suggester.kind = static_cast<Suggester::Kind>(json.at("suggester").get<int>());
  json.at("sequence").get_to(request.suggester.sequence);
  for (const Json& assignment : json.at("assignments"))
    request.assignments.push_back({assignment.at(0), assignment.at(1)});
  json.at("encode").get_to(request.encode);
  request.recorded = TrajectoriesFromJson(json.at("recorded"));
  json.at("most_faults").get_to(request.most_faults);
  return request;
}

Json SamplesToJson(std::span<const kgrpo_sample> samples) {
  Json all = Json::array();
  for (const kgrpo_sample& sample : samples) {
    all.push_back({Binary(sample.prompt_ids, sample.prompt_size), Binary(sample.completion_ids, sample.completion_size),
                   sample.logprobs == nullptr ? Json() : Binary(sample.logprobs, sample.completion_size), sample.reward,
                   sample.idle_reward, sample.trajectory, sample.round, sample.rounds, sample.problem,
                   sample.truncated});
  }
  return all;
}

OwnedSamples SamplesFromJson(const Json& all) {
  OwnedSamples owned;
  owned.tokens.reserve(2 * all.size());
  owned.logprobs.reserve(all.size());
  for (const Json& json : all) {
    const auto& prompt = owned.tokens.emplace_back(FromBinary<int32_t>(json.at(0)));
    const auto& completion = owned.tokens.emplace_back(FromBinary<int32_t>(json.at(1)));
    kgrpo_sample sample{};
    sample.struct_size = sizeof(sample);
    sample.prompt_ids = prompt.data();
    sample.prompt_size = prompt.size();
    sample.completion_ids = completion.data();
    sample.completion_size = completion.size();
    if (!json.at(2).is_null()) sample.logprobs = owned.logprobs.emplace_back(FromBinary<float>(json.at(2))).data();
    json.at(3).get_to(sample.reward);
    json.at(4).get_to(sample.idle_reward);
    json.at(5).get_to(sample.trajectory);
    json.at(6).get_to(sample.round);
    json.at(7).get_to(sample.rounds);
    json.at(8).get_to(sample.problem);
    json.at(9).get_to(sample.truncated);
    owned.samples.push_back(sample);
  }
  return owned;
}

Json LoadOrder(kgrpo_policy_copy copy, const std::filesystem::path& folder) {
  return {{"do", "load"}, {"copy", static_cast<int>(copy)}, {"folder", std::filesystem::absolute(folder).string()}};
}
Json BeginOrder(size_t stage, bool freeze) {
  return {{"do", "begin"}, {"stage", stage}, {"freeze", freeze}};
}
Json RestoreOrder(size_t stage, const std::filesystem::path& state) {
  return {{"do", "restore"}, {"stage", stage}, {"state", std::filesystem::absolute(state).string()}};
}
Json SaveOrder(size_t stage) {
  return {{"do", "save"}, {"stage", stage}};
}
Json TrainOrder(size_t stage, std::span<const kgrpo_sample> samples) {
  return {{"do", "train"}, {"stage", stage}, {"samples", SamplesToJson(samples)}};
}
Json CollectOrder(const RolloutRequest& request) {
  return {{"do", "collect"}, {"request", RequestToJson(request)}};
}
Json EndOrder(int exit_code) {
  return {{"do", "end"}, {"code", exit_code}};
}

std::string ToBytes(const Json& json) {
  const std::vector<uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

Json FromBytes(const std::string& bytes) {
  return Json::from_cbor(bytes);
}

}  // namespace kgrpo
