// Instructions that common kernels rarely use, against the same in plain C++. No function of CUDA's math API is
// refused.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "harness.h"

namespace kgrpo::simt {
namespace {

std::vector<uint32_t> Words(size_t count, uint64_t seed) {
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i) {
    const float a = Noise(i + (seed << 32)), b = Noise(i + (seed << 32) + (1u << 20));
    words[i] = static_cast<uint32_t>(static_cast<int32_t>(a * 32767.0f)) << 16 ^
               static_cast<uint32_t>(static_cast<int32_t>(b * 65535.0f));
  }
  return words;
}
int32_t Signed(uint32_t v) { return static_cast<int32_t>(v); }
int64_t ClampTo(int64_t v, int64_t low, int64_t high) { return std::clamp(v, low, high); }
uint32_t NthSet(uint32_t mask, int base, int n) {
  if (n == 0) return (mask >> base & 1u) != 0 ? static_cast<uint32_t>(base) : 0xFFFFFFFFu;
  const int step = n > 0 ? 1 : -1;
  for (int left = std::abs(n); base >= 0 && base < 32; base += step) {
    if ((mask >> base & 1u) != 0 && --left == 0) return static_cast<uint32_t>(base);
  }
  return 0xFFFFFFFFu;
}

TEST(Coverage, EveryMathFunctionIsInterpreted) {
  const auto module = Module::Parse(ReadPtx("coverage_math"));
  EXPECT_EQ(module->kernels().size(), 488u);  // a kernel each; see kernels/coverage_math.cu
}

TEST(Coverage, BitsAndVideo) {
  Bench bench("coverage");
  auto x = Words(32, 1), y = Words(32, 2), z = Words(32, 3);
  for (size_t i = 0; i < 32; i += 3) y[i] %= 40;  // widths and counts
  const auto out = bench.Reserve<uint32_t>(32 * 16, "out");
  ASSERT_TRUE(IsClean(
      bench.Run("Bits", Config({1}, {32}), bench.Upload(x, "x"), bench.Upload(y, "y"), bench.Upload(z, "z"), out)));
  const auto result = bench.Download<uint32_t>(out, 32 * 16);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t a = x[i], b = y[i], c = z[i];
    const int64_t A = Signed(a), B = Signed(b), C = Signed(c);
    const int64_t a24 = Signed(a << 8) >> 8, b24 = Signed(b << 8) >> 8;
    const uint32_t mask = static_cast<uint32_t>(((b >= 32 ? 0xFFFFFFFFull : (1ull << b) - 1)) << std::min(a, 32u));
    const uint32_t extended = b >= 32 ? a : b == 0 ? 0 : static_cast<uint32_t>(Signed(a << (32 - b)) >> (32 - b));
    uint32_t set = c;
    for (int s = 0; s < 32; s += 8) set += (a >> s & 255u) >= (b >> s & 255u) ? 1 : 0;
    const auto high = [](uint32_t v) { return static_cast<int16_t>(v >> 16); };
    const auto low = [](uint32_t v) { return static_cast<int16_t>(v); };
    auto saturated = [](int64_t v) { return static_cast<uint32_t>(ClampTo(v, -32768, 32767)) & 0xFFFFu; };
    const uint32_t parity = a ^ b ^ c;
    const uint32_t expected[16] = {
        static_cast<uint32_t>(C + low(a) * int64_t{b & 255u} + high(a) * int64_t{b >> 8 & 255u}),
        static_cast<uint32_t>((uint64_t{a & 0xFFFFFFu} * (b & 0xFFFFFFu)) >> 16) + c,
        static_cast<uint32_t>((a24 * b24) >> 16),
        a >= 32 ? 0 : mask,
        extended,
        static_cast<uint32_t>(std::max(ClampTo(A + B, INT32_MIN, INT32_MAX), C)),
        static_cast<uint32_t>((A * B + C) >> 7),
        set,
        static_cast<uint32_t>(static_cast<int8_t>(a >> 8) - high(b)),
        static_cast<uint32_t>(A >> std::min(b, 32u)) + c,
        saturated(A) << 16 | saturated(B),
        parity != 0 && a != 0 ? 7u : 0u,
        NthSet(a, static_cast<int>(b & 31u), static_cast<int>(c & 7u) - 3),
        (static_cast<uint32_t>(std::max(high(a), high(b))) & 0xFFFFu) << 16 |
            (static_cast<uint32_t>(std::max(low(a), low(b))) & 0xFFFFu),
        ((a >> 16) + (b >> 16)) << 16 | ((a + b) & 0xFFFFu),
        c << 16 | static_cast<uint32_t>(ClampTo(A, 0, 255)) << 8 | static_cast<uint32_t>(ClampTo(B, 0, 255))};
    for (size_t k = 0; k < 16; ++k)
      ASSERT_EQ(result[i * 16 + k], expected[k]) << k << " of " << a << ", " << b << ", " << c;
  }
}

