// The evaluator's own kernels: inputs drawn on the device, and outputs compared there, so that every timed call can
// have fresh inputs and be checked. Called by device.cc; compiled by nvcc.
#ifndef KGRPO_EVALUATOR_CUDA_DEVICE_KERNELS_H
#define KGRPO_EVALUATOR_CUDA_DEVICE_KERNELS_H

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluator_shared/dtype.h"  // DType

namespace kgrpo::evaluator_cuda {

// How a tensor's elements are drawn: element i is a function of (key, i) alone.
struct Draw {
  enum class Kind { kBell, kUniform, kSparse, kConstant, kWhole, kDenormals, kExtremes };
  Kind kind = Kind::kBell;
  double a = 0, b = 1;           // bell: mean, deviation; uniform: low, high; sparse: density; constant: value;
                                 // denormals: a the share of ordinary values
  int64_t low = 0;               // whole: from low,
  uint64_t range = 1;            // so many numbers
  uint64_t key = 0, chosen = 0;  // chosen: the key that says which elements of a sparse tensor are not zero, or which
                                 // of denormals are ordinary
  bool infinities = false, nans = false;  // extremes
};

// Fills `elements` of `dtype` at `target`.
cudaError_t LaunchDraw(const Draw& draw, evaluator::DType dtype, void* target, int64_t elements, cudaStream_t stream);

// Adds to *mismatches the number of elements of `got` that differ from `want` by more than absolute + relative *
// |want|. An element also counts if only one side is a NaN, or if one side is an infinity and the other is not within
// the relative bound of overflowing to it. For whole numbers both bounds are usually 0.
cudaError_t LaunchCompare(evaluator::DType dtype, const void* got, const void* want, int64_t elements, double relative,
                          double absolute, unsigned long long* mismatches, cudaStream_t stream);

// Adds to *changed the number of bytes (of `bytes`, a multiple of 16) that are not `value`.
cudaError_t LaunchCountOther(const void* memory, uint64_t bytes, uint8_t value, unsigned long long* changed,
                             cudaStream_t stream);

// A few bytes somewhere, at most kPeekBytes.
constexpr uint32_t kPeekBytes = 64;
struct Place {
  const uint8_t* at = nullptr;
  uint64_t bytes = 0;
};
// Copies kPeekBytes from each of `count` places to `out`. The array `places` is on the device.
cudaError_t LaunchGather(const Place* places, uint32_t count, uint8_t* out, cudaStream_t stream);

// Reads `bytes` (a multiple of 16) at full bandwidth; for the device's ceiling.
cudaError_t LaunchRead(const void* memory, uint64_t bytes, unsigned long long* sink, cudaStream_t stream);

}  // namespace kgrpo::evaluator_cuda

#endif
