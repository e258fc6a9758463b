#include "policy_qwen/model/low_rank.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace kgrpo::policy {
namespace {

// The dtype of the factors in products with x: float32 on a CPU; on a GPU that of x, whose products add in float32.
at::ScalarType FactorType(const at::Tensor& x) {
  return x.is_cpu() ? at::kFloat : x.scalar_type();
}

// to += scale x y, rounded once.
void AddProduct(at::Tensor to, const at::Tensor& x, const at::Tensor& y, double scale) {
  if (to.scalar_type() == x.scalar_type()) {
    to.addmm_(x, y, 1, scale);
  } else if (to.scalar_type() == at::kFloat) {
    at::addmm_out(to, to, x, y, at::kFloat, 1, scale);
  } else {
    to.copy_(at::addmm(to.to(at::kFloat), x, y, 1, scale));
  }
}

}  // namespace

void AddLowRank(const at::Tensor& y, const at::Tensor& x, const LowRank& factors) {
  if (!factors.defined()) return;
  const at::ScalarType type = FactorType(x);
  AddProduct(y, at::mm(x.to(type), factors.a.to(type).t()), factors.b.to(type).t(), factors.scale);
}

void LowRankBackward(const at::Tensor& dy, const at::Tensor& x, const LowRank& factors, const LowRank& gradients,
                     const at::Tensor& dx) {
  if (!factors.defined()) return;
  const at::ScalarType type = FactorType(x);
  const at::Tensor rows = x.to(type), d = dy.to(type), a = factors.a.to(type);
  AddProduct(gradients.b, d.t(), at::mm(rows, a.t()), factors.scale);
  const at::Tensor d_inner = at::mm(d, factors.b.to(type));
  AddProduct(gradients.a, d_inner.t(), rows, factors.scale);
  AddProduct(dx, d_inner, a, factors.scale);
}

void MergeLowRank(const at::Tensor& weight, const LowRank& factors, const at::Tensor& merged) {
  at::Tensor(merged).copy_(at::addmm(weight.to(at::kFloat), factors.b, factors.a, 1, factors.scale));
}

}  // namespace kgrpo::policy
