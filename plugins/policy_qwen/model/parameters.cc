#include "policy_qwen/model/parameters.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

// Tensors begin at multiples of this many elements: 128 bytes in bfloat16, enough for any vector load.
constexpr int64_t kAlignment = 64;

// Matrices lie first in the buffer, norms and biases behind them, each kind in the order of the list.
class SpecList {
 public:
  // `joined`: the tensor follows the previous one of its kind without a gap, and the two form one matrix (or vector).
  void Add(std::string name, std::vector<int64_t> shape, bool joined = false) {
    ParameterSpec spec;
    spec.layer = layer_;
    spec.is_matrix = shape.size() == 2;
    spec.is_norm = name.ends_with("norm.weight");
    spec.name = std::move(name);
    spec.shape = std::move(shape);
    int64_t& end = spec.is_matrix ? matrices_end_ : others_end_;
    if (!joined) end = AlignedSize(end);
    spec.offset = end;
    end += spec.size();
    specs_.push_back(std::move(spec));
  }

  // What is added from now on belongs to the next layer.
  void NextLayer() { ++layer_; }

  std::vector<ParameterSpec> Take() {
    for (ParameterSpec& spec : specs_) {
      if (!spec.is_matrix) spec.offset += AlignedSize(matrices_end_);
    }
    return std::move(specs_);
  }

 private:
  std::vector<ParameterSpec> specs_;
  int64_t matrices_end_ = 0, others_end_ = 0;  // the latter from the first norm or bias
  int64_t layer_ = ParameterSpec::kEmbedding;
};

// Views of a buffer by parameter name.
class Views {
 public:
  Views(const at::Tensor& buffer, const std::vector<ParameterSpec>& specs) : buffer_(buffer) {
    for (const ParameterSpec& spec : specs) by_name_[spec.name] = &spec;
  }

  // The parameter `first` or, if `rows` is given, it and those behind it as one matrix of so many rows (or one vector);
  // undefined if there is none of that name.
  at::Tensor Rows(const std::string& first, int64_t rows = 0) const {
    const auto found = by_name_.find(first);
    if (found == by_name_.end()) return {};
    const ParameterSpec& spec = *found->second;
    const int64_t columns = spec.is_matrix ? spec.shape[1] : 1;
    if (rows == 0) rows = spec.shape[0];
    const at::Tensor flat = buffer_.narrow(0, spec.offset, rows * columns);
    return spec.is_matrix ? flat.view({rows, columns}) : flat;
  }

 private:
  const at::Tensor& buffer_;
  std::map<std::string, const ParameterSpec*> by_name_;
};

constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
constexpr const char* kHeadName = "lm_head.weight";

std::string LayerPrefix(int64_t layer) { return "model.layers." + std::to_string(layer) + "."; }

Weights MakeWeights(const ModelConfig& config, const at::Tensor& buffer, const std::vector<ParameterSpec>& specs) {
  const Views views(buffer, specs);
  const int64_t query = config.query_size();
  const int64_t key_value = 2 * config.kv_size();
  Weights weights;
  weights.embedding = views.Rows(kEmbeddingName);
  for (int64_t i = 0; i < config.layer_count; ++i) {
    const std::string prefix = LayerPrefix(i);
    const std::string attention = prefix + "self_attn.";
    LayerWeights layer;
    layer.attention_norm = views.Rows(prefix + "input_layernorm.weight");
    layer.query = views.Rows(attention + "q_proj.weight");
    layer.query_bias = views.Rows(attention + "q_proj.bias");
    layer.key_value = views.Rows(attention + "k_proj.weight", key_value);
    layer.key_value_bias = views.Rows(attention + "k_proj.bias", key_value);
    layer.query_key_value = views.Rows(attention + "q_proj.weight", query + key_value);
    layer.query_key_value_bias = views.Rows(attention + "q_proj.bias", query + key_value);
    layer.query_norm = views.Rows(attention + "q_norm.weight");
    layer.key_norm = views.Rows(attention + "k_norm.weight");
    layer.output = views.Rows(attention + "o_proj.weight");
    layer.output_bias = views.Rows(attention + "o_proj.bias");
    layer.mlp_norm = views.Rows(prefix + "post_attention_layernorm.weight");
    layer.gate_up = views.Rows(prefix + "mlp.gate_proj.weight", 2 * config.intermediate_size);
    layer.gate_up_bias = views.Rows(prefix + "mlp.gate_proj.bias", 2 * config.intermediate_size);
    layer.down = views.Rows(prefix + "mlp.down_proj.weight");
    layer.down_bias = views.Rows(prefix + "mlp.down_proj.bias");
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = views.Rows("model.norm.weight");
  weights.head = config.tied_head ? weights.embedding : views.Rows(kHeadName);
  return weights;
}

at::ScalarType TorchType(const StoredTensor& tensor, const std::string& name) {
  if (tensor.dtype == "F32") return at::kFloat;
  if (tensor.dtype == "BF16") return at::kBFloat16;
  if (tensor.dtype == "F16") return at::kHalf;
  if (tensor.dtype == "F64") return at::kDouble;
  throw Error(KGRPO_ERROR_UNSUPPORTED, tensor.file + ": tensor \"" + name + "\" has dtype " + tensor.dtype +
                                           "; expected F32, BF16, F16 or F64 (weights must not be quantized)");
}

// Tensors that some files hold and the model does not need: a tied head, and frequencies that are computed.
bool IsRedundant(const std::string& name, const ModelConfig& config) {
  return (config.tied_head && name == kHeadName) || name.ends_with("rotary_emb.inv_freq");
}

void CheckNames(const std::string& folder, const ModelConfig& config, const std::vector<ParameterSpec>& specs,
                const std::map<std::string, StoredTensor>& stored) {
  std::set<std::string> expected;
  std::vector<std::string> missing, extra;
  for (const ParameterSpec& spec : specs) {
    expected.insert(spec.name);
    if (!stored.contains(spec.name)) missing.push_back(spec.name);
  }
  for (const auto& [name, tensor] : stored) {
    if (!expected.contains(name) && !IsRedundant(name, config)) extra.push_back(name);
  }
  const auto list = [](const std::vector<std::string>& names) {
    constexpr size_t kShown = 3;
    std::string text;
    for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i > 0 ? ", \"" : "\"") + names[i] + "\"";
    if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
    return text;
  };
  if (!missing.empty()) {
    throw Error(KGRPO_ERROR_INVALID, folder + ": the weights lack " + list(missing) + ", which " +
                                         config.architecture_name + " with this config.json has");
  }
  if (!extra.empty()) {
    throw Error(KGRPO_ERROR_INVALID, folder + ": the weights hold " + list(extra) + ", which " +
                                         config.architecture_name + " with this config.json does not have");
  }
}

}  // namespace

