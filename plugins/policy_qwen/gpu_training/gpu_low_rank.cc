#include "policy_qwen/gpu_training/gpu_low_rank.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace kgrpo::policy {

void AddLowRankOnGpu(const at::Tensor& y, const at::Tensor& x, const LowRank& factors) {
  if (!factors.defined()) return;
  if (x.scalar_type() == at::kFloat) return AddLowRank(y, x, factors);
  const at::Tensor a = factors.a.to(x.scalar_type()), b = factors.b.to(x.scalar_type());
  at::Tensor(y).addmm_(at::mm(x, a.t()), b.t(), 1, factors.scale);
}

void LowRankBackwardOnGpu(const at::Tensor& dy, const at::Tensor& x, const LowRank& factors, const LowRank& gradients,
                          const at::Tensor& dx) {
  if (!factors.defined()) return;
  if (x.scalar_type() == at::kFloat) return LowRankBackward(dy, x, factors, gradients, dx);
  const at::Tensor a = factors.a.to(x.scalar_type()), b = factors.b.to(x.scalar_type());
  at::Tensor gradient_a = gradients.a, gradient_b = gradients.b;
  at::addmm_out(gradient_b, gradient_b, dy.t(), at::mm(x, a.t()), at::kFloat, 1, factors.scale);
  const at::Tensor d_inner = at::mm(dy, b);
  at::addmm_out(gradient_a, gradient_a, d_inner.t(), x, at::kFloat, 1, factors.scale);
  at::Tensor(dx).addmm_(d_inner, a, 1, factors.scale);
}

}  // namespace kgrpo::policy
