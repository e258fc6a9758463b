// evaluator_cuda/roofline.h: the ceiling that applies to a problem, and the shortest time that is plausible.
#include "evaluator_cuda/roofline.h"

#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::DType;
using evaluator::Parameter;
using evaluator::Problem;
using evaluator::Role;

constexpr Ceilings kCeilings = {3e12, 60e12, 30e12, 600e12};

Problem ProblemOf(DType in, DType out, int64_t bytes, int64_t operations) {
  Problem problem;
  Parameter input, output;
  input.name = "in";
  input.dtype = in;
  output.name = "out";
  output.role = Role::kOutput;
  output.dtype = out;
  problem.parameters = {input, output};
  problem.needed_bytes = evaluator::Expression(bytes);
  problem.needed_flops = evaluator::Expression(operations);
  return problem;
}

constexpr int64_t kMany = 600'000'000'000;  // operations: 10 ms of fp32

TEST(RooflineTest, TheDtypesChooseTheUnit) {
  const Roofline single = RooflineOf(ProblemOf(DType::kFloat32, DType::kFloat32, 3000, kMany), kCeilings, 90);
  EXPECT_EQ(single.unit, "fp32");
  EXPECT_DOUBLE_EQ(single.seconds, 10e-3);
  EXPECT_FALSE(single.memory_binds);
  const Roofline half = RooflineOf(ProblemOf(DType::kFloat16, DType::kFloat16, 3000, kMany), kCeilings, 90);
  EXPECT_EQ(half.unit, "tensor core");
  EXPECT_DOUBLE_EQ(half.seconds, 1e-3);
  EXPECT_EQ(RooflineOf(ProblemOf(DType::kBfloat16, DType::kFloat32, 1, 1), kCeilings, 90).unit, "fp32");
  EXPECT_EQ(RooflineOf(ProblemOf(DType::kFloat64, DType::kFloat64, 1, 1), kCeilings, 90).unit, "fp64");
}

TEST(RooflineTest, TheLeastTimeAllowsWhatTheToleranceAllows) {
  // float32 to rounding: float16 operands do not suffice, but a factor is no proof of that: tensor cores by wgmma.
  const auto least = [](const Problem& problem, int capability) {
    return RooflineOf(problem, kCeilings, capability).least_seconds;
  };
  const Problem single = ProblemOf(DType::kFloat32, DType::kFloat32, 0, kMany);
  EXPECT_NEAR(least(single, 90), kMany / (600e12 * 1.75), 1e-9);
  EXPECT_LT(least(single, 100), least(single, 90)) << "tcgen05 is further from mma.sync than wgmma is";
  EXPECT_GT(least(single, 80), least(single, 90));
  Problem loose = single;
  loose.tolerance.relative = 0.05;
  EXPECT_NEAR(least(loose, 90), least(single, 90) / 2, 1e-9) << "eight bits will do";
  const Problem bytes = ProblemOf(DType::kUint8, DType::kFloat32, 0, kMany);
  EXPECT_NEAR(least(bytes, 90), least(single, 90) / 2, 1e-9);
  const Problem whole = ProblemOf(DType::kInt32, DType::kInt32, 0, kMany);
  EXPECT_NEAR(least(whole, 90), least(single, 90) / 2, 1e-9);
  const Problem exact = ProblemOf(DType::kFloat64, DType::kFloat64, 0, kMany);
  EXPECT_NEAR(least(exact, 90), kMany / (30e12 * 4), 1e-9);
  Problem rough = exact;
  rough.tolerance.relative = 1e-3;
  EXPECT_NEAR(least(rough, 90), least(single, 90), 1e-9) << "float64 in name only";
  // An honest kernel at its own unit's full rate is always believed.
  for (const Problem& problem : {single, loose, bytes, whole, exact, rough})
    EXPECT_LE(least(problem, 90), RooflineOf(problem, kCeilings, 90).seconds);
}

TEST(RooflineTest, SaysWhatBinds) {
  const Roofline memory = RooflineOf(ProblemOf(DType::kFloat32, DType::kFloat32, 3'000'000, 6'000'000), kCeilings, 90);
  EXPECT_TRUE(memory.memory_binds);
  EXPECT_DOUBLE_EQ(memory.seconds, 1e-6);
  EXPECT_EQ(RooflineText(memory, 2e-6),
            "Memory bandwidth binds: it moves 1.5e+03 GB/s of the traffic that is needed, 50% of what the device "
            "reaches; it does 3 TFLOP/s, 5% of its fp32 rate.");
  const Roofline arithmetic = RooflineOf(ProblemOf(DType::kFloat16, DType::kFloat16, 3000, kMany), kCeilings, 90);
  EXPECT_THAT(RooflineText(arithmetic, 2e-3),
              HasSubstr("Arithmetic binds: it does 300 TFLOP/s, 50% of its tensor core rate; it moves"));
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
