// Low-rank adaptation on a GPU: model/low_rank.h's AddLowRank and LowRankBackward for bfloat16 rows without float32
// copies of them. Used by gpu_transformer.cc.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_LOW_RANK_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_LOW_RANK_H_

#include <ATen/core/Tensor.h>

#include "policy_qwen/model/low_rank.h"

namespace kgrpo::policy {

// y += scale x A^T B^T; nothing where `factors` is undefined. x [rows, inputs], y [rows, outputs], which may be a slice
// of columns. bfloat16: A, B and x A^T are rounded to it, sums are float32.
void AddLowRankOnGpu(const at::Tensor& y, const at::Tensor& x, const LowRank& factors);

// The derivative: adds to the float32 gradients of A and B and to dx [rows, inputs]. dy as y.
void LowRankBackwardOnGpu(const at::Tensor& dy, const at::Tensor& x, const LowRank& factors, const LowRank& gradients,
                          const at::Tensor& dx);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_LOW_RANK_H_
