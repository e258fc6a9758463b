// The unusual correctness cases: odd values, rows with gaps, outputs in an input's memory; and comparison among such
// values.
#include "judge/problem/cases.h"
#include "judge/inputs/inputs.h"
#include "judge/problem/drawn_sizes.h"
#include "judge/verdict/comparison.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

// `n` values of a dtype from a distribution.
std::vector<double> Draw(DType dtype, const Distribution& distribution, int n, uint64_t key) {
  Parameter parameter;
  parameter.dtype = dtype;
  parameter.shape = {Expression(n)};
  parameter.distribution = distribution;
  return ExpectedFrom(parameter, DrawTensor(parameter, {}, key, 0).bytes).reals;
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
  const auto listed = [](const Problem& problem) {
    std::vector<CorrectnessCase> cases = CorrectnessCases(problem, 3, 2);
    std::erase_if(cases, [](const CorrectnessCase& one) { return one.further; });
    return cases;
  };
  const std::vector<CorrectnessCase> ordinary = listed(plain);
  EXPECT_EQ(ordinary.size(), 10u);
  EXPECT_EQ(ordinary[0].where, "n=1000");
  EXPECT_EQ(ordinary[2].where, "a size that is not shown");
  std::set<uint64_t> keys;
  size_t further = 0;
  for (const CorrectnessCase& one : listed(drawn)) {
    EXPECT_TRUE(keys.insert(one.key).second);
    EXPECT_NE(one.size, &drawn.timing);
    EXPECT_FALSE(one.aliased);
    if (one.alternative) {
      EXPECT_EQ(one.alternative->index, further++ / 2);
    }
  }
  EXPECT_EQ(keys.size(), 6u + 6u);
  EXPECT_EQ(further, 6u);
  const std::vector<CorrectnessCase> aliased = listed(in_place);
  ASSERT_EQ(aliased.size(), 6u + 3u);
  for (size_t i = 0; i < aliased.size(); ++i) {
    EXPECT_EQ(aliased[i].aliased, i >= 6);
    if (i < 6) {
      EXPECT_EQ(aliased[i].key, ordinary[i < 3 ? i : i + 2].key) << "the n-th size has the n-th key";
    }
  }
}

// Drawn sizes have what the listed ones have in common, and one exceeds the timing size in each symbol that varies.
TEST(Cases, DrawnSizes) {
  Problem problem;
  Parameter x;
  x.name = "x";
  x.shape = {Expression::Parse("rows"), Expression::Parse("cols"), Expression::Parse("width")};
  problem.parameters = {x};
  problem.visible = {{{"rows", 5}, {"cols", 64}, {"width", 16}, {"half", 2}}};
  problem.hidden = {{{"rows", 33}, {"cols", 12}, {"width", 32}, {"half", 2}}};
  problem.timing = {{"rows", 512}, {"cols", 4096}, {"width", 64}, {"half", 2}};
  std::set<std::string> seen;
  for (uint64_t key = 0; key < 50; ++key) {
    bool rows = false, cols = false, width = false;
    for (const Bindings& size : DrawSizes(problem, key, true)) {
      seen.insert(SizeText(size));
      EXPECT_EQ(size.at("half"), 2);
      EXPECT_EQ(size.at("cols") % 4, 0);
      EXPECT_EQ(size.at("width") & (size.at("width") - 1), 0) << "a power of two";
      rows = rows || size.at("rows") > 512;
      cols = cols || size.at("cols") > 4096;
      width = width || size.at("width") > 64;
    }
    EXPECT_TRUE(rows && cols && width) << key;
  }
  EXPECT_GT(seen.size(), 100u);
  int of_new_remainder = 0;  // the listed ones have remainders 0 and 1 by 4
  for (uint64_t key = 0; key < 50; ++key) of_new_remainder += DrawSizes(problem, key, false)[0].at("rows") % 4 >= 2;
  EXPECT_GE(of_new_remainder, 45);
  problem.ranges = {{"rows", {3, 40}}, {"cols", {64, 64}}, {"width", {16, 16}}};
  for (uint64_t key = 0; key < 20; ++key) {
    for (const Bindings& size : DrawSizes(problem, key, true)) {
      EXPECT_GE(size.at("rows"), 3);
      EXPECT_LE(size.at("rows"), 40);
      EXPECT_EQ(size.at("cols"), 64);
    }
  }
  // Always at most, and always a divisor: so are the drawn ones.
  problem.ranges.clear();
  problem.visible = {{{"rows", 4}, {"cols", 12}, {"width", 1}, {"half", 2}}};
  problem.hidden = {{{"rows", 8}, {"cols", 8}, {"width", 1}, {"half", 2}}};
  problem.timing = {{"rows", 64}, {"cols", 640}, {"width", 1}, {"half", 2}};
  for (uint64_t key = 0; key < 50; ++key) {
    for (const Bindings& size : DrawSizes(problem, key, true)) EXPECT_EQ(size.at("cols") % size.at("rows"), 0);
  }
}

