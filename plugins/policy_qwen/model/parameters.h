// The parameters of a model and their gradients: which tensors an architecture has, where they lie, and how they are
// read, initialised and written. Used by the model (Weights), the policy (everything else).
//
// All parameters of a copy lie in one buffer, so that copying or clearing them is one operation: first all matrices,
// then all norms and biases, so that each of the two groups is one slice. Matrices that are applied to the same input
// lie one after the other, so that q, k and v (gate and up) are also one matrix.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_PARAMETERS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_PARAMETERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "policy_qwen/model/config.h"
#include "policy_qwen/model/safetensors.h"

namespace kgrpo::policy {

struct ParameterSpec {
  std::string name;  // as Hugging Face files name it
  std::vector<int64_t> shape;
  bool is_matrix = false;  // embeddings and linear weights; the others are norms and biases
  bool is_norm = false;
  int64_t offset = 0;  // of the first element in the buffer, in elements
  int64_t layer = 0;   // kEmbedding, a layer, or the number of layers: the final norm and a head of its own

  static constexpr int64_t kEmbedding = -1;
  int64_t size() const;
};

// A piece of a parameter buffer: one layer's matrices, or its norms and biases, and the gaps behind them. Begin and end
// are in elements.
struct LayerPiece {
  int64_t layer = 0;  // ParameterSpec's
  int64_t begin = 0, end = 0;
};

// A buffer of `elements` with parameters of `specs` as pieces, several a layer, each within the matrices or within the
// norms and biases.
std::vector<LayerPiece> LayerPieces(std::vector<ParameterSpec> specs, int64_t elements);

// Every parameter of an architecture, in the order in which files hold them.
std::vector<ParameterSpec> ParameterSpecs(const ModelConfig& config);

// Low-rank adaptation of a linear layer (Hu et al., 2021: LoRA): scale * B A is added to its frozen weight (AddLowRank
// in ops.h). The factors, or their gradients (whose scale is not read): float32 whatever the model's dtype, as peft
// keeps them. Undefined where a layer is not adapted.
struct LowRank {
  at::Tensor a;  // [rank, inputs]
  at::Tensor b;  // [outputs, rank]
  double scale = 0;

  bool defined() const { return a.defined(); }
};
struct LayerAdapter {
  LowRank query, key, value, output, gate, up, down;
};

// The tensors of one layer as views of a buffer. Linear weights are [outputs, inputs]; undefined where the architecture
// has none.
struct LayerWeights {
  at::Tensor attention_norm;                         // [hidden]
  at::Tensor query, query_bias;                      // [query size, hidden], [query size]
  at::Tensor key_value, key_value_bias;              // k above v: [2 kv size, hidden], [2 kv size]
  at::Tensor query_key_value, query_key_value_bias;  // the two above as one
  at::Tensor query_norm, key_norm;                   // [head size]
  at::Tensor output, output_bias;                    // [hidden, query size], [hidden]
  at::Tensor mlp_norm;                               // [hidden]
  at::Tensor gate_up, gate_up_bias;                  // gate above up: [2 intermediate, hidden], [2 intermediate]
  at::Tensor down, down_bias;                        // [hidden, intermediate], [hidden]
  LayerAdapter adapter;                              // undefined factors without an adapter
};

struct Weights {
  at::Tensor embedding;  // [vocabulary, hidden]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  // [hidden]
  at::Tensor head;        // [vocabulary, hidden]; the embedding itself where tied
};

// Calls body(tensor) for each tensor that the architecture has, each memory once and without adapters, in one order for
// all copies of a model. A head that is the embedding's is left to the caller.
template <typename AnyWeights, typename Body>
void ForEachTensor(AnyWeights& weights, Body&& body) {
  const bool has_head = !weights.head.is_same(weights.embedding);
  body(weights.embedding);
  body(weights.final_norm);
  if (has_head) body(weights.head);
  using W = LayerWeights;
  for (auto& layer : weights.layers) {
    for (at::Tensor W::*const part :
         {&W::attention_norm, &W::query_key_value, &W::query_key_value_bias, &W::query_norm, &W::key_norm, &W::output,
          &W::output_bias, &W::mlp_norm, &W::gate_up, &W::gate_up_bias, &W::down, &W::down_bias}) {
      if ((layer.*part).defined()) body(layer.*part);
    }
  }
}

// Tensors in one buffer. Owns the memory; views share it.
class TensorSet {
 public:
  bool defined() const { return buffer_.defined(); }
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  at::Tensor Get(size_t index) const;  // the view of specs()[index]
  const at::Tensor& buffer() const { return buffer_; }
  at::Tensor Group(bool matrices) const;  // the slice of the buffer with all matrices, or with all norms and biases
  int64_t parameter_count() const;
  // Writes the tensors to a safetensors file in the set's dtype.
  void Write(const std::string& path) const;

 protected:
  TensorSet() = default;
  void Allocate(std::vector<ParameterSpec> specs, int64_t elements, at::ScalarType dtype, at::Device device);  // zeros

 private:
  std::vector<ParameterSpec> specs_;
  at::Tensor buffer_;  // [elements], padding between tensors zero
};

// One copy of the parameters, or their gradients.
class ParameterSet : public TensorSet {
 public:
  ParameterSet() = default;
  // Zeros of the given dtype and device.
  ParameterSet(const ModelConfig& config, at::ScalarType dtype, at::Device device);

  const Weights& weights() const { return weights_; }

 private:
  Weights weights_;
};

// A size rounded up to where the next tensor may begin, in elements.
int64_t AlignedSize(int64_t size);

// The values of a tensor of a file, on the CPU. Throws kgrpo::Error for dtypes that are no floats, and where a value is
// not finite.
at::Tensor ToTensor(const StoredTensor& stored, const std::string& name);

// True if the head of a folder whose config.json ties it to the embedding is there and differs from the embedding.
bool HasOwnHead(const std::string& folder);

// Fills `set` from the safetensors of `folder`, converted to its dtype. Every tensor of the architecture must be there
// with its shape, no other may be, and all values must be finite; else throws kgrpo::Error naming file, tensor,
// expected and found. Of a tied model either embedding or head may be missing; a head that differs (HasOwnHead) is not
// read. On failure `set` is partly written.
void ReadParameters(const std::string& folder, const ModelConfig& config, ParameterSet& set);

// Random values: matrices normal with standard deviation config.initializer_range, biases 0, norms 1; a pure function
// of (seed, tensor name, index).
void InitializeParameters(const ModelConfig& config, uint64_t seed, ParameterSet& set);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_PARAMETERS_H_
