// Each check finds its mistake, at its line; correct kernels in unusual styles have no findings.
#include <cmath>
#include <map>
#include <set>

#include "harness.h"

namespace kgrpo::simt {
namespace {

constexpr int kElements = 256;

// The findings that buggy.cu expects: kernel -> (line, codes).
struct Expectation {
  int line = 0;
  std::set<std::string> codes;
};
std::map<std::string, Expectation> ReadExpectations() {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/kernels/buggy.cu");
  std::map<std::string, Expectation> expectations;
  std::string text, kernel;
  for (int line = 1; std::getline(file, text); ++line) {
    if (const size_t at = text.find("__global__ void "); at != std::string::npos) {
      kernel = text.substr(at + 16, text.find('(') - at - 16);
    }
    const size_t at = text.find("// expect: ");
    if (at == std::string::npos || kernel.empty()) continue;
    std::stringstream codes(text.substr(at + 11));
    std::string code;
    while (codes >> code) expectations[kernel].codes.insert(code);
    expectations[kernel].line = line;
  }
  return expectations;
}

LaunchResult RunOn(Bench& bench, const std::string& kernel, std::vector<float>* y = nullptr, bool cooperative = false,
                   Mode mode = Mode::kChecked) {
  const auto dx = bench.Upload(NoiseVector(kElements), "x");
  const auto dy = bench.Reserve<float>(kElements, "y");
  LaunchConfig config = Config({4}, {64}, mode);
  config.cooperative = cooperative;
  config.instruction_budget = 10'000'000;
  LaunchResult result = bench.Run(kernel, config, dx, dy, kElements);
  if (y != nullptr) *y = bench.Download<float>(dy, kElements);
  return result;
}

TEST(Checks, FindEveryMistakeAtItsLine) {
  Bench bench("buggy");
  const auto expectations = ReadExpectations();
  ASSERT_GE(expectations.size(), 20u);
  for (const auto& [kernel, expected] : expectations) {
    SCOPED_TRACE(kernel);
    const LaunchResult result = RunOn(bench, kernel);
    std::set<std::string> found;
    for (const Finding& finding : result.findings) {
      found.insert(FindingName(finding.code));
      const bool race = finding.code == FindingCode::kRace;
      EXPECT_TRUE(finding.line == expected.line || (race && finding.other_line == expected.line)) << finding.message;
      EXPECT_NE(finding.message.find("line " + std::to_string(finding.line)), std::string::npos) << finding.message;
      EXPECT_NE(finding.message.find(kernel), std::string::npos) << finding.message;
      EXPECT_EQ(finding.has_other && race, race) << finding.message;
    }
    EXPECT_EQ(found, expected.codes) << Messages(result);
  }
}

TEST(Checks, FindBoundsInPlainRunsToo) {
  Bench bench("buggy");
  for (const auto& [kernel, expected] : ReadExpectations()) {
    // A neighbouring shared array is not guarded there.
    if (!expected.codes.contains("out_of_bounds") || kernel == "OutOfBoundsShared") continue;
    SCOPED_TRACE(kernel);
    const LaunchResult result = RunOn(bench, kernel, nullptr, false, Mode::kPlain);
    EXPECT_EQ(result.status, LaunchStatus::kFault) << Messages(result);
  }
}

TEST(Checks, FreedMemoryIsNamed) {
  Bench bench("basic");
  const auto a = bench.Upload(NoiseVector(64), "kept"), b = bench.Upload(NoiseVector(64), "scratch");
  ASSERT_TRUE(bench.memory.Free(b));
  const LaunchResult result = bench.Run("Add", Config({1}, {64}), a, b, a, 64);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("at byte 0 of 'scratch' (256 bytes), which was freed"), std::string::npos)
      << Messages(result);
}

TEST(Checks, RegistersThatNobodySetHoldNaN) {
  Bench bench("buggy");
  std::vector<float> y;
  const LaunchResult result = RunOn(bench, "SumOfNothing", &y);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].code, FindingCode::kUninitialised) << Messages(result);
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST(Checks, AccuseNoHonestKernel) {
  Bench bench("honest");
  for (const KernelInfo& kernel : bench.module->kernels()) {
    SCOPED_TRACE(kernel.name);
    EXPECT_CLEAN(RunOn(bench, kernel.name, nullptr, kernel.name == "GridSync"));
  }
}

