#include "policy_qwen/model/ops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cstring>

namespace kgrpo::policy {
namespace {

// The halves of the last dimension.
at::Tensor FirstHalf(const at::Tensor& x) { return x.narrow(-1, 0, x.size(-1) / 2); }
at::Tensor SecondHalf(const at::Tensor& x) { return x.narrow(-1, x.size(-1) / 2, x.size(-1) / 2); }

// Turns x by the angles, -1 times for the derivative, into y.
void RotateInto(const at::Tensor& x, const RotaryAngles& angles, double direction, at::Tensor y) {
  at::mul_out(y, x, angles.cos);
  FirstHalf(y).addcmul_(SecondHalf(x), angles.sin, -direction);
  SecondHalf(y).addcmul_(FirstHalf(x), angles.sin, direction);
}

at::Tensor LogSoftmax(const at::Tensor& logits, double temperature) {
  at::Tensor wide = logits.to(at::kFloat);
  if (temperature != 1.0) wide.div_(temperature);
  return at::_log_softmax(wide, -1, false);
}

// The dtype of the factors in products with x: float32 on a CPU; on a GPU that of x, whose products add in float32.
at::ScalarType FactorType(const at::Tensor& x) { return x.is_cpu() ? at::kFloat : x.scalar_type(); }

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

at::Tensor Ops::RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor& scale) const {
  const at::Tensor x32 = x.to(at::kFloat);
  scale = at::mean(at::mul(x32, x32), {-1}, true).add_(epsilon).rsqrt_();
  at::Tensor y = at::mul(x32, scale).to(x.scalar_type());
  return y.mul_(weight);
}

// With n = x r (r the scale) and y = n w: dw = sum over rows of dy n, and, r depending on x through the mean square,
// dx = r (dy w - n mean(dy w n)).
at::Tensor Ops::RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& scale, const at::Tensor& weight_gradient,
                                const at::Tensor& add) const {
  const at::Tensor dy32 = dy.to(at::kFloat);
  const at::Tensor normalized = at::mul(x, scale);  // float32: so is scale
  at::Tensor product = at::mul(dy32, normalized);
  const int64_t columns = x.size(-1);
  if (weight_gradient.defined()) at::Tensor(weight_gradient).add_(at::sum(product.view({-1, columns}), {0}));
  product.mul_(weight);
  const at::Tensor mean = at::mean(product, {-1}, true);
  at::Tensor dx = at::mul(dy32, weight);
  dx.addcmul_(normalized, mean, -1).mul_(scale);
  dx = dx.to(x.scalar_type());
  return add.defined() ? at::Tensor(add).add_(dx) : dx;
}

at::Tensor Ops::Rotate(const at::Tensor& x, const RotaryAngles& angles) const {
  at::Tensor y = at::empty(x.sizes(), x.options());
  RotateInto(x, angles, 1.0, y);
  return y;
}

void Ops::RotateBackward(const at::Tensor& dy, const RotaryAngles& angles, const at::Tensor& dx) const {
  RotateInto(dy, angles, -1.0, dx);
}

at::Tensor Ops::SwiGlu(const at::Tensor& x) const { return at::silu(FirstHalf(x)).mul_(SecondHalf(x)); }

at::Tensor Ops::SwiGluBackward(const at::Tensor& dy, const at::Tensor& x) const {
  const at::Tensor gate = FirstHalf(x);
  at::Tensor dx = at::empty_like(x);
  at::Tensor d_gate = FirstHalf(dx);
  at::Tensor d_up = SecondHalf(dx);
  at::mul_out(d_up, dy, at::silu(gate));
  d_gate.copy_(at::silu_backward(at::mul(dy, SecondHalf(x)), gate));
  return dx;
}

Ops::Logprobs Ops::TokenLogprobs(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                                 bool want_entropies) const {
  const at::Tensor all = LogSoftmax(logits, temperature);
  Logprobs result;
  result.logprobs = all.gather(1, targets.unsqueeze(1)).squeeze(1);
  if (want_entropies) result.entropies = at::mul(all, all.exp()).sum({1}).neg_();
  return result;
}

