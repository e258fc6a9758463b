#include "policy_qwen/model/ops.h"

#include <ATen/Parallel.h>
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

#include <cstring>

namespace kgrpo::policy {
namespace {

// The halves of the last dimension.
at::Tensor FirstHalf(const at::Tensor& x) {
  return x.narrow(-1, 0, x.size(-1) / 2);
}
at::Tensor SecondHalf(const at::Tensor& x) {
  return x.narrow(-1, x.size(-1) / 2, x.size(-1) / 2);
}

at::Tensor RotateBy(const at::Tensor& x, const RotaryAngles& angles, double direction) {
  at::Tensor y = at::mul(x, angles.cos);
  FirstHalf(y).addcmul_(SecondHalf(x), angles.sin, -direction);
  SecondHalf(y).addcmul_(FirstHalf(x), angles.sin, direction);
  return y;
}

}  // namespace

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
  } else {
    weight_gradient.add_(at::mm(dy.t(), x));
  }
  if (bias_gradient.defined()) at::Tensor(bias_gradient).add_(at::sum(dy, {0}, false, at::kFloat));
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, at::Tensor* scale) {
  const at::Tensor x32 = x.to(at::kFloat);
  at::Tensor r = at::mean(at::mul(x32, x32), {-1}, true).add_(epsilon).rsqrt_();
  at::Tensor y = at::mul(x32, r).to(x.scalar_type());
  y.mul_(weight);
  if (scale != nullptr) *scale = std::move(r);
  return y;
}

// With n = x r (r the scale) and y = n w: dw = sum over rows of dy n, and, r depending on x through the mean square,
// dx = r (dy w - n mean(dy w n)).
at::Tensor RmsNormBackward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                           const at::Tensor& weight_gradient) {
  const at::Tensor dy32 = dy.to(at::kFloat);
  const at::Tensor normalized = at::mul(x, scale);  // float32: so is scale
  at::Tensor product = at::mul(dy32, normalized);
  const int64_t columns = x.size(-1);
  if (weight_gradient.defined()) at::Tensor(weight_gradient).add_(at::sum(product.view({-1, columns}), {0}));
  product.mul_(weight);
  const at::Tensor mean = at::mean(product, {-1}, true);
  at::Tensor dx = at::mul(dy32, weight);
  dx.addcmul_(normalized, mean, -1).mul_(scale);
  return dx.to(x.scalar_type());
}

at::Tensor Rotate(const at::Tensor& x, const RotaryAngles& angles) {
  return RotateBy(x, angles, 1.0);
}

at::Tensor RotateBackward(const at::Tensor& dy, const RotaryAngles& angles) {
  return RotateBy(dy, angles, -1.0);
}

at::Tensor SwiGlu(const at::Tensor& x) {
  return at::silu(FirstHalf(x)).mul_(SecondHalf(x));
}

at::Tensor SwiGluBackward(const at::Tensor& dy, const at::Tensor& x) {
  const at::Tensor gate = FirstHalf(x);
  at::Tensor dx = at::empty_like(x);
  at::Tensor d_gate = FirstHalf(dx);
  at::Tensor d_up = SecondHalf(dx);
  at::mul_out(d_up, dy, at::silu(gate));
  d_gate.copy_(at::silu_backward(at::mul(dy, SecondHalf(x)), gate));
  return dx;
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
