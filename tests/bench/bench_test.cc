// The shared code of the benchmarks: how a command ends, quantiles, and the variants of a reference kernel.
#include <stdexcept>

#include "common/command.h"
#include "common/figures.h"
#include "common/variants.h"
#include "test.h"

namespace kgrpo::bench {
namespace {

// The exit code, with what `work` does.
template <typename Work>
int Command(std::vector<const char*> arguments, Work work) {
  CLI::App app("Measures.", "measure");
  size_t threads = 1;
  AddThreads(app, threads);
  arguments.insert(arguments.begin(), "/somewhere/measure");
  return RunCommand(app, static_cast<int>(arguments.size()), arguments.data(), [&] { return work(threads); });
}

TEST(CommandTest, TheExitCodeSaysHowItEnded) {
  EXPECT_EQ(Command({}, [](size_t) {}), 0);
  EXPECT_EQ(Command({"--threads", "3"}, [](size_t threads) { return threads == 3; }), 0);
  EXPECT_EQ(Command({}, [](size_t) { return false; }), 1);
  const auto never = [](size_t) { FAIL() << "it worked all the same"; };
  testing::internal::CaptureStdout();
  EXPECT_EQ(Command({"--help"}, never), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("--threads"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(Command({"--threads", "0"}, never), 2);
  EXPECT_EQ(Command({"--nonsense"}, never), 2);
  testing::internal::GetCapturedStderr();
}

TEST(CommandTest, AFailureIsToldBehindTheProgramsName) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Command({}, [](size_t) -> bool { throw std::runtime_error("there is no device"); }), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "measure: there is no device\n");
}

TEST(FiguresTest, QuantilesAreOfTheValues) {
  EXPECT_EQ(Quantile({4}, 0.95), 4);
  EXPECT_EQ(Quantile({5, 1, 3}, 0.5), 3);
  EXPECT_EQ(Quantile({5, 1, 3}, 0), 1);
  EXPECT_EQ(Quantile({5, 1, 3}, 1), 5);
}

TEST(FiguresTest, TheMedianIsInTheMiddle) {
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(VariantsTest, AreDifferentKernelsThatTechniquesLeadTo) {
  std::ifstream file(KGRPO_SOURCE_DIR "/problems/dot_product/reference.cu");
  const std::string reference((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(reference.empty());
  EXPECT_THAT(Variants(reference, 0), ElementsAre());
  const std::vector<std::string> few = Variants(reference, 1), many = Variants(reference, 60);
  ASSERT_GE(few.size(), 1u);
  ASSERT_GE(many.size(), 60u);
  EXPECT_LT(few.size(), many.size());
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << "more begin with those that are nearer";
  EXPECT_EQ(std::set<std::string>(many.begin(), many.end()).size(), many.size());
  EXPECT_FALSE(std::set<std::string>(many.begin(), many.end()).contains(reference));
  for (const std::string& source : many) EXPECT_NE(ScheduleOf(source), ScheduleOf(reference));
  EXPECT_EQ(ScheduleOf("no mark"), "");
  EXPECT_EQ(ScheduleOf("a\n// schedule: tile 32 + unroll 4\nb"), "tile 32 + unroll 4");
}

}  // namespace
}  // namespace kgrpo::bench
