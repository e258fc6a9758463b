// The table of gpu_runtime.h over the CUDA runtime.
#include "policy_qwen/gpu_generation/gpu_runtime.h"

#include <cuda_runtime.h>

namespace kgrpo::policy {
namespace {

// The message of the first failure, which also clears the runtime's own record of it.
const char* Check(cudaError_t result) {
  if (result == cudaSuccess) return nullptr;
  static_cast<void>(cudaGetLastError());
  return cudaGetErrorString(result);
}

cudaStream_t StreamOf(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

const GpuRuntime kRuntime = {
    .struct_size = sizeof(GpuRuntime),
    .use_device = [](int32_t device) { return Check(cudaSetDevice(device)); },
    .free_bytes =
        [](uint64_t* bytes) {
          size_t free = 0, total = 0;
          const char* failure = Check(cudaMemGetInfo(&free, &total));
          *bytes = free;
          return failure;
        },
    .allocate = [](uint64_t bytes, void** memory) { return Check(cudaMalloc(memory, bytes)); },
    .release = [](void* memory) { static_cast<void>(cudaFree(memory)); },
    .create_stream =
        [](void** stream) {
          return Check(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking));
        },
    .destroy_stream = [](void* stream) { static_cast<void>(cudaStreamDestroy(StreamOf(stream))); },
    .upload =
        [](void* to, const void* from, uint64_t bytes, void* stream) {
          return Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, StreamOf(stream)));
        },
    .download =
        [](void* to, const void* from, uint64_t bytes, void* stream) {
          const char* failure = Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, StreamOf(stream)));
          return failure != nullptr ? failure : Check(cudaStreamSynchronize(StreamOf(stream)));
        },
    .wait =
        [](void* stream) {
          const char* failure = Check(cudaGetLastError());  // of a launch
          return failure != nullptr ? failure : Check(cudaStreamSynchronize(StreamOf(stream)));
        },
    .begin_graph =
        [](void* stream) { return Check(cudaStreamBeginCapture(StreamOf(stream), cudaStreamCaptureModeThreadLocal)); },
    .end_graph =
        [](void* stream, void** graph) {
          cudaGraph_t captured = nullptr;
          if (const char* failure = Check(cudaStreamEndCapture(StreamOf(stream), &captured))) return failure;
          if (const char* failure = Check(cudaGetLastError())) {  // of a launch, which the graph then lacks
            static_cast<void>(cudaGraphDestroy(captured));
            return failure;
          }
          const char* failure = Check(cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(graph), captured, 0));
          static_cast<void>(cudaGraphDestroy(captured));
          return failure;
        },
    .launch_graph =
        [](void* graph, void* stream) {
          return Check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), StreamOf(stream)));
        },
    .destroy_graph = [](void* graph) { static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph))); },
};

}  // namespace
}  // namespace kgrpo::policy

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GpuRuntime* kgrpo_policy_gpu_runtime() {
  return &kgrpo::policy::kRuntime;
}
