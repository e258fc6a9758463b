// Results of instructions for subnormal numbers with and without .ftz, and every rounding to 16 bits, against searches
// that share no code with the interpreter.
#include <bit>
#include <cmath>
#include <limits>

#include "instruction.h"

namespace kgrpo::simt {
namespace {

uint64_t Bits(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t Bits(double v) { return std::bit_cast<uint64_t>(v); }

// The magnitude that 15 bits stand for; what lies beyond the largest number is where the next one would be.
long double MagnitudeOf(uint32_t bits, int mantissa) {
  const int bias = (1 << (14 - mantissa)) - 1;
  const auto exponent = static_cast<int>(bits >> mantissa);
  const long double fraction = bits & ((1u << mantissa) - 1);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                       : std::ldexp(fraction + static_cast<long double>(1u << mantissa), exponent - bias - mantissa);
}

// `rounding` is PTX's: rn, rz, rm or rp.
uint32_t RoundTo16(long double v, int mantissa, const std::string& rounding) {
  const uint32_t infinity = ((1u << (15 - mantissa)) - 1) << mantissa, sign = std::signbit(v) ? 0x8000u : 0u;
  const long double magnitude = std::fabs(v);
  uint32_t low = 0, high = infinity;  // the largest finite one not above
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (MagnitudeOf(middle, mantissa) <= magnitude ? low : high) = middle;
  }
  const long double below = MagnitudeOf(low, mantissa), above = MagnitudeOf(low + 1, mantissa);
  bool up = rounding == "rm" ? sign != 0 : rounding == "rp" && sign == 0;
  if (rounding == "rn")
    up = magnitude - below > above - magnitude || (magnitude - below == above - magnitude && low % 2 != 0);
  return sign | (magnitude > below && up ? low + 1 : low);
}

// Words of every size, and those next to where a format's last bit ends.
std::vector<Operands> Words(uint64_t seed) {
  std::vector<Operands> words;
  uint64_t state = seed * 2 + 88172645463325253u;
  for (int i = 0; i < 900; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t word = state >> (state % 64);
    if (i % 3 == 0) word = (word & 0xFFF0000000000000ull >> (state % 48)) + (state % 3) - 1;
    words.push_back({i % 2 == 0 ? word : ~word, 0, 0});
  }
  for (const uint64_t word : {0ull, 1ull, 65504ull, 65519ull, 65520ull, 65535ull, 65536ull, ~0ull, ~0ull << 63})
    words.push_back({word, 0, 0});
  return words;
}

long double ValueOf(const std::string& type, uint64_t word) {
  if (type == "u16") return static_cast<uint16_t>(word);
  if (type == "s16") return static_cast<int16_t>(word);
  if (type == "u32") return static_cast<uint32_t>(word);
  if (type == "s32") return static_cast<int32_t>(word);
  if (type == "u64") return static_cast<long double>(word);
  if (type == "s64") return static_cast<long double>(static_cast<int64_t>(word));
  if (type == "f32") return static_cast<long double>(std::bit_cast<float>(static_cast<uint32_t>(word)));
  return static_cast<long double>(std::bit_cast<double>(word));
}

TEST(Rounding, TowardsEverySideFromEveryType) {
  for (const auto& [format, mantissa] : {std::pair{"f16", 10}, {"bf16", 7}}) {
    for (const char* type : {"u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"}) {
      for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
        const std::string text = std::string("cvt.") + rounding + "." + format + "." + type;
        const std::vector<Operands> words = Words(static_cast<uint64_t>(mantissa) + type[1]);
        const std::vector<uint64_t> results = Apply(text, 1, words);
        for (size_t i = 0; i < words.size(); ++i) {
          const long double value = ValueOf(type, words[i][0]);
          if (!std::isfinite(value)) continue;
          ASSERT_EQ(results[i], RoundTo16(value, mantissa, rounding))
              << text << " of " << std::hex << words[i][0] << std::dec << ", " << static_cast<double>(value);
        }
      }
    }
  }
}

TEST(Rounding, ProductsOfBfloat16AreRoundedOnce) {
  std::vector<Operands> words;
  for (uint64_t i = 0; i < 1000; ++i) words.push_back({0x0080u + 37 * i % 0x2000, 0x3F80u - i * 11 % 0x1000, 0});
  const std::vector<uint64_t> results = Apply("mul.bf16", 2, words);
  for (size_t i = 0; i < words.size(); ++i) {
    const long double exact =
        MagnitudeOf(static_cast<uint32_t>(words[i][0]), 7) * MagnitudeOf(static_cast<uint32_t>(words[i][1]), 7);
    ASSERT_EQ(results[i], RoundTo16(exact, 7, "rn")) << std::hex << words[i][0] << " * " << words[i][1];
  }
}

struct Case {
  std::string text;
  int operands;
  Operands in;
  uint64_t result;
};

void Check(const std::vector<Case>& cases) {
  for (const auto& [text, operands, in, result] : cases) {
    EXPECT_EQ(Apply(text, operands, {in})[0], result)
        << text << " of " << std::hex << in[0] << ", " << in[1] << ", " << in[2] << ", expected " << result;
  }
}

TEST(Rounding, SubnormalFloatsAreZerosWhereFtzSaysSo) {
  const uint64_t small = 0x007FFFFF, minus = 0x80000000, nan = 0x7FFFFFFF, one = Bits(1.0f);
  Check({{"cvt.rpi.f32.f32", 1, {1}, one},
         {"cvt.rpi.ftz.f32.f32", 1, {1}, 0},
         {"cvt.rmi.ftz.f32.f32", 1, {minus | 1}, minus},
         {"cvt.rpi.ftz.sat.f32.f32", 1, {1}, 0},
         {"cvt.rpi.sat.f32.f32", 1, {Bits(7.5f)}, one},
         {"cvt.rni.sat.f32.f32", 1, {Bits(-3.0f)}, 0},
         {"cvt.rpi.s16.f32", 1, {small}, 1},
         {"cvt.rpi.ftz.s16.f32", 1, {small}, 0},
         {"cvt.rmi.s64.f32", 1, {minus | 1}, ~0ull},
         {"cvt.rmi.ftz.s64.f32", 1, {minus | 1}, 0},
         {"cvt.f64.f32", 1, {1}, Bits(0x1p-149)},
         {"cvt.ftz.f64.f32", 1, {minus | 1}, Bits(-0.0)},
         {"cvt.rn.ftz.f32.f64", 1, {Bits(-0x1p-140)}, minus},
         {"cvt.rp.ftz.f32.f64", 1, {Bits(0x1p-1000)}, 0},
         {"cvt.rp.f32.f64", 1, {Bits(0x1p-1000)}, 1},
         {"cvt.rn.sat.ftz.f32.f64", 1, {Bits(2.0)}, one},
         {"min.f32", 2, {small, 3}, 3},
         {"min.ftz.f32", 2, {small, one}, 0},
         {"min.ftz.NaN.f32", 2, {small, one}, 0},
         {"max.ftz.NaN.f32", 2, {minus | small, Bits(-1.0f)}, minus},
         {"max.ftz.NaN.f32", 2, {nan, one}, nan},
         {"slct.f32.f32", 3, {1, 2, minus | 1}, 2},
         {"slct.ftz.f32.f32", 3, {1, 2, minus | 1}, 1},
         {"slct.ftz.u64.f32", 3, {1, 2, Bits(-1.0f)}, 2},
         {"setp.lt.f32", 2, {0, 1}, 1},
         {"setp.lt.ftz.f32", 2, {0, 1}, 0},
         {"setp.equ.ftz.f32", 2, {minus | 1, small}, 1},
         {"setp.nan.ftz.f32", 2, {nan, 1}, 1},
         {"set.gt.u32.f32", 2, {1, 0}, 0xFFFFFFFF},
         {"set.gt.ftz.u32.f32", 2, {1, 0}, 0}});
}

// ptxas shows which results are zeros where it computes such a product itself, or flushes after a conversion: those
// below the normal numbers once rounded to 24 bits, as if exponents were unbounded.
TEST(Rounding, FtzLooksAtTheRoundedResult) {
  const uint64_t smallest = 0x00800000;
  Check({{"mul.rn.f32", 2, {smallest, 0x3F7FFFFF}, smallest},
         {"mul.rn.ftz.f32", 2, {smallest, 0x3F7FFFFF}, 0},
         {"mul.rn.ftz.f32", 2, {0x80800000, 0x3F7FFFFF}, 0x80000000},
         {"mul.rn.ftz.f32", 2, {0x00FFFFFF, 0x3F000000}, 0},
         {"mul.rn.ftz.f32", 2, {0x00800001, 0x3F7FFFFE}, smallest},
         {"mul.rn.ftz.f32", 2, {0x00800001, 0x3F7FFFFD}, 0},
         {"mul.rn.ftz.f32", 2, {0x00FFFFFF, 0x3F000001}, smallest},
         {"mul.rn.ftz.f32", 2, {0x00FFFFFE, 0x3F000001}, smallest},
         {"mul.rn.ftz.f32", 2, {0x7F7FFFFF, 0x7F7FFFFF}, 0x7F800000},
         {"mul.rn.ftz.f32", 2, {0x7F000000, 0x80000000}, 0x80000000},
         {"fma.rn.ftz.f32", 3, {0x00FFFFFF, 0x3F000000, 0}, 0},
         {"fma.rn.ftz.f32", 3, {0x7F7FFFFF, 0x3F800000, 0xFF7FFFFF}, 0},
         {"cvt.rn.ftz.f32.f64", 1, {0x380FFFFFF0000000}, smallest},
         {"cvt.rn.ftz.f32.f64", 1, {0x380FFFFFEFFFFFFF}, 0},
         {"cvt.rp.ftz.f32.f64", 1, {0x380FFFFFE0000001}, smallest},
         {"cvt.rp.ftz.f32.f64", 1, {0x380FFFFFE0000000}, 0},
         {"cvt.rp.ftz.f32.f64", 1, {0xB80FFFFFFFFFFFFF}, 0x80000000},
         {"rcp.rp.ftz.f32", 1, {0x7E800001}, 0},
         {"rcp.rp.f32", 1, {0x7E800001}, smallest},
         {"div.rn.ftz.f32", 2, {0x01000000, 0x40000001}, 0}});
}

TEST(Rounding, SubnormalHalvesAreZerosWhereFtzSaysSo) {
  const uint64_t minus = 0x8000, one = 0x3C00;
  Check({{"add.f16", 2, {0x03FF, 1}, 0x0400},
         {"add.ftz.f16", 2, {0x03FF, 1}, 0},
         {"sub.ftz.f16", 2, {0x0400, 0x0401}, minus},
         {"mul.ftz.f16", 2, {0x0400, 0x3800}, 0},
         {"fma.rn.ftz.f16", 3, {0x0400, one, minus | 0x03FF}, 0x0400},
         {"add.ftz.f16x2", 2, {0x03FF3C00, 0x00010001}, 0x00003C00},
         {"neg.ftz.f16", 1, {1}, minus},
         {"abs.ftz.f16", 1, {minus | 1}, 0},
         {"min.ftz.f16", 2, {minus | 1, one}, minus},
         {"setp.lt.f16", 2, {0, 1}, 1},
         {"setp.lt.ftz.f16", 2, {0, 1}, 0},
         {"ex2.approx.ftz.bf16", 1, {0xC301}, 0},  // 2^-129
         {"cvt.rp.bf16.f16", 1, {0x3C01}, 0x3F81},
         {"cvt.rm.bf16.f16", 1, {0x3C01}, 0x3F80},
         {"cvt.rn.f16.bf16", 1, {0x4780}, 0x7C00},
         {"cvt.rz.f16.bf16", 1, {0x4780}, 0x7BFF},
         {"cvt.rz.sat.f16.f32", 1, {Bits(0.9999f)}, 0x3BFF},
         {"cvt.sat.f16.f16", 1, {0x4000}, one}});
}

TEST(Rounding, AtomicSumsInGlobalMemoryKnowNoSubnormals) {
  Bench bench(PtxText{R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b32 %a, %b, %s; .reg .b64 %i, %o; .shared .align 4 .b32 word;
ld.param.u64 %i, [in];
ld.param.u64 %o, [out];
ld.global.u32 %a, [%i];
ld.global.u32 %b, [%i+8];
st.global.u32 [%o], %a;
red.global.add.f32 [%o], %b;
st.shared.u32 [word], %a;
red.shared.add.f32 [word], %b;
ld.shared.u32 %s, [word];
st.global.u32 [%o+4], %s;
ret;
}
)"});
  auto sums = [&](uint32_t a, uint32_t b) { return Apply(bench, "k", {{a, b, 0}})[0]; };
  EXPECT_EQ(sums(0x00800001, 0x80800000), 0x00000001'00000000u);  // the result
  EXPECT_EQ(sums(0x00800000, 0x00000001), 0x00800001'00800000u);  // what is added
  EXPECT_EQ(sums(0x80000001, 0x80000000), 0x80000001'80000000u);  // what is there
  EXPECT_EQ(sums(0x3F800000, 0x40000000), 0x40400000'40400000u);
}

// The tables of the PTX manual for what has no exact rounding.
TEST(Rounding, ApproximationsAtTheEdges) {
  const uint64_t infinity = Bits(std::numeric_limits<double>::infinity()), minus = 1ull << 63;
  Check({{"rcp.approx.ftz.f64", 1, {1}, infinity},
         {"rcp.approx.ftz.f64", 1, {minus | 1}, minus | infinity},
         {"rcp.approx.ftz.f64", 1, {Bits(-0.0)}, minus | infinity},
         {"rcp.approx.ftz.f64", 1, {minus | infinity}, minus},
         {"rcp.approx.ftz.f64", 1, {Bits(0x1p1023)}, 0},
         {"rsqrt.approx.ftz.f64", 1, {1}, infinity},
         {"rsqrt.approx.f64", 1, {1}, Bits(0x1p537)},
         {"rsqrt.approx.f64", 1, {0}, infinity},
         {"rsqrt.approx.f64", 1, {Bits(-0.0)}, minus | infinity},
         {"rsqrt.approx.f64", 1, {infinity}, 0},
         {"rsqrt.approx.f64", 1, {Bits(0.25)}, Bits(2.0)},
         {"div.approx.f32", 2, {Bits(0x1p127f), Bits(0x1.8p126f)}, 0},
         {"div.approx.f32", 2, {Bits(-0x1p127f), Bits(0x1.8p126f)}, 0x80000000},
         {"div.approx.ftz.f32", 2, {Bits(0x1p100f), Bits(0x1p126f)}, Bits(0x1p-26f)},
         {"div.full.f32", 2, {Bits(0x1p127f), Bits(0x1p127f)}, Bits(1.0f)}});
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(
      static_cast<uint32_t>(Apply("div.approx.f32", 2, {{0x7F800000u, Bits(0x1.8p126f), 0}})[0]))));
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(Apply("rsqrt.approx.f64", 1, {{Bits(-1.0), 0, 0}})[0])));
}

// sin.approx and cos.approx as sm_90's machine code computes them: turns rounded towards zero, then the table. So they
// err by little within +-pi (CUDA programming guide: 2^-21.41 and 2^-21.19), and by more and more beyond.
TEST(Rounding, SinesErrOutsideOfPi) {
  std::vector<Operands> arguments;
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) {
    const float within = static_cast<float>(3.14159265 * (i - 500) / 500);
    values.push_back(i < 500 ? within : within * std::ldexp(1.0f, i % 24));
    arguments.push_back({std::bit_cast<uint32_t>(values.back()), 0, 0});
  }
  const auto sines = Apply("sin.approx.f32", 1, arguments), cosines = Apply("cos.approx.f32", 1, arguments);
  double worst_within = 0, worst_beyond = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(values[i]);
    const float sine = std::bit_cast<float>(static_cast<uint32_t>(sines[i]));
    const float cosine = std::bit_cast<float>(static_cast<uint32_t>(cosines[i]));
    // The product of two floats is exact in double; its float towards zero has 24 bits.
    const double product = x * static_cast<double>(0.15915493667125702f);
    float turns = static_cast<float>(product);
    if (std::fabs(static_cast<double>(turns)) > std::fabs(product)) turns = std::nextafter(turns, 0.0f);
    const double angle = 2 * M_PI * (static_cast<double>(turns) - std::nearbyint(static_cast<double>(turns)));
    EXPECT_NEAR(sine, std::sin(angle), 1e-7) << x;
    EXPECT_NEAR(cosine, std::cos(angle), 1e-7) << x;
    double& worst = std::fabs(x) <= M_PI ? worst_within : worst_beyond;
    worst = std::max({worst, std::fabs(sine - std::sin(x)), std::fabs(cosine - std::cos(x))});
  }
  EXPECT_LT(worst_within, std::exp2(-21.19));
  EXPECT_GT(worst_beyond, 0.1) << "at 10^7 little is left";
  EXPECT_EQ(Apply("sin.approx.f32", 1, {{0x80000000u, 0, 0}})[0], 0x80000000u) << "-0";
}

}  // namespace
}  // namespace kgrpo::simt
