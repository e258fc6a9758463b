// What orders accesses and what does not, what CUDA leaves open, and the bounds of what checked launches keep.
#include <cmath>
#include <map>
#include <optional>

#include "harness.h"
#include "simt/check/earlier_launches.h"

namespace kgrpo::simt {
namespace {

constexpr size_t kFloats = 2048;

// A kernel of order.cu.
struct Ordered {
  std::string name;
  uint32_t blocks = 0, threads = 0;
  int race = 0;  // its line, or 0
};
std::vector<Ordered> ReadKernels() {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/kernels/order.cu");
  std::vector<Ordered> kernels;
  std::string text;
  Ordered next;
  for (int line = 1; std::getline(file, text); ++line) {
    if (text.starts_with("// launch: ")) std::istringstream(text.substr(11)) >> next.blocks >> next.threads;
    if (const size_t at = text.find("__global__ void "); at != std::string::npos) {
      next.name = text.substr(at + 16, text.find('(') - at - 16);
      kernels.push_back(next);
    }
    if (text.ends_with("// expect: race")) kernels.back().race = line;
  }
  return kernels;
}

// Launches, again while a launch leaves open whether there is a race: at other addresses, as an evaluation does.
template <typename... Args>
LaunchResult Decide(const std::string& file, const std::string& kernel, LaunchConfig config, const Args&... args) {
  RacingReads known;
  Bench bench(file);
  for (int i = 0; i < 4; ++i) {
    bench.instance.ResetGlobals();
    const DeviceAddress x = bench.Upload(NoiseVector(kFloats), "x");
    const DeviceAddress y = bench.Upload(std::vector<float>(kFloats), "y");
    config.racing_reads = &known;
    LaunchResult result;
    if constexpr (sizeof...(Args) == 0) {
      result = bench.Run(kernel, config, x, y, static_cast<int>(kFloats));
    } else {
      result = bench.Run(kernel, config, y, args...);
    }
    bench.memory.Free(x);
    bench.memory.Free(y);
    if (!known.Add(result.racing_reads)) return result;
  }
  ADD_FAILURE() << kernel << " stays undecided";
  return {};
}

TEST(Order, RacesAreFoundAndTheirTwinsAreNot) {
  const std::vector<Ordered> kernels = ReadKernels();
  ASSERT_EQ(kernels.size(), 35u);
  for (const Ordered& kernel : kernels) {
    SCOPED_TRACE(kernel.name);
    ASSERT_NE(kernel.threads, 0u);
    const LaunchResult result = Decide("order", kernel.name, Config({kernel.blocks}, {kernel.threads}));
    if (kernel.race == 0) {
      EXPECT_CLEAN(result);
      continue;
    }
    ASSERT_FALSE(result.findings.empty());
    const Finding& finding = result.findings[0];
    EXPECT_EQ(finding.code, FindingCode::kRace) << finding.message;
    EXPECT_TRUE(finding.line == kernel.race || finding.other_line == kernel.race) << finding.message;
  }
}

struct Outcome {
  std::vector<float> y;
  LaunchResult result;
};
Outcome Choose(const std::string& kernel, Dim3 grid, uint32_t threads, bool other, float start = 0,
               Mode mode = Mode::kChecked) {
  Bench bench("choices");
  const DeviceAddress x = bench.Upload(NoiseVector(kFloats), "x");
  const DeviceAddress y = bench.Upload(std::vector<float>(kFloats, start), "y");
  LaunchConfig config = Config(grid, {threads}, mode);
  config.other_choices = other;
  config.instruction_budget = 1'000'000;
  Outcome outcome;
  outcome.result = bench.Run(kernel, config, x, y, static_cast<int>(kFloats));
  outcome.y = bench.Download<float>(y, kFloats);
  return outcome;
}

TEST(Order, OneOfTheStoresOfAnInstructionStays) {
  const auto x = NoiseVector(kFloats);
  for (const Mode mode : {Mode::kChecked, Mode::kPlain}) {
    for (const bool first : {false, true}) {
      const Outcome pair = Choose("StoresOfAPair", {1}, 32, first, 0, mode);
      EXPECT_CLEAN(pair.result);
      EXPECT_EQ(pair.result.choice.has_value(), mode == Mode::kChecked);
      for (size_t i = 0; i < 16; ++i) ASSERT_EQ(pair.y[i], x[2 * i + (first ? 0 : 1)]) << i;
      const Outcome warp = Choose("StoresOfAWarp", {1}, 32, first, 0, mode);
      EXPECT_CLEAN(warp.result);
      for (size_t i = 0; i < 32; ++i) ASSERT_EQ(warp.y[i], x[first ? 0 : 31]) << i;
    }
  }
  const std::optional<Finding> choice = Choose("StoresOfAPair", {1}, 32, false).result.choice;
  ASSERT_TRUE(choice);
  EXPECT_NE(
      choice->message.find("thread (1,0,0) of block (0,0,0) writes byte 0 of 'y' (8192 bytes) while thread (0,0,0) "
                           "of block (0,0,0) writes it at line 5, by the same instruction, which leaves open whose "
                           "value stays (a race)"),
      std::string::npos)
      << choice->message;
  const Outcome two = Choose("StoresOfTwoInstructions", {1}, 32, false);
  ASSERT_FALSE(two.result.findings.empty());
  EXPECT_EQ(two.result.findings[0].code, FindingCode::kRace);
}

TEST(Order, AVolatileLoadNeedNotSeeAnUnorderedWriteYet) {
  const auto x = NoiseVector(kFloats);
  const float sum = x[0] + x[1] + x[2] + x[3];
  for (const bool other : {false, true}) {
    const Outcome fenced = Choose("VolatilePartsFenced", {4}, 1, other);
    EXPECT_CLEAN(fenced.result);
    EXPECT_EQ(fenced.y[4], sum);
    const Outcome bare = Choose("VolatilePartsNotFenced", {4}, 1, other);
    EXPECT_CLEAN(bare.result);
    EXPECT_EQ(bare.y[4], other ? sum : x[3]) << "the last block sees its own part";
    const Outcome packed = Choose("ValueAndFlagInOneWord", {4}, 1, other, -1);
    EXPECT_CLEAN(packed.result);
    EXPECT_FLOAT_EQ(packed.y[3], std::fabs(x[0]) + std::fabs(x[1]) + std::fabs(x[2]) + std::fabs(x[3]));
  }
  const std::optional<Finding> choice = Choose("VolatilePartsNotFenced", {4}, 1, false).result.choice;
  ASSERT_TRUE(choice);
  EXPECT_NE(choice->message.find("with no synchronisation of the blocks between (a race)"), std::string::npos)
      << choice->message;
}

TEST(Order, PrintfReturnsTheNumberOfItsArguments) {
  const Outcome outcome = Choose("Printed", {1}, 3, false);
  EXPECT_CLEAN(outcome.result);
  EXPECT_EQ(std::vector<float>(outcome.y.begin(), outcome.y.begin() + 3), (std::vector<float>{0, 2, 3}));
}

TEST(Order, WhatAFunctionDoesNotSetIsNaN) {
  EXPECT_TRUE(std::isnan(Choose("SumOfNothingInARecursion", {1}, 1, false).y[0]));
}

// The bounds of docs/interpreter.md, "Not reported": on this side found, beyond not.

TEST(OrderBounds, FlagsInOneWordAreOneFlag) {
  EXPECT_FALSE(Decide("choices", "FlagsApart", Config({3}, {32}), 4).findings.empty());
  EXPECT_CLEAN(Decide("choices", "FlagsApart", Config({3}, {32}), 1));
}

TEST(OrderBounds, AnAcquireKnowsOfAllEarlierReleases) {
  LaunchConfig config = Config({3}, {32});
  EXPECT_CLEAN(Decide("choices", "ReleasedElsewhere", config, 0));
  config.last_block_first = true;
  EXPECT_FALSE(Decide("choices", "ReleasedElsewhere", config, 0).findings.empty());
}

TEST(OrderBounds, AccessesAreForgottenAfterFourMillionEvents) {
  const auto events = static_cast<int>(kMostEvents);
  EXPECT_FALSE(Decide("choices", "ManyEvents", Config({1}, {64}), events - 100).findings.empty());
  EXPECT_CLEAN(Decide("choices", "ManyEvents", Config({1}, {64}), events + 100));
}

TEST(OrderBounds, AMillionReadersBeyondTwoAreKept) {
  constexpr uint32_t kWords = 1024, kKept = RaceShadow::kMostFurther / kWords;
  const auto found = [](uint32_t readers) {
    const LaunchConfig config = Config({readers + 1}, {32});
    return !Decide("choices", "ReadByBlocksAndOverwritten", config, static_cast<int>(kWords)).findings.empty();
  };
  EXPECT_TRUE(found(5));
  EXPECT_TRUE(found(kKept));
  EXPECT_FALSE(found(kKept + 8));
}

TEST(OrderBounds, TheLatestAtomicWriteIsKept) {
  EXPECT_FALSE(Decide("choices", "VolatileThenPlain", Config({2}, {32}), 0).findings.empty());
  EXPECT_CLEAN(Decide("choices", "VolatileThenPlain", Config({2}, {32}), 1));
}

TEST(OrderBounds, LanesThatReadTogetherSynchroniseTogether) {
  EXPECT_FALSE(Decide("choices", "PartOfTheReaders", Config({1}, {32}), 0).findings.empty());
  EXPECT_CLEAN(Decide("choices", "PartOfTheReaders", Config({1}, {32}), 1));
}

// Launches in flight: the oldest of more than 16 is forgotten.
TEST(OrderBounds, SixteenEarlierLaunchesAreCompared) {
  for (const size_t between : {15u, 16u}) {
    Bench bench("launches");
    const DeviceAddress x = bench.Upload(NoiseVector(128), "x"), y = bench.Reserve<float>(128, "y");
    const DeviceAddress z = bench.Reserve<float>(128, "z");
    LaunchesInFlight in_flight;
    const auto run = [&](const char* kernel, DeviceAddress from, DeviceAddress to) {
      LaunchConfig config = Config({2}, {64});
      in_flight.Begin(true, &config);
      LaunchResult result = bench.Run(kernel, config, from, to);
      in_flight.End(&result);
      return result;
    };
    EXPECT_CLEAN(run("trigger_and_produce", x, y));
    for (size_t i = 0; i < between; ++i)
      EXPECT_CLEAN(run("trigger_and_produce", x, bench.Reserve<float>(128, "other")));
    EXPECT_EQ(run("read_and_wait", y, z).findings.empty(), between == 16) << between;
  }
}

}  // namespace
}  // namespace kgrpo::simt
