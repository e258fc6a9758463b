// Chooses the device of a rank's model when several ranks share a machine. Used by hosted_policy.cc before it loads a
// model.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_RANK_DEVICE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_RANK_DEVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kgrpo::policy {

// A rank's number among the ranks of its machine.
struct RankPlace {
  uint32_t local_rank = 0, local_size = 1;
  // The launcher shows this rank certain GPUs (CUDA_VISIBLE_DEVICES): a single visible GPU is this rank's own.
  bool sees_chosen_gpus = false;
};

// `devices` is the option `device`: a list names one device for each rank; "cuda" alone gives each rank a GPU of its
// own; any other single device is shared by all ranks. `gpu_count` returns the number of GPUs that this process sees,
// and is called only if that matters. `part`: of the pipeline, for messages. Throws KGRPO_ERROR_INVALID if there are
// fewer devices than ranks.
std::string DeviceOfRank(const std::vector<std::string>& devices, const RankPlace& place,
                         const std::function<int()>& gpu_count, const std::string& part = "policy");

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_RANK_DEVICE_H_
