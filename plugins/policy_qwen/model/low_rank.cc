#include "policy_qwen/model/low_rank.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace kgrpo::policy {
namespace {

// to += scale x y, the product being float32.
void AddProduct(const at::Tensor& to, const at::Tensor& x, const at::Tensor& y, double scale) {
  if (to.scalar_type() == at::kFloat) {
    at::Tensor(to).addmm_(x, y, 1, scale);
  } else {
    at::Tensor(to).copy_(at::addmm(to.to(at::kFloat), x, y, 1, scale));
  }
}

}  // namespace

void AddLowRank(const at::Tensor& y, const at::Tensor& x, const LowRank& factors) {
  if (!factors.defined()) return;
  AddProduct(y, at::mm(x.to(at::kFloat), factors.a.t()), factors.b.t(), factors.scale);
}

void LowRankBackward(const at::Tensor& dy, const at::Tensor& x, const LowRank& factors, const LowRank& gradients,
                     const at::Tensor& dx) {
  if (!factors.defined()) return;
  const at::Tensor x32 = x.to(at::kFloat), dy32 = dy.to(at::kFloat);
  AddProduct(gradients.b, dy32.t(), at::mm(x32, factors.a.t()), factors.scale);
  const at::Tensor d_inner = at::mm(dy32, factors.b);
  AddProduct(gradients.a, d_inner.t(), x32, factors.scale);
  AddProduct(dx, d_inner, factors.a, factors.scale);
}

void MergeLowRank(const at::Tensor& weight, const LowRank& factors, const at::Tensor& merged) {
  at::Tensor(merged).copy_(at::addmm(weight.to(at::kFloat), factors.b, factors.a, 1, factors.scale));
}

}  // namespace kgrpo::policy
