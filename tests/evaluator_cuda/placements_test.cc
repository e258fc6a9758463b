#include "evaluator_cuda/placements.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

std::vector<uint64_t> Shuffled(uint64_t sets, uint32_t seed) {
  std::vector<uint64_t> order(sets);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

// Of whatever number of sets and calls: what the long batch has beyond the short one is at each placement equally
// often.
TEST(Placements, BatchesDifferByEquallyManyOfEach) {
  for (uint64_t sets = 4; sets < 40; ++sets) {
    for (uint64_t leading = 0; leading <= std::max<uint64_t>(1, sets / 4); ++leading) {
      for (uint64_t placement = 0; placement < kPlacements; ++placement) {
        const std::vector<uint64_t> order = OrderByPlacement(Shuffled(sets, 7), leading, placement);
        ASSERT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), sets);
        for (uint64_t i = 0; i < leading; ++i) EXPECT_EQ(PlacementOf(order[i]), placement);
        uint64_t counts[kPlacements] = {};
        for (uint64_t i = leading; i + leading < sets; ++i) {
          ++counts[PlacementOf(order[i])];
          if ((i + 1 - leading) % kPlacements == 0) {
            EXPECT_EQ(counts[0], counts[1]) << sets << " sets, " << leading << " leading, " << i;
          }
        }
      }
    }
  }
}

TEST(Placements, KeepTheOrderThatWasShuffled) {
  const std::vector<uint64_t> shuffled = Shuffled(12, 3), order = OrderByPlacement(shuffled, 2, 1);
  for (uint64_t placement = 0; placement < kPlacements; ++placement) {
    std::vector<uint64_t> before, after;
    const auto has = [&](uint64_t set) { return PlacementOf(set) == placement; };
    std::copy_if(shuffled.begin(), shuffled.end(), std::back_inserter(before), has);
    std::copy_if(order.begin(), order.end(), std::back_inserter(after), has);
    EXPECT_EQ(before, after);
  }
}

// A kernel of 4.3 ms at one placement and 2.1 ms at the other, in batches that take 30 us more than their calls.
TEST(Placements, RestsOfBothTellStartAndDifference) {
  constexpr double kSlow = 4.3e-3, kFast = 2.1e-3, kMean = (kSlow + kFast) / 2, kStart = 30e-6;
  std::vector<RoundRest> rounds;
  for (uint64_t i = 0; i < 12; ++i) {
    const uint64_t leading = 1 + i % 3, placement = i % kPlacements;
    const double short_batch = kStart + static_cast<double>(leading) * (placement == 0 ? kSlow : kFast);
    const double long_batch = short_batch + 2 * kMean;
    rounds.push_back({leading, placement, long_batch - static_cast<double>(leading + 2) * kMean});
  }
  const Rests rests = PairRests(rounds);
  ASSERT_EQ(rests.seconds.size(), 6u);
  for (const double seconds : rests.seconds) EXPECT_NEAR(seconds, kStart, 1e-12);
  for (const double difference : rests.differences) EXPECT_NEAR(difference, kSlow - kMean, 1e-12);
  EXPECT_NEAR(PlacementSpread(rests.differences, kMean), kSlow - kMean, 1e-12);
}

TEST(Placements, ARoundWaitsForOneOfTheOther) {
  EXPECT_TRUE(PairRests({{1, 0, 1e-6}, {1, 0, 2e-6}}).seconds.empty());
  const Rests rests = PairRests({{1, 0, 1e-6}, {1, 0, 2e-6}, {1, 1, 4e-6}, {1, 1, 5e-6}});  // rounds were dropped
  ASSERT_EQ(rests.seconds.size(), 1u);
  EXPECT_NEAR(rests.seconds[0], 3e-6, 1e-15);
}

TEST(Placements, NoiseIsNoSpread) {
  EXPECT_EQ(PlacementSpread({}, 1e-3), 0);
  EXPECT_EQ(PlacementSpread({1e-4, 1e-4, 1e-4}, 1e-3), 0) << "too few to tell";
  EXPECT_EQ(PlacementSpread({1e-4, -1e-4, 2e-4, -2e-4, 1e-4, 3e-4, -1e-4}, 1e-3), 0);
  EXPECT_EQ(PlacementSpread(std::vector<double>(12, 1e-6), 1e-3), 0) << "a thousandth";
  EXPECT_NEAR(PlacementSpread(std::vector<double>(12, -1e-4), 1e-3), 1e-4, 1e-15);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
