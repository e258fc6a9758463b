#include "policy_qwen/gpu/fused_ops.h"

#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "policy_qwen/device.h"
#include "policy_qwen/gpu/gpu_library.h"

namespace kgrpo::policy {
namespace {

Element ElementOf(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 ? Element::kBfloat16 : Element::kFloat32;
}

void CheckTraining(const char* failure) { CheckGpu("training", failure); }

at::TensorOptions Floats(const at::Tensor& like) { return like.options().dtype(at::kFloat); }

double AttentionScale(const ModelConfig& config) { return 1.0 / std::sqrt(static_cast<double>(config.head_size)); }

// libtorch sums flash attention's derivatives by atomics unless told to be deterministic, which is a setting of the
// process.
class DeterministicScope {
 public:
  DeterministicScope()
      : before_(at::globalContext().deterministicAlgorithms()),
        warn_only_before_(at::globalContext().deterministicAlgorithmsWarnOnly()),
        fill_before_(at::globalContext().deterministicFillUninitializedMemory()) {
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);  // with true it only warns
  }
  ~DeterministicScope() {
    at::globalContext().setDeterministicAlgorithms(before_, warn_only_before_);
    at::globalContext().setDeterministicFillUninitializedMemory(fill_before_);
  }
  DeterministicScope(const DeterministicScope&) = delete;
  DeterministicScope& operator=(const DeterministicScope&) = delete;

 private:
  bool before_, warn_only_before_, fill_before_;
};

}  // namespace

GpuStream FusedOps::Stream() const { return {device_.index(), CurrentStream(device_)}; }

at::Tensor FusedOps::RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor& scale) const {
  const int64_t columns = x.size(-1), rows = x.numel() / columns;
  at::Tensor y = at::empty_like(x);
  scale = at::empty({rows}, Floats(x));
  CheckTraining(kernels_.rms_norm(ElementOf(x), x.const_data_ptr(), columns, weight.const_data_ptr(),
                                  static_cast<float>(epsilon), rows, columns, y.mutable_data_ptr(),
                                  scale.mutable_data_ptr<float>(), Stream()));
  return y;
}

at::Tensor FusedOps::RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
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

RotaryAngles FusedOps::Angles(const RotaryAngles& angles) const {
  return {angles.cos.squeeze(1).narrow(1, 0, angles.sin.size(2)).to(at::kFloat).contiguous(),
          angles.sin.squeeze(1).to(at::kFloat).contiguous()};
}

void FusedOps::Turn(const at::Tensor& x, const at::Tensor& y, const RotaryAngles& angles, float direction) const {
  CheckTraining(kernels_.rotate(ElementOf(x), x.const_data_ptr(), x.stride(0), y.mutable_data_ptr(), y.stride(0),
                                x.size(0), x.size(1), x.size(2), angles.cos.const_data_ptr<float>(),
                                angles.sin.const_data_ptr<float>(), direction, Stream()));
}

at::Tensor FusedOps::Rotate(const at::Tensor& x, const RotaryAngles& angles) const {
  Turn(x, x, angles, 1.0F);
  return x;
}

void FusedOps::RotateBackward(const at::Tensor& dy, const RotaryAngles& angles, const at::Tensor& dx) const {
  Turn(dy, dx, angles, -1.0F);
}

bool FusedOps::UsesFlashAttention(const ModelConfig& config, at::ScalarType dtype) const {
  return dtype == at::kBFloat16 && config.head_size % 8 == 0 && config.head_size <= 256;
}

