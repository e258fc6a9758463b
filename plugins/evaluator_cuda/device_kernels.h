// The evaluator's own kernels: inputs drawn on the device, and outputs compared there, so that every timed call can
// have fresh inputs and be checked. Called by device.cc; compiled by nvcc.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "judge/problem/dtype.h"  // DType

namespace kgrpo::evaluator_cuda {

// How a tensor's elements are drawn: element i is a function of (key, i) alone.
struct Draw {
  // kByte and kCopy fill memory with one byte and with other memory's bytes.
  enum class Kind { kBell, kUniform, kSparse, kConstant, kWhole, kDenormals, kExtremes, kByte, kCopy };
  Kind kind = Kind::kBell;
  double a = 0, b = 1;           // bell: mean, deviation; uniform: low, high; sparse: density; constant: value;
                                 // denormals: a the share of ordinary values
  int64_t low = 0;               // whole: from low; byte: the byte,
  uint64_t range = 1;            // so many numbers
  uint64_t key = 0, chosen = 0;  // chosen: the key that says which elements of a sparse tensor are not zero, or which
                                 // of denormals are ordinary
  bool infinities = false, nans = false;  // extremes
  const void* source = nullptr;           // copy: on the device
};

// A tensor, or a piece of one, to fill. For bytes and copies `elements` counts bytes, and both addresses are multiples
// of 16.
struct DrawTask {
  Draw draw;
  evaluator::DType dtype = evaluator::DType::kUint8;
  void* target = nullptr;
  int64_t elements = 0;
  uint32_t first_block = 0;  // set by LaunchDraw
};

// Two tensors to compare. An element of `got` is a mismatch if it differs from `want` by more than absolute + relative
// * |want|, or if only one side is a NaN, or if one side is an infinity and the other is not within the relative bound
// of overflowing to it. The difference of whole numbers is exact.
struct CompareTask {
  evaluator::DType dtype = evaluator::DType::kFloat32;
  const void *got = nullptr, *want = nullptr;
  int64_t elements = 0;
  double relative = 0, absolute = 0;
  uint32_t first_block = 0;  // set by LaunchCompare
};

// These two copy the tasks to `table`, which has room for them on the device, and do all of them in one launch.
cudaError_t LaunchDraw(std::vector<DrawTask> tasks, void* table, cudaStream_t stream);
// Sets mismatches[i], on the device, to the mismatches of task i.
cudaError_t LaunchCompare(std::vector<CompareTask> tasks, void* table, unsigned long long* mismatches,
                          cudaStream_t stream);

// Finds the element with the largest error in units of the bound: results[1] becomes ~i for the first such element i.
cudaError_t LaunchWorst(const CompareTask& task, unsigned long long* results, cudaStream_t stream);

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
