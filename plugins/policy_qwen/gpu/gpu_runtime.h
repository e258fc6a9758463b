// The engine's part of the CUDA runtime besides kernels: memory, copies, graphs. Another table of the library of
// kernels.h, so that neither the policy nor its tests need a header or library of CUDA. Used by gpu_model.cc; tests
// replace it.
//
// Functions that can fail return null, or a message that is valid until the thread's next call. As in kernels.h, the
// current device of the calling thread does not matter and stays as it is.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_RUNTIME_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_RUNTIME_H_

#include <cstdint>

#include "policy_qwen/gpu/kernels.h"  // GpuStream

namespace kgrpo::policy {

struct GpuRuntime {
  static constexpr const char* kEntry = "kgrpo_policy_gpu_runtime";
  uint32_t struct_size;

  const char* (*free_bytes)(int32_t device, uint64_t* bytes);
  const char* (*allocate)(int32_t device, uint64_t bytes, void** memory);
  void (*release)(int32_t device, void* memory);  // waits for the device

  // Queued on the stream; host memory may be pageable and is free again on return.
  const char* (*upload)(void* to, const void* from, uint64_t bytes, GpuStream stream);
  // Waits for all that is queued on the stream.
  const char* (*download)(void* to, const void* from, uint64_t bytes, GpuStream stream);
  const char* (*wait)(GpuStream stream);

  // Work queued on the stream between begin_graph and end_graph becomes a graph and does not run.
  const char* (*begin_graph)(GpuStream stream);
  const char* (*end_graph)(GpuStream stream, void** graph);
  const char* (*launch_graph)(void* graph, GpuStream stream);
  void (*destroy_graph)(int32_t device, void* graph);
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_RUNTIME_H_