double HalfValue(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31u);
  const double fraction = bits & 1023u;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000u) != 0 ? -size : size;
}

TEST(Coverage, SmallFloatFormats) {
  Bench bench("coverage");
  std::vector<float> x(33);
  for (size_t i = 0; i < x.size(); ++i) x[i] = Noise(i + 500) * std::ldexp(1.0f, static_cast<int>(i) - 16);
  x[3] = 1e9f;
  x[7] = -INFINITY;
  x[11] = NAN;
  const auto halves = bench.Reserve<uint32_t>(512, "halves"), back = bench.Reserve<uint32_t>(512, "back");
  const auto narrow = bench.Reserve<uint32_t>(256, "narrow");
  LaunchResult launched =
      bench.Run("Tiny", Config({1}, {32}, Mode::kPlain), bench.Upload(x, "x"), halves, back, narrow);
  ASSERT_TRUE(IsClean(launched));
  const auto half = bench.Download<uint32_t>(halves, 512), code = bench.Download<uint32_t>(back, 512);
  for (uint32_t i = 0; i < 256; ++i) {
    // e4m3: exponents from -6, no infinity; e5m2 is the upper half of f16.
    if ((i & 0x7Fu) != 0x7Fu) {
      const int exponent = static_cast<int>(i >> 3 & 15u), fraction = static_cast<int>(i & 7u);
      const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(fraction + 8, exponent - 10);
      EXPECT_EQ(HalfValue(half[i]), (i & 128u) != 0 ? -size : size) << i;
      EXPECT_EQ(code[i], i);
    } else {
      EXPECT_EQ(half[i], 0x7FFFu);
    }
    if ((i & 0x7Fu) <= 0x7Cu) {
      EXPECT_EQ(half[256 + i], i << 8) << i;
    }
    if ((i & 0x7Fu) < 0x7Cu) {
      EXPECT_EQ(code[256 + i], i) << i;
    }
  }
  const auto rows = bench.Download<uint32_t>(narrow, 256);
  for (size_t i = 0; i < 32; ++i) {
    const uint32_t* row = &rows[i * 8];
    const float v = x[i], w = x[i + 1];
    if (std::isnan(v) || std::isnan(w)) continue;
    if (std::isfinite(v)) {
      const float tf32 = std::bit_cast<float>(row[0]);
      EXPECT_EQ(row[0] & 0x1FFFu, 0u);
      EXPECT_LE(std::fabs(tf32 - v), std::ldexp(std::fabs(v), -11)) << v;
      EXPECT_LE(std::fabs(std::bit_cast<float>(row[6]) - v), std::ldexp(std::fabs(v), -11)) << v;
      const double truncated = HalfValue(row[1] >> 16);
      if (std::fabs(v) < 65504) {
        EXPECT_LE(std::fabs(truncated), std::fabs(v));
        EXPECT_GE(std::fabs(truncated), std::fabs(v) * (1 - std::ldexp(1.0, -10)) - std::ldexp(1.0, -24));
      }
    }
    const float relu = std::bit_cast<float>(row[2] & 0xFFFF0000u);
    EXPECT_EQ(relu > 0, v > 0);
    EXPECT_TRUE(std::isfinite(relu));
    EXPECT_EQ(std::fabs(std::bit_cast<float>(row[3])), std::min(std::fabs(v), std::fabs(w)));
    EXPECT_EQ((row[3] >> 31) != 0, std::signbit(v) != std::signbit(w));
    // The code chosen is one of those nearest to the value.
    for (uint32_t f = 0; f < 2; ++f) {
      const uint32_t largest = f == 0 ? 0x7Eu : 0x7Bu;
      double nearest = INFINITY;
      for (uint32_t i2 = 0; i2 <= largest; ++i2)
        nearest = std::min(nearest, std::fabs(HalfValue(half[f * 256 + i2]) - std::fabs(static_cast<double>(v))));
      if (std::isinf(v)) {
        EXPECT_EQ(row[4 + f], 0x80u | largest);
      } else {
        EXPECT_EQ(std::fabs(HalfValue(half[f * 256 + (row[4 + f] & 0x7Fu)]) - std::fabs(static_cast<double>(v))),
                  nearest)
            << v;
      }
    }
  }
}

