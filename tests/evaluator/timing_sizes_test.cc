// Problems with several timing sizes.
#include "judge/front/timing_sizes.h"

#include "affine_candidates.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/evaluator.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using evaluator::WithKernel;

class TimingSizesTest : public KernelEvaluatorTest {
 protected:
  // `affine` with these timing sizes.
  static std::string Folder(const std::string& timing) {
    const std::filesystem::path folder = std::filesystem::path(cache_directory_) / "sizes";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(kProblems + "affine", folder);
    std::ofstream(folder / "problem.yaml") << "name: sizes\ntitle: Affine map\nfamily: elementwise\nsplit: train\n"
                                              "traits: []\ndescription: out[i] = 2 x[i] + y[i].\nparameters:\n"
                                              "  - {name: x, role: input, dtype: float32, shape: [n]}\n"
                                              "  - {name: y, role: input, dtype: float32, shape: [n]}\n"
                                              "  - {name: out, role: output, dtype: float32, shape: [n]}\n"
                                              "  - {name: n, role: scalar, dtype: int32, value: n}\n"
                                              "sizes:\n  visible: [{n: 100}, {n: 7}]\n  hidden: [{n: 50}]\n  timing: " +
                                                  timing + "\nneeds: {bytes: 12*n, flops: 2*n}\n";
    return folder.string();
  }
  evaluator::Evaluator evaluator_{std::make_unique<KernelEvaluator>(KernelEvaluator::Options{}),
                                  {.cache_directory = cache_directory_}};
};

TEST_F(TimingSizesTest, TimesAreTheGeometricMean) {
  const std::string source = WithKernel("if (i < n) out[i] = 2.0f * x[i] + y[i];");
  const auto seconds = [&](const std::string& timing) {
    const auto open = evaluator_.Open(Folder(timing));
    const KernelEvaluation found = evaluator_.Evaluate(*open, source, {});
    EXPECT_EQ(found.verdict, "correct") << found.diagnosis;
    EXPECT_GT(evaluator_.Baseline(*open).seconds, 0);
    return found;
  };
  const double small = seconds("{n: 65536}").seconds, large = seconds("{n: 4194304}").seconds;
  EXPECT_GT(large, 2 * small);
  EXPECT_EQ(seconds("[{n: 65536}]").seconds, small);
  const KernelEvaluation both = seconds("[{n: 65536}, {n: 4194304}]");
  EXPECT_NEAR(both.seconds, std::sqrt(small * large), 1e-9 * both.seconds);
  const std::map<std::string, double> metrics(both.metrics.begin(), both.metrics.end());
  EXPECT_EQ(metrics.at("timing_size_seconds/1"), small);
  EXPECT_EQ(metrics.at("timing_size_seconds/2"), large);
}

TEST_F(TimingSizesTest, AKernelMustBeCorrectAtEach) {
  const auto open = evaluator_.Open(Folder("[{n: 65536}, {n: 1048576}]"));
  const auto diagnosis = [&](const std::string& condition) {
    return evaluator_.Evaluate(*open, WithKernel("if (i < n) out[i] = 2.0f * x[i] + y[i] * (" + condition + ");"), {})
        .diagnosis;
  };
  EXPECT_THAT(diagnosis("n != 1048576"), testing::StartsWith("At timing size 2 of 2: "));
  EXPECT_THAT(diagnosis("n != 65536"), testing::StartsWith("At timing size 1 of 2: "));
}

TEST_F(TimingSizesTest, EveryOneBindsTheSameSymbols) {
  EXPECT_THAT(test::MessageOf([&] { evaluator::LoadProblem(Folder("[{n: 65536}, {m: 5}]")); }),
              testing::HasSubstr("sizes.timing[1]: binds no value to \"n\""));
  EXPECT_THROW(evaluator::LoadProblem(Folder("[]")), Error);
}

TEST(TimingSizes, SpeedupsAreTheGeometricMeanToo) {
  const auto evaluation = [](size_t i) {
    evaluator::KernelEvaluation one;
    one.correct = true;
    one.seconds = one.seconds_low = one.seconds_high = i == 0 ? 1e-6 : 4e-6;
    one.metrics = {{"speedup", i == 0 ? 2.0 : 8.0}, {"registers", i == 0 ? 32.0 : 40.0}};
    return one;
  };
  const evaluator::KernelEvaluation both = evaluator::OverTimingSizes(2, evaluation);
  EXPECT_DOUBLE_EQ(both.seconds, 2e-6);
  EXPECT_EQ(both.metrics[0].first, "speedup");
  EXPECT_DOUBLE_EQ(both.metrics[0].second, 4);
  EXPECT_EQ(both.metrics[1].second, 32);
}

TEST(TimingSizes, FurtherProblemsAreNotTheProblem) {
  evaluator::Problem problem = evaluator::LoadProblem(kProblems + "affine");
  EXPECT_TRUE(evaluator::FurtherTimingProblems(problem).empty());
  problem.further_timing = {{{"n", 5}}, {{"n", 6}}};
  const auto further = evaluator::FurtherTimingProblems(problem);
  ASSERT_EQ(further.size(), 2U);
  EXPECT_EQ(further[1].timing.at("n"), 6);
  EXPECT_TRUE(further[0].further_timing.empty());
  EXPECT_EQ(further[0].visible.size(), 1U);
  EXPECT_NE(further[0].digest, further[1].digest);
  EXPECT_NE(further[0].digest, problem.digest);
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
