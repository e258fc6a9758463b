// The library's functions: each makes the stream's device current and reports a refused launch. Used by the .cu files.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <tuple>

#include "policy_qwen/gpu/kernels.h"

namespace kgrpo::policy {

// Number of blocks that a launch aims at if its work can be divided so finely: two for each multiprocessor of an H100.
inline constexpr int64_t kBlocksWanted = 264;

inline cudaStream_t StreamOf(GpuStream stream) {
  return static_cast<cudaStream_t>(stream.handle);
}

// A grid's size for so many items. A size that no grid can have stays one, so that the launch is refused.
inline unsigned Blocks(int64_t items, int64_t a_block) {
  return static_cast<unsigned>(std::min<int64_t>((items + a_block - 1) / a_block, UINT32_MAX));
}

// Runs `work`, which returns a cudaError_t, with `device` current in this thread; then the earlier device is current
// again. Returns null, or "WHAT: MESSAGE" of the first failure, launches included. The text is valid until the thread's
// next call.
template <typename Work>
const char* OnDevice(const char* what, int32_t device, Work&& work) {
  int before = device;
  cudaError_t result = cudaGetDevice(&before);
  const bool changes = result == cudaSuccess && before != device;
  if (changes) result = cudaSetDevice(device);
  if (result == cudaSuccess) result = work();
  const cudaError_t last = cudaGetLastError();  // also clears the runtime's record
  if (result == cudaSuccess) result = last;
  if (changes) static_cast<void>(cudaSetDevice(before));
  if (result == cudaSuccess) return nullptr;
  static thread_local char text[256];
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(result));
  return text;
}

// A table's function: calls a launcher, whose last parameter is the stream.
template <typename... Parameters>
const char* Launch(const char* name, void (*launcher)(Parameters...), Parameters... arguments) {
  const GpuStream& stream = std::get<sizeof...(Parameters) - 1>(std::tie(arguments...));
  return OnDevice(name, stream.device, [&] {
    launcher(arguments...);
    return cudaSuccess;
  });
}

// Sets an entry of the table to a function that runs `launcher` so.
#define KGRPO_SET_KERNEL(table, entry, launcher) \
  table.entry = [](auto... arguments) { return Launch(#entry, launcher, arguments...); }

// Each file sets its own entries. Used by kernels.cu.
void SetRmsNorm(GpuKernels& table);
void SetElementwise(GpuKernels& table);
void SetTokenLogprobs(GpuKernels& table);
void SetRows(GpuKernels& table);
void SetProducts(GpuKernels& table);
void SetAttention(GpuKernels& table);
void SetSampler(GpuKernels& table);

}  // namespace kgrpo::policy
