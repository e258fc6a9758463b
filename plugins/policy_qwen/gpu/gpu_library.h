// Opens the library of GPU kernels that nvcc builds beside the plugin, decides whether it is used, and reports its
// failures. Used by the policy, gpu_training/ and generation/.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_LIBRARY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_LIBRARY_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kgrpo::policy {

// Opens policy_qwen/libkgrpo_gpu.so beside this plugin and returns the table of its function `entry`, a struct that
// begins with its size, `bytes`. The library stays loaded. Throws KGRPO_ERROR_UNSUPPORTED if the file is missing (it is
// built only if there is a GPU, or with KGRPO_GPU=ON), KGRPO_ERROR_UNAVAILABLE if it cannot be used. Any thread.
const void* OpenGpuTable(const char* entry, uint32_t bytes);

// Table: GpuKernels, GpuRuntime or PinnedProducts.
template <typename Table>
const Table& OpenGpuTable() {
  return *static_cast<const Table*>(OpenGpuTable(Table::kEntry, sizeof(Table)));
}

// Throws KGRPO_ERROR_UNAVAILABLE "WHAT on the GPU: FAILURE" unless `failure`, a table's result, is null.
void CheckGpu(const char* what, const char* failure);

// Throws KGRPO_ERROR_UNSUPPORTED, with the option that avoids the kernels, unless `failure`, a table's check_card, is
// null. `option`: "training: fused" or "generation: engine".
void CheckCard(const std::string& option, at::Device device, const char* failure);

// An option's choice between our kernels and libtorch's operators.
struct KernelChoice {
  bool ours = false;
  std::string why_not;  // if a GPU has to do without: the reason
};

// `wanted`: whether the option asks for our kernels; unset for auto, which takes them on a GPU. `require` throws
// KGRPO_ERROR_UNSUPPORTED if they cannot run: then auto takes libtorch. Throws KGRPO_ERROR_INVALID if they are asked
// for on a CPU.
KernelChoice ChooseKernels(const std::string& option, std::optional<bool> wanted, at::Device device,
                           const std::function<void()>& require);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_LIBRARY_H_
