// FindDegenerate: each way in which a problem is degenerate, by an oracle of that kind, and none for a sound problem.
#include "judge/verdict/problem_findings.h"

#include "judge/problem/dtype.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

// out[i] by x and y, n elements each.
Problem Elementwise(double relative, double absolute) {
  Problem problem;
  problem.name = "sample";
  problem.digest = "some digest";
  for (const char* name : {"x", "y", "out"}) {
    Parameter parameter;
    parameter.name = name;
    parameter.role = std::string(name) == "out" ? Role::kOutput : Role::kInput;
    parameter.shape = {Expression::Parse("n")};
    problem.parameters.push_back(parameter);
  }
  problem.visible = {{{"n", 40}}};
  problem.hidden = {{{"n", 1}}, {{"n", 33}}};
  problem.timing = {{"n", 1000}};
  problem.tolerance.relative = relative;
  problem.tolerance.absolute = absolute;
  return problem;
}

// The oracle that computes each element by `of`.
template <typename Function>
ExpectedOf Each(Function of) {
  return [of](const CorrectnessCase&, const std::vector<Argument>& arguments) {
    std::vector<Expected> expected(3);
    for (int64_t i = 0; i < arguments[2].elements; ++i) {
      const auto at = [&](size_t p) {
        return LoadDouble(DType::kFloat32, &arguments[p].bytes[static_cast<size_t>(i) * sizeof(float)]);
      };
      expected[2].reals.push_back(of(at(0), at(1)));
    }
    return expected;
  };
}

// "zeros_pass out; ...": codes, and the parameters that are named.
std::string CodesOf(const std::vector<ProblemFinding>& findings) {
  std::string codes;
  for (const ProblemFinding& finding : findings) {
    codes += (codes.empty() ? "" : ", ") + finding.code;
    EXPECT_FALSE(finding.sentence.empty());
    EXPECT_FALSE(finding.advice.empty());
  }
  return codes;
}

TEST(ProblemFindings, NothingIsWrongWithASoundProblem) {
  const auto sum = Each([](double x, double y) { return x + 2 * y; });
  EXPECT_EQ(CodesOf(FindDegenerate(Elementwise(1e-5, 1e-6), sum)), "");
}

TEST(ProblemFindings, AConstantOutput) {
  const auto findings = FindDegenerate(Elementwise(1e-5, 1e-6), Each([](double, double) { return 7.5; }));
  EXPECT_EQ(CodesOf(findings), "constant_output, input_unused, input_unused");
  EXPECT_EQ(findings[0].sentence, "out is 7.5 in every element, whatever the inputs are.");
}

TEST(ProblemFindings, AnUnusedInputIsNamed) {
  const auto findings = FindDegenerate(Elementwise(1e-5, 1e-6), Each([](double x, double) { return 2 * x; }));
  ASSERT_EQ(CodesOf(findings), "input_unused");
  EXPECT_EQ(findings[0].sentence, "No output depends on the input y.");
}

TEST(ProblemFindings, AnInputWhoseEffectTheToleranceHides) {
  const auto oracle = Each([](double x, double y) { return 10 * x + 1e-6 * y; });
  const auto findings = FindDegenerate(Elementwise(1e-4, 1e-3), oracle);
  ASSERT_EQ(CodesOf(findings), "input_unused");
  EXPECT_EQ(findings[0].sentence, "The effect of y on the outputs is within the tolerance: a kernel may ignore it.");
  EXPECT_EQ(CodesOf(FindDegenerate(Elementwise(0, 1e-9), oracle)), "");
}

TEST(ProblemFindings, ZerosThatTheToleranceLetsPass) {
  const auto small = Each([](double x, double y) { return 1e-4 * (x + y); });
  const auto findings = FindDegenerate(Elementwise(1e-5, 0.01), small);
  EXPECT_EQ(CodesOf(findings), "zeros_pass, input_unused, input_unused");
  EXPECT_EQ(findings[0].sentence, "A kernel that writes zeros to out is within the tolerance at every size.");
  EXPECT_EQ(CodesOf(FindDegenerate(Elementwise(1e-5, 1e-9), small)), "");
}

TEST(ProblemFindings, ElementsThatAreTheSameWithinTheTolerance) {
  const auto oracle = Each([](double x, double y) { return 5 + 1e-4 * (x + y); });
  EXPECT_EQ(CodesOf(FindDegenerate(Elementwise(1e-3, 0), oracle)), "equal_elements, input_unused, input_unused");
}

TEST(ProblemFindings, ACopyThatPasses) {
  const auto oracle = Each([](double x, double y) { return x + 1e-3 * std::tanh(y); });
  const auto findings = FindDegenerate(Elementwise(0, 0.01), oracle);
  EXPECT_EQ(CodesOf(findings), "input_passes, input_unused");
  EXPECT_EQ(findings[0].sentence, "A kernel that copies x to out is within the tolerance at every size.");
  EXPECT_EQ(CodesOf(FindDegenerate(Elementwise(0, 1e-6), oracle)), "");
}

TEST(ProblemFindings, AnInputThatNeverChanges) {
  Problem problem = Elementwise(1e-5, 1e-6);
  problem.parameters[1].distribution.kind = Distribution::Kind::kConstant;
  problem.parameters[1].distribution.value = 3;
  const auto sum = Each([](double x, double y) { return x + y; });
  EXPECT_EQ(CodesOf(FindDegenerate(problem, sum)), "input_constant");
}

