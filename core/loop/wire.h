// Serialisation of the messages between ranks: rollouts to collect, trajectories, samples. Used by loop/ranks.h's
// users; both ends have the same version, so this is not a stable format.
#ifndef KGRPO_LOOP_WIRE_H
#define KGRPO_LOOP_WIRE_H

#include "loop/rollout.h"
#include "store/records.h"

#include <kgrpo/trainer.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace kgrpo {

nlohmann::ordered_json TrajectoriesToJson(const std::vector<TrajectoryRecord>& trajectories);
std::vector<TrajectoryRecord> TrajectoriesFromJson(const nlohmann::ordered_json& json);

nlohmann::ordered_json RequestToJson(const RolloutRequest& request);
RolloutRequest RequestFromJson(const nlohmann::ordered_json& json);

// Samples and the arrays that they borrow.
struct OwnedSamples {
  std::vector<std::vector<int32_t>> tokens;  // a prompt and a completion each
  std::vector<std::vector<float>> logprobs;
  std::vector<kgrpo_sample> samples;
};
nlohmann::ordered_json SamplesToJson(std::span<const kgrpo_sample> samples);
OwnedSamples SamplesFromJson(const nlohmann::ordered_json& json);

// The orders of the leader; cli/open_run.cc carries them out.
nlohmann::ordered_json LoadOrder(kgrpo_policy_copy copy, const std::filesystem::path& folder);
nlohmann::ordered_json BeginOrder(size_t stage, bool freeze);
nlohmann::ordered_json RestoreOrder(size_t stage, const std::filesystem::path& state);
nlohmann::ordered_json SaveOrder(size_t stage);
nlohmann::ordered_json TrainOrder(size_t stage, std::span<const kgrpo_sample> samples);
nlohmann::ordered_json CollectOrder(const RolloutRequest& request);
nlohmann::ordered_json EndOrder(int exit_code);

// CBOR: numbers keep their bits, text any bytes.
std::string ToBytes(const nlohmann::ordered_json& json);
nlohmann::ordered_json FromBytes(const std::string& bytes);

}  // namespace kgrpo
#endif
