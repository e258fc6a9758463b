// Arithmetic against the host's: exact if IEEE 754 requires it, close if the GPU approximates.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "harness.h"

namespace kgrpo::simt {
namespace {

constexpr int kInputs = 1000;

float Ulps(float a, double b) {
  const float rounded = static_cast<float>(b);
  if (std::isnan(a) && std::isnan(rounded)) return 0;
  if (a == rounded) return 0;
  const float ulp = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
  return static_cast<float>(std::fabs(a - b) / static_cast<double>(ulp));
}

TEST(Math, FunctionsAreWithinAFewUlps) {
  Bench bench("math");
  auto x = NoiseVector(kInputs, 11), y = NoiseVector(kInputs, 12);
  for (int i = 0; i < kInputs; ++i) x[i] *= i % 3 == 0 ? 5 : 1;
  const auto out = bench.Reserve<float>(kInputs * 32, "out");
  EXPECT_CLEAN(bench.Run("FloatMath", Config({8}, {128}), bench.Upload(x, "x"), bench.Upload(y, "y"), out, kInputs));
  const auto result = bench.Download<float>(out, kInputs * 32);
  // In units in the last place: what the CUDA programming guide states, for the fast intrinsics an absolute bound of
  // 4e-6 x max(1, |value|).
  const float kFast = -1;
  const float bounds[32] = {2, 1, 2, 2, 2, 2, 4, 0, 2, 0, 0, kFast, kFast, kFast, kFast, kFast,
                            2, 1, 1, 3, 0, 0, 0, 0, 0, 1, 1, 3,     6,     2,     1,     1};
  float worst[32] = {};
  for (int i = 0; i < kInputs; ++i) {
    const float a = x[i], b = y[i], p = std::fabs(a) + 0.01f;
    const double A = a, B = b, P = p;
    const double expected[32] = {std::exp(A),
                                 std::log(P),
                                 std::sin(static_cast<double>(a * 10)),
                                 std::cos(static_cast<double>(a * 10)),
                                 std::tanh(A),
                                 std::erf(A),
                                 std::pow(P, B),
                                 std::sqrt(P),
                                 1 / std::sqrt(P),
                                 A / static_cast<double>(b + 3),
                                 1 / static_cast<double>(b + 3),
                                 std::exp(A),
                                 std::log(P),
                                 std::sin(A),
                                 std::cos(A),
                                 A / P,
                                 std::exp2(A),
                                 std::log2(P),
                                 std::cbrt(A),
                                 std::hypot(A, B),
                                 std::floor(a * 5),
                                 std::nearbyint(a * 5),
                                 std::trunc(a * 5),
                                 std::fmod(a * 7, p),
                                 std::fmin(a, b),
                                 std::log1p(P),
                                 std::expm1(A),
                                 std::atan2(A, B),
                                 std::lgamma(static_cast<double>(p + 1)),
                                 std::sin(static_cast<double>(a * 1e6f)),
                                 std::exp(A) * std::sin(B) / std::sqrt(P),
                                 std::pow(P, B)};
    for (int k = 0; k < 32; ++k) {
      const float value = result[i * 32 + k];
      if (bounds[k] == kFast) {
        ASSERT_NEAR(value, expected[k], 4e-6 * std::max(1.0, std::fabs(expected[k]))) << k << " of " << a << ", " << b;
      } else {
        worst[k] = std::max(worst[k], Ulps(value, expected[k]));
      }
    }
  }
  for (int k = 0; k < 32; ++k) {
    if (bounds[k] != kFast) {
      EXPECT_LE(worst[k], bounds[k] + 0.51) << k;
    }
  }
}

template <typename F>
float Under(int mode, F f) {
  std::fesetround(mode);
  volatile float result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST(Math, RoundingModesAndConversions) {
  Bench bench("math");
  const auto x = NoiseVector(kInputs, 13), y = NoiseVector(kInputs, 14);
  const auto out = bench.Reserve<float>(kInputs * 16, "out");
  EXPECT_CLEAN(bench.Run("FloatBits", Config({8}, {128}), bench.Upload(x, "x"), bench.Upload(y, "y"), out, kInputs));
  const auto result = bench.Download<float>(out, kInputs * 16);
  for (int i = 0; i < kInputs; ++i) {
    volatile float a = x[i], b = y[i];
    const float* r = &result[i * 16];
    EXPECT_EQ(r[0], Under(FE_TOWARDZERO, [&] { return a + b; }));
    EXPECT_EQ(r[1], Under(FE_UPWARD, [&] { return a + b; }));
    EXPECT_EQ(r[2], Under(FE_DOWNWARD, [&] { return a + b; }));
    EXPECT_EQ(r[3], Under(FE_TOWARDZERO, [&] { return a * b; }));
    EXPECT_EQ(r[5], std::fma(a, b, -a));
    EXPECT_EQ(r[6], std::min(1.0f, std::max(0.0f, a * 2)));
    volatile int integer = static_cast<int>(a * 2e9f);
    EXPECT_EQ(r[7], Under(FE_TOWARDZERO, [&] { return static_cast<float>(integer); }));
    EXPECT_EQ(r[8], static_cast<float>(static_cast<unsigned>(std::fabs(a) * 4e9f)));
    EXPECT_EQ(r[9], std::floor(a * 1000));
    const double wide = std::nearbyint(static_cast<double>(a * 1e10f));
    EXPECT_EQ(r[10], static_cast<float>(wide <= 0              ? 0u
                                        : wide >= 4294967295.0 ? 4294967295u
                                                               : static_cast<unsigned>(wide)));
    EXPECT_EQ(r[11], static_cast<float>(static_cast<long long>(a * 1e18f)));
    volatile double product = static_cast<double>(a) * static_cast<double>(b);
    EXPECT_EQ(r[12], Under(FE_UPWARD, [&] { return static_cast<float>(product); }));
    EXPECT_EQ(r[13], static_cast<float>(static_cast<signed char>(a * 100)));
    EXPECT_EQ(r[14], std::copysign(a, b));
    EXPECT_EQ(r[15], a);
  }
}

// A 16-bit format's value and rounding, by search over all of its values: slow, and shares nothing with the
// interpreter.
struct Format {
  int mantissa, bias;
  double Value(unsigned bits) const {
    const unsigned fraction = bits & ((1u << mantissa) - 1), exponent = (bits & 0x7FFF) >> mantissa;
    const unsigned top = (1u << (15 - mantissa)) - 1;
    double v = exponent == top ? (fraction != 0 ? NAN : INFINITY)
               : exponent == 0 ? std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa)
                               : std::ldexp(static_cast<double>(fraction + (1u << mantissa)),
                                            static_cast<int>(exponent) - bias - mantissa);
    return (bits & 0x8000) != 0 ? -v : v;
  }
  // Nearest, ties to even; long double keeps sums of the tests' operands exact.
  unsigned Round(long double v) const {
    const unsigned infinity = ((1u << (15 - mantissa)) - 1) << mantissa;
    if (std::isnan(v)) return 0x7FFF;
    const unsigned sign = std::signbit(v) ? 0x8000 : 0;
    const long double magnitude = std::fabs(v);
    unsigned low = 0, high = infinity;  // the largest finite value not above magnitude
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      (Value(middle) <= magnitude ? low : high) = middle;
    }
    const long double below = Value(low), above = low + 1 == infinity
                                                      ? 2 * static_cast<long double>(Value(low)) - Value(low - 1)
                                                      : Value(low + 1);
    const long double middle = (below + above) / 2;
    const bool up = magnitude > middle || (magnitude == middle && (low & 1) != 0);
    return sign | (up ? low + 1 : low);
  }
};

TEST(Math, HalfAndBfloat16AreCorrectlyRounded) {
  const Format half{10, 15}, bf16{7, 127};
  Bench bench("math");
  std::vector<unsigned short> x(kInputs), y(kInputs);
  for (int i = 0; i < kInputs; ++i) {
    x[i] = static_cast<unsigned short>(std::bit_cast<uint32_t>(Noise(2 * i)) >> 3);
    y[i] = static_cast<unsigned short>(i % 4 == 0 ? x[i] ^ (i & 31) : std::bit_cast<uint32_t>(Noise(2 * i + 1)) >> 3);
  }
  const auto out = bench.Reserve<unsigned short>(kInputs * 16, "out");
  EXPECT_CLEAN(bench.Run("HalfMath", Config({8}, {128}), bench.Upload(x, "x"), bench.Upload(y, "y"), out, kInputs));
  const auto result = bench.Download<unsigned short>(out, kInputs * 16);
  auto same = [](const Format& format, unsigned a, unsigned b) {
    return a == b || (std::isnan(format.Value(a)) && std::isnan(format.Value(b)));
  };
  for (int i = 0; i < kInputs; ++i) {
    const unsigned short* r = &result[i * 16];
    const long double a = half.Value(x[i]), b = half.Value(y[i]);
    if (!std::isnan(a) && !std::isnan(b)) {
      EXPECT_TRUE(same(half, r[0], half.Round(a + b))) << x[i] << " + " << y[i];
      EXPECT_TRUE(same(half, r[1], half.Round(a - b))) << x[i] << " - " << y[i];
      EXPECT_TRUE(same(half, r[2], half.Round(a * b))) << x[i] << " * " << y[i];
      EXPECT_TRUE(same(half, r[3], half.Round(a * b + a))) << x[i] << " fma " << y[i];
      EXPECT_TRUE(same(half, r[4], half.Round(static_cast<float>(a) * 1.37f))) << x[i];
      EXPECT_EQ(r[5], x[i] ^ 0x8000);
      EXPECT_EQ(half.Value(r[6]), std::max(a, b));
      EXPECT_EQ(r[7], a < b);
      EXPECT_TRUE(same(half, r[8], half.Round(a + b)));
      EXPECT_TRUE(same(half, r[9], half.Round(b * b)));
      if (std::fabs(a) < 30000) {
        EXPECT_EQ(static_cast<short>(r[14]), static_cast<short>(std::nearbyint(static_cast<double>(a))));
      }
      const float scaled = static_cast<float>(a) * 1.37f;
      if (std::isfinite(scaled) && std::fabs(scaled) < 65504) {
        EXPECT_LE(std::fabs(half.Value(r[15])), std::fabs(scaled));
      }
    }
    const long double c = bf16.Value(x[i]), d = bf16.Value(y[i]);
    if (!std::isnan(c) && !std::isnan(d)) {
      EXPECT_TRUE(same(bf16, r[10], bf16.Round(c + d))) << x[i] << " + " << y[i];
      EXPECT_TRUE(same(bf16, r[11], bf16.Round(c * d))) << x[i] << " * " << y[i] << " got " << r[11];
      EXPECT_TRUE(same(bf16, r[13], bf16.Round(static_cast<float>(c) * 1.37f))) << x[i];
    }
  }
}

TEST(Math, Integers) {
  Bench bench("math");
  std::vector<int> x(kInputs), y(kInputs);
  for (int i = 0; i < kInputs; ++i) {
    x[i] = static_cast<int>(std::bit_cast<uint32_t>(Noise(2 * i)) * 2654435761u);
    y[i] = static_cast<int>(std::bit_cast<uint32_t>(Noise(2 * i + 1)) * 40503u) >> (i % 30);
  }
  x[0] = std::numeric_limits<int>::min();
  y[0] = -1;
  const auto out = bench.Reserve<long long>(kInputs * 24, "out");
  EXPECT_CLEAN(bench.Run("Integers", Config({8}, {128}), bench.Upload(x, "x"), bench.Upload(y, "y"), out, kInputs));
  const auto result = bench.Download<long long>(out, kInputs * 24);
  for (int i = 0; i < kInputs; ++i) {
    const long long a = x[i], b = y[i];
    const unsigned u = static_cast<unsigned>(x[i]), v = static_cast<unsigned>(y[i]);
    const long long w = a * b + a;
    unsigned reversed = 0;
    for (int k = 0; k < 32; ++k) reversed |= ((u >> k) & 1) << (31 - k);
    const uint64_t both = (static_cast<uint64_t>(v) << 32) | u;
    auto byte = [&](int k) { return static_cast<unsigned>(both >> (8 * k)) & 0xFF; };
    int dot = x[i];
    for (int k = 0; k < 4; ++k)
      dot = static_cast<int>(static_cast<unsigned>(dot) +
                             static_cast<unsigned>(static_cast<int>(static_cast<signed char>(u >> (8 * k))) *
                                                   static_cast<signed char>(v >> (8 * k))));
    const long long expected[24] = {
        static_cast<int>(a / (b | 1)),
        static_cast<int>(a % (b | 1)),
        u / (v | 1),
        u % (v | 1),
        w / (b | 1),
        static_cast<long long>(static_cast<unsigned long long>(w) % (v | 1)),
        static_cast<long long>((static_cast<uint64_t>(u) * v) >> 32),
        (a * b) >> 32,
        std::countl_zero(u),
        std::popcount(u),
        u == 0 ? 0 : std::countr_zero(u) + 1,
        reversed,
        std::countl_zero(static_cast<uint64_t>(w)),
        std::popcount(static_cast<uint64_t>(w)),
        static_cast<long long>(byte(5) | byte(1) << 8 | byte(7) << 16 | byte(3) << 24),
        static_cast<long long>(static_cast<uint32_t>((both << (x[i] & 31)) >> 32)),
        dot,
        static_cast<long long>(static_cast<uint32_t>((u > v ? u - v : v - u) + u)),
        static_cast<long long>((u >> 3 & 0x7ff) | (v << 11)),
        a >> (y[i] & 31),
        w >> (y[i] & 63),
        static_cast<long long>(static_cast<uint32_t>(static_cast<unsigned>(std::min(x[i], y[i])) + std::max(u, v))),
        static_cast<int>(static_cast<unsigned>((static_cast<int>(u << 8) >> 8)) *
                         static_cast<unsigned>(static_cast<int>(v << 8) >> 8)),
        static_cast<short>(x[i]) * static_cast<unsigned char>(y[i])};
    for (int k = 0; k < 24; ++k) ASSERT_EQ(result[i * 24 + k], expected[k]) << k << " of " << x[i] << ", " << y[i];
  }
}

}  // namespace
}  // namespace kgrpo::simt
