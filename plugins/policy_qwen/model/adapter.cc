#include "policy_qwen/model/adapter.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

// A linear layer that can be adapted: where its factors are, and the rows of the (joined) weight that are its own.
struct Target {
  std::string_view name, path;
  LowRank LayerAdapter::*factors;
  at::Tensor LayerWeights::*weight;
  int64_t (*first_row)(const ModelConfig&);
  int64_t (*outputs)(const ModelConfig&);
  int64_t (*inputs)(const ModelConfig&);
};

constexpr auto None = [](const ModelConfig&) { return int64_t{0}; };
constexpr auto Hidden = [](const ModelConfig& c) { return c.hidden_size; };
constexpr auto Intermediate = [](const ModelConfig& c) { return c.intermediate_size; };
constexpr auto Query = [](const ModelConfig& c) { return c.query_size(); };
constexpr auto KeyValue = [](const ModelConfig& c) { return c.kv_size(); };
constexpr auto QueryAndKey = [](const ModelConfig& c) { return c.query_size() + c.kv_size(); };

constexpr auto kJoined = &LayerWeights::query_key_value;
constexpr std::array<Target, 7> kTargets = {{
    {"q_proj", "self_attn.q_proj", &LayerAdapter::query, kJoined, None, Query, Hidden},
    {"k_proj", "self_attn.k_proj", &LayerAdapter::key, kJoined, Query, KeyValue, Hidden},
    {"v_proj", "self_attn.v_proj", &LayerAdapter::value, kJoined, QueryAndKey, KeyValue, Hidden},
    {"o_proj", "self_attn.o_proj", &LayerAdapter::output, &LayerWeights::output, None, Hidden, Query},
    {"gate_proj", "mlp.gate_proj", &LayerAdapter::gate, &LayerWeights::gate_up, None, Intermediate, Hidden},
    {"up_proj", "mlp.up_proj", &LayerAdapter::up, &LayerWeights::gate_up, Intermediate, Intermediate, Hidden},
    {"down_proj", "mlp.down_proj", &LayerAdapter::down, &LayerWeights::down, None, Hidden, Intermediate},
}};

at::Tensor OwnRows(const ModelConfig& config, const Target& target, const LayerWeights& weights) {
  return (weights.*target.weight).narrow(0, target.first_row(config), target.outputs(config));
}

}  // namespace

const std::vector<std::string>& AllTargets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    list.reserve(kTargets.size());
    for (const Target& target : kTargets) list.emplace_back(target.name);
    return list;
  }();
  return names;
}

std::vector<std::string> InTargetOrder(const std::vector<std::string>& given) {
  std::vector<std::string> ordered;
  std::ranges::copy_if(AllTargets(), std::back_inserter(ordered),
                       [&](const std::string& name) { return std::ranges::find(given, name) != given.end(); });
  return ordered;
}

AdapterSet::AdapterSet(const ModelConfig& config, const AdapterConfig& adapter, at::Device device) {
  std::vector<ParameterSpec> specs;
  int64_t end = 0;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, int64_t layer) {
    specs.push_back({.name = name, .shape = std::move(shape), .is_matrix = true, .offset = end, .layer = layer});
    end += AlignedSize(specs.back().size());
  };
  const AdapterSelection selection(adapter);
  for (const char* name : {"model.embed_tokens", "lm_head"}) {
    if (!selection.Find(name, -1)) continue;
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                std::string("adapter: \"target_modules\" selects ") + name +
                    ", which is not supported; supported are the linear layers q_proj, k_proj, "
                    "v_proj, o_proj, gate_proj, up_proj and down_proj");
  }
  std::vector<std::pair<LowRank*, double>> adapted;  // with their scales
  layers_.resize(static_cast<size_t>(config.layer_count));
  for (int64_t layer = 0; layer < config.layer_count; ++layer) {
    for (const Target& target : kTargets) {
      const std::string path = "model.layers." + std::to_string(layer) + "." + std::string(target.path);
      const std::optional<LayerShape> shape = selection.Find(path, layer);
      if (!shape) continue;
      add("base_model.model." + path + ".lora_A.weight", {shape->rank, target.inputs(config)}, layer);
      add("base_model.model." + path + ".lora_B.weight", {target.outputs(config), shape->rank}, layer);
      adapted.emplace_back(&(layers_[static_cast<size_t>(layer)].*target.factors), shape->scale);
    }
  }
  if (adapted.empty()) {
    throw Error(KGRPO_ERROR_INVALID,
                "adapter: \"target_modules\" and the keys beside it select none of the model's linear layers");
  }
  Allocate(std::move(specs), end, at::kFloat, device);
  for (size_t i = 0; i < adapted.size(); ++i) *adapted[i].first = {Get(2 * i), Get(2 * i + 1), adapted[i].second};
}