// d logprob(target) / d logit_j = ([j = target] - p_j) / temperature.
at::Tensor Ops::TokenLogprobsBackward(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor&,
                                      const at::Tensor& d_logprobs, double temperature) const {
  const at::Tensor d = at::mul(d_logprobs, 1.0 / temperature).unsqueeze(1);
  at::Tensor d_logits = LogSoftmax(logits, temperature).exp_();
  d_logits.mul_(d).neg_().scatter_add_(1, targets.unsqueeze(1), d);
  return d_logits.to(logits.scalar_type());
}

int64_t Ops::LogitRows(int64_t vocabulary, at::ScalarType) const {
  constexpr int64_t kLogits = int64_t{1} << 23;  // 32 MiB of float32
  return std::max<int64_t>(1, kLogits / vocabulary);
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

at::Tensor LinearAdd(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias) {
  at::Tensor y = at::addmm(residual, x, weight.t());
  if (bias.defined()) y.add_(bias);
  return y;
}

void LinearBackwardParameters(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight_gradient,
                              const at::Tensor& bias_gradient) {
  if (!weight_gradient.defined()) {
    // Frozen.
  } else if (dy.scalar_type() == weight_gradient.scalar_type()) {
    weight_gradient.addmm_(dy.t(), x);
  } else if (dy.is_cpu()) {
    weight_gradient.add_(at::mm(dy.t(), x));
  } else {
    at::Tensor sums = weight_gradient;
    at::addmm_out(sums, sums, dy.t(), x, at::kFloat);  // products of bfloat16, sums and result float32
  }
  if (bias_gradient.defined()) at::Tensor(bias_gradient).add_(at::sum(dy, {0}, false, at::kFloat));
}

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

at::Tensor IndexTensor(const std::vector<int64_t>& values, at::Device device) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  if (!values.empty()) std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(int64_t));
  return device.is_cpu() ? tensor : tensor.to(device);
}

at::Tensor GatherRows(const at::Tensor& source, const at::Tensor& index) {
  const int64_t columns = source.size(1);
  if (source.is_cpu()) {
    at::Tensor out = at::empty({index.size(0), columns}, source.options());
    const size_t row_size = static_cast<size_t>(columns) * source.element_size();
    const auto* from = static_cast<const char*>(source.const_data_ptr());
    auto* to = static_cast<char*>(out.mutable_data_ptr());
    const int64_t* rows = index.const_data_ptr<int64_t>();
    constexpr int64_t kRowsATask = 4096;
    at::parallel_for(0, index.size(0), kRowsATask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        char* row = to + static_cast<size_t>(i) * row_size;
        if (rows[i] < 0) {
          std::memset(row, 0, row_size);
        } else {
          std::memcpy(row, from + static_cast<size_t>(rows[i]) * row_size, row_size);
        }
      }
    });
    return out;
  }
  at::Tensor out = source.index_select(0, index.clamp_min(0));
  return out.masked_fill_(index.lt(0).unsqueeze(1), 0);
}

void AddRows(const at::Tensor& target, const at::Tensor& index, const at::Tensor& source) {
  const at::Tensor values = source.to(target.scalar_type()).contiguous();
  if (target.is_cpu() && target.scalar_type() == at::kFloat) {
    const int64_t columns = target.size(1);
    float* to = target.mutable_data_ptr<float>();
    const float* from = values.const_data_ptr<float>();
    const int64_t* rows = index.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < index.size(0); ++i) {
      float* row = to + rows[i] * columns;
      for (int64_t j = 0; j < columns; ++j) row[j] += from[i * columns + j];
    }
    return;
  }
  // index_put_ sorts the rows first, so its sums are deterministic on a GPU too; index_add_'s are not.
  at::Tensor(target).index_put_({index}, values, /*accumulate=*/true);
}

}  // namespace kgrpo::policy
