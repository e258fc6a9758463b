// Bulk copies: correct ones copy without findings, wrong ones are found at their line, and all are counted.
#include <algorithm>
#include <map>
#include <set>

#include "harness.h"

namespace kgrpo::simt {
namespace {

constexpr size_t kFloats = 512;

struct BulkRun {
  LaunchResult result;
  std::vector<float> x, y;
};
BulkRun RunOf(const std::string& kernel, Mode mode, bool last_block_first = false) {
  Bench bench("bulk");
  BulkRun ran;
  ran.x = NoiseVector(kFloats);
  const auto dx = bench.Upload(ran.x, "x");
  const auto dy = bench.Reserve<float>(kFloats, "y");
  LaunchConfig config = Config({2}, {64}, mode);
  config.instruction_budget = 1'000'000;
  config.last_block_first = last_block_first;
  ran.result = bench.Run(kernel, config, dx, dy);
  ran.y = bench.Download<float>(dy, kFloats);
  return ran;
}

// kernel -> the line and the codes of `// expect:`, or none.
std::map<std::string, std::pair<int, std::set<std::string>>> Expectations() {
  std::ifstream file(std::string(KGRPO_SOURCE_DIR) + "/tests/simt/kernels/bulk.cu");
  std::map<std::string, std::pair<int, std::set<std::string>>> expectations;
  std::string text, kernel;
  for (int line = 1; std::getline(file, text); ++line) {
    if (text.starts_with("KERNEL ")) {
      kernel = text.substr(7, text.find('(') - 7);
      expectations[kernel];
    }
    const size_t at = text.find("// expect: ");
    if (at == std::string::npos || kernel.empty()) continue;
    std::stringstream codes(text.substr(at + 11));
    for (std::string code; codes >> code;) expectations[kernel].second.insert(code);
    expectations[kernel].first = line;
  }
  return expectations;
}

TEST(Bulk, CorrectCopiesAreCorrectAndNotAccused) {
  size_t correct = 0;
  for (const auto& [kernel, expected] : Expectations()) {
    if (!expected.second.empty()) continue;
    ++correct;
    for (const Mode mode : {Mode::kChecked, Mode::kPlain, Mode::kCounted}) {
      SCOPED_TRACE(kernel + " in mode " + std::to_string(static_cast<int>(mode)));
      const BulkRun ran = RunOf(kernel, mode, mode == Mode::kPlain);
      EXPECT_CLEAN(ran.result);
      for (size_t i = 0; i < kFloats; ++i) ASSERT_EQ(ran.y[i], 2 * ran.x[i]) << i;
    }
  }
  EXPECT_GE(correct, 8u);
}

TEST(Bulk, MistakesAreFoundAtTheirLine) {
  size_t wrong = 0;
  for (const auto& [kernel, expected] : Expectations()) {
    if (expected.second.empty()) continue;
    ++wrong;
    SCOPED_TRACE(kernel);
    const BulkRun ran = RunOf(kernel, Mode::kChecked);
    std::set<std::string> found;
    for (const Finding& finding : ran.result.findings) {
      found.insert(FindingName(finding.code));
      EXPECT_TRUE(finding.line == expected.first || finding.other_line == expected.first) << finding.message;
    }
    EXPECT_FALSE(found.empty());
    EXPECT_TRUE(std::includes(expected.second.begin(), expected.second.end(), found.begin(), found.end()))
        << Messages(ran.result);
    EXPECT_TRUE(found.contains(*expected.second.begin())) << Messages(ran.result);
  }
  EXPECT_GE(wrong, 16u);
}

TEST(Bulk, MessagesNameTheCopy) {
  const auto first = [](const std::string& kernel) {
    const BulkRun ran = RunOf(kernel, Mode::kChecked);
    return ran.result.findings.empty() ? std::string() : ran.result.findings[0].message;
  };
  EXPECT_NE(
      first("WrongNothingExpected").find("to which thread (0,0,0) of block (0,0,0) copies by cp.async.bulk at line "),
      std::string::npos)
      << first("WrongNothingExpected");
  EXPECT_NE(first("WrongNothingExpected").find("whose bytes its mbarrier does not expect (expect_tx) (a race)"),
            std::string::npos);
  EXPECT_NE(first("WrongWaitOfAnother").find("copies to it by cp.async.bulk"), std::string::npos)
      << first("WrongWaitOfAnother");
  EXPECT_NE(first("WrongWaitOfAnother").find("with no wait for its mbarrier between (a race)"), std::string::npos);
  EXPECT_NE(first("WrongSize").find("copies 40 bytes by cp.async.bulk, a size that is not a multiple of 16"),
            std::string::npos)
      << first("WrongSize");
  EXPECT_NE(first("WrongSourceUsedAgain").find("copies from there by cp.async.bulk"), std::string::npos)
      << first("WrongSourceUsedAgain");
  EXPECT_NE(first("WrongNoProxyFence").find("with no fence.proxy.async between"), std::string::npos)
      << first("WrongNoProxyFence");
}

TEST(Bulk, OneBlockHasAtMostSoManyAtOnce) {
  constexpr int kMost = 16384;
  for (const Mode mode : {Mode::kChecked, Mode::kPlain}) {
    const auto run = [&](int count) {
      Bench bench("bulk");
      return bench.Run("StoresAtOnce", Config({1}, {1}, mode), bench.Reserve<float>(4 * (kMost + 1), "y"), count);
    };
    EXPECT_CLEAN(run(kMost));
    const LaunchResult beyond = run(kMost + 1);
    ASSERT_EQ(beyond.findings.size(), 1u);
    EXPECT_EQ(std::string(FindingName(beyond.findings[0].code)), "unsupported");
    EXPECT_NE(beyond.findings[0].message.find("begins a bulk copy while 16384 of its block are not complete, the most "
                                              "that the interpreter keeps"),
              std::string::npos)
        << Messages(beyond);
  }
}

// A copy is the loads or stores that it takes the place of, past the L1; who waits for it waits as long as for them.
TEST(Bulk, CopiesAreCounted) {
  const Counts counts = RunOf("ArriveTx", Mode::kCounted).result.counts;
  ASSERT_EQ(counts.arrays.size(), 2u);
  EXPECT_EQ(counts.arrays[0].load_sectors, 64);
  EXPECT_EQ(counts.arrays[0].load_ideal_sectors, 64);
  EXPECT_EQ(counts.arrays[0].unique_load_sectors, 64);
  for (const double missed : counts.arrays[0].l1_miss_sectors) EXPECT_EQ(missed, 64);
  EXPECT_EQ(counts.shared_wavefronts - counts.shared_ideal_wavefronts, 0);
  ASSERT_EQ(counts.latency.size(), 2u);
  for (const BlockLatency& latency : counts.latency) {
    EXPECT_EQ(latency.miss.steps[static_cast<size_t>(LatencyTerm::kDram)], 1);
    EXPECT_EQ(latency.hit.steps[static_cast<size_t>(LatencyTerm::kL2)], 1);
  }
  const Counts stored = RunOf("FenceOfTheIssuer", Mode::kCounted).result.counts;
  ASSERT_EQ(stored.arrays.size(), 2u);
  EXPECT_EQ(stored.arrays[1].store_sectors, 64);
  EXPECT_EQ(stored.arrays[1].store_partial_sectors, 0);
  EXPECT_EQ(stored.arrays[1].unique_store_sectors, 64);
}

// Two stages hide a part of each other's latency: the chain holds fewer waits than copies.
TEST(Bulk, StagesOverlap) {
  const Counts counts = RunOf("Ring", Mode::kCounted).result.counts;
  ASSERT_FALSE(counts.latency.empty());
  const double waits = counts.latency[0].miss.steps[static_cast<size_t>(LatencyTerm::kDram)];
  EXPECT_GE(waits, 2);
  EXPECT_LT(waits, 4);
}

}  // namespace
}  // namespace kgrpo::simt