// Element (row, k) of a matrix that lies in registers as the PTX manual says: `per` elements a register.
uint32_t WordOf(const std::vector<uint32_t>& words, uint32_t row, uint32_t k, uint32_t per, bool has_rows) {
  const uint32_t block = k / (4 * per), within = k % (4 * per) / per;
  const uint32_t reg = has_rows ? block * 2 + row / 8 : block;
  return words[reg * 32 + row % 8 * 4 + within];
}

TEST(Coverage, MatrixProductsOfOtherFormats) {
  Bench bench("coverage");
  const auto a = Words(128, 21), b = Words(64, 22);
  const auto out = bench.Reserve<int>(16 * 32, "out");
  const auto floats = bench.Reserve<float>(128, "floats");
  const auto doubles = bench.Reserve<double>(128, "doubles");
  ASSERT_TRUE(IsClean(
      bench.Run("Products", Config({1}, {32}), bench.Upload(a, "a"), bench.Upload(b, "b"), out, floats, doubles)));
  const auto result = bench.Download<int>(out, 16 * 32);
  const auto float_result = bench.Download<float>(floats, 128);
  const auto double_result = bench.Download<double>(doubles, 128);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      int64_t s8 = i + 1, u8 = i + 1, s4 = i + 1, bits = 0;
      double tiny = 0, wide = 0;
      for (uint32_t k = 0; k < 32; ++k) {
        const uint32_t x = WordOf(a, row, k, 4, true) >> (8 * (k % 4)),
                       y = WordOf(b, column, k, 4, false) >> (8 * (k % 4));
        s8 += static_cast<int8_t>(x) * static_cast<int8_t>(y);
        u8 += static_cast<uint8_t>(x) * static_cast<int8_t>(y);
        auto value = [](uint32_t code) { return (code & 8u) != 0 ? 1 + (code & 7u) / 8.0 : 0.5 + (code & 7u) / 16.0; };
        tiny += value(x) * value(y);
      }
      for (uint32_t k = 0; k < 64; ++k) {
        const uint32_t x = WordOf(a, row, k, 8, true) >> (4 * (k % 8)) & 15u,
                       y = WordOf(b, column, k, 8, false) >> (4 * (k % 8)) & 15u;
        s4 += (static_cast<int>(x) - ((x & 8u) != 0 ? 16 : 0)) * static_cast<int>(y);
      }
      for (uint32_t k = 0; k < 256; ++k)
        bits += (WordOf(a, row, k, 32, true) & WordOf(b, column, k, 32, false)) >> (k % 32) & 1u;
      for (uint32_t k = 0; k < 8; ++k)
        wide += static_cast<double>(WordOf(a, row, k, 1, true) & 255u) * (WordOf(b, column, k, 1, false) & 255u);
      ASSERT_EQ(result[(0 + i) * 32 + lane], s8);
      ASSERT_EQ(result[(4 + i) * 32 + lane], u8);
      ASSERT_EQ(result[(8 + i) * 32 + lane], s4);
      ASSERT_EQ(result[(12 + i) * 32 + lane], bits);
      ASSERT_EQ(float_result[i * 32 + lane], tiny);
      ASSERT_EQ(double_result[i * 32 + lane], wide);
    }
  }
}

TEST(Coverage, MatricesAreStoredAndTransposed) {
  Bench bench("coverage");
  std::vector<uint32_t> in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = 2 * i | (2 * i + 1) << 16;  // element (r, c) is 8 r + c
  const auto plain = bench.Reserve<uint32_t>(32, "plain"), transposed = bench.Reserve<uint32_t>(32, "transposed"),
             moved = bench.Reserve<uint32_t>(32, "moved");
  ASSERT_TRUE(IsClean(bench.Run("Matrices", Config({1}, {32}), bench.Upload(in, "in"), plain, transposed, moved)));
  EXPECT_EQ(bench.Download<uint32_t>(plain, 32), in);
  std::vector<uint32_t> expected(32);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t row = i / 4, column = i % 4 * 2;
    expected[i] = (column * 8 + row) | ((column + 1) * 8 + row) << 16;
  }
  EXPECT_EQ(bench.Download<uint32_t>(transposed, 32), expected);
  EXPECT_EQ(bench.Download<uint32_t>(moved, 32), expected);
}

