// The GPUs that a process may use.
#include "base/visible_gpus.h"

#include "base/directories.h"
#include "test.h"

namespace kgrpo {
namespace {

using Names = std::vector<std::string>;

TEST(VisibleGpusTest, TheVariableNamesThemAndElseTheDriversFilesAreCounted) {
  const TemporaryDirectory devices;
  for (const char* file : {"nvidia2", "nvidia5", "nvidiactl", "nvidia-uvm", "nvidia", "null"})
    std::ofstream(devices.path() / file) << "";
  EXPECT_EQ(VisibleGpus(nullptr, devices.path()), (Names{"0", "1"})) << "CUDA numbers those that there are";
  EXPECT_EQ(VisibleGpus("3,GPU-8a3f", devices.path()), (Names{"3", "GPU-8a3f"}));
  EXPECT_EQ(VisibleGpus("1,-1,2", devices.path()), Names{"1"});
  EXPECT_EQ(VisibleGpus("", devices.path()), Names{}) << "none is allowed";
  EXPECT_EQ(VisibleGpus(nullptr, devices.path() / "nowhere"), Names{});
}

}  // namespace
}  // namespace kgrpo
