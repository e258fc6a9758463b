#include "policy_qwen/gpu_training/gpu_kernels.h"

#include <kgrpo/sdk/error.h>

#include "policy_qwen/gpu_library.h"

namespace kgrpo::policy {
namespace {

const GpuKernels* OpenKernels() {
  const GpuLibrary library = OpenGpuLibrary(kTrainingLibrary);
  const auto entry = reinterpret_cast<GpuKernelsEntry>(library.Symbol(kGpuKernelsEntry));
  const GpuKernels* kernels = entry == nullptr ? nullptr : entry();
  if (kernels == nullptr || kernels->struct_size != sizeof(GpuKernels)) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "device cuda: " + library.path + " is from another build than this policy: build both again");
  }
  return kernels;
}

}  // namespace

const GpuKernels& LoadGpuKernels() {
  static const GpuKernels* const kernels = OpenKernels();
  return *kernels;
}

}  // namespace kgrpo::policy
