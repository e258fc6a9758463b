// Opens the libraries of GPU kernels that nvcc builds beside the plugin. Used by gpu_training/ and gpu_generation/ when
// the policy's device is a GPU.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GPU_LIBRARY_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GPU_LIBRARY_H_

#include <string>

namespace kgrpo::policy {

struct GpuLibrary {
  std::string path;
  void* handle;
  void* Symbol(const char* name) const;  // null where it has none
};

inline constexpr const char* kTrainingLibrary = "libkgrpo_gpu_training.so";
inline constexpr const char* kGenerationLibrary = "libkgrpo_gpu_generation.so";

// Opens policy_qwen/`file` beside this plugin; the library stays loaded. Throws KGRPO_ERROR_UNAVAILABLE if it is
// missing or cannot be loaded (it is built only where there is a GPU, or with KGRPO_GPU=ON). Any thread.
GpuLibrary OpenGpuLibrary(const std::string& file);

// True if the library file exists. Any thread.
bool HasGpuLibrary(const std::string& file);

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GPU_LIBRARY_H_