TEST(Coverage, MbarriersOrderWhatIsWaitedFor) {
  Bench bench("coverage");
  const auto out = bench.Reserve<int>(64, "out");
  ASSERT_TRUE(IsClean(bench.Run("Mbarrier", Config({1}, {64}), out)));
  const auto result = bench.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(result[i], 3 * (63 - i));
  // Without the wait the reads race with the other warp's writes.
  const LaunchResult raced = bench.Run("MbarrierWithoutWait", Config({1}, {64}), out);
  EXPECT_TRUE(std::any_of(raced.findings.begin(), raced.findings.end(), [](const Finding& finding) {
    return finding.code == FindingCode::kRace;
  })) << Messages(raced);
}

TEST(Coverage, VectorAtomics) {
  Bench bench("coverage");
  const auto sums = bench.Upload(std::vector<float>(4), "sums"), old = bench.Reserve<float>(64, "old");
  ASSERT_TRUE(IsClean(bench.Run("VectorAtomics", Config({1}, {32}), sums, old)));
  EXPECT_EQ(bench.Download<float>(sums, 4), (std::vector<float>{32 + 496, 2 * 32 + 32, 96, 128}));
}

TEST(Coverage, CallsThroughPointers) {
  Bench bench("coverage");
  std::vector<int> which(64);
  std::vector<float> x(64);
  for (int i = 0; i < 64; ++i) {
    which[i] = i * 7 % 3;
    x[i] = Noise(i);
  }
  const auto out = bench.Reserve<float>(64, "out");
  ASSERT_TRUE(
      IsClean(bench.Run("Pointers", Config({2}, {32}), bench.Upload(x, "x"), bench.Upload(which, "which"), out)));
  auto result = bench.Download<float>(out, 64);
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(result[i], which[i] == 0 ? x[i] + i : which[i] == 1 ? x[i] * i : i > 5 ? x[i] - i : x[i]) << i;
  ASSERT_TRUE(IsClean(bench.Run("Virtual", Config({2}, {32}), bench.Upload(x, "x"), out)));
  result = bench.Download<float>(out, 64);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(result[i], i % 2 == 1 ? x[i] * 3 + 1 : x[i] - 4 + 2) << i;
  which[5] = 3;  // a null pointer
  const LaunchResult wild =
      bench.Run("Pointers", Config({2}, {32}), bench.Upload(x, "x"), bench.Upload(which, "which"), out);
  ASSERT_EQ(wild.findings.size(), 1u);
  EXPECT_EQ(wild.findings[0].code, FindingCode::kTrap) << Messages(wild);
}

TEST(Coverage, Recursion) {
  Bench bench("coverage");
  const auto out = bench.Reserve<int>(32, "out");
  ASSERT_TRUE(IsClean(bench.Run("Fibonacci", Config({1}, {32}), out)));
  const auto result = bench.Download<int>(out, 32);
  for (int i = 0; i < 32; ++i) {
    int a = 0, b = 1;
    for (int n = 0; n < i % 12; ++n) b = std::exchange(a, b) + b;
    EXPECT_EQ(result[i], a) << i;
  }
  std::vector<int> values(32 * 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7919 % 1009);
  const auto sorted = bench.Upload(values, "values");
  ASSERT_TRUE(IsClean(bench.Run("Quicksort", Config({1}, {32}), sorted, 20)));
  for (size_t i = 0; i < 32; ++i)
    std::sort(values.begin() + static_cast<std::ptrdiff_t>(20 * i),
              values.begin() + static_cast<std::ptrdiff_t>(20 * i + 20));
  EXPECT_EQ(bench.Download<int>(sorted, values.size()), values);
  const LaunchResult endless = bench.Run("Endless", Config({1}, {32}), out, 100000);
  ASSERT_EQ(endless.findings.size(), 1u);
  EXPECT_EQ(endless.findings[0].code, FindingCode::kOutOfBounds);
  EXPECT_NE(endless.findings[0].message.find("stack overflows"), std::string::npos) << Messages(endless);
}

TEST(Coverage, CopiesArriveAtMbarriers) {
  Bench bench("coverage");
  std::vector<int> in(128);
  for (int i = 0; i < 128; ++i) in[i] = i + 1;
  const auto out = bench.Reserve<int>(32, "out");
  ASSERT_TRUE(IsClean(bench.Run("CopiesThatArrive", Config({1}, {32}), bench.Upload(in, "in"), out)));
  const auto result = bench.Download<int>(out, 32);
  for (int i = 0; i < 32; ++i) {
    const int from = 31 - i;  // the odd threads' copies are of zeros
    EXPECT_EQ(result[i], 1 + (from % 2 == 1 ? 0 : in[4 * from] + in[4 * from + 3])) << i;
  }
}

}  // namespace
}  // namespace kgrpo::simt
