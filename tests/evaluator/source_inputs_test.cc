// inputs.cc of a problem's folder: the values it draws, an evaluation with it, and the messages for a broken one.
#include "judge/inputs/source_inputs.h"

#include "evaluator_sim/kernel_evaluator.h"
#include "judge/front/evaluator.h"
#include "judge/inputs/inputs.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

class SourceInputsTest : public testing::Test {
 protected:
  SourceInputsTest()
      : root_(fs::path(testing::TempDir()) / ("source_inputs_test_" + std::to_string(getpid()))),
        folder_(root_ / "symmetric_product") {
    fs::create_directories(root_ / "cache");
    fs::copy(fs::path(KGRPO_SOURCE_DIR) / "tests/evaluator/problems/symmetric_product", folder_);
  }
  ~SourceInputsTest() override { fs::remove_all(root_); }

  std::string Cache() const { return (root_ / "cache").string(); }
  void Write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }
  void ReplaceInYaml(const std::string& from, const std::string& to) const {
    std::ifstream stream(folder_ / "problem.yaml");
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    ASSERT_NE(text.find(from), std::string::npos);
    Write("problem.yaml", text.replace(text.find(from), from.size(), to));
  }
  Problem Open() const { return WithSourceInputs(LoadProblem(folder_.string()), Cache()); }
  std::string Message() const {
    return test::MessageOf([&] { Open(); }, KGRPO_ERROR_INVALID, "accepted");
  }

  fs::path root_, folder_;
};

TEST_F(SourceInputsTest, DrawsWhatTheFileSays) {
  const Problem problem = Open();
  const Bindings size = {{"n", 33}};
  const std::vector<Argument> drawn = DrawArguments(problem, size, 5, 0), again = DrawArguments(problem, size, 5, 0),
                              others = DrawArguments(problem, size, 6, 0);
  double sum = 0, squares = 0;
  int positive = 0;
  for (size_t i = 0; i < 33; ++i) {
    for (size_t j = 0; j < 33; ++j) {
      const auto a = [&](size_t r, size_t c) { return LoadDouble(DType::kFloat32, &drawn[0].bytes[(r * 33 + c) * 4]); };
      const auto b = [&](size_t r, size_t c) { return LoadInteger(DType::kInt32, &drawn[1].bytes[(r * 33 + c) * 4]); };
      EXPECT_EQ(a(i, j), a(j, i));
      EXPECT_EQ(b(i, j), b(j, i));
      EXPECT_EQ(std::abs(b(i, j)), 1);
      sum += a(i, j);
      squares += a(i, j) * a(i, j);
      positive += b(i, j) > 0;
    }
  }
  EXPECT_NEAR(sum / 1089, 0, 0.15);
  EXPECT_NEAR(squares / 1089, 1, 0.2);
  EXPECT_NEAR(positive / 1089.0, 0.5, 0.1);
  EXPECT_EQ(drawn[0].bytes, again[0].bytes) << "the same key draws the same";
  EXPECT_NE(drawn[0].bytes, others[0].bytes);
  EXPECT_NE(drawn[1].bytes, others[1].bytes);
}

TEST_F(SourceInputsTest, TheEvaluatorJudgesWithThem) {
  Evaluator evaluator(std::make_unique<evaluator_sim::KernelEvaluator>(evaluator_sim::KernelEvaluator::Options{}),
                      {.cache_directory = Cache()});
  const auto open = evaluator.Open(folder_.string());
  EXPECT_TRUE(evaluator.Baseline(*open).correct) << "right for symmetric inputs alone";
  // The same kernel where b is any matrix of signs.
  Write("inputs.cc",
        "void draw_a(double* a, const Sizes& size, Draw& draw) {\n"
        "  for (int64_t i = 0; i < size.n * size.n; ++i) a[i] = draw.uniform();\n}\n"
        "void draw_b(int64_t* b, const Sizes& size, Draw& draw) {\n"
        "  for (int64_t i = 0; i < size.n * size.n; ++i) b[i] = draw.below(2) * 2 - 1;\n}\n");
  const auto changed = evaluator.Open(folder_.string());
  EXPECT_THAT(test::MessageOf([&] { evaluator.Baseline(*changed); }),
              HasSubstr("the reference kernel is not correct (wrong)"));
}

TEST_F(SourceInputsTest, TheDigestFollowsTheFile) {
  const std::string before = LoadProblem(folder_.string()).digest;
  Write("inputs.cc", "void draw_a(double*, const Sizes&, Draw&) {}\nvoid draw_b(int64_t*, const Sizes&, Draw&) {}\n");
  EXPECT_NE(LoadProblem(folder_.string()).digest, before);
}

TEST_F(SourceInputsTest, ABrokenFileIsReportedWithItsLine) {
  Write("inputs.cc", "\nvoid draw_a(double* a, const Sizes& size, Draw& draw) { a[0] = size.m; }\n");
  EXPECT_THAT(Message(),
              HasSubstr("inputs.cc: does not compile; it must define void draw_a(double* a, const Sizes& size, "
                        "Draw& draw), void draw_b(int64_t* b, const Sizes& size, Draw& draw). The compiler "
                        "says:"));
  EXPECT_THAT(Message(), HasSubstr("inputs.cc:2:"));
  EXPECT_THAT(Message(), HasSubstr("has no member named"));
}

TEST_F(SourceInputsTest, TheFileAndTheDistributionComeTogether) {
  fs::remove(folder_ / "inputs.cc");
  EXPECT_THAT(Message(), HasSubstr("inputs.cc: there is no such file, which `distribution: source` asks for"));
  Write("inputs.cc", "");
  ReplaceInYaml(
      "shape: [n, n], distribution: source}\n  - {name: b, role: input, dtype: int32, shape: [n, n], "
      "distribution: source}",
      "shape: [n, n], distribution: normal}\n  - {name: b, role: input, dtype: int32, shape: [n, n], "
      "distribution: integers, low: 0, high: 1}");
  EXPECT_THAT(Message(),
              HasSubstr("inputs.cc: draws nothing: no parameter of problem.yaml has `distribution: source`"));
}

TEST_F(SourceInputsTest, ItIsAParametersFirstDistributionOnly) {
  ReplaceInYaml("dtype: float32, shape: [n, n], distribution: source}",
                "dtype: float32, shape: [n, n], distribution: normal, also: [source]}");
  EXPECT_THAT(Message(), HasSubstr("parameters[0].also[0]: source can only be a parameter's first distribution"));
}

}  // namespace
}  // namespace kgrpo::evaluator
