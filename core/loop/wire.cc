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

// Appends the visited fields to an array. A group is an array of its own, or null.
class ToArray {
 public:
  template <typename Name, typename T>
  void operator()(const Name&, const T& value) {
    Add(value);
  }
  template <typename T>
  void Group(const std::optional<T>& group, const auto& fields) {
    if (!group) return array.push_back(nullptr);
    Json outer = std::exchange(array, Json::array());
    fields(*group);
    outer.push_back(std::move(array));
    array = std::move(outer);
  }

  Json array = Json::array();

 private:
  template <typename T>
  void Add(const T& value) {
    array.push_back(value);
  }
  void Add(RoundPart part) { array.push_back(static_cast<int>(part)); }
  void Add(kgrpo_coder_outcome outcome) { array.push_back(static_cast<int>(outcome)); }
  void Add(const std::vector<int32_t>& ids) { array.push_back(Binary(ids)); }
  void Add(const std::vector<float>& values) { array.push_back(Binary(values)); }
  void Add(const std::vector<Metric>& metrics) { array.push_back(MetricsJson(metrics)); }
  void Add(const std::vector<Remark>& remarks) { array.push_back(RemarksJson(remarks)); }
  void Add(const std::vector<ChatMessage>& messages) {
    Json list = Json::array();
    for (const ChatMessage& message : messages) list.push_back({message.role, message.content});
    array.push_back(std::move(list));
  }
};

// Reads the visited fields from such an array.
class FromArray {
 public:
  explicit FromArray(const Json& array) : array_(&array) {}

  template <typename Name, typename T>
  void operator()(const Name&, T& value) {
    Take(array_->at(next_++), value);
  }
  template <typename T>
  void Group(std::optional<T>& group, const auto& fields) {
    const Json& inner = array_->at(next_++);
    if (inner.is_null()) return;
    const Json* outer = std::exchange(array_, &inner);
    const size_t after = std::exchange(next_, 0);
    fields(group.emplace());
    array_ = outer;
    next_ = after;
  }

 private:
  template <typename T>
  static void Take(const Json& json, T& value) {
    json.get_to(value);
  }
  static void Take(const Json& json, RoundPart& part) { part = static_cast<RoundPart>(json.get<int>()); }
  static void Take(const Json& json, kgrpo_coder_outcome& outcome) {
    outcome = static_cast<kgrpo_coder_outcome>(json.get<int>());
  }
  static void Take(const Json& json, std::vector<int32_t>& ids) { ids = FromBinary<int32_t>(json); }
  static void Take(const Json& json, std::vector<float>& values) { values = FromBinary<float>(json); }
  static void Take(const Json& json, std::vector<Metric>& metrics) { metrics = MetricsFrom(json); }
  static void Take(const Json& json, std::vector<Remark>& remarks) { remarks = RemarksFrom(json); }
  static void Take(const Json& json, std::vector<ChatMessage>& messages) {
    for (const Json& message : json) messages.push_back({message.at(0), message.at(1)});
  }

  const Json* array_;
  size_t next_ = 0;
};

Json RoundToJson(const RoundRecord& round) {
  ToArray fields;
  VisitFields(round, fields);
  return std::move(fields.array);
}

RoundRecord RoundFromJson(const Json& json) {
  RoundRecord round;
  FromArray fields(json);
  VisitFields(round, fields);
  return round;
}

}  // namespace

Json TrajectoriesToJson(const std::vector<TrajectoryRecord>& trajectories) {
  Json all = Json::array();
  for (const TrajectoryRecord& trajectory : trajectories) {
    Json rounds = Json::array();
    for (const RoundRecord& round : trajectory.rounds_done) rounds.push_back(RoundToJson(round));
    ToArray fields;
    VisitTrajectoryFields(trajectory, fields);
    all.push_back({{"fields", std::move(fields.array)},
                   {"rounds_done", std::move(rounds)},
                   {"failed_round", trajectory.failed_round ? RoundToJson(*trajectory.failed_round) : Json()}});
  }
  return all;
}

std::vector<TrajectoryRecord> TrajectoriesFromJson(const Json& all) {
  std::vector<TrajectoryRecord> trajectories;
  for (const Json& json : all) {
    TrajectoryRecord& trajectory = trajectories.emplace_back();
    FromArray fields(json.at("fields"));
    VisitTrajectoryFields(trajectory, fields);
    for (const Json& round : json.at("rounds_done")) trajectory.rounds_done.push_back(RoundFromJson(round));
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
Json BeginOrder(size_t stage, bool freeze) { return {{"do", "begin"}, {"stage", stage}, {"freeze", freeze}}; }
Json RestoreOrder(size_t stage, const std::filesystem::path& state) {
  return {{"do", "restore"}, {"stage", stage}, {"state", std::filesystem::absolute(state).string()}};
}
Json SaveOrder(size_t stage) { return {{"do", "save"}, {"stage", stage}}; }
Json TrainOrder(size_t stage, std::span<const kgrpo_sample> samples) {
  return {{"do", "train"}, {"stage", stage}, {"samples", SamplesToJson(samples)}};
}
Json CollectOrder(const RolloutRequest& request) { return {{"do", "collect"}, {"request", RequestToJson(request)}}; }
Json EndOrder(int exit_code) { return {{"do", "end"}, {"code", exit_code}}; }

std::string ToBytes(const Json& json) {
  const std::vector<uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

Json FromBytes(const std::string& bytes) { return Json::from_cbor(bytes); }

}  // namespace kgrpo
