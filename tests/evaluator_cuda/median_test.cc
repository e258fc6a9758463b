#include "evaluator_cuda/rounds.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

std::vector<double> FromOneTo(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(MedianOf({3, 1, 2}).value, 2);
  EXPECT_EQ(MedianOf({4, 1, 3, 2}).value, 2.5);
  EXPECT_EQ(MedianOf({7}).value, 7);
}

// Ranks of the two-sided 95% interval of a median, from a table of the sign test (for n = 8, 10, 15, 20, 25 the
// critical values at 0.05 are 0, 1, 3, 5, 7): the interval runs from rank c + 1 to rank n - c.
TEST(Median, IntervalHasTheRanksOfTheSignTest) {
  const int critical[][2] = {{6, 0}, {8, 0}, {10, 1}, {15, 3}, {20, 5}, {25, 7}};
  for (const auto& [n, c] : critical) {
    const Median median = MedianOf(FromOneTo(n));
    EXPECT_EQ(median.low, c + 1) << n;
    EXPECT_EQ(median.high, n - c) << n;
  }
}

TEST(Median, FewValuesGiveTheirWholeRange) {
  const Median median = MedianOf({5, 1, 3});
  EXPECT_EQ(median.low, 1);
  EXPECT_EQ(median.high, 5);
}

TEST(Median, ManyValuesGoOverToTheNormalApproximationWithoutAJump) {
  const Median before = MedianOf(FromOneTo(500)), after = MedianOf(FromOneTo(501));
  EXPECT_NEAR(before.high - before.low, after.high - after.low, 2);
  EXPECT_NEAR(after.high - after.low, 2 * 0.98 * std::sqrt(501.0), 3);
}

// A skewed distribution with a known median: the interval holds it in at least 95% of many draws.
TEST(Median, IntervalCoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 engine(1);
  std::lognormal_distribution<double> draw(0.0, 1.0);  // median 1
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(21);
    for (double& value : values) value = draw(engine);
    const Median median = MedianOf(values);
    covered += median.low <= 1 && 1 <= median.high ? 1 : 0;
  }
  EXPECT_GE(covered, kTrials * 0.94);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
