// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/tensor.h - plain arrays as tensors: for callers of forward and backward, whose figures lie on the CPU.
#ifndef KGRPO_SDK_TENSOR_H
#define KGRPO_SDK_TENSOR_H
#include <kgrpo/tensor.h>

#include <cstddef>
#include <cstdint>

namespace kgrpo {

// A float32 array of one dimension on the CPU, borrowed. Stays where it is: c() points into it.
class FloatTensor {
 public:
  FloatTensor(float* data, size_t size) : shape_(static_cast<int64_t>(size)) {
    c_.data = data;
    c_.device.type = KGRPO_DEVICE_CPU;
    c_.ndim = 1;
    c_.dtype.code = KGRPO_DTYPE_FLOAT;
    c_.dtype.bits = 32;
    c_.dtype.lanes = 1;
    c_.shape = &shape_;
  }
  // For an array that is only read (dlogprobs of backward).
  FloatTensor(const float* data, size_t size) : FloatTensor(const_cast<float*>(data), size) {}
  FloatTensor(const FloatTensor&) = delete;
  FloatTensor& operator=(const FloatTensor&) = delete;

  const kgrpo_tensor* c() const { return &c_; }

 private:
  int64_t shape_;
  kgrpo_tensor c_{};
};

}  // namespace kgrpo
#endif
