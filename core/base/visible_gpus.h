// The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them. Used by the command run, which starts the
// runs of an experiment side by side.
#ifndef KGRPO_BASE_VISIBLE_GPUS_H
#define KGRPO_BASE_VISIBLE_GPUS_H

#include <filesystem>
#include <string>
#include <vector>

namespace kgrpo {

inline constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

// The entries of `variable`, the value of CUDA_VISIBLE_DEVICES, up to the first "-1" as CUDA reads it. Where it is
// null: "0", "1", ... for the driver's files nvidia0, nvidia1, ... in `device_folder`, of which a container may have
// any.
std::vector<std::string> VisibleGpus(const char* variable, const std::filesystem::path& device_folder = "/dev");

}  // namespace kgrpo
#endif
