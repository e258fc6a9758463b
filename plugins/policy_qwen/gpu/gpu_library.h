// Opens the library of GPU kernels that nvcc builds beside the plugin, decides whether it is used, and reports its
// failures. Used by the policy, fused_ops.cc and generation/.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_LIBRARY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_LIBRARY_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
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

// Throws KGRPO_ERROR_UNSUPPORTED unless `failure`, a table's check_card, is null. `what`: "training" or "generation:
// engine"; `instead`: the option that avoids the kernels.
void CheckCard(const std::string& what, at::Device device, const char* failure, const std::string& instead);

// The choice between the engine on a GPU and the CPU.
struct KernelChoice {
  bool ours = false;
  std::string why_not;  // if a GPU has to do without: the reason
};

// Chooses the engine on a GPU. `require` throws KGRPO_ERROR_UNSUPPORTED if it cannot run there: then the CPU generates,
// unless the option generation asks for the engine (`wanted`). Throws KGRPO_ERROR_INVALID if it is asked for on a CPU.
KernelChoice ChooseEngine(bool wanted, at::Device device, const std::function<void()>& require);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_GPU_LIBRARY_H_
