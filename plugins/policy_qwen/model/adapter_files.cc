// PEFT's adapter folders: the part of adapter.h that reads and writes files.
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "policy_qwen/files.h"
#include "policy_qwen/model/adapter.h"
#include "policy_qwen/model/safetensors.h"
#include "policy_qwen/tokenizer/regex.h"

namespace kgrpo::policy {
namespace {

using OrderedJson = nlohmann::ordered_json;  // patterns apply in the file's order

constexpr const char* kConfigFile = "/adapter_config.json";
constexpr const char* kTensorFile = "/adapter_model.safetensors";

// Keys of adapter_config.json that do not change the result at all, and those that ReadAdapterConfig reads. All others
// must be idle.
constexpr std::string_view kKnownKeys =
    " alpha_pattern auto_mapping base_model_name_or_path bias corda_config ensure_weight_tying eva_config"
    " exclude_modules fan_in_fan_out inference_mode init_lora_weights layers_pattern layers_to_transform loftq_config"
    " lora_alpha lora_dropout lora_ga_config megatron_core peft_type peft_version qalora_group_size r rank_pattern"
    " revision runtime_config target_modules task_type use_rslora ";
constexpr const char* kPatternKeys[] = {"exclude_modules", "layers_to_transform", "layers_pattern", "rank_pattern",
                                        "alpha_pattern"};
// Initial values after which A and B are the whole change of the base. Most others subtract the first product from it.
constexpr const char* kInitialisations[] = {"gaussian", "orthogonal", "eva", "lora_ga"};

// True for a value that switches nothing on: null, false, or an empty text, list or object.
bool IsIdle(const OrderedJson& value) {
  return value.empty() || value == false || (value.is_string() && value.get<std::string>().empty());
}

OrderedJson ReadConfigFile(const std::string& path) {
  ReadJsonObject(path);  // for its messages
  return OrderedJson::parse(ReadFile(path));
}

// Matches whole paths, as Python's re.fullmatch does.
std::function<bool(const std::string&)> FullMatch(const std::string& expression) {
  try {
    return [regex = tokenizer::Regex("\\A(?:" + expression + ")\\Z", tokenizer::Regex::Kind::kPython)](
               const std::string& path) { return !regex.FindAll(path).empty(); };
  } catch (const Error&) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "adapter_config.json: \"" + expression +
                                             "\" is not a regular expression that kgrpo reads; list the layers' names "
                                             "instead");
  }
}

}  // namespace

AdapterSelection::Test AdapterSelection::TestOf(const OrderedJson& names) {
  if (names.is_string()) return FullMatch(names.get<std::string>());
  std::vector<std::string> list;
  for (const OrderedJson& name : names) list.push_back(name.get<std::string>());
  return [list](const std::string& path) {
    return std::ranges::any_of(list,
                               [&](const std::string& name) { return path == name || path.ends_with("." + name); });
  };
}

AdapterSelection::AdapterSelection(const AdapterConfig& config) : config_(config) {
  const auto get = [&](const char* key) { return config.patterns.value(key, OrderedJson()); };
  const OrderedJson regex = get("target_modules"), layers = get("layers_to_transform");
  is_target_ = TestOf(regex.is_null() ? OrderedJson(config.targets) : regex);
  is_excluded_ = TestOf(get("exclude_modules"));
  is_in_layer_ = [](const std::string&, int64_t) { return true; };
  if (!layers.is_null()) {
    std::vector<std::string> lists;
    const OrderedJson given = get("layers_pattern");
    if (given.is_string()) {
      lists = {given.get<std::string>()};
    } else {
      for (const OrderedJson& name : given) lists.push_back(name.get<std::string>());
    }
    if (lists.empty()) lists = {"[^.]*"};
    is_in_layer_ = [lists, layers](const std::string& path, int64_t layer) {
      if (layers.is_array() ? std::ranges::find(layers, OrderedJson(layer)) == layers.end()
                            : layers != OrderedJson(layer))
        return false;
      const std::string number = std::to_string(layer);
      return std::ranges::any_of(lists, [&](const std::string& list) {
        return FullMatch("(?:.*\\.)?(?:" + list + ")\\." + number + "\\..*")(path);
      });
    };
  }
  const auto read = [&](const char* key, auto& list) {
    const OrderedJson patterns = get(key);
    for (const auto& [pattern, value] : patterns.items())
      list.emplace_back(TestOf("(?:.*\\.)?(?:" + pattern + ")"), value.template get<double>());
  };
  read("rank_pattern", ranks_);
  read("alpha_pattern", alphas_);
}

std::optional<LayerShape> AdapterSelection::Find(const std::string& path, int64_t layer) const {
  if (is_excluded_(path) || !is_target_(path) || !is_in_layer_(path, layer)) return std::nullopt;
  const auto first = [&](const auto& list, auto otherwise) {
    const auto found = std::ranges::find_if(list, [&](const auto& entry) { return entry.first(path); });
    return found == list.end() ? otherwise : found->second;
  };
  const int64_t rank = first(ranks_, config_.rank);
  const auto size = static_cast<double>(rank);
  return LayerShape{rank, first(alphas_, config_.alpha) / (config_.rank_stabilized ? std::sqrt(size) : size)};
}

bool IsAdapterFolder(const std::string& folder) {
  if (!FileExists(folder + kConfigFile)) return false;
  for (const char* model : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    if (!FileExists(folder + "/" + model)) continue;
    throw Error(KGRPO_ERROR_INVALID, folder + ": holds an adapter (adapter_config.json) and a whole model (" + model +
                                         "), and which is meant is not clear; move one of them to another folder");
  }
  return true;
}

