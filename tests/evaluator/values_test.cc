// Element types against numpy and torch, input generation, comparison and the digest against their definitions.
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <set>

#include "digest/sha256.h"
#include "evaluator_shared/cases.h"
#include "evaluator_shared/comparison.h"
#include "evaluator_shared/inputs.h"

namespace kgrpo::evaluator {
namespace {

TEST(DType, RoundsAsNumpyAndTorchDo) {
  std::ifstream golden(std::string(KGRPO_SOURCE_DIR) + "/tests/golden/evaluator/dtypes.txt");
  std::string value, half, single, brain;
  int lines = 0;
  while (golden >> value >> half >> single >> brain) {
    ++lines;
    const double real = std::bit_cast<double>(std::stoull(value, nullptr, 16));
    uint16_t got = 0;
    StoreDouble(DType::kFloat16, real, &got);
    EXPECT_EQ(got, std::stoul(half, nullptr, 16)) << real;
    StoreDouble(DType::kBfloat16, std::bit_cast<float>(static_cast<uint32_t>(std::stoul(single, nullptr, 16))), &got);
    EXPECT_EQ(got, std::stoul(brain, nullptr, 16)) << real;
  }
  EXPECT_GT(lines, 300);
}

TEST(DType, EveryHalfSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (DType dtype : {DType::kFloat16, DType::kBfloat16}) {
      const auto from = static_cast<uint16_t>(bits);
      const double value = LoadDouble(dtype, &from);
      uint16_t to = 0;
      StoreDouble(dtype, value, &to);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(LoadDouble(dtype, &to)));
      } else {
        EXPECT_EQ(to, from);
      }
    }
  }
}

TEST(DType, IntegersSaturate) {
  int32_t whole = 0;
  StoreDouble(DType::kInt32, 1e20, &whole);
  EXPECT_EQ(whole, INT32_MAX);
  uint8_t byte = 0;
  StoreDouble(DType::kUint8, -3, &byte);
  EXPECT_EQ(byte, 0);
  StoreDouble(DType::kUint8, 2.5, &byte);
  EXPECT_EQ(byte, 2);  // to even
}

TEST(Digest, PublishedVectors) {  // FIPS 180-4's examples
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_NE(Sha256OfParts({"ab", "c"}), Sha256OfParts({"a", "bc"}));
}

Problem OneInput(DType dtype, Distribution distribution) {
  Problem problem;
  Parameter x;
  x.name = "x";
  x.dtype = dtype;
  x.shape = {Expression::Parse("n")};
  x.distribution = std::move(distribution);
  problem.parameters = {x};
  return problem;
}

std::vector<double> Draw(DType dtype, const Distribution& distribution, int64_t n, uint64_t key, int variant = 0) {
  const Problem problem = OneInput(dtype, distribution);
  const std::vector<Argument> arguments = DrawArguments(problem, {{"n", n}}, key, variant);
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(LoadDouble(dtype, arguments[0].bytes.data() + static_cast<size_t>(i) * Info(dtype).size));
  }
  return values;
}

void Moments(const std::vector<double>& values, double* mean, double* deviation) {
  *mean = *deviation = 0;
  for (double value : values) *mean += value / static_cast<double>(values.size());
  for (double value : values) *deviation += (value - *mean) * (value - *mean) / static_cast<double>(values.size());
  *deviation = std::sqrt(*deviation);
}

