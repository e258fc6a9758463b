// LoRA adapters of a model: which linear layers are adapted, the factors of all of them in one buffer, and the folders
// of PEFT (adapter_config.json, adapter_model.safetensors) that hold them. Used by trained_adapter.cc and the policy.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_ADAPTER_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_ADAPTER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy_qwen/model/config.h"
#include "policy_qwen/model/parameters.h"

namespace kgrpo::policy {

// PEFT's "all-linear": every linear layer but the head, in the order of a layer.
const std::vector<std::string>& AllTargets();
// Returns the given targets in that order, each once.
std::vector<std::string> InTargetOrder(const std::vector<std::string>& given);

struct AdapterConfig {
  int64_t rank = 16;
  double alpha = 32;
  bool rank_stabilized = false;                     // the scale is alpha / sqrt(rank) (PEFT: use_rslora)
  std::vector<std::string> targets = AllTargets();  // "q_proj", ..., in AllTargets' order; or ends of paths
  // The keys of adapter_config.json, as PEFT defines them, that select layers in other ways or give some of them
  // another rank or alpha: those in use of exclude_modules, layers_to_transform, layers_pattern, rank_pattern,
  // alpha_pattern; target_modules if it is a regular expression, instead of `targets`.
  nlohmann::ordered_json patterns = nlohmann::ordered_json::object();

  bool operator==(const AdapterConfig&) const = default;
};

// The factors of an adapter, or their gradients: float32, named as PEFT's files name them.
class AdapterSet : public TensorSet {
 public:
  AdapterSet() = default;
  // Zeros. Throws kgrpo::Error if the adapter selects no layer, or one that cannot be adapted.
  AdapterSet(const ModelConfig& config, const AdapterConfig& adapter, at::Device device);

  // True if every B is zero: then the adapted model is the base, bit for bit.
  bool IsOff() const;

  // Returns `base` with the adapter's factors added; its tensors are shared.
  Weights Attached(const Weights& base) const;
  // Returns weights with no tensor but the factors: the gradients that TransformerBackward takes when the base is
  // frozen.
  Weights Alone() const;

 private:
  std::vector<LayerAdapter> layers_;
};

// A random A (uniform within 1 / sqrt(inputs), as peft draws it) and a zero B; a pure function of (seed, tensor name,
// index).
void InitializeAdapter(uint64_t seed, AdapterSet& set);

// `adapted` without its adapter, the adapted weights replaced by copies that MergeAdapter can fill; all else is shared.
Weights CopyTargets(const ModelConfig& config, const Weights& adapted);
// Bytes of those copies.
int64_t CopiedBytes(const Weights& adapted);
// Sets the targets' weights of `merged` to those of `adapted` plus scale B A. `merged` may share `adapted`'s tensors.
void MergeAdapter(const ModelConfig& config, const Weights& adapted, const Weights& merged);

// True if a folder holds an adapter. Throws KGRPO_ERROR_INVALID if it holds a whole model, too.
bool IsAdapterFolder(const std::string& folder);
// Reads adapter_config.json. Throws kgrpo::Error, naming file and key, if it is not a LoRA adapter of linear layers.
AdapterConfig ReadAdapterConfig(const std::string& folder);
// The model folder that an adapter was trained on. Throws KGRPO_ERROR_NOT_FOUND if it does not exist.
std::string BaseOfAdapter(const std::string& folder);

struct LayerShape {
  int64_t rank = 0;
  double scale = 0;
};
// Selects the linear layers that an AdapterConfig adapts, as PEFT does.
class AdapterSelection {
 public:
  // Throws KGRPO_ERROR_UNSUPPORTED for a regular expression that cannot be read.
  explicit AdapterSelection(const AdapterConfig& config);
  // `path` is the layer's in the model, "model.layers.3.self_attn.q_proj"; `layer` its number, or -1 for none.
  std::optional<LayerShape> Find(const std::string& path, int64_t layer) const;

 private:
  using Test = std::function<bool(const std::string&)>;
  static Test TestOf(const nlohmann::ordered_json& names);

  AdapterConfig config_;
  Test is_target_, is_excluded_;
  std::function<bool(const std::string&, int64_t)> is_in_layer_;
  std::vector<std::pair<Test, int64_t>> ranks_;
  std::vector<std::pair<Test, double>> alphas_;
};

// Fills `set` from adapter_model.safetensors, in any dtype. `base` names the model in messages. On failure `set` is
// partly written. Throws kgrpo::Error if the adapter belongs to another model.
void ReadAdapter(const std::string& folder, const std::string& base, AdapterSet& set);
// Writes both files to `folder`; `base` is the model's folder.
void WriteAdapter(const std::string& folder, const std::string& base, const AdapterConfig& adapter,
                  const AdapterSet& set);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_ADAPTER_H_
