// Tensor core instructions against products on the host.
#include <algorithm>
#include <cmath>

#include "harness.h"

namespace kgrpo::simt {
namespace {

// Small integers: every product and sum is exact in all formats.
int Entry(int i) { return static_cast<int>(Noise(static_cast<uint64_t>(i)) * 4); }

// The f16 bits of a small integer.
unsigned short Half(int v) {
  if (v == 0) return 0;
  const int magnitude = v < 0 ? -v : v, exponent = std::ilogb(magnitude);
  return static_cast<unsigned short>((v < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                                     ((magnitude << (10 - exponent)) & 0x3FF));
}

struct MatrixTest : testing::Test {
  MatrixTest() {
    for (int i = 0; i < 16 * 24; ++i) a.push_back(Half(Entry(i)));
    for (int i = 0; i < 16 * 16; ++i) b.push_back(Half(Entry(1000 + i)));
  }
  Bench bench{"matrix"};
  std::vector<unsigned short> a, b;
};

TEST_F(MatrixTest, Wmma) {
  const auto c = bench.Reserve<float>(256, "c");
  EXPECT_CLEAN(bench.Run("Wmma", Config({1}, {32}), bench.Upload(a, "a"), bench.Upload(b, "b"), c));
  const auto result = bench.Download<float>(c, 256);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int sum = 1;
      for (int k = 0; k < 16; ++k) sum += Entry(i * 24 + k) * Entry(1000 + j * 16 + k);
      ASSERT_EQ(result[i * 16 + j], 2 * sum) << i << " " << j;
    }
  }
}

TEST_F(MatrixTest, WmmaThroughSharedMemoryInHalves) {
  const auto c = bench.Reserve<unsigned short>(256, "c");
  EXPECT_CLEAN(bench.Run("WmmaShared", Config({1}, {32}), bench.Upload(a, "a"), bench.Upload(b, "b"), c));
  const auto result = bench.Download<unsigned short>(c, 256);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += Entry(k * 24 + i) * Entry(1000 + k * 16 + j);
      ASSERT_EQ(result[j * 16 + i], Half(sum)) << i << " " << j;
    }
  }
}

// Sums near the largest integer: without saturation they wrap around.
template <typename T>
void ExpectProductOfBytes(Bench& bench, const std::string& kernel, int m, int n, bool saturates) {
  std::vector<T> a(static_cast<size_t>(m) * 16), b(static_cast<size_t>(n) * 16);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i * 37 + 11);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(i * 53 + 5);
  for (const int start : {0, 2'147'400'000}) {
    const auto c = bench.Reserve<int>(static_cast<size_t>(m) * static_cast<size_t>(n), "c");
    EXPECT_CLEAN(bench.Run(kernel, Config({1}, {32}), bench.Upload(a, "a"), bench.Upload(b, "b"), c, start));
    const auto result = bench.Download<int>(c, static_cast<size_t>(m) * static_cast<size_t>(n));
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        int64_t sum = start;
        for (int k = 0; k < 16; ++k)
          sum += int64_t{a[static_cast<size_t>(i * 16 + k)]} * int64_t{b[static_cast<size_t>(j * 16 + k)]};
        const int expected = saturates ? static_cast<int>(std::min<int64_t>(sum, INT32_MAX))
                                       : static_cast<int>(static_cast<uint32_t>(sum));
        ASSERT_EQ(result[static_cast<size_t>(i * n + j)], expected) << kernel << " " << i << " " << j;
      }
    }
  }
}

TEST_F(MatrixTest, WmmaOfBytes) {
  ExpectProductOfBytes<signed char>(bench, "WmmaSigned", 16, 16, false);
  ExpectProductOfBytes<unsigned char>(bench, "WmmaUnsignedTall", 32, 8, false);
  ExpectProductOfBytes<unsigned char>(bench, "WmmaUnsignedWide", 8, 32, true);
}

TEST_F(MatrixTest, MmaFedByLdmatrix) {
  const auto c = bench.Reserve<float>(128, "c");
  EXPECT_CLEAN(bench.Run("Mma", Config({1}, {32}), bench.Upload(a, "a"), bench.Upload(b, "b"), c));
  const auto result = bench.Download<float>(c, 128);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += Entry(i * 24 + k) * Entry(1000 + k * 16 + j);
      ASSERT_EQ(result[i * 8 + j], sum) << i << " " << j;
    }
  }
}

TEST_F(MatrixTest, CountsTensorOperations) {
  const auto c = bench.Reserve<float>(256, "c");
  const LaunchResult result =
      bench.Run("Wmma", Config({1}, {32}, Mode::kCounted), bench.Upload(a, "a"), bench.Upload(b, "b"), c);
  EXPECT_EQ(result.counts.tensor_flops, 2.0 * 16 * 16 * 16);
}

}  // namespace
}  // namespace kgrpo::simt