TEST(Inputs, DistributionsAreWhatTheySay) {
  constexpr int64_t kCount = 100000;
  double mean = 0, deviation = 0;
  Distribution d;
  Moments(Draw(DType::kFloat32, d, kCount, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(deviation, 1, 0.02);
  Moments(Draw(DType::kFloat32, d, kCount, 1, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 0.5, 0.03);
  EXPECT_NEAR(deviation, 1.5, 0.03);
  d.kind = Distribution::Kind::kLargeOffset;
  Moments(Draw(DType::kFloat32, d, kCount, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 1000, 0.02);
  d.kind = Distribution::Kind::kUniform;
  d.low = Expression::Parse("-2");
  d.high = Expression::Parse("n/50000");
  Moments(Draw(DType::kFloat64, d, kCount, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(deviation, 4 / std::sqrt(12.0), 0.02);
  d.kind = Distribution::Kind::kSparse;
  const std::vector<double> sparse = Draw(DType::kFloat32, d, kCount, 1);
  EXPECT_NEAR(static_cast<double>(std::count(sparse.begin(), sparse.end(), 0.0)), 90000, 500);
}

TEST(Inputs, WholeNumbersCoverBothBounds) {
  Distribution d;
  d.kind = Distribution::Kind::kIntegers;
  d.low = Expression::Parse("-3");
  d.high = Expression::Parse("3");
  const std::vector<double> values = Draw(DType::kInt32, d, 1000, 5);
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-3, -2, -1, 0, 1, 2, 3}));
  d.kind = Distribution::Kind::kPermutation;
  std::vector<double> order = Draw(DType::kInt64, d, 500, 5);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<double>(i));
  d.kind = Distribution::Kind::kOffsets;
  d.high = Expression::Parse("4*n");
  const std::vector<double> offsets = Draw(DType::kInt32, d, 300, 5);
  EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
  EXPECT_EQ(offsets.front(), 0);
  EXPECT_EQ(offsets.back(), 1200);
}

TEST(Inputs, FollowTheKeyAlone) {
  EXPECT_EQ(Draw(DType::kFloat32, {}, 100, 1), Draw(DType::kFloat32, {}, 100, 1));
  EXPECT_NE(Draw(DType::kFloat32, {}, 100, 1), Draw(DType::kFloat32, {}, 100, 2));
}

Comparison CompareFloats(const std::vector<float>& got, const std::vector<double>& expected, ErrorBound bound) {
  Parameter out;
  out.name = "out";
  std::vector<uint8_t> bytes(got.size() * 4);
  std::memcpy(bytes.data(), got.data(), bytes.size());
  return Compare(out, {2, static_cast<int64_t>(got.size()) / 2}, bytes, {expected, {}}, 0xff, bound);
}

const std::vector<DType> kFloating = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16};

double Share(const std::vector<double>& values, const std::function<bool(double)>& is) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), is)) / static_cast<double>(values.size());
}

TEST(Inputs, DenormalsAreSmallInEveryFormat) {
  for (DType dtype : kFloating) {
    const DTypeInfo& info = Info(dtype);
    const double least = std::ldexp(1.0, info.least_exponent), unit = info.SmallestSubnormal();
    Distribution distribution;
    distribution.kind = Distribution::Kind::kDenormals;
    distribution.ordinary = 0;
    const std::vector<double> tiny = Draw(dtype, distribution, 20000, 5);
    EXPECT_NEAR(Share(tiny, [&](double v) { return std::fabs(v) < least; }), 0.75, 0.02) << info.name;
    EXPECT_EQ(Share(tiny, [&](double v) { return std::fabs(v) < 16 * least; }), 1) << info.name;
    EXPECT_GT(Share(tiny, [&](double v) { return v != 0 && std::fabs(v) < 16 * unit; }), 0.03) << info.name;
    EXPECT_GT(Share(tiny, [&](double v) { return std::fabs(v) < least && std::fabs(v) > least / 2; }), 0.005);
    EXPECT_GT(Share(tiny, [&](double v) { return v == 0; }), 0.01) << info.name;
    EXPECT_NEAR(Share(tiny, [](double v) { return std::signbit(v); }), 0.5, 0.02) << info.name;
    distribution.ordinary = 0.25;
    EXPECT_NEAR(Share(Draw(dtype, distribution, 20000, 5), [&](double v) { return std::fabs(v) > 1e-3; }), 0.25, 0.02);
  }
}

TEST(Inputs, ExtremesReachBothEndsOfEveryFormat) {
  for (DType dtype : kFloating) {
    const DTypeInfo& info = Info(dtype);
    Distribution distribution;
    distribution.kind = Distribution::Kind::kExtremes;
    const std::vector<double> values = Draw(dtype, distribution, 20000, 5);
    EXPECT_EQ(Share(values, [&](double v) { return std::fabs(v) <= info.highest; }), 1) << info.name;
    EXPECT_GT(Share(values, [&](double v) { return v == info.highest; }), 0.005) << info.name;
    EXPECT_GT(Share(values, [&](double v) { return v == info.lowest; }), 0.005) << info.name;
    EXPECT_GT(Share(values, [&](double v) { return std::fabs(v) >= info.highest / 8; }), 0.2) << info.name;
    EXPECT_GT(Share(values, [&](double v) { return std::fabs(v) < std::ldexp(16, info.least_exponent); }), 0.2);
    int exponent = 0;
    EXPECT_GT(Share(values, [&](double v) { return std::fabs(std::frexp(v, &exponent)) == 0.5; }), 0.2) << info.name;
    distribution.infinities = distribution.nans = true;
    const std::vector<double> special = Draw(dtype, distribution, 20000, 5);
    EXPECT_NEAR(Share(special, [](double v) { return std::isnan(v); }), 1.0 / 16, 0.01) << info.name;
    EXPECT_NEAR(Share(special, [](double v) { return std::isinf(v); }), 1.0 / 16, 0.01) << info.name;
  }
}

