// What surrounds every entry of our GPU libraries: the device of the stream is current, and a refused launch is
// reported. Used by the .cu files of this folder and of gpu_generation/.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <tuple>

#include "policy_qwen/gpu_training/kernels.h"

namespace kgrpo::policy {

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

// Compiled for the same cards as a library's other kernels, where it is used.
template <typename = void>
__global__ void Probe() {}

// Null if the device can run the library's kernels; else its compute capability and the reason.
template <typename = void>
const char* CheckCard(int32_t device) {
  int major = 0, minor = 0;
  static_cast<void>(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  static_cast<void>(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  char what[64];
  std::snprintf(what, sizeof what, "compute capability %d.%d", major, minor);
  return OnDevice(what, device, [&] {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, Probe<>);
  });
}

}  // namespace kgrpo::policy
