// Element types against numpy and torch, input generation and comparison against their definitions.
#include <bit>

#include "judge/inputs/inputs.h"
#include "judge/verdict/comparison.h"
#include "judge/verdict/conditioning.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

TEST(DType, RoundsAsNumpyAndTorchDo) {
  std::ifstream golden(KGRPO_BINARY_DIR "/test_data/evaluator/dtypes.txt");
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
  int16_t half = 0;
  StoreDouble(DType::kInt16, -1e6, &half);
  EXPECT_EQ(LoadInteger(DType::kInt16, &half), -32768);
  StoreInteger(DType::kUint16, 65535, &half);
  EXPECT_EQ(LoadInteger(DType::kUint16, &half), 65535);
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

std::vector<double> DrawValues(DType dtype, const Distribution& distribution, int64_t n, uint64_t key,
                               int variant = 0) {
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
  Moments(DrawValues(DType::kFloat32, d, kCount, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(deviation, 1, 0.02);
  Moments(DrawValues(DType::kFloat32, d, kCount, 1, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 0.5, 0.03);
  EXPECT_NEAR(deviation, 1.5, 0.03);
  d.kind = Distribution::Kind::kLargeOffset;
  Moments(DrawValues(DType::kFloat32, d, kCount, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 1000, 0.02);
  d.kind = Distribution::Kind::kUniform;
  d.low = Expression::Parse("-2");
  d.high = Expression::Parse("n/50000");
  Moments(DrawValues(DType::kFloat64, d, kCount, 1), &mean, &deviation);
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(deviation, 4 / std::sqrt(12.0), 0.02);
  d.kind = Distribution::Kind::kSparse;
  const std::vector<double> sparse = DrawValues(DType::kFloat32, d, kCount, 1);
  EXPECT_NEAR(static_cast<double>(std::count(sparse.begin(), sparse.end(), 0.0)), 90000, 500);
}

TEST(Inputs, WholeNumbersCoverBothBounds) {
  Distribution d;
  d.kind = Distribution::Kind::kIntegers;
  d.low = Expression::Parse("-3");
  d.high = Expression::Parse("3");
  const std::vector<double> values = DrawValues(DType::kInt32, d, 1000, 5);
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-3, -2, -1, 0, 1, 2, 3}));
  d.kind = Distribution::Kind::kPermutation;
  std::vector<double> order = DrawValues(DType::kInt64, d, 500, 5);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<double>(i));
  d.kind = Distribution::Kind::kOffsets;
  d.high = Expression::Parse("4*n");
  const std::vector<double> offsets = DrawValues(DType::kInt32, d, 300, 5);
  EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
  EXPECT_EQ(offsets.front(), 0);
  EXPECT_EQ(offsets.back(), 1200);
}

TEST(Inputs, FollowTheKeyAlone) {
  EXPECT_EQ(DrawValues(DType::kFloat32, {}, 100, 1), DrawValues(DType::kFloat32, {}, 100, 1));
  EXPECT_NE(DrawValues(DType::kFloat32, {}, 100, 1), DrawValues(DType::kFloat32, {}, 100, 2));
}

Comparison CompareFloats(const std::vector<float>& got, const std::vector<double>& expected, ErrorBound bound,
                         const std::vector<bool>& unwritten = {}) {
  Parameter out;
  out.name = "out";
  std::vector<uint8_t> bytes(got.size() * 4);
  std::memcpy(bytes.data(), got.data(), bytes.size());
  return Compare(out, {2, static_cast<int64_t>(got.size()) / 2}, bytes, {expected, {}}, unwritten, bound);
}

TEST(Comparison, Bounds) {
  EXPECT_TRUE(CompareFloats({1, 2, 3, 4}, {1, 2, 3, 4}, {0, 0}).matches);
  EXPECT_TRUE(CompareFloats({1, 2, 3, 4.04f}, {1, 2, 3, 4}, {0.011, 0}).matches);
  const Comparison off = CompareFloats({1, 2, 3, 4.04f}, {1, 2, 3, 4}, {0.009, 0});
  EXPECT_FALSE(off.matches);
  EXPECT_EQ(off.mismatches, 1);
  EXPECT_EQ(off.sentence,
            "1 of 4 elements of out are wrong; the worst is out[1][1] = 4.04, expected 4: relative error 0.01, 1.11 "
            "times the tolerance (relative 0.009 + absolute 0)");
  EXPECT_THAT(CompareFloats({0.003f, 2, 3, 4}, {0, 2, 3, 4}, {1e-4, 1e-3}).sentence,
              testing::EndsWith("expected 0: error 0.003, 3 times the tolerance (relative 0.0001 + absolute 0.001)"));
  EXPECT_THAT(CompareFloats({NAN, 2, 3, 4}, {1, 2, 3, 4}, {1e-4, 1e-3}).sentence,
              testing::EndsWith("= nan, expected 1; tolerance (relative 0.0001 + absolute 0.001)"));
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
  EXPECT_EQ(CompareFloats({1, 2, 3, 4}, {1, 2, 3, 4}, {0, 0}, {true, true, true, true}).sentence,
            "out was never written");
  EXPECT_EQ(CompareFloats({1, 2, 3, 4}, {1, 2, 3, 4}, {0, 0}, {false, false, true, false}).sentence,
            "1 of 4 elements of out were never written, the first is out[1][0]");
  EXPECT_NE(CompareFloats({5, 5, 5, 5}, {1, 2, 3, 4}, {0, 0}).sentence.find("constant where the correct one is not"),
            std::string::npos);
}

// The default bound lets an honest float32 sum pass, in any order, and not one of half precision.
TEST(Comparison, NamesWhatSumsInFloat16Explain) {
  Problem problem;
  Parameter out, in;
  out.name = "out";
  const Expected expected = {{1, 1, 1, 1}, {}};
  WrongOutput wrong;
  const auto sentence = [&](float off) {
    const std::vector<float> got = {1, 1 + off, 1, 1};
    std::vector<uint8_t> bytes(sizeof(float) * got.size());
    std::memcpy(bytes.data(), got.data(), bytes.size());
    const Comparison comparison = Compare(out, {4}, bytes, expected, {}, BoundFor(problem, out, 4, expected));
    wrong = comparison.wrong;
    return comparison.sentence;
  };
  const std::string explained = ", within what float16 accumulation explains";
  EXPECT_THAT(sentence(0.01f), testing::Not(testing::HasSubstr(explained))) << "no tensor is of 16 bits";
  in.role = Role::kInput;
  in.dtype = DType::kFloat16;
  problem.parameters = {in, out};
  EXPECT_THAT(sentence(0.01f), testing::EndsWith(explained));
  EXPECT_EQ(wrong.name, "out");
  EXPECT_NEAR(wrong.error, 0.01 / (34 * std::ldexp(1, -24)) / 2, 20);
  EXPECT_THAT(sentence(0.5f), testing::Not(testing::HasSubstr(explained)));
  problem.tolerance.accumulation = DType::kFloat16;
  EXPECT_EQ(sentence(0.01f), "");
  EXPECT_EQ(wrong.name, "");
  EXPECT_THAT(sentence(0.5f), testing::HasSubstr("out[1] = 1.5, expected 1: relative error 0.5"));
  problem.tolerance.accumulation = DType::kFloat64;
  EXPECT_NE(sentence(1e-6f), "");
}

TEST(Comparison, DefaultBoundFitsSums) {
  Problem problem;
  Parameter out;
  out.name = "out";
  for (const int64_t terms : {10, 1000, 100000}) {
    const std::vector<double> values = DrawValues(DType::kFloat32, {}, terms, 11);
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

// The bound at the timing size of a shipped problem with an absolute tolerance, beside its float32 reference.
double AbsoluteBesideReference(const std::string& name, const Compute& oracle) {
  const Problem problem = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/problems/" + name);
  CorrectnessCase one;
  one.size = &problem.hidden.back();
  one.key = 7;
  const std::vector<Argument> arguments = DrawArguments(problem, one);
  const std::vector<ErrorBound> bounds = BoundsBesideReference(problem, &one, arguments, oracle(arguments), oracle);
  EXPECT_EQ(bounds.size(), 1u);
  EXPECT_NEAR(bounds[0].relative, *problem.tolerance.relative, 1e-7);
  return bounds[0].absolute;
}

double At(const Argument& argument, size_t i) { return LoadDouble(DType::kFloat32, &argument.bytes[4 * i]); }

// A sum of 8.4 million products of normal values has errors of some 0.005 in float32, whatever it comes out as; an
// element that is left out changes it by about 1.
TEST(Conditioning, BesideAReferenceTheToleranceCoversItsErrors) {
  const double dot = AbsoluteBesideReference("dot_product", [](const std::vector<Argument>& arguments) {
    double sum = 0;
    for (size_t i = 0; i < arguments[0].bytes.size() / 4; ++i) sum += At(arguments[0], i) * At(arguments[1], i);
    return std::vector<Expected>{{}, {}, {{sum}, {}}, {}};
  });
  EXPECT_GT(dot, 0.02);
  EXPECT_LT(dot, 0.5);
  const double elements = AbsoluteBesideReference("swiglu", [](const std::vector<Argument>& arguments) {
    std::vector<double> out(arguments[0].bytes.size() / 4);
    for (size_t i = 0; i < out.size(); ++i) {
      const double gate = At(arguments[0], i);
      out[i] = At(arguments[2], i) + std::max(-4.0, 0.5 * At(arguments[1], i) * gate / (1 + std::exp(-gate)));
    }
    return std::vector<Expected>{{}, {}, {}, {out, {}}, {}, {}};
  });
  EXPECT_EQ(elements, 1e-5) << "as problem.yaml says";
}

}  // namespace
}  // namespace kgrpo::evaluator