TEST(Inputs, RowsAreSpreadAndGathered) {
  const Rows rows = {2, 3, 5};
  const std::vector<uint8_t> dense = {1, 2, 3, 4, 5, 6};
  std::vector<uint8_t> memory = SpreadRows(rows, DType::kUint8, dense, 0xee);
  EXPECT_EQ(memory, (std::vector<uint8_t>{1, 2, 3, 0xee, 0xee, 4, 5, 6, 0xee, 0xee}));
  EXPECT_EQ(GatherRows(rows, DType::kUint8, memory), dense);
  EXPECT_TRUE(GapsHold(rows, DType::kUint8, memory, 0xee));
  for (const size_t gap : {3u, 9u}) {
    std::vector<uint8_t> written = memory;
    written[gap] = 0;
    EXPECT_FALSE(GapsHold(rows, DType::kUint8, written, 0xee)) << gap;
  }
  memory[0] = 9;
  EXPECT_TRUE(GapsHold(rows, DType::kUint8, memory, 0xee));
}

// Which cases a problem asks for, and that the ordinary ones are the same with and without further ones.
TEST(Cases, FollowTheProblem) {
  const std::string folder = std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/";
  const Problem plain = LoadProblem(folder + "affine"), drawn = LoadProblem(folder + "three_quarters"),
                in_place = LoadProblem(folder + "row_stencil");
  const std::vector<CorrectnessCase> ordinary = CorrectnessCases(plain, 3, 2);
  EXPECT_EQ(ordinary.size(), 10u);
  EXPECT_EQ(ordinary[0].where, "n=1000");
  EXPECT_EQ(ordinary[2].where, "a size that is not shown");
  std::set<uint64_t> keys;
  size_t further = 0;
  for (const CorrectnessCase& one : CorrectnessCases(drawn, 3, 2)) {
    EXPECT_TRUE(keys.insert(one.key).second);
    EXPECT_NE(one.size, &drawn.timing);
    EXPECT_FALSE(one.aliased);
    if (one.alternative) {
      EXPECT_EQ(one.alternative->index, further++ / 2);
    }
  }
  EXPECT_EQ(keys.size(), 6u + 6u);
  EXPECT_EQ(further, 6u);
  const std::vector<CorrectnessCase> aliased = CorrectnessCases(in_place, 3, 2);
  ASSERT_EQ(aliased.size(), 6u + 3u);
  for (size_t i = 0; i < aliased.size(); ++i) {
    EXPECT_EQ(aliased[i].aliased, i >= 6);
    if (i < 6) {
      EXPECT_EQ(aliased[i].key, ordinary[i < 3 ? i : i + 2].key) << "the n-th size has the n-th key";
    }
  }
}

// What a kernel that flushes subnormal numbers gives, where everything is subnormal and beside ordinary numbers.
TEST(Comparison, SubnormalResults) {
  Problem problem;
  Parameter output;
  output.dtype = DType::kFloat32;
  const auto matches = [&](const std::vector<double>& expected, const std::vector<float>& got) {
    std::vector<uint8_t> bytes(got.size() * sizeof(float));
    std::memcpy(bytes.data(), got.data(), bytes.size());
    const Expected wanted = {expected, {}};
    const ErrorBound bound = BoundFor(problem, output, 1, wanted);
    return Compare(output, {static_cast<int64_t>(got.size())}, bytes, wanted, 0xff, bound).matches;
  };
  const auto unit = static_cast<double>(std::numeric_limits<float>::denorm_min());
  EXPECT_TRUE(matches({1000.4 * unit, 3 * unit}, {1000 * 0x1p-149f, 2 * 0x1p-149f}));
  EXPECT_FALSE(matches({1000.4 * unit, 3 * unit}, {0, 0}));
  EXPECT_TRUE(matches({1000.4 * unit, 1.0}, {0, 1}));
  EXPECT_FALSE(matches({1000.4 * unit, 1.0}, {NAN, 1}));
}

