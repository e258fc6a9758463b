// The library's table of kernels.
#include "policy_qwen/gpu/kernels.h"

#include "policy_qwen/gpu/launch.cuh"

namespace kgrpo::policy {
namespace {

// Compiled for the same cards as the other kernels.
__global__ void Probe() {}

// Returns null, or the card's compute capability and the reason.
const char* CheckCard(int32_t device) {
  int major = 0, minor = 0;
  static_cast<void>(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  static_cast<void>(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  char what[64];
  std::snprintf(what, sizeof what, "compute capability %d.%d", major, minor);
  return OnDevice(what, device, [&] {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, Probe);
  });
}

}  // namespace
}  // namespace kgrpo::policy

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::GpuKernels* kgrpo_policy_gpu_kernels() {
  using namespace kgrpo::policy;
  static const GpuKernels kKernels = [] {
    GpuKernels table = {.struct_size = sizeof(GpuKernels), .check_card = CheckCard};
    for (const auto set :
         {SetRmsNorm, SetElementwise, SetTokenLogprobs, SetRows, SetProducts, SetAttention, SetSampler}) {
      set(table);
    }
    return table;
  }();
  return &kKernels;
}
