// The operators that a transformer layer is made of, each with its derivative. Plain libtorch, no autograd: the model
// calls the backward functions itself, in reverse. Used by the transformer.
//
// x is [rows, ...] in the model's dtype (float32 or bfloat16) on any device. Gradients of parameters are float32 and
// are added to; gradients of activations are in the model's dtype and returned.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_OPS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_OPS_H_

#include <ATen/core/Tensor.h>

namespace kgrpo::policy {

// x W^T + bias; bias may be undefined. x [rows, inputs], W [outputs, inputs] -> [rows, outputs].
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// residual + x W^T + bias.
at::Tensor LinearAdd(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// The parameters' part of Linear's derivative: weight_gradient += dy^T x, bias_gradient += the column sums of dy. The
// gradients are undefined where the layer has no such parameter, or it is frozen.
void LinearBackwardParameters(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight_gradient,
                              const at::Tensor& bias_gradient);

// RMSNorm (Zhang and Sennrich, 2019) over the last dimension: x / sqrt(mean(x^2) + epsilon), computed in float32 and
// rounded to x's dtype, then times weight. `scale` receives 1 / sqrt(...) as float32 [..., 1] for the backward.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor* scale);
// weight_gradient is undefined where the weight is frozen.
at::Tensor RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                           const at::Tensor& weight_gradient);

// Cosines and sines of the rotary angles of some positions, in the model's dtype: cos [rows, 1, head size] (each half
// alike), sin [rows, 1, head size / 2].
struct RotaryAngles {
  at::Tensor cos;
  at::Tensor sin;
};

// Rotary positions (Su et al., 2021) in the layout of transformers: element i of the first half of a head is turned
// with element i of the second half. x [rows, heads, head size], may be a strided view -> new, contiguous.
at::Tensor Rotate(const at::Tensor& x, const RotaryAngles& angles);
// Its derivative: the opposite rotation.
at::Tensor RotateBackward(const at::Tensor& dy, const RotaryAngles& angles);

// silu(gate) * up of x = [gate, up] side by side: [rows, 2 n] -> [rows, n].
at::Tensor SwiGlu(const at::Tensor& x);
at::Tensor SwiGluBackward(const at::Tensor& dy, const at::Tensor& x);

// out[i] = source[index[i]], zeros where index[i] is -1. source [n, columns] contiguous, index int64 [m].
at::Tensor GatherRows(const at::Tensor& source, const at::Tensor& index);

// target[index[i]] += source[i]; rows named twice are added in order. target [n, columns] contiguous; its dtype may be
// float32 while source is bfloat16.
void AddRows(const at::Tensor& target, const at::Tensor& index, const at::Tensor& source);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_OPS_H_