// One huge result does not excuse the others where all magnitudes are drawn.
TEST(Comparison, ExtremeResults) {
  Problem problem;
  Parameter output;
  output.dtype = DType::kFloat64;
  const Expected wanted = {{1e308, 1.0, 2.0, -1e308, 3.0, 1e-308, INFINITY}, {}};
  EXPECT_TRUE(std::isfinite(BoundFor(problem, output, 1, wanted).absolute));
  EXPECT_GT(BoundFor(problem, output, 1, wanted).absolute, 1e290);
  EXPECT_LT(BoundFor(problem, output, 1, wanted, true).absolute, 1e-13);
}

TEST(Comparison, Bounds) {
  EXPECT_TRUE(CompareFloats({1, 2, 3, 4}, {1, 2, 3, 4}, {0, 0}).matches);
  EXPECT_TRUE(CompareFloats({1, 2, 3, 4.04f}, {1, 2, 3, 4}, {0.011, 0}).matches);
  const Comparison off = CompareFloats({1, 2, 3, 4.04f}, {1, 2, 3, 4}, {0.009, 0});
  EXPECT_FALSE(off.matches);
  EXPECT_EQ(off.mismatches, 1);
  EXPECT_EQ(off.sentence,
            "1 of 4 elements of out are wrong; the worst is out[1][1] = 4.04, expected 4 (tolerance 0.036)");
}

TEST(Comparison, SpecialValues) {
  const float nan = NAN, infinity = INFINITY;
  EXPECT_TRUE(CompareFloats({nan, infinity, -infinity, 0}, {NAN, INFINITY, -INFINITY, 0}, {0.1, 0.1}).matches);
  EXPECT_FALSE(CompareFloats({1, 0, 0, 0}, {NAN, 0, 0, 0}, {0.1, 0.1}).matches);
  EXPECT_FALSE(CompareFloats({nan, 0, 0, 0}, {1, 0, 0, 0}, {0.1, 1e30}).matches);
  EXPECT_FALSE(CompareFloats({infinity, 0, 0, 0}, {1, 0, 0, 0}, {0.1, 1e30}).matches);
  EXPECT_FALSE(CompareFloats({-infinity, 0, 0, 0}, {INFINITY, 0, 0, 0}, {0.1, 1e30}).matches);
  EXPECT_TRUE(CompareFloats({infinity, 0, 0, 0}, {1e39, 0, 0, 0}, {1e-6, 0}).matches);  // beyond float32
}

TEST(Comparison, NamesWhatWasNotWritten) {
  float poison = 0;
  std::memset(&poison, 0xff, 4);
  EXPECT_EQ(CompareFloats({poison, poison, poison, poison}, {1, 2, 3, 4}, {0, 0}).sentence, "out was never written");
  EXPECT_EQ(CompareFloats({1, 2, poison, 4}, {1, 2, 3, 4}, {0, 0}).sentence,
            "1 of 4 elements of out were never written, the first is out[1][0]");
  EXPECT_NE(CompareFloats({5, 5, 5, 5}, {1, 2, 3, 4}, {0, 0}).sentence.find("constant where the right one is not"),
            std::string::npos);
}

// The default bound lets an honest float32 sum pass, in any order, and not one of half precision.
TEST(Comparison, DefaultBoundFitsSums) {
  Problem problem;
  Parameter out;
  out.name = "out";
  for (const int64_t terms : {10, 1000, 100000}) {
    const std::vector<double> values = Draw(DType::kFloat32, {}, terms, 11);
    float forward = 0, backward = 0;
    double exact = 0, squares = 0;
    for (double value : values) forward += static_cast<float>(value), exact += value, squares += value * value;
    for (size_t i = values.size(); i-- > 0;) backward += static_cast<float>(values[i]);
    // Outputs whose magnitude is what such sums typically have.
    const Expected expected = {{exact, std::sqrt(squares), -std::sqrt(squares)}, {}};
    const ErrorBound bound = BoundFor(problem, out, static_cast<double>(terms), expected);
    const double allowed = bound.absolute + bound.relative * std::fabs(exact);
    EXPECT_LT(std::fabs(forward - exact), allowed) << terms;
    EXPECT_LT(std::fabs(backward - exact), allowed) << terms;
    EXPECT_LT(bound.relative, 2e-4) << terms;  // half precision's unit roundoff is 4.9e-4
  }
}

}  // namespace
}  // namespace kgrpo::evaluator
