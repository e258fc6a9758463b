// Host vectors as tensors of a device. Used wherever indices or token ids are handed to libtorch.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_MODEL_TENSORS_H_
#define KGRPO_PLUGINS_POLICY_QWEN_MODEL_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kgrpo::policy {

// A copy of `values` on `device`, int64 [values.size()].
inline at::Tensor IndexTensor(const std::vector<int64_t>& values, at::Device device) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  if (!values.empty()) std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(int64_t));
  return device.is_cpu() ? tensor : tensor.to(device);
}

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_MODEL_TENSORS_H_
