#include "evaluator_cuda/rounds.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kCall = 20e-6;  // so 25 us are allowed

// Rounds whose rests lie evenly within `width` around `middle`, in no order.
std::vector<double> MadeUpRests(size_t rounds, double middle, double width) {
  std::vector<double> rests;
  for (size_t i = 0; i < rounds; ++i) {
    rests.push_back(middle + width * (static_cast<double>(i) / static_cast<double>(rounds - 1) - 0.5));
  }
  std::shuffle(rests.begin(), rests.end(), std::mt19937(1));
  return rests;
}

TEST(FirstCall, IsComparedWithTheReferences) {
  const FirstCall first = CompareFirstCalls(MadeUpRests(31, 90e-6, 2e-6), MadeUpRests(31, 80e-6, 2e-6), kCall);
  EXPECT_NEAR(first.seconds, 10e-6, 1e-9);
  EXPECT_FALSE(first.does_others);
}

TEST(FirstCall, IsFoundWhereItTakesLongerThanItMay) {
  EXPECT_TRUE(CompareFirstCalls(MadeUpRests(31, 110e-6, 2e-6), MadeUpRests(31, 80e-6, 2e-6), kCall).does_others);
  EXPECT_FALSE(CompareFirstCalls(MadeUpRests(31, 110e-6, 2e-6), MadeUpRests(31, 80e-6, 2e-6), 2 * kCall).does_others);
}

// Three rounds of an honest kernel on a busy machine: what the median says is noise.
TEST(FirstCall, IsNotFoundInNoise) {
  EXPECT_FALSE(CompareFirstCalls({60e-6, 116e-6, 170e-6}, {70e-6, 80e-6, 120e-6}, kCall).does_others);
  EXPECT_FALSE(CompareFirstCalls(MadeUpRests(12, 110e-6, 80e-6), MadeUpRests(12, 80e-6, 80e-6), kCall).does_others);
}

// A reference whose own batches vary by more than what is looked for tells nothing.
TEST(FirstCall, IsNotFoundInTheReferencesNoise) {
  EXPECT_FALSE(CompareFirstCalls(MadeUpRests(12, 80e-6, 2e-6), MadeUpRests(12, -300e-6, 2000e-6), kCall).does_others);
}

TEST(FirstCall, DoesNotHideBehindNoise) {
  EXPECT_TRUE(CompareFirstCalls(MadeUpRests(12, 140e-6, 400e-6), MadeUpRests(12, 80e-6, 2e-6), kCall).does_others);
  EXPECT_TRUE(CompareFirstCalls(MadeUpRests(31, 110e-6, 20e-6), MadeUpRests(31, 80e-6, 2e-6), 0).does_others);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