TEST(Checks, WarpsThatMeetFromDifferentPlacesAreNoted) {
  Bench bench("honest");
  std::vector<float> y;
  const LaunchResult result = RunOn(bench, "WarpsMeetAtDifferentBarriers", &y);
  EXPECT_CLEAN(result);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_TRUE(result.notes[0].starts_with("Warps of a block meet at different __syncthreads() (lines "))
      << result.notes[0];
  const auto x = NoiseVector(kElements);
  for (int t = 0; t < 64; ++t) ASSERT_EQ(y[t], t < 32 ? 2 * x[63 - t] : x[63 - t]) << t;
  EXPECT_TRUE(RunOn(bench, "BarrierAfterAnExit", &y).notes.empty());
}

// Blocks that wait cost little while others start: 528 of them used to poll through a billion instructions.
TEST(Checks, ManyBlocksMayWaitForTheLast) {
  for (const std::string kernel : {"GridSync", "SoftwareBarrier"}) {
    SCOPED_TRACE(kernel);
    Bench bench("honest");
    constexpr int kBlocks = 528, kElements = 64 * kBlocks;
    const auto dx = bench.Upload(NoiseVector(kElements), "x");
    const auto dy = bench.Reserve<float>(kElements, "y");
    LaunchConfig config = Config({kBlocks}, {64}, Mode::kPlain);
    config.cooperative = kernel == "GridSync";
    config.instruction_budget = 80'000'000;
    EXPECT_CLEAN(bench.Run(kernel, config, dx, dy, kElements));
  }
}

TEST(Checks, HonestKernelsComputeTheCorrectThing) {
  Bench bench("honest");
  const auto x = NoiseVector(kElements);
  std::vector<float> y;
  RunOn(bench, "LastBlock", &y);
  double sum = 0;
  for (const float v : x) sum += v;
  EXPECT_NEAR(y[100], sum, 1e-4);
  RunOn(bench, "LookBack", &y);
  EXPECT_FLOAT_EQ(y[3], x[0] + x[1] + x[2] + x[3]);
  RunOn(bench, "GridSync", &y, true);
  for (int i = 0; i < kElements; ++i) ASSERT_EQ(y[i], x[kElements - 1 - i]);
  RunOn(bench, "AsyncCopy", &y);
  for (int t = 0; t < 64; ++t) ASSERT_EQ(y[t], x[63 - t] + x[127 - t]);
  RunOn(bench, "ProducerAndConsumer", &y);
  for (int t = 0; t < 64; ++t) ASSERT_EQ(y[t], x[t / 32 * 32 + 31 - t % 32]);
  RunOn(bench, "WarpSynchronous", &y);
  double first = 0;
  for (int i = 0; i < 32; ++i) first += x[i];
  for (int i = 0; i < 32; ++i) ASSERT_NEAR(y[i], first, 1e-5);
  RunOn(bench, "DivergentLoopThenShuffle", &y);
  float v = 0;
  for (int k = 0; k <= 1 % 7; ++k) v += x[1 + k];
  EXPECT_FLOAT_EQ(y[0], v);
}

TEST(Checks, BudgetEndsALoopWithoutEnd) {
  // SpinLock with a lock that nobody will open
  Bench bench("honest");
  const int taken = 1;
  bench.memory.Write(bench.instance.GlobalAddress("lock"), &taken, 4);
  const LaunchResult result = RunOn(bench, "SpinLock");
  EXPECT_EQ(result.status, LaunchStatus::kBudgetExceeded);
}

TEST(Checks, FindingsAreTheSameEachTime) {
  for (int i = 0; i < 2; ++i) {
    Bench first("buggy"), second("buggy");
    EXPECT_EQ(Messages(RunOn(first, "RaceScatter")), Messages(RunOn(second, "RaceScatter")));
  }
}

TEST(Checks, ImpossibleLaunchesAreNamed) {
  Bench bench("basic");
  const auto c = bench.Reserve<float>(64, "c");
  auto message = [&](LaunchConfig config) {
    const LaunchResult result = bench.Run("Add", config, c, c, c, 64);
    EXPECT_EQ(result.status, LaunchStatus::kFault);
    return result.findings.empty() ? "" : result.findings[0].message;
  };
  EXPECT_EQ(message(Config({1}, {2000})),
            "kernel 'Add' cannot be launched: a block of 2000 x 1 x 1 threads exceeds the limit of 1024");
  EXPECT_EQ(message(Config({0}, {32})),
            "kernel 'Add' cannot be launched: the grid (0 x 1 x 1) or the block (32 x 1 x 1) is empty");
  LaunchConfig config = Config({1}, {32});
  config.dynamic_shared_bytes = 300000;
  EXPECT_EQ(message(config),
            "kernel 'Add' cannot be launched: 300000 bytes of shared memory a block exceed the limit of 232448");
}

}  // namespace
}  // namespace kgrpo::simt