at::Tensor FusedOps::Attention(const ModelConfig& config, const AttentionPlan& plan, const at::Tensor& q,
                               const at::Tensor& k, const at::Tensor& v, AttentionActivations* saved) const {
  if (!plan.key_ends.defined()) return Ops::Attention(config, plan, q, k, v, saved);
  AttentionActivations local;
  AttentionActivations& held = saved != nullptr ? *saved : local;
  // Causal from the last key on: query r of q sees the keys up to k - q + r.
  std::tie(held.output, held.log_sums, held.random, held.unused, std::ignore) = at::_flash_attention_forward(
      q, k, v, plan.query_ends, plan.key_ends, plan.most_queries, plan.most_keys, /*dropout_p=*/0.0, /*is_causal=*/true,
      /*return_debug_mask=*/false, AttentionScale(config));
  held.queries = q;
  held.keys = k;
  held.values = v;
  return held.output.flatten(1);
}

AttentionGradients FusedOps::AttentionBackward(const ModelConfig& config, const AttentionPlan& plan,
                                               const AttentionActivations& saved, const at::Tensor& d_out) const {
  if (!plan.key_ends.defined()) return Ops::AttentionBackward(config, plan, saved, d_out);
  const DeterministicScope deterministic;
  AttentionGradients d;
  std::tie(d.q, d.k, d.v) = at::_flash_attention_backward(
      d_out.view(saved.output.sizes()), saved.queries, saved.keys, saved.values, saved.output, saved.log_sums,
      plan.query_ends, plan.key_ends, plan.most_queries, plan.most_keys, /*dropout_p=*/0.0, /*is_causal=*/true,
      saved.random, saved.unused, AttentionScale(config));
  return d;
}

at::Tensor FusedOps::SwiGlu(const at::Tensor& gate_up) const {
  const int64_t rows = gate_up.size(0), columns = gate_up.size(1) / 2;
  at::Tensor y = at::empty({rows, columns}, gate_up.options());
  CheckTraining(
      kernels_.swiglu(ElementOf(gate_up), gate_up.const_data_ptr(), rows, columns, y.mutable_data_ptr(), Stream()));
  return y;
}

at::Tensor FusedOps::SwiGluBackward(const at::Tensor& dy, const at::Tensor& gate_up) const {
  CheckTraining(kernels_.swiglu_backward(ElementOf(gate_up), dy.const_data_ptr(), gate_up.const_data_ptr(), dy.size(0),
                                         dy.size(1), gate_up.mutable_data_ptr(), Stream()));
  return gate_up;
}

Ops::Logprobs FusedOps::TokenLogprobs(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                                      bool want_entropies) const {
  const auto values = [&] { return at::empty({logits.size(0)}, Floats(logits)); };
  Logprobs result = {values(), want_entropies ? values() : at::Tensor(), values()};
  CheckTraining(
      kernels_.token_logprobs(ElementOf(logits), logits.const_data_ptr(), targets.const_data_ptr<int64_t>(),
                              static_cast<float>(temperature), logits.size(0), logits.size(1),
                              result.logprobs.mutable_data_ptr<float>(), result.normalizers.mutable_data_ptr<float>(),
                              want_entropies ? result.entropies.mutable_data_ptr<float>() : nullptr, Stream()));
  return result;
}

at::Tensor FusedOps::TokenLogprobsBackward(const at::Tensor& logits, const at::Tensor& targets,
                                           const at::Tensor& normalizers, const at::Tensor& d_logprobs,
                                           double temperature) const {
  CheckTraining(kernels_.token_logprobs_backward(ElementOf(logits), logits.mutable_data_ptr(),
                                                 targets.const_data_ptr<int64_t>(), normalizers.const_data_ptr<float>(),
                                                 d_logprobs.const_data_ptr<float>(), static_cast<float>(temperature),
                                                 logits.size(0), logits.size(1), Stream()));
  return logits;
}

int64_t FusedOps::LogitRows(int64_t vocabulary, at::ScalarType dtype) const {
  const int64_t bytes = std::min(int64_t{1} << 30, free_bytes_() / 4);
  return std::max<int64_t>(1, bytes / (vocabulary * static_cast<int64_t>(c10::elementSize(dtype))));
}

}  // namespace kgrpo::policy
