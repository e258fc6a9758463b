// The table of gpu_runtime.h over the CUDA runtime.
#include "policy_qwen/gpu/gpu_runtime.h"

#include <cuda_runtime.h>

#include "policy_qwen/gpu/launch.cuh"

namespace kgrpo::policy {
namespace {

const GpuRuntime kRuntime = {
    .struct_size = sizeof(GpuRuntime),
    .free_bytes =
        [](int32_t device, uint64_t* bytes) {
          return OnDevice("free memory", device, [&] {
            size_t free = 0, total = 0;
            const cudaError_t result = cudaMemGetInfo(&free, &total);
            *bytes = free;
            return result;
          });
        },
    .allocate = [](int32_t device, uint64_t bytes,
                   void** memory) { return OnDevice("allocation", device, [&] { return cudaMalloc(memory, bytes); }); },
    .release = [](int32_t device,
                  void* memory) { static_cast<void>(OnDevice("release", device, [&] { return cudaFree(memory); })); },
    .upload =
        [](void* to, const void* from, uint64_t bytes, GpuStream stream) {
          return OnDevice("copy to the device", stream.device,
                          [&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, StreamOf(stream)); });
        },
    .download =
        [](void* to, const void* from, uint64_t bytes, GpuStream stream) {
          return OnDevice("copy from the device", stream.device, [&] {
            const cudaError_t result = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, StreamOf(stream));
            return result != cudaSuccess ? result : cudaStreamSynchronize(StreamOf(stream));
          });
        },
    .wait =
        [](GpuStream stream) {
          return OnDevice("a kernel", stream.device, [&] { return cudaStreamSynchronize(StreamOf(stream)); });
        },
    .begin_graph =
        [](GpuStream stream) {
          return OnDevice("graph", stream.device,
                          [&] { return cudaStreamBeginCapture(StreamOf(stream), cudaStreamCaptureModeThreadLocal); });
        },
    .end_graph =
        [](GpuStream stream, void** graph) {
          return OnDevice("graph", stream.device, [&] {
            cudaGraph_t captured = nullptr;
            cudaError_t result = cudaStreamEndCapture(StreamOf(stream), &captured);
            if (result != cudaSuccess) return result;
            result = cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(graph), captured, 0);
            static_cast<void>(cudaGraphDestroy(captured));
            return result;
          });
        },
    .launch_graph =
        [](void* graph, GpuStream stream) {
          return OnDevice("graph", stream.device,
                          [&] { return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), StreamOf(stream)); });
        },
    .destroy_graph =
        [](int32_t device, void* graph) {
          static_cast<void>(
              OnDevice("graph", device, [&] { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }));
        },
};

}  // namespace
}  // namespace kgrpo::policy

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GpuRuntime* kgrpo_policy_gpu_runtime() {
  return &kgrpo::policy::kRuntime;
}
