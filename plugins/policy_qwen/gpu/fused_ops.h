// The model's operators on a GPU: FlashAttention-2 as libtorch brings it, with deterministic sums, and the kernels of
// kernels.h; what they do not cover stays libtorch's (model/ops.h). Made by policy.cc for training.
//
// A launch that fails throws KGRPO_ERROR_UNAVAILABLE. In float32 attention is attention.h's, as in bfloat16 for a head
// size that is not a multiple of 8 or above 256.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_FUSED_OPS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_FUSED_OPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "policy_qwen/gpu/kernels.h"
#include "policy_qwen/model/ops.h"

namespace kgrpo::policy {

class FusedOps final : public Ops {
 public:
  // `kernels` outlive the operators. `free_bytes` returns the device's free memory in bytes.
  FusedOps(const GpuKernels& kernels, at::Device device, std::function<int64_t()> free_bytes)
      : kernels_(kernels), device_(device), free_bytes_(std::move(free_bytes)) {}

  at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor& scale) const override;
  at::Tensor RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& scale, const at::Tensor& weight_gradient,
                             const at::Tensor& add) const override;

  // Float32 [rows, head size / 2] each.
  RotaryAngles Angles(const RotaryAngles& angles) const override;
  // In place.
  at::Tensor Rotate(const at::Tensor& x, const RotaryAngles& angles) const override;
  void RotateBackward(const at::Tensor& dy, const RotaryAngles& angles, const at::Tensor& dx) const override;

  bool UsesFlashAttention(const ModelConfig& config, at::ScalarType dtype) const override;
  at::Tensor Attention(const ModelConfig& config, const AttentionPlan& plan, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, AttentionActivations* saved) const override;
  AttentionGradients AttentionBackward(const ModelConfig& config, const AttentionPlan& plan,
                                       const AttentionActivations& saved, const at::Tensor& d_out) const override;
  bool JoinsProjections() const override { return true; }

  at::Tensor SwiGlu(const at::Tensor& gate_up) const override;
  at::Tensor SwiGluBackward(const at::Tensor& dy, const at::Tensor& gate_up) const override;  // in place

  Logprobs TokenLogprobs(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                         bool want_entropies) const override;
  at::Tensor TokenLogprobsBackward(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& normalizers,
                                   const at::Tensor& d_logprobs, double temperature) const override;  // in place

  // Large products are fast: 16384 tokens, half of the free memory, logits of up to 1 GiB or a quarter of it.
  int64_t TokensAtATime() const override { return 16384; }
  int64_t ActivationRoom() const override { return free_bytes_() / 2; }
  int64_t LogitRows(int64_t vocabulary, at::ScalarType dtype) const override;

 private:
  GpuStream Stream() const;
  void Turn(const at::Tensor& x, const at::Tensor& y, const RotaryAngles& angles, float direction) const;

  const GpuKernels& kernels_;
  at::Device device_;
  std::function<int64_t()> free_bytes_;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_FUSED_OPS_H_
