// The engine's part of the CUDA runtime besides kernels: memory, copies, a stream, graphs. A second table of the
// library of kernels.h, so that neither the policy nor its tests need a header or library of CUDA. Used by
// gpu_model.cc; tests replace it.
//
// Functions that can fail return null, or a message that is valid until the thread's next call. All act on the device
// that is current in the calling thread.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GPU_RUNTIME_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GPU_RUNTIME_H_

#include <cstdint>

namespace kgrpo::policy {

struct GpuRuntime {
  uint32_t struct_size;

  const char* (*use_device)(int32_t device);
  const char* (*free_bytes)(uint64_t* bytes);
  const char* (*allocate)(uint64_t bytes, void** memory);
  void (*release)(void* memory);  // waits for the device

  const char* (*create_stream)(void** stream);
  void (*destroy_stream)(void* stream);
  // Queued on the stream; host memory may be pageable and is free again on return.
  const char* (*upload)(void* to, const void* from, uint64_t bytes, void* stream);
  // Waits for all that is queued on the stream.
  const char* (*download)(void* to, const void* from, uint64_t bytes, void* stream);
  const char* (*wait)(void* stream);

  // Work queued on the stream between begin_graph and end_graph becomes a graph and does not run.
  const char* (*begin_graph)(void* stream);
  const char* (*end_graph)(void* stream, void** graph);
  const char* (*launch_graph)(void* graph, void* stream);
  void (*destroy_graph)(void* graph);
};

inline constexpr const char* kGpuRuntimeEntry = "kgrpo_policy_gpu_runtime";
using GpuRuntimeEntry = const GpuRuntime* (*)();

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GENERATION_GPU_RUNTIME_H_
