// Whether our kernels or libtorch's operators run on a GPU, for cards that have no code in our libraries.
#include "policy_qwen/gpu/gpu_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

namespace kgrpo::policy {
namespace {

using ::testing::HasSubstr;

const at::Device kCpu(at::kCPU), kGpu(at::kCUDA, 1);

// What a table's check_card says: of a card below 8.0, and of one that is newer than the machine code.
constexpr const char* kOld = "compute capability 7.5: no kernel image is available for execution on the device";
constexpr const char* kNew = nullptr;

KernelChoice Choose(std::optional<bool> wanted, at::Device device, const char* card) {
  return ChooseKernels("training: fused", wanted, device, [&] { CheckCard("training: fused", device, card); });
}

TEST(GpuLibraryTest, AutoTakesLibtorchOnACardWithoutCodeAndSaysWhy) {
  EXPECT_TRUE(Choose(std::nullopt, kGpu, kNew).ours);
  EXPECT_EQ(Choose(std::nullopt, kGpu, kNew).why_not, "");
  const KernelChoice choice = Choose(std::nullopt, kGpu, kOld);
  EXPECT_FALSE(choice.ours);
  EXPECT_EQ(choice.why_not,
            "training: fused cannot run on cuda:1 (" + std::string(kOld) + "); \"training\": \"auto\" does without it");
}

TEST(GpuLibraryTest, AskedForOnACardWithoutCodeIsRefused) {
  EXPECT_TRUE(Choose(true, kGpu, kNew).ours);
  try {
    Choose(true, kGpu, kOld);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_UNSUPPORTED);
    EXPECT_THAT(error.what(), HasSubstr("cuda:1 (compute capability 7.5"));
  }
}

TEST(GpuLibraryTest, ACpuAndLibtorchAskNoCard) {
  const auto asked = [](std::optional<bool> wanted, at::Device device) {
    bool is_asked = false;
    const KernelChoice choice = ChooseKernels("generation: engine", wanted, device, [&] { is_asked = true; });
    EXPECT_EQ(choice.ours, is_asked);
    EXPECT_EQ(choice.why_not, "");
    return is_asked;
  };
  EXPECT_FALSE(asked(std::nullopt, kCpu));
  EXPECT_FALSE(asked(false, kCpu));
  EXPECT_FALSE(asked(false, kGpu));
  EXPECT_TRUE(asked(true, kGpu));
  try {
    asked(true, kCpu);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_INVALID);
  }
}

TEST(GpuLibraryTest, OtherFailuresEndAutoToo) {
  const auto broken = [] { throw Error(KGRPO_ERROR_UNAVAILABLE, "is from another build than this policy"); };
  EXPECT_THROW(ChooseKernels("generation: engine", std::nullopt, kGpu, broken), Error);
  EXPECT_NO_THROW(CheckGpu("training", nullptr));
  EXPECT_THROW(CheckGpu("training", "swiglu: invalid argument"), Error);
}

}  // namespace
}  // namespace kgrpo::policy
