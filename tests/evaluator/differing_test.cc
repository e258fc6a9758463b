// `tolerance: {differing: SHARE}`: some elements of an output may be off.
#include "affine_candidates.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using evaluator::WithKernel;

class DifferingTest : public KernelEvaluatorTest {
 protected:
  // `affine` with other sizes and this tolerance.
  static std::string Folder(const std::string& tolerance) {
    const std::filesystem::path folder = std::filesystem::path(cache_directory_) / "differing";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(kProblems + "affine", folder);
    std::ofstream(folder / "problem.yaml") << "name: differing\ntitle: Affine map\nfamily: elementwise\nsplit: train\n"
                                              "traits: []\ndescription: out[i] = 2 x[i] + y[i].\nparameters:\n"
                                              "  - {name: x, role: input, dtype: float32, shape: [n]}\n"
                                              "  - {name: y, role: input, dtype: float32, shape: [n]}\n"
                                              "  - {name: out, role: output, dtype: float32, shape: [n]}\n"
                                              "  - {name: n, role: scalar, dtype: int32, value: n}\n"
                                              "sizes: {visible: [{n: 4000}], hidden: [{n: 500}], timing: {n: 65536}}\n"
                                              "needs: {bytes: 12*n, flops: 2*n}\ntolerance: " +
                                                  tolerance + "\n";
    return folder.string();
  }
  // The verdict where the elements for which `off` holds are wrong.
  static KernelEvaluation Judge(const std::string& tolerance, const std::string& off,
                                const std::string& otherwise = "") {
    const OpenProblem open(Folder(tolerance), cache_directory_, false);
    return evaluator_->Evaluate(
        open,
        WithKernel("if (i < n && !(" + off + ")) out[i] = 2.0f * x[i] + y[i]; else if (i < n) {" + otherwise + "}"), 1,
        false);
  }
};

TEST_F(DifferingTest, AShareOfTheElementsMayBeOff) {
  const std::string some = "n > 500 && i % 2000 == 7", zero = "out[i] = 0;";
  EXPECT_EQ(Judge("{differing: 0.001}", some, zero).verdict, "correct");
  EXPECT_EQ(Judge("{differing: 0}", some, zero).verdict, "wrong");
  EXPECT_EQ(Judge("{differing: 0.0002}", some, zero).verdict, "wrong") << "none of 4000 rounded down to 0.8";
}

TEST_F(DifferingTest, NoMoreThanThat) {
  const std::string zero = "out[i] = 0;";
  EXPECT_THAT(Judge("{differing: 0.001}", "n > 500 && i % 500 == 7", zero).diagnosis,
              testing::AllOf(testing::StartsWith("At n=4000: 8 of 4000 elements of out are wrong"),
                             testing::HasSubstr("(4 may differ)")));
  EXPECT_THAT(Judge("{differing: 0.001}", "n == 500 && i == 7", zero).diagnosis,
              testing::HasSubstr("1 of 500 elements of out are wrong"));
  EXPECT_THAT(Judge("{differing: 0.001}", "n == 65536 && i % 500 == 7", zero).diagnosis,
              testing::StartsWith("At the timing size: "));
}

TEST_F(DifferingTest, EveryElementMustBeWritten) {
  EXPECT_THAT(Judge("{differing: 0.001}", "n == 4000 && i == 7").diagnosis, testing::HasSubstr("never written"));
}

TEST_F(DifferingTest, IsAShareUpToATenth) {
  for (const char* share : {"-0.1", "0.2", "few"}) {
    EXPECT_THAT(test::MessageOf([&] {
                  OpenProblem open(Folder("{differing: " + std::string(share) + "}"), cache_directory_, false);
                }),
                testing::HasSubstr("problem.yaml:14:24: tolerance.differing: "))
        << share;
  }
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
