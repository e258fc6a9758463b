// Kernels that kgrpo's rules and KernelBench's judge differently, without a GPU.
#include "affine_candidates.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/evaluator.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using evaluator::WithKernel;

class RulesSimTest : public KernelEvaluatorTest {
 protected:
  static KernelEvaluation AsKernelBench(const std::string& expression) {
    KernelEvaluator::Options options;
    options.timing_size_only = true;
    evaluator::Evaluator by_rules(std::make_unique<KernelEvaluator>(options),
                                  {.cache_directory = cache_directory_, .rules = evaluator::Rules::kKernelBench});
    const auto open = by_rules.Open(kProblems + "affine");
    EXPECT_GT(by_rules.Baseline(*open).seconds, 0);
    return by_rules.Evaluate(*open, WithKernel(expression), {});
  }
  static std::string Ours(const std::string& expression) { return Affine(WithKernel(expression)).verdict; }
};

TEST_F(RulesSimTest, AKernelForOneSizeIsCorrectForKernelBench) {
  const std::string one_size = "if (n > 1000000) out[i] = 2.0f * x[i] + y[i];";
  EXPECT_EQ(Ours(one_size), "wrong");
  const KernelEvaluation found = AsKernelBench(one_size);
  EXPECT_EQ(found.verdict, "correct") << found.diagnosis;
  EXPECT_GT(found.seconds, 0);
}

// sqrt(5) is the outputs' root mean square: 1e-4 and 1e-4 of it is allowed, and by our rules 1.5e-6.
TEST_F(RulesSimTest, TheToleranceIsKernelBenchs) {
  const auto off_by = [](const std::string& factor) {
    return "if (i < n) out[i] = (2.0f * x[i] + y[i]) * " + factor + ";";
  };
  EXPECT_EQ(Ours(off_by("1.00005f")), "wrong");
  EXPECT_EQ(AsKernelBench(off_by("1.00005f")).verdict, "correct");
  // Of the largest elements, 9 or so: allowed are 1e-3, and not twice that as at the timing size by our rules.
  EXPECT_EQ(AsKernelBench(off_by("1.00015f")).verdict, "wrong");
}

TEST_F(RulesSimTest, ZerosAreWrongForBoth) {
  EXPECT_EQ(Ours("if (i < n) out[i] = 0;"), "wrong");
  EXPECT_EQ(AsKernelBench("if (i < n) out[i] = 0;").verdict, "wrong");
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
