// The keyed random numbers: Philox against its authors' known answers, and the properties that the host relies on.
#include "base/keyed.h"

#include <bit>

#include "base/philox.h"
#include "test.h"

namespace kgrpo {
namespace {

// From the file kat_vectors of Random123, the authors' implementation.
TEST(Philox4x32, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// A run of an earlier version resumes to the same numbers. Computed by tests/golden/random/make_keyed.py, which follows
// the comment in keyed.h and shares no code.
TEST(Keyed, NeverChanges) {
  EXPECT_EQ(Keyed(0U, "", {}, 0U), 0x2193f8cfd859a7cU);
  EXPECT_EQ(Keyed(42U, "policy", {3U, 5U, 1U}, 7U), 0x2f543b1ecb4c03e9U);
  EXPECT_EQ(Keyed(18446744073709551615U, "a stream of more than eight bytes", {18446744073709551615U, 0U},
                  18446744073709551615U),
            0xa3e18c0e73e06e9U);
  EXPECT_EQ(Keyed(1U, "exactly8", {1U}, 0U), 0xe8d265c2d2832866U);
}

TEST(Keyed, EveryPartOfTheKeyMatters) {
  std::set<uint64_t> seen;
  size_t drawn = 0;
  const auto draw = [&](uint64_t seed, const std::string& stream, const std::vector<uint64_t>& key, uint64_t index) {
    seen.insert(Keyed(seed, stream, key, index));
    ++drawn;
  };
  for (uint64_t seed : {0, 1}) {
    for (const char* stream : {"", "a", "b", "aaaaaaaa", "aaaaaaaab", "ab"}) {
      for (const std::vector<uint64_t>& key :
           {std::vector<uint64_t>{}, {0}, {0, 0}, {1}, {1, 0}, {0, 1}, {uint64_t{1} << 40}}) {
        for (uint64_t index : {0, 1, 2}) draw(seed, stream, key, index);
      }
    }
  }
  draw(0, std::string(1, '\0'), {}, 0);  // a zero byte is not the empty stream
  EXPECT_EQ(seen.size(), drawn);
}

TEST(Keyed, BitsAreFairAndIndependentOfNeighbours) {
  constexpr int kDraws = 20000;
  std::vector<int> ones(64, 0);
  double flips = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t bits = Keyed(1, "bits", {static_cast<uint64_t>(i)}, 0);
    for (size_t b = 0; b < 64; ++b) ones[b] += static_cast<int>(bits >> b & 1);
    flips += std::popcount(bits ^ Keyed(1, "bits", {static_cast<uint64_t>(i)}, 1));
  }
  // Five standard deviations of a fair coin.
  for (int count : ones) EXPECT_NEAR(count, kDraws / 2, 5 * 0.5 * 141.5);
  EXPECT_NEAR(flips / kDraws, 32.0, 5 * 4.0 / 141.4);
}

TEST(KeyedStream, DrawsWhatKeyedDoes) {
  KeyedStream stream(5, "s", {1, 2});
  EXPECT_EQ(stream.Next(), Keyed(5, "s", {1, 2}, 0));
  EXPECT_EQ(stream.Next(), Keyed(5, "s", {1, 2}, 1));
  EXPECT_EQ(stream.At(9), Keyed(5, "s", {1, 2}, 9));
}

TEST(KeyedStream, BelowIsUniform) {
  KeyedStream stream(5, "below", {});
  std::vector<int> counts(6, 0);
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) ++counts[stream.Below(6)];
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_square, 20.5);  // 0.1% of fair dice with 5 degrees of freedom exceed it
  EXPECT_EQ(stream.Below(1), 0U);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(stream.Below((uint64_t{1} << 63) + 1), (uint64_t{1} << 63) + 1);
}

TEST(KeyedStream, UniformIsInItsRange) {
  KeyedStream stream(5, "uniform", {});
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = stream.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 5 * 0.2887 / 100);
}

TEST(KeyedStream, PermutationsAreOfAllAndUniform) {
  std::vector<int> counts(24, 0);
  for (uint64_t i = 0; i < 24000; ++i) {
    std::vector<size_t> order = KeyedStream(1, "order", {i}).Permutation(4);
    size_t rank = 0;
    for (size_t a = 0; a < 4; ++a) {
      size_t smaller = 0;
      for (size_t b = a + 1; b < 4; ++b) smaller += order[b] < order[a];
      rank = rank * (4 - a) + smaller;
    }
    ++counts[rank];
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, (std::vector<size_t>{0, 1, 2, 3}));
  }
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 49.7);  // 0.1%, 23 degrees of freedom
  EXPECT_TRUE(KeyedStream(1, "order", {}).Permutation(0).empty());
}

}  // namespace
}  // namespace kgrpo