// Each size once more with whole numbers at the addresses of the case before, then unusual values.
TEST(Cases, BeyondTheListedOnes) {
  const Problem affine = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  const std::vector<CorrectnessCase> cases = CorrectnessCases(affine, 3, 2);
  size_t whole = 0;
  std::set<InputValues> values;
  for (size_t i = 0; i < cases.size(); ++i) {
    values.insert(cases[i].values);
    if (!cases[i].same_place) continue;
    ++whole;
    EXPECT_EQ(*cases[i].size, *cases[i - 1].size);
    EXPECT_NE(cases[i].key, cases[i - 1].key);
    const std::vector<double> x = ExpectedFrom(affine.parameters[0], DrawArguments(affine, cases[i])[0].bytes).reals;
    EXPECT_EQ(Share(x, [](double v) { return v == std::floor(v) && std::fabs(v) < 8; }), 1);
  }
  EXPECT_EQ(whole, affine.visible.size() + affine.hidden.size());
  EXPECT_EQ(values.size(), 5u);
}

// Whole results of few bits are exact; so few bits are no chance; sums in low precision are not.
TEST(Comparison, ExactResults) {
  Problem problem;
  Parameter output;
  EXPECT_TRUE(IsExact(problem, output, {{1, -2, 300000, 0.25, 0}, {}}));
  EXPECT_FALSE(IsExact(problem, output, {{1, -2, 1.0 / 3, 4}, {}}));
  EXPECT_FALSE(IsExact(problem, output, {{1, 16777216, 0.25}, {}})) << "more bits than float32 has";
  EXPECT_FALSE(IsExact(problem, output, {{1.0 + 0x1p-15}, {}})) << "one value of float32 may be like this by chance";
  EXPECT_FALSE(IsExact(problem, output, {{INFINITY, 1, 2}, {}}));
  problem.tolerance.accumulation = DType::kFloat16;
  EXPECT_FALSE(IsExact(problem, output, {{1, -2, 300000, 0.25, 0}, {}}));
  EXPECT_EQ(ExactBound(output, {1e-3, 1e-3}, 0).relative, 0x1p-20);
  EXPECT_EQ(ExactBound(output, {1e-3, 1e-3}, 1e-5).relative, 1e-5);
  EXPECT_EQ(ExactBound(output, {1e-3, 1e-3}, 1).relative, 1e-3);
}

// Results of a kernel that flushes subnormal numbers, when all are subnormal and when some are beside ordinary numbers.
TEST(Comparison, SubnormalResults) {
  Problem problem;
  Parameter output;
  output.dtype = DType::kFloat32;
  const auto matches = [&](const std::vector<double>& expected, const std::vector<float>& got) {
    std::vector<uint8_t> bytes(got.size() * sizeof(float));
    std::memcpy(bytes.data(), got.data(), bytes.size());
    const Expected wanted = {expected, {}};
    const ErrorBound bound = BoundFor(problem, output, 1, wanted);
    return Compare(output, {static_cast<int64_t>(got.size())}, bytes, wanted, {}, bound).matches;
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

}  // namespace
}  // namespace kgrpo::evaluator
