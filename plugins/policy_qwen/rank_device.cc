#include "policy_qwen/rank_device.h"

#include <kgrpo/sdk/error.h>

namespace kgrpo::policy {

std::string DeviceOfRank(const std::vector<std::string>& devices, const RankPlace& place,
                         const std::function<int()>& gpu_count, const std::string& part) {
  const std::string ranks = std::to_string(place.local_size) + " ranks on this machine";
  if (devices.size() > 1) {
    if (place.local_size > devices.size()) {
      throw Error(KGRPO_ERROR_INVALID, ranks + " and " + std::to_string(devices.size()) + " devices in " + part +
                                           ".options.device: name one for each rank, or start as "
                                           "many ranks as devices");
    }
    return devices[place.local_rank];
  }
  const std::string& device = devices.at(0);
  if (device != "cuda" || place.local_size == 1) return device;
  const int count = gpu_count();
  // OpenDevice reports a missing GPU; NCCL's group reports two ranks that were given the same one.
  if (count == 0 || (count == 1 && place.sees_chosen_gpus)) return device;
  if (static_cast<uint32_t>(count) < place.local_size) {
    throw Error(KGRPO_ERROR_INVALID, ranks + " and " + std::to_string(count) + (count == 1 ? " GPU" : " GPUs") +
                                         ": each rank needs a GPU of its own; start " + std::to_string(count) +
                                         " on this machine, or set " + part + ".options.device to cpu");
  }
  return "cuda:" + std::to_string(place.local_rank);
}

}  // namespace kgrpo::policy
