// Low-rank adaptation of a linear layer (Hu et al., 2021: LoRA): scale * B A is added to its frozen weight. Forward,
// backward and merging; no autograd, as in ops.h. Used by the transformer and by adapter.cc.
//
// A and B are float32 whatever the model's dtype, as peft keeps them; the layer's own products stay in the model's. On
// a GPU their products with bfloat16 rows take A, B and x A^T rounded to it, and add in float32.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_LOW_RANK_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_LOW_RANK_H_

#include <ATen/core/Tensor.h>

namespace kgrpo::policy {

// The factors, or their gradients (whose scale is not read). Undefined where a layer is not adapted.
struct LowRank {
  at::Tensor a;  // [rank, inputs]
  at::Tensor b;  // [outputs, rank]
  double scale = 0;

  bool defined() const { return a.defined(); }
};

// The adapted linear layers of a transformer layer.
struct LayerAdapter {
  LowRank query, key, value, output, gate, up, down;
};

// y += scale x A^T B^T; nothing where `factors` is undefined. x [rows, inputs], y [rows,
// outputs], which may be a slice of columns.
void AddLowRank(const at::Tensor& y, const at::Tensor& x, const LowRank& factors);

// The derivative of AddLowRank: adds to the gradients of A and B and to dx [rows, inputs]. dy as y.
void LowRankBackward(const at::Tensor& dy, const at::Tensor& x, const LowRank& factors, const LowRank& gradients,
                     const at::Tensor& dx);

// merged = weight + scale B A, computed in float32 and rounded once. [outputs, inputs] each; `merged` may be `weight`.
void MergeLowRank(const at::Tensor& weight, const LowRank& factors, const at::Tensor& merged);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_LOW_RANK_H_
