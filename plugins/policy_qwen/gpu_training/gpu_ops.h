// The operators of a transformer layer on tensors of one GPU, each with its derivative, by the kernels of kernels.h and
// libtorch's products. The GPU's counterpart of model/ops.h. Used by gpu_transformer.cc and gpu_scorer.cc.
//
// Activations are in the model's dtype, gradients of parameters float32 and added to. One thread, inside an
// InferenceMode with the device current. A launch that fails throws KGRPO_ERROR_UNAVAILABLE.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_OPS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_OPS_H_

#include <ATen/core/Tensor.h>

#include "policy_qwen/gpu/kernels.h"

namespace kgrpo::policy {

// Cosines and sines of rotary angles: float32 [rows, head size / 2] each.
struct GpuAngles {
  at::Tensor cos, sin;
};

class GpuOps {
 public:
  // `kernels` outlive the operators.
  GpuOps(const GpuKernels& kernels, at::Device device) : kernels_(kernels), device_(device) {}

  struct Normed {
    at::Tensor rows;   // as x
    at::Tensor scale;  // float32 [rows]
  };
  // RMSNorm over the last dimension of x. x is compact.
  Normed RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) const;
  // Adds to weight_gradient, unless it is undefined; returns the derivative by x, added to `add` in place where that is
  // defined.
  at::Tensor RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& scale, const at::Tensor& weight_gradient, const at::Tensor& add) const;

  // Turns x [rows, heads, head size], heads side by side, rows at any stride, into y, shaped alike; y may be x.
  void Rotate(const at::Tensor& x, const at::Tensor& y, const GpuAngles& angles, float direction) const;

  at::Tensor SwiGlu(const at::Tensor& gate_up) const;
  // Overwrites gate_up with its derivative and returns it.
  at::Tensor SwiGluBackward(const at::Tensor& dy, const at::Tensor& gate_up) const;

  // weight_gradient += dy^T x, summed in float32; bias_gradient += the column sums of dy; each unless it is undefined.
  void LinearBackwardParameters(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight_gradient,
                                const at::Tensor& bias_gradient) const;

  struct Logprobs {
    at::Tensor logprobs, normalizers, entropies;  // float32 [rows]; entropies undefined unless wanted
  };
  Logprobs TokenLogprobs(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                         bool want_entropies) const;
  // Overwrites logits with the derivative by them.
  void TokenLogprobsBackward(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& normalizers,
                             const at::Tensor& d_logprobs, double temperature) const;

 private:
  GpuStream Stream() const;

  const GpuKernels& kernels_;
  at::Device device_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_TRAINING_GPU_OPS_H_
