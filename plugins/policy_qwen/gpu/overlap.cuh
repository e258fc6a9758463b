// Programmatic dependent launch: a kernel begins while the previous one still runs, reads data that no kernel of the
// step writes (weights), and waits for the previous kernel before it touches anything else. Used by this folder's
// kernels.
//
// A kernel calls LetNextBegin() first, and WaitForPrevious() in every thread before it reads or writes data that
// another kernel of the step writes. As every kernel waits, the end of one means the end of all before it. Data that an
// earlier kernel writes must not be a const __restrict__ parameter: the compiler may move such loads above the wait.
//
// A step's first kernel (Embed) and the one after it overlap nothing and need neither call. So a kernel may read
// places, which only Embed writes, and data of earlier steps (keys and values of earlier positions) before the wait.
//
// From compute capability 9.0 on. Before it, kernels follow one another as usual.
#pragma once
#include <cuda_runtime.h>

#include <utility>

namespace kgrpo::policy {

__device__ inline void LetNextBegin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ inline void WaitForPrevious() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// True if kernels can overlap on the current device.
inline bool CanOverlap() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

// Queues a kernel with `shared_bytes` of dynamic shared memory; with `overlaps` it may overlap the one before it on
// `stream`. Failures stay with the runtime, as of <<<>>>: launch.cuh reports them.
template <typename... Parameters, typename... Arguments>
void QueueKernel(void (*kernel)(Parameters...), dim3 grid, unsigned threads, cudaStream_t stream, bool overlaps,
                 unsigned shared_bytes, Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = overlaps && CanOverlap() ? 1 : 0;
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...));
}

template <typename... Parameters, typename... Arguments>
void LaunchOverlapping(void (*kernel)(Parameters...), dim3 grid, unsigned threads, cudaStream_t stream,
                       Arguments&&... arguments) {
  QueueKernel(kernel, grid, threads, stream, true, 0, std::forward<Arguments>(arguments)...);
}

}  // namespace kgrpo::policy
