// A problem as KernelBench's rules see it.
#include "judge/problem/rules.h"

#include "test.h"

namespace kgrpo::evaluator {
namespace {

const std::string kProblems = std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/";

TEST(Rules, OursLeaveAProblemAsItIs) {
  const Problem problem = LoadProblem(kProblems + "affine");
  const Problem same = UnderRules(problem, RulesFromName("ours"));
  EXPECT_EQ(same.digest, problem.digest);
  EXPECT_EQ(same.hidden, problem.hidden);
  EXPECT_FALSE(same.tolerance.absolute);
}

TEST(Rules, KernelBenchJudgesTheTimingSizeAlone) {
  const Problem problem = LoadProblem(kProblems + "affine");
  const Problem changed = UnderRules(problem, RulesFromName("kernelbench"));
  EXPECT_EQ(changed.visible, std::vector<Bindings>{problem.timing});
  EXPECT_TRUE(changed.hidden.empty());
  EXPECT_EQ(changed.tolerance.relative, 1e-4);
  EXPECT_EQ(changed.tolerance.absolute, 1e-4);
  EXPECT_EQ(changed.needed_bytes.Evaluate(changed.timing), 0);
  EXPECT_NE(changed.digest, problem.digest) << "evaluations by other rules are kept by it";
  EXPECT_EQ(changed.Signature(), problem.Signature());
}

TEST(Rules, KernelBenchAllowsMoreWhereAnOutputHas16Bits) {
  Problem problem = LoadProblem(kProblems + "affine");
  problem.parameters[0].dtype = DType::kFloat16;  // an input
  EXPECT_EQ(UnderRules(problem, Rules::kKernelBench).tolerance.absolute, 1e-4);
  problem.parameters[2].dtype = DType::kBfloat16;
  EXPECT_EQ(UnderRules(problem, Rules::kKernelBench).tolerance.absolute, 1e-2);
}

TEST(Rules, KernelBenchKnowsNoFurtherCases) {
  Problem problem = LoadProblem(kProblems + "affine");
  problem.parameters[0].also.emplace_back();
  problem.parameters[2].may_alias = 0;
  const Problem changed = UnderRules(problem, Rules::kKernelBench);
  EXPECT_TRUE(changed.parameters[0].also.empty());
  EXPECT_FALSE(changed.parameters[2].may_alias);
}

TEST(Rules, WithoutAnOracleFileForTheTimingSizeTheReferenceSaysWhatIsExpected) {
  Problem problem = LoadProblem(kProblems + "affine");
  problem.oracle = OracleKind::kTorchScript;
  problem.oracle_files = {{problem.visible[0], "visible_0.pt"}};
  EXPECT_EQ(UnderRules(problem, Rules::kKernelBench).oracle, OracleKind::kReference);
  problem.oracle_files.emplace_back(problem.timing, "timing.pt");
  EXPECT_EQ(UnderRules(problem, Rules::kKernelBench).oracle, OracleKind::kTorchScript);
}

}  // namespace
}  // namespace kgrpo::evaluator
