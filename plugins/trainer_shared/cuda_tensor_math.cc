// cuda_tensor_math.cc - TensorMath by libtorch's operators, which dispatch to its CUDA library once the policy has
// loaded that. The one file of the trainers that includes libtorch.
#include "trainer_shared/cuda_tensor_math.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace kgrpo::trainer {
namespace {

class TorchArray : public DeviceArray {
 public:
  explicit TorchArray(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  float* data() override { return tensor_.data_ptr<float>(); }

 private:
  at::Tensor tensor_;
};

class TorchTensorMath : public TensorMath {
 public:
  explicit TorchTensorMath(c10::Device device) : device_(device) {}

  std::unique_ptr<DeviceArray> Allocate(size_t count) override {
    c10::InferenceMode inference;
    return std::make_unique<TorchArray>(
        at::zeros({static_cast<int64_t>(count)}, at::dtype(at::kFloat).device(device_)));
  }

  void CopyToHost(void* host, const void* device, size_t bytes) override {
    c10::InferenceMode inference;
    HostBytes(host, bytes).copy_(View(device, bytes, at::kByte));
  }

  void CopyFromHost(void* device, const void* host, size_t bytes) override {
    c10::InferenceMode inference;
    View(device, bytes, at::kByte).copy_(HostBytes(const_cast<void*>(host), bytes));
  }

  double SumOfSquares(const float* values, size_t count) override {
    c10::InferenceMode inference;
    // libtorch adds float32 in a tree, with an error of some 1e-7 of the sum. Pieces bound the tree; their sums are
    // added as doubles.
    constexpr size_t kPiece = size_t{1} << 24;
    at::Tensor sum = at::zeros({}, at::dtype(at::kDouble).device(device_));
    for (size_t begin = 0; begin < count; begin += kPiece) {
      const at::Tensor norm =
          at::linalg_vector_norm(View(values + begin, std::min(kPiece, count - begin), at::kFloat)).to(at::kDouble);
      sum.addcmul_(norm, norm);
    }
    return sum.item<double>();
  }

  void Widen(const void* bfloat16_values, float* master, size_t count) override {
    c10::InferenceMode inference;
    View(master, count, at::kFloat).copy_(View(bfloat16_values, count, at::kBFloat16));
  }

  void AdamWStep(const AdamWTensor& tensor, const AdamWScalars& s) override {
    c10::InferenceMode inference;
    c10::DeviceGuard guard(device_);
    float* parameter = tensor.master != nullptr ? tensor.master : static_cast<float*>(tensor.value);
    at::Tensor value = View(parameter, tensor.count, at::kFloat);
    const at::Tensor gradient = View(tensor.gradient, tensor.count, at::kFloat);
    std::optional<at::Tensor> divisor;  // the operator divides the gradient by it (loss scaling)
    if (s.gradient_scale != 1.0) divisor = at::full({}, 1.0 / s.gradient_scale, at::dtype(at::kFloat).device(device_));
    at::Tensor first = View(tensor.first_moment, tensor.count, at::kFloat);
    at::Tensor second = View(tensor.second_moment, tensor.count, at::kFloat);
    at::Tensor step = at::full({}, static_cast<double>(s.step), at::dtype(at::kFloat).device(device_));
    at::_fused_adamw_({value}, {gradient}, {first}, {second}, {}, {step}, s.learning_rate, s.beta1, s.beta2,
                      s.weight_decay, s.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor);
    if (tensor.master != nullptr) View(tensor.value, tensor.count, at::kBFloat16).copy_(value);
  }

  void Wait() override {
    if (device_.is_cpu()) return;
    const c10::DeviceGuard guard(device_);  // else synchronizeDevice would make a context on the first GPU
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }

 private:
  at::Tensor View(const void* data, size_t count, at::ScalarType type) const {
    return at::from_blob(const_cast<void*>(data), {static_cast<int64_t>(count)}, at::dtype(type).device(device_));
  }
  static at::Tensor HostBytes(void* data, size_t bytes) {
    return at::from_blob(data, {static_cast<int64_t>(bytes)}, at::dtype(at::kByte));
  }

  c10::Device device_;
};

}  // namespace

std::unique_ptr<TensorMath> MakeTorchTensorMath(const std::string& device) {
  return std::make_unique<TorchTensorMath>(c10::Device(device));
}

std::unique_ptr<TensorMath> MakeCudaTensorMath(int device) {
  return MakeTorchTensorMath("cuda:" + std::to_string(device));
}

}  // namespace kgrpo::trainer
