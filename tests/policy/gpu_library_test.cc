// Whether a GPU generates, for cards that have no code in our library.
#include "policy_qwen/gpu/gpu_library.h"

#include "test.h"

namespace kgrpo::policy {
namespace {

const at::Device kCpu(at::kCPU), kGpu(at::kCUDA, 1);

// What a table's check_card says: of a card below 8.0, and of one that is newer than the machine code.
constexpr const char* kOld = "compute capability 7.5: no kernel image is available for execution on the device";
constexpr const char* kNew = nullptr;

KernelChoice Choose(bool wanted, at::Device device, const char* card) {
  return ChooseEngine(wanted, device, [&] { CheckCard("generation: engine", device, card, "auto"); });
}

TEST(GpuLibraryTest, AutoTakesTheCpuOnACardWithoutCodeAndSaysWhy) {
  EXPECT_TRUE(Choose(false, kGpu, kNew).ours);
  EXPECT_EQ(Choose(false, kGpu, kNew).why_not, "");
  const KernelChoice choice = Choose(false, kGpu, kOld);
  EXPECT_FALSE(choice.ours);
  EXPECT_EQ(choice.why_not,
            "generation: engine cannot run on cuda:1 (" + std::string(kOld) + "); auto does without it");
}

TEST(GpuLibraryTest, AskedForOnACardWithoutCodeIsRefused) {
  EXPECT_TRUE(Choose(true, kGpu, kNew).ours);
  EXPECT_THAT(test::MessageOf([&] { Choose(true, kGpu, kOld); }, KGRPO_ERROR_UNSUPPORTED),
              HasSubstr("cuda:1 (compute capability 7.5"));
}

TEST(GpuLibraryTest, ACpuAsksNoCard) {
  const auto asked = [](bool wanted, at::Device device) {
    bool is_asked = false;
    const KernelChoice choice = ChooseEngine(wanted, device, [&] { is_asked = true; });
    EXPECT_EQ(choice.ours, is_asked);
    EXPECT_EQ(choice.why_not, "");
    return is_asked;
  };
  EXPECT_FALSE(asked(false, kCpu));
  EXPECT_TRUE(asked(false, kGpu));
  EXPECT_TRUE(asked(true, kGpu));
  EXPECT_NE(test::MessageOf([&] { asked(true, kCpu); }, KGRPO_ERROR_INVALID), "nothing thrown");
}

TEST(GpuLibraryTest, OtherFailuresEndAutoToo) {
  const auto broken = [] { throw Error(KGRPO_ERROR_UNAVAILABLE, "is from another build than this policy"); };
  EXPECT_THROW(ChooseEngine(false, kGpu, broken), Error);
  EXPECT_NO_THROW(CheckGpu("training", nullptr));
  EXPECT_THROW(CheckGpu("training", "swiglu: invalid argument"), Error);
}

}  // namespace
}  // namespace kgrpo::policy
