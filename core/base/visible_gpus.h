// The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them. Used by the command run, which starts the
// runs of an experiment side by side.
#ifndef KGRPO_BASE_VISIBLE_GPUS_H
#define KGRPO_BASE_VISIBLE_GPUS_H

#include <filesystem>
#include <string>
#include <vector>

namespace kgrpo {

inline constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

// Returns the entries of `variable`, the value of CUDA_VISIBLE_DEVICES, up to the first "-1" as CUDA reads it. If
// `variable` is null, returns "0", "1", ... : one index for each file nvidia<N> of the driver in `device_folder`. A
// container may have any subset of those files.
std::vector<std::string> VisibleGpus(const char* variable, const std::filesystem::path& device_folder = "/dev");

}  // namespace kgrpo
#endif