bool HasOwnHead(const std::string& folder) {
  const TensorFiles files(folder);
  const auto head = files.tensors().find(kHeadName), embedding = files.tensors().find(kEmbeddingName);
  if (head == files.tensors().end() || embedding == files.tensors().end()) return false;
  if (head->second.dtype == embedding->second.dtype && head->second.shape == embedding->second.shape &&
      std::ranges::equal(head->second.data, embedding->second.data)) {
    return false;
  }
  return !at::equal(ToTensor(head->second, kHeadName).to(at::kFloat),
                    ToTensor(embedding->second, kEmbeddingName).to(at::kFloat));
}

int64_t AlignedSize(int64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

int64_t ParameterSpec::size() const {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return size;
}

std::vector<ParameterSpec> ParameterSpecs(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t intermediate = config.intermediate_size;
  const int64_t query = config.query_size();
  const int64_t kv = config.kv_size();
  SpecList list;
  list.Add(kEmbeddingName, {config.vocabulary_size, hidden});
  for (int64_t i = 0; i < config.layer_count; ++i) {
    const std::string prefix = LayerPrefix(i);
    const std::string attention = prefix + "self_attn.";
    list.NextLayer();
    list.Add(prefix + "input_layernorm.weight", {hidden});
    list.Add(attention + "q_proj.weight", {query, hidden});
    list.Add(attention + "k_proj.weight", {kv, hidden}, true);
    list.Add(attention + "v_proj.weight", {kv, hidden}, true);
    if (config.attention_input_bias) {
      list.Add(attention + "q_proj.bias", {query});
      list.Add(attention + "k_proj.bias", {kv}, true);
      list.Add(attention + "v_proj.bias", {kv}, true);
    }
    if (config.query_key_norm) {
      list.Add(attention + "q_norm.weight", {config.head_size});
      list.Add(attention + "k_norm.weight", {config.head_size});
    }
    list.Add(attention + "o_proj.weight", {hidden, query});
    if (config.attention_output_bias) list.Add(attention + "o_proj.bias", {hidden});
    list.Add(prefix + "post_attention_layernorm.weight", {hidden});
    list.Add(prefix + "mlp.gate_proj.weight", {intermediate, hidden});
    list.Add(prefix + "mlp.up_proj.weight", {intermediate, hidden}, true);
    if (config.mlp_bias) {
      list.Add(prefix + "mlp.gate_proj.bias", {intermediate});
      list.Add(prefix + "mlp.up_proj.bias", {intermediate}, true);
    }
    list.Add(prefix + "mlp.down_proj.weight", {hidden, intermediate});
    if (config.mlp_bias) list.Add(prefix + "mlp.down_proj.bias", {hidden});
  }
  list.NextLayer();
  list.Add("model.norm.weight", {hidden});
  if (!config.tied_head) list.Add(kHeadName, {config.vocabulary_size, hidden});
  return list.Take();
}

std::vector<LayerPiece> LayerPieces(std::vector<ParameterSpec> specs, int64_t elements) {
  std::ranges::sort(specs, {}, &ParameterSpec::offset);
  std::vector<LayerPiece> pieces;
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t end = i + 1 < specs.size() ? specs[i + 1].offset : elements;
    if (i > 0 && specs[i].layer == specs[i - 1].layer && specs[i].is_matrix == specs[i - 1].is_matrix) {
      pieces.back().end = end;
    } else {
      pieces.push_back({specs[i].layer, specs[i].offset, end});
    }
  }
  return pieces;
}

