// PEFT's adapter folders: the part of adapter.h that reads and writes files.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "policy_qwen/model/adapter.h"
#include "policy_qwen/model/files.h"
#include "policy_qwen/model/safetensors.h"

namespace kgrpo::policy {
namespace {

using nlohmann::json;

constexpr const char* kConfigFile = "/adapter_config.json";
constexpr const char* kTensorFile = "/adapter_model.safetensors";

// True if a key has no effect: absent, null, false, or an empty list or object.
bool IsIdle(const json& object, const char* key) {
  if (!object.contains(key)) return true;
  const json& value = object[key];
  return value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty());
}

std::vector<std::string> ReadTargets(const std::string& path, const json& object) {
  const json value = object.value("target_modules", json());
  if (value == "all-linear") return AllTargets();
  std::vector<std::string> given;
  if (!value.is_array() || value.empty()) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                path + ": \"target_modules\" is " + value.dump() + ": expected a list of names, or \"all-linear\"");
  }
  for (const json& entry : value) {
    // A name, or a path that ends in it: "model.layers.0.mlp.up_proj". ReadAdapter reports layers that such paths leave
    // out.
    const std::string text = entry.is_string() ? entry.get<std::string>() : "";
    const std::string name = text.substr(text.find_last_of('.') + 1);
    if (std::ranges::find(AllTargets(), name) == AllTargets().end()) {
      throw Error(KGRPO_ERROR_UNSUPPORTED,
                  path + ": \"target_modules\" holds " + entry.dump() +
                      ": supported are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj and down_proj");
    }
    given.push_back(name);
  }
  return InTargetOrder(given);
}

}  // namespace

bool IsAdapterFolder(const std::string& folder) {
  return FileExists(folder + kConfigFile) && !HasTensorFiles(folder);
}

AdapterConfig ReadAdapterConfig(const std::string& folder) {
  const std::string path = folder + kConfigFile;
  const json object = ReadJsonObject(path);
  const auto refuse = [&](const std::string& what) { return Error(KGRPO_ERROR_UNSUPPORTED, path + ": " + what); };
  const json type = object.value("peft_type", json());
  if (type != "LORA") throw refuse("\"peft_type\" is " + type.dump() + "; only LORA is supported");
  for (const char* key : {"use_dora", "fan_in_fan_out", "lora_bias", "rank_pattern", "alpha_pattern", "modules_to_save",
                          "layers_to_transform", "layers_pattern", "layer_replication", "exclude_modules",
                          "target_parameters", "trainable_token_indices"}) {
    if (!IsIdle(object, key)) throw refuse(std::string("\"") + key + "\" is in use, which is not supported");
  }
  if (const json bias = object.value("bias", json("none")); bias != "none") {
    throw refuse("\"bias\" is " + bias.dump() + "; only \"none\" is supported");
  }
  AdapterConfig config;
  const json rank = object.value("r", json()), alpha = object.value("lora_alpha", json());
  if (!rank.is_number_integer() || rank <= 0) throw refuse("\"r\" is " + rank.dump() + ": expected a positive number");
  if (!alpha.is_number() || alpha <= 0)
    throw refuse("\"lora_alpha\" is " + alpha.dump() + ": expected a positive number");
  config.rank = rank.get<int64_t>();
  config.alpha = alpha.get<double>();
  config.rank_stabilized = !IsIdle(object, "use_rslora");
  config.targets = ReadTargets(path, object);
  return config;
}

std::string BaseOfAdapter(const std::string& folder) {
  const std::string path = folder + kConfigFile;
  const json object = ReadJsonObject(path);
  const json name = object.value("base_model_name_or_path", json());
  if (!name.is_string() || !FileExists(name.get<std::string>() + "/config.json")) {
    throw Error(KGRPO_ERROR_NOT_FOUND, path + ": \"base_model_name_or_path\" is " + name.dump() +
                                           ", which is not a model folder on this machine; write the folder of the "
                                           "model that it was trained on there");
  }
  return name.get<std::string>();
}

void ReadAdapter(const std::string& folder, const std::string& base, AdapterSet& set) {
  const TensorFiles files = TensorFiles::OfFile(folder + kTensorFile);
  for (size_t i = 0; i < set.specs().size(); ++i) {
    const ParameterSpec& spec = set.specs()[i];
    const auto found = files.tensors().find(spec.name);
    const bool is_there = found != files.tensors().end();
    if (!is_there || found->second.shape != spec.shape) {
      throw Error(KGRPO_ERROR_INVALID, folder + kTensorFile + " belongs to another model than " + base + ": \"" +
                                           spec.name + "\" " +
                                           (is_there ? "is " + ShapeText(found->second.shape) : "is missing") +
                                           " and would be " + ShapeText(spec.shape));
    }
    set.Get(i).copy_(ToTensor(found->second, spec.name));
  }
  if (files.tensors().size() > set.specs().size()) {
    std::set<std::string> expected;
    for (const ParameterSpec& spec : set.specs()) expected.insert(spec.name);
    const auto extra =
        std::ranges::find_if(files.tensors(), [&](const auto& entry) { return !expected.contains(entry.first); });
    throw Error(KGRPO_ERROR_INVALID, folder + kTensorFile + " belongs to another model than " + base + ": it holds \"" +
                                         extra->first + "\", which that model's adapter does not have");
  }
}

void WriteAdapter(const std::string& folder, const std::string& base, const AdapterConfig& adapter,
                  const AdapterSet& set) {
  const json alpha =
      adapter.alpha == std::floor(adapter.alpha) ? json(static_cast<int64_t>(adapter.alpha)) : json(adapter.alpha);
  const nlohmann::ordered_json object = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", std::filesystem::absolute(base).lexically_normal().string()},
      {"r", adapter.rank},
      {"lora_alpha", alpha},
      {"use_rslora", adapter.rank_stabilized},
      {"target_modules", adapter.targets},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"modules_to_save", nullptr},
      {"inference_mode", true}};
  const at::Tensor host = set.buffer().cpu();
  std::vector<TensorToWrite> tensors;
  for (const ParameterSpec& spec : set.specs()) {
    const auto* data = reinterpret_cast<const uint8_t*>(host.const_data_ptr<float>() + spec.offset);
    tensors.push_back({spec.name, "F32", spec.shape, {data, static_cast<size_t>(spec.size()) * sizeof(float)}});
  }
  WriteTensorFile(folder + kTensorFile, tensors);
  WriteFileAtomically(folder + kConfigFile, {object.dump(2) + "\n"});
}

}  // namespace kgrpo::policy
