// The GPU of each rank of a machine. The number of GPUs is made up.
#include "policy_qwen/rank_device.h"

#include "test.h"

namespace kgrpo::policy {
namespace {

std::function<int()> Gpus(int count) {
  return [count] { return count; };
}
int Unasked() {
  ADD_FAILURE() << "CUDA's library would be loaded";
  return 0;
}

std::string Refusal(const std::vector<std::string>& devices, const RankPlace& place, int gpus) {
  try {
    return "no refusal, but " + DeviceOfRank(devices, place, Gpus(gpus));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
    return error.what();
  }
}

TEST(DeviceOfRank, CudaIsAGpuForEachRank) {
  for (uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(DeviceOfRank({"cuda"}, {rank, 4}, Gpus(4)), "cuda:" + std::to_string(rank));
  EXPECT_EQ(DeviceOfRank({"cuda"}, {1, 2}, Gpus(8)), "cuda:1");
  EXPECT_EQ(DeviceOfRank({"cuda"}, {0, 1}, Unasked), "cuda");
  EXPECT_EQ(DeviceOfRank({"cuda"}, {1, 2}, Gpus(0)), "cuda") << "OpenDevice says what is missing";
}

TEST(DeviceOfRank, ANamedDeviceIsEveryRanks) {
  EXPECT_EQ(DeviceOfRank({"cpu"}, {3, 4}, Unasked), "cpu");
  EXPECT_EQ(DeviceOfRank({"cuda:1"}, {3, 4}, Unasked), "cuda:1");
}

TEST(DeviceOfRank, MoreRanksThanGpusAreRefused) {
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(Refusal({"cuda"}, {rank, 3}, 2), StartsWith("3 ranks on this machine and 2 GPUs: "));
    EXPECT_THAT(Refusal({"cuda"}, {rank, 3, true}, 2), StartsWith("3 ranks on this machine and 2 GPUs: "));
  }
  EXPECT_THAT(Refusal({"cuda"}, {0, 2}, 1), StartsWith("2 ranks on this machine and 1 GPU: "));
}

// As Slurm does with --gpus-per-task=1.
TEST(DeviceOfRank, AGpuThatTheLauncherChoseIsTheRanks) {
  EXPECT_EQ(DeviceOfRank({"cuda"}, {3, 4, true}, Gpus(1)), "cuda");
}

TEST(DeviceOfRank, AListIsByLocalRank) {
  const std::vector<std::string> devices = {"cuda:2", "cuda:3", "cpu"};
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(DeviceOfRank(devices, {rank, 3}, Unasked), devices[rank]);
  EXPECT_EQ(DeviceOfRank(devices, {1, 2}, Unasked), "cuda:3");
  EXPECT_EQ(DeviceOfRank(devices, {0, 1}, Unasked), "cuda:2") << "a process alone";
  EXPECT_THAT(Refusal(devices, {0, 4}, 8),
              StartsWith("4 ranks on this machine and 3 devices in policy.options.device: "));
}

}  // namespace
}  // namespace kgrpo::policy