ParameterSet::ParameterSet(const ModelConfig& config, at::ScalarType dtype, at::Device device) {
  std::vector<ParameterSpec> all = ParameterSpecs(config);
  int64_t end = 0;
  for (const ParameterSpec& spec : all) end = std::max(end, spec.offset + spec.size());
  Allocate(std::move(all), end, dtype, device);
  weights_ = MakeWeights(config, buffer(), specs());
}

void TensorSet::Allocate(std::vector<ParameterSpec> specs, int64_t elements, at::ScalarType dtype, at::Device device) {
  specs_ = std::move(specs);
  buffer_ = at::zeros({elements}, at::TensorOptions().dtype(dtype).device(device));
}

at::Tensor TensorSet::Get(size_t index) const {
  const ParameterSpec& spec = specs_[index];
  return buffer_.narrow(0, spec.offset, spec.size()).view(spec.shape);
}

at::Tensor TensorSet::Group(bool matrices) const {
  int64_t middle = buffer_.size(0);
  for (const ParameterSpec& spec : specs_) middle = spec.is_matrix ? middle : std::min(middle, spec.offset);
  return matrices ? buffer_.narrow(0, 0, middle) : buffer_.narrow(0, middle, buffer_.size(0) - middle);
}

int64_t TensorSet::parameter_count() const {
  int64_t count = 0;
  for (const ParameterSpec& spec : specs_) count += spec.size();
  return count;
}

at::Tensor ToTensor(const StoredTensor& stored, const std::string& name) {
  // The data may begin at any byte, but users of from_blob expect aligned memory, so it is copied first.
  at::Tensor aligned = at::empty(stored.shape, at::TensorOptions().dtype(TorchType(stored, name)));
  std::memcpy(aligned.mutable_data_ptr(), stored.data.data(), stored.data.size());
  const auto [least, greatest] = at::aminmax(aligned.view({-1}).to(at::kFloat));
  if (!std::isfinite(least.item<float>()) || !std::isfinite(greatest.item<float>())) {
    throw Error(KGRPO_ERROR_INVALID,
                stored.file + ": tensor \"" + name + "\" holds values that are not finite (NaN or infinity)");
  }
  return aligned;
}

void ReadParameters(const std::string& folder, const ModelConfig& config, ParameterSet& set) {
  const TensorFiles files(folder);
  std::map<std::string, StoredTensor> tensors = files.tensors();
  if (config.tied_head && !tensors.contains(kEmbeddingName) && tensors.contains(kHeadName))
    tensors[kEmbeddingName] = tensors[kHeadName];
  CheckNames(folder, config, set.specs(), tensors);
  for (size_t i = 0; i < set.specs().size(); ++i) {
    const ParameterSpec& spec = set.specs()[i];
    const StoredTensor& stored = tensors.at(spec.name);
    if (stored.shape != spec.shape) {
      throw Error(KGRPO_ERROR_INVALID, stored.file + ": tensor \"" + spec.name + "\" has shape " +
                                           ShapeText(stored.shape) + "; config.json says " + ShapeText(spec.shape));
    }
    set.Get(i).copy_(ToTensor(stored, spec.name));
  }
}

void InitializeParameters(const ModelConfig& config, uint64_t seed, ParameterSet& set) {
  for (size_t i = 0; i < set.specs().size(); ++i) {
    const ParameterSpec& spec = set.specs()[i];
    std::vector<float> values(static_cast<size_t>(spec.size()), spec.is_norm ? 1.0f : 0.0f);
    if (spec.is_matrix) {
      const uint64_t tensor_seed = SeedFor(seed, spec.name);
      for (size_t j = 0; j < values.size(); ++j) {
        values[j] = static_cast<float>(config.initializer_range * RandomNormal(tensor_seed, j));
      }
    }
    set.Get(i).copy_(at::from_blob(values.data(), spec.shape, at::TensorOptions().dtype(at::kFloat)));
  }
}

void TensorSet::Write(const std::string& path) const {
  const at::Tensor host = buffer_.cpu();
  const size_t item_size = host.element_size();
  const std::string dtype = host.scalar_type() == at::kBFloat16 ? "BF16" : "F32";
  std::vector<TensorToWrite> tensors;
  for (const ParameterSpec& spec : specs_) {
    const auto* data =
        static_cast<const uint8_t*>(host.const_data_ptr()) + static_cast<size_t>(spec.offset) * item_size;
    tensors.push_back({spec.name, dtype, spec.shape, {data, static_cast<size_t>(spec.size()) * item_size}});
  }
  WriteTensorFile(path, tensors);
}

}  // namespace kgrpo::policy