AdapterConfig ReadAdapterConfig(const std::string& folder) {
  const std::string path = folder + kConfigFile;
  const OrderedJson object = ReadConfigFile(path);
  const auto refuse = [&](const std::string& what) { return Error(KGRPO_ERROR_UNSUPPORTED, path + ": " + what); };
  const auto get = [&](const char* key) { return object.value(key, OrderedJson()); };
  if (get("peft_type") != "LORA")
    throw refuse("\"peft_type\" is " + get("peft_type").dump() + "; only LORA is supported");
  for (const auto& [key, value] : object.items()) {
    if (IsIdle(value) || kKnownKeys.find(" " + key + " ") != kKnownKeys.npos) continue;
    throw refuse("\"" + key + "\" is in use, which is not supported");
  }
  const OrderedJson initial = object.value("init_lora_weights", OrderedJson(true)), task = get("task_type");
  if (!initial.is_null() && !initial.is_boolean() &&
      std::ranges::find(kInitialisations, initial) == std::end(kInitialisations)) {
    throw refuse("\"init_lora_weights\" is " + initial.dump() +
                 ", after which A and B need not be the whole change of the base; supported are true, false, gaussian, "
                 "orthogonal, eva and lora_ga. Save a PiSSA, CorDA or OLoRA adapter again with peft's "
                 "save_pretrained(path_initial_model_for_weight_conversion=...)");
  }
  if (!task.is_null() && task != "CAUSAL_LM")
    throw refuse("\"task_type\" is " + task.dump() + "; only CAUSAL_LM is supported");
  if (const OrderedJson bias = object.value("bias", OrderedJson("none")); bias != "none") {
    throw refuse("\"bias\" is " + bias.dump() + "; only \"none\" is supported");
  }
  AdapterConfig config;
  const auto positive = [&](const std::string& key, const OrderedJson& value, bool is_rank) {
    if (!(is_rank ? value.is_number_integer() : value.is_number()) || value <= 0)
      throw refuse(key + " is " + value.dump() + ": expected a positive number");
    return value;
  };
  config.rank = positive("\"r\"", object.value("r", OrderedJson(8)), true).get<int64_t>();  // peft's defaults
  config.alpha = positive("\"lora_alpha\"", object.value("lora_alpha", OrderedJson(8)), false).get<double>();
  config.rank_stabilized = !IsIdle(get("use_rslora"));

  const auto is_text = [](const OrderedJson& value) { return value.is_string(); };
  const auto are_texts = [&](const OrderedJson& value) {
    return value.is_array() && std::ranges::all_of(value, is_text);
  };
  for (const char* key : kPatternKeys) {
    const OrderedJson value = get(key);
    const std::string name = std::string("\"") + key + "\"";
    if (IsIdle(value)) continue;
    bool is_right = is_text(value) || are_texts(value);
    if (key == std::string_view("layers_to_transform")) {
      const auto is_layer = [](const OrderedJson& number) { return number.is_number_integer(); };
      is_right = is_layer(value) || (value.is_array() && std::ranges::all_of(value, is_layer));
    } else if (key[0] == 'r' || key[0] == 'a') {  // rank_pattern, alpha_pattern
      is_right = value.is_object();
      if (is_right) {
        for (const auto& [pattern, number] : value.items())
          positive(name + ": \"" + pattern + "\"", number, key[0] == 'r');
      }
    }
    if (!is_right) throw refuse(name + " is " + value.dump() + ", which peft does not write");
    config.patterns[key] = value;
  }
  const OrderedJson targets = get("target_modules");
  if (are_texts(targets) && !targets.empty()) {
    config.targets = targets.get<std::vector<std::string>>();
    std::vector<std::string> ordered = InTargetOrder(config.targets);
    if (ordered.size() == config.targets.size()) config.targets = std::move(ordered);
  } else if (!is_text(targets)) {
    throw refuse("\"target_modules\" is " + targets.dump() +
                 ": expected a list of names, a regular expression, or \"all-linear\"");
  } else if (targets != "all-linear") {
    config.targets.clear();
    config.patterns["target_modules"] = targets;
  }
  const AdapterSelection readable(config);  // throws for expressions that cannot be read
  return config;
}

std::string BaseOfAdapter(const std::string& folder) {
  const std::string path = folder + kConfigFile;
  const OrderedJson name = ReadConfigFile(path).value("base_model_name_or_path", OrderedJson());
  const std::string base = name.is_string() ? SnapshotOf(name.get<std::string>()) : "";
  if (base.empty() || !FileExists(base + "/config.json")) {
    throw Error(KGRPO_ERROR_NOT_FOUND, path + ": \"base_model_name_or_path\" is " + name.dump() +
                                           ", which is not a model folder on this machine; write the folder of the "
                                           "model that it was trained on there");
  }
  return base;
}

void ReadAdapter(const std::string& folder, const std::string& base, AdapterSet& set) {
  if (const std::string old = folder + "/adapter_model.bin"; FileExists(old) && !FileExists(folder + kTensorFile)) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                old +
                    ": only adapter_model.safetensors is read; convert it in that folder: python -c 'import torch, "
                    "safetensors.torch as s; s.save_file({k: v.contiguous() for k, v in "
                    "torch.load(\"adapter_model.bin\", weights_only=True).items()}, \"adapter_model.safetensors\")'");
  }
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
  const OrderedJson alpha = adapter.alpha == std::floor(adapter.alpha)
                                ? OrderedJson(static_cast<int64_t>(adapter.alpha))
                                : OrderedJson(adapter.alpha);
  OrderedJson object = {{"peft_type", "LORA"},
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
  object.update(adapter.patterns);
  set.Write(folder + kTensorFile);
  WriteFileAtomically(folder + kConfigFile, {object.dump(2) + "\n"});
}

}  // namespace kgrpo::policy
