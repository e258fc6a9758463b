#include "policy_qwen/gpu_training/gpu_ops.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include "policy_qwen/device.h"
#include "policy_qwen/gpu/gpu_library.h"

namespace kgrpo::policy {
namespace {

Element ElementOf(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 ? Element::kBfloat16 : Element::kFloat32;
}

void CheckTraining(const char* failure) {
  CheckGpu("training", failure);
}

at::TensorOptions Floats(const at::Tensor& like) {
  return like.options().dtype(at::kFloat);
}

}  // namespace

GpuStream GpuOps::Stream() const {
  return {device_.index(), CurrentStream(device_)};
}

GpuOps::Normed GpuOps::RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) const {
  const int64_t columns = x.size(-1), rows = x.numel() / columns;
  Normed normed = {at::empty_like(x), at::empty({rows}, Floats(x))};
  CheckTraining(kernels_.rms_norm(ElementOf(x), x.const_data_ptr(), columns, weight.const_data_ptr(),
                                  static_cast<float>(epsilon), rows, columns, normed.rows.mutable_data_ptr(),
                                  normed.scale.mutable_data_ptr<float>(), Stream()));
  return normed;
}

at::Tensor GpuOps::RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& scale, const at::Tensor& weight_gradient,
                                   const at::Tensor& add) const {
  const int64_t columns = x.size(-1), rows = x.numel() / columns;
  if (weight_gradient.defined()) {
    at::Tensor partial = at::empty({kNormSlices, columns}, Floats(x));
    CheckTraining(kernels_.rms_norm_weight_gradient(
        ElementOf(x), dy.const_data_ptr(), x.const_data_ptr(), columns, scale.const_data_ptr<float>(), rows, columns,
        partial.mutable_data_ptr<float>(), weight_gradient.mutable_data_ptr<float>(), Stream()));
  }
  at::Tensor dx = add.defined() ? add : at::empty_like(x);
  CheckTraining(kernels_.rms_norm_backward(ElementOf(x), dy.const_data_ptr(), x.const_data_ptr(), columns,
                                           weight.const_data_ptr(), scale.const_data_ptr<float>(),
                                           add.defined() ? add.const_data_ptr() : nullptr, rows, columns,
                                           dx.mutable_data_ptr(), Stream()));
  return dx;
}

void GpuOps::Rotate(const at::Tensor& x, const at::Tensor& y, const GpuAngles& angles, float direction) const {
  CheckTraining(kernels_.rotate(ElementOf(x), x.const_data_ptr(), x.stride(0), y.mutable_data_ptr(), y.stride(0),
                                x.size(0), x.size(1), x.size(2), angles.cos.const_data_ptr<float>(),
                                angles.sin.const_data_ptr<float>(), direction, Stream()));
}

at::Tensor GpuOps::SwiGlu(const at::Tensor& gate_up) const {
  const int64_t rows = gate_up.size(0), columns = gate_up.size(1) / 2;
  at::Tensor y = at::empty({rows, columns}, gate_up.options());
  CheckTraining(
      kernels_.swiglu(ElementOf(gate_up), gate_up.const_data_ptr(), rows, columns, y.mutable_data_ptr(), Stream()));
  return y;
}

at::Tensor GpuOps::SwiGluBackward(const at::Tensor& dy, const at::Tensor& gate_up) const {
  CheckTraining(kernels_.swiglu_backward(ElementOf(gate_up), dy.const_data_ptr(), gate_up.const_data_ptr(), dy.size(0),
                                         dy.size(1), gate_up.mutable_data_ptr(), Stream()));
  return gate_up;
}

void GpuOps::LinearBackwardParameters(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight_gradient,
                                      const at::Tensor& bias_gradient) const {
  at::Tensor gradient = weight_gradient;
  if (!gradient.defined()) {
    // Frozen.
  } else if (dy.scalar_type() == at::kFloat) {
    gradient.addmm_(dy.t(), x);
  } else {
    at::addmm_out(gradient, gradient, dy.t(), x, at::kFloat);  // products of bfloat16, sums and result float32
  }
  if (bias_gradient.defined()) at::Tensor(bias_gradient).add_(at::sum(dy, {0}, false, at::kFloat));
}

GpuOps::Logprobs GpuOps::TokenLogprobs(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                                       bool want_entropies) const {
  const int64_t rows = logits.size(0);
  Logprobs result = {at::empty({rows}, Floats(logits)), at::empty({rows}, Floats(logits)), {}};
  if (want_entropies) result.entropies = at::empty({rows}, Floats(logits));
  CheckTraining(kernels_.token_logprobs(
      ElementOf(logits), logits.const_data_ptr(), targets.const_data_ptr<int64_t>(), static_cast<float>(temperature),
      rows, logits.size(1), result.logprobs.mutable_data_ptr<float>(), result.normalizers.mutable_data_ptr<float>(),
      want_entropies ? result.entropies.mutable_data_ptr<float>() : nullptr, Stream()));
  return result;
}

void GpuOps::TokenLogprobsBackward(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& normalizers,
                                   const at::Tensor& d_logprobs, double temperature) const {
  CheckTraining(kernels_.token_logprobs_backward(ElementOf(logits), logits.mutable_data_ptr(),
                                                 targets.const_data_ptr<int64_t>(), normalizers.const_data_ptr<float>(),
                                                 d_logprobs.const_data_ptr<float>(), static_cast<float>(temperature),
                                                 logits.size(0), logits.size(1), Stream()));
}

}  // namespace kgrpo::policy