bool AdapterSet::IsOff() const {
  for (size_t i = 1; i < specs().size(); i += 2) {
    if (at::count_nonzero(Get(i)).item<int64_t>() > 0) return false;
  }
  return true;
}

Weights AdapterSet::Attached(const Weights& base) const {
  Weights weights = base;
  for (size_t i = 0; i < layers_.size(); ++i) weights.layers[i].adapter = layers_[i];
  return weights;
}

Weights AdapterSet::Alone() const {
  Weights nothing;
  nothing.layers.resize(layers_.size());
  return Attached(nothing);
}

// The bound is that of kaiming_uniform_ with a = sqrt(5), PyTorch's default for a linear layer.
void InitializeAdapter(uint64_t seed, AdapterSet& set) {
  at::Tensor(set.buffer()).zero_();
  for (size_t i = 0; i < set.specs().size(); i += 2) {
    const ParameterSpec& spec = set.specs()[i];
    const double bound = 1.0 / std::sqrt(static_cast<double>(spec.shape[1]));
    const uint64_t tensor_seed = SeedFor(seed, spec.name);
    std::vector<float> values(static_cast<size_t>(spec.size()));
    for (size_t j = 0; j < values.size(); ++j) {
      values[j] = static_cast<float>(bound * (2 * RandomUniform(tensor_seed, j) - 1));
    }
    set.Get(i).copy_(at::from_blob(values.data(), spec.shape, at::TensorOptions().dtype(at::kFloat)));
  }
}

Weights CopyTargets(const ModelConfig& config, const Weights& adapted) {
  Weights copy = adapted;
  for (size_t i = 0; i < copy.layers.size(); ++i) {
    LayerWeights& layer = copy.layers[i];
    for (const Target& target : kTargets) {
      const at::Tensor& shared = adapted.layers[i].*target.weight;
      at::Tensor& own = layer.*target.weight;
      if ((layer.adapter.*target.factors).defined() && own.is_same(shared)) own = shared.clone();
    }
    layer.adapter = {};
    layer.query = layer.query_key_value.narrow(0, 0, config.query_size());
    layer.key_value = layer.query_key_value.narrow(0, config.query_size(), 2 * config.kv_size());
  }
  return copy;
}

int64_t CopiedBytes(const Weights& adapted) {
  int64_t bytes = 0;
  for (const LayerWeights& layer : adapted.layers) {
    std::set<const void*> counted;
    for (const Target& target : kTargets) {
      const at::Tensor& weight = layer.*target.weight;
      if ((layer.adapter.*target.factors).defined() && counted.insert(weight.const_data_ptr()).second)
        bytes += static_cast<int64_t>(weight.nbytes());
    }
  }
  return bytes;
}

void MergeAdapter(const ModelConfig& config, const Weights& adapted, const Weights& merged) {
  for (size_t i = 0; i < adapted.layers.size(); ++i) {
    const LayerWeights& from = adapted.layers[i];
    for (const Target& target : kTargets) {
      const LowRank& factors = from.adapter.*target.factors;
      if (!factors.defined()) continue;
      const at::Tensor sum =
          at::addmm(OwnRows(config, target, from).to(at::kFloat), factors.b, factors.a, 1, factors.scale);
      OwnRows(config, target, merged.layers[i]).copy_(sum);
    }
  }
}

}  // namespace kgrpo::policy