TEST(ProblemFindings, ADraftIsRefusedAndNothingIsRun) {
  Problem problem = Elementwise(1e-5, 1e-6);
  problem.oracle_source = std::string(kOracleToWrite) + "\nextern \"C\" void oracle() {}\n";
  const ExpectedOf never = [](const CorrectnessCase&, const std::vector<Argument>&) -> std::vector<Expected> {
    ADD_FAILURE();
    return {};
  };
  EXPECT_EQ(CodesOf(FindDegenerate(problem, never)), "oracle_not_written");
  problem.oracle_source.reset();
  problem.checker_source = std::string(kCheckerToWrite) + "\nstd::string check() { return \"\"; }\n";
  EXPECT_EQ(CodesOf(FindDegenerate(problem, never)), "oracle_not_written");
  problem.checker_source.reset();
  problem.refused = "it draws random numbers";
  EXPECT_EQ(CodesOf(FindDegenerate(problem, never)), "");
}

TEST(ProblemFindings, TheAdviceOnAReferenceFollowsItsVerdict) {
  const auto found = [](const char* verdict) {
    KernelEvaluation reference;
    reference.verdict = verdict;
    reference.diagnosis = "Found at n=40";
    Problem problem = Elementwise(1e-5, 1e-6);
    problem.directory = "sample";
    const ProblemFinding finding = FindOfReference(problem, [&](uint64_t) { return reference; })[0];
    return finding.sentence + " " + finding.advice;
  };
  EXPECT_EQ(found("wrong"),
            "sample/reference.cu: the reference kernel is not correct (wrong): Found at n=40. "
            "Correct reference.cu or the oracle: their results differ.");
  EXPECT_EQ(found("race"),
            "sample/reference.cu: the reference kernel is not correct (race): Found at n=40. "
            "Correct reference.cu; or problem.yaml, if its sizes or input ranges lead there.");
}

TEST(ProblemFindings, LinesOfTheReferenceThatNoCallRunsAreReported) {
  const std::vector<ProblemFinding> findings = FindOfReference(Elementwise(1e-5, 1e-6), [](uint64_t) {
    KernelEvaluation reference;
    reference.correct = true;
    reference.seconds = 1;
    reference.not_judged = "line 7, which no size reaches: n > 4096";
    return reference;
  });
  ASSERT_EQ(CodesOf(findings), "lines_not_run");
  EXPECT_EQ(findings[0].sentence, "Not judged in reference.cu: line 7, which no size reaches: n > 4096.");
}

// Five seeds are evaluated; each finding names the widest error and a tolerance that leaves room.
TEST(ProblemFindings, AReferenceNearItsToleranceIsReported) {
  std::vector<double> errors = {0.1, 0.2, 0.15, 0.3, 0.2};
  Problem problem = Elementwise(0, 0);
  problem.tolerance = {};
  problem.accumulations = Expression::Parse("n");
  problem.timing = {{"n", 64}};
  std::vector<uint64_t> seeds;
  const auto find = [&] {
    seeds.clear();
    return FindOfReference(problem, [&](uint64_t seed) {
      seeds.push_back(seed);
      KernelEvaluation reference;
      reference.correct = errors[seed] <= 1;
      reference.verdict = reference.correct ? "correct" : "wrong";
      if (!reference.correct) reference.wrong = {"out", errors[seed]};
      reference.seconds = 1;
      reference.metrics = {{"worst_error/out", errors[seed]}};
      return reference;
    });
  };
  EXPECT_EQ(CodesOf(find()), "");
  EXPECT_EQ(seeds, (std::vector<uint64_t>{0, 1, 2, 3, 4}));
  errors[3] = 0.9;
  std::vector<ProblemFinding> found = find();
  EXPECT_EQ(CodesOf(found), "near_tolerance");
  EXPECT_THAT(found[0].sentence, testing::HasSubstr("comes to 0.9 times the tolerance of out with 5 seeds"));
  // 3.6 (2 u + (16 + 8 sqrt(64)) u) = 2 u + (16 + 8 sqrt(19 * 64)) u, rounded up.
  EXPECT_EQ(found[0].advice,
            "If rounding explains that, set accumulations: \"19*(n)\", so that it comes to 0.25 times.");
  problem.parameters[0].dtype = DType::kFloat16;
  EXPECT_EQ(find()[0].advice, "If kernels may sum in float16, set tolerance: {accumulation: float16}.");
  problem.parameters[0].dtype = DType::kFloat32;
  errors[2] = 2;
  found = find();
  EXPECT_EQ(seeds.size(), 3u);
  EXPECT_EQ(CodesOf(found), "reference_wrong");
  EXPECT_THAT(found[0].sentence, testing::HasSubstr("Seeds below 2 passed."));
  EXPECT_THAT(found[0].advice, testing::HasSubstr("set accumulations: \""));
}

// A drawn size at which the reference fails is told once, however many seeds drew it.
TEST(ProblemFindings, ADrawnSizeThatTheReferenceCannotDo) {
  const std::vector<ProblemFinding> found = FindOfReference(Elementwise(0, 0), [](uint64_t) {
    KernelEvaluation reference;
    reference.correct = true;
    reference.seconds = 1;
    reference.undecided = {"n=7: it reads out of bounds"};
    return KernelEvaluation::FromJson(reference.ToJson());
  });
  EXPECT_EQ(CodesOf(found), "reference_fails_at_drawn_size");
  EXPECT_THAT(found[0].sentence, testing::HasSubstr("the drawn size n=7: it reads out of bounds."));
}

}  // namespace
}  // namespace kgrpo::evaluator
