// Evaluator over a backend that measures: when the reference is timed, what is kept, and whose time counts. The backend
// here is a table of times; a GPU's is in tests/evaluator_cuda.
#include <unistd.h>

#include "judge/front/evaluator.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

struct Call {
  std::string source;
  uint64_t key;
  bool thorough, show_hidden;
};

// The reference takes 8 s in its own evaluation; a kernel's speedup beside it is 2.
class FakeBackend : public Backend {
 public:
  explicit FakeBackend(std::vector<Call>* calls) : calls_(*calls) {}
  std::unique_ptr<const OpenProblem> Open(const Problem& problem, const EvaluatorOptions& options) const override {
    return std::make_unique<const OpenProblem>(problem, options.cache_directory, options.rules);
  }
  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, uint64_t key, bool thorough,
                            bool show_hidden) override {
    calls_.push_back({source, key, thorough, show_hidden});
    KernelEvaluation found;
    found.compiled = true;
    found.correct = source != "wrong";
    found.verdict = found.correct ? "correct" : "wrong";
    const bool reference = source == open.problem.reference_source;
    found.seconds = found.seconds_low = found.seconds_high = reference ? 8 : 5;
    found.metrics = {{"speedup", reference ? 1 : 2}, {"speedup_low", 1.6}, {"speedup_high", 2.5}};
    return found;
  }
  void CompleteBaseline(const OpenProblem&, KernelEvaluation* baseline) override {
    baseline->metrics.emplace_back("completed", 1);
  }
  bool modelled() const override { return false; }
  std::string TimeSource() const override { return "a table"; }
  std::string Describe() const override { return "a table"; }
  std::string Version() const override { return "1"; }

 private:
  std::vector<Call>& calls_;
};

class MeasuredEvaluatorTest : public testing::Test {
 protected:
  MeasuredEvaluatorTest()
      : root_(fs::path(testing::TempDir()) / ("measured_evaluator_test_" + std::to_string(getpid()))) {
    fs::create_directories(root_ / "cache");
    fs::copy(fs::path(KGRPO_SOURCE_DIR) / "tests/evaluator/problems/affine", root_ / "affine");
    evaluator_ = std::make_unique<Evaluator>(std::make_unique<FakeBackend>(&calls_),
                                             EvaluatorOptions{.cache_directory = (root_ / "cache").string()});
  }
  ~MeasuredEvaluatorTest() override { fs::remove_all(root_); }
  std::unique_ptr<const OpenProblems> Open() const { return evaluator_->Open((root_ / "affine").string()); }

  fs::path root_;
  std::vector<Call> calls_;
  std::unique_ptr<Evaluator> evaluator_;
};

TEST_F(MeasuredEvaluatorTest, TheReferenceIsTimedOnceAndKernelsBesideIt) {
  const auto open = Open();
  const KernelEvaluation kernel = evaluator_->Evaluate(*open, "kernel", {.seed = 1});
  EXPECT_EQ(kernel.seconds, 4) << "the baseline's 8 s / 2, not the kernel's own 5";
  EXPECT_EQ(kernel.seconds_low, 8 / 2.5);
  EXPECT_EQ(kernel.seconds_high, 8 / 1.6);
  EXPECT_EQ(evaluator_->Evaluate(*open, "wrong", {.seed = 1}).seconds, 5) << "of a wrong kernel nothing is computed";
  const KernelEvaluation baseline = evaluator_->Baseline(*open, {.seed = 7});
  EXPECT_EQ(baseline.seconds, 8);
  EXPECT_EQ(baseline.metrics.back().first, "completed");
  ASSERT_EQ(calls_.size(), 3U);
  EXPECT_TRUE(calls_[0].thorough && calls_[0].show_hidden);
  EXPECT_EQ(calls_[0].source, open->problem().reference_source);
}

TEST_F(MeasuredEvaluatorTest, EachRunSeedAndThoroughnessHasItsOwnInputs) {
  const auto open = Open();
  for (const uint64_t seed : {1, 2}) {
    for (const bool thorough : {false, true})
      evaluator_->Evaluate(*open, "kernel", {.seed = seed, .thorough = thorough});
  }
  std::set<uint64_t> keys;
  for (const Call& call : calls_) keys.insert(call.key);
  EXPECT_EQ(keys.size(), 5U) << "four evaluations and the baseline";
}

TEST_F(MeasuredEvaluatorTest, OnlyQuickEvaluationsAreKept) {
  const auto open = Open();
  const auto count = [&](const Evaluator::Request& request) {
    const size_t before = calls_.size();
    evaluator_->Evaluate(*open, "kernel", request);
    return calls_.size() - before;
  };
  EXPECT_EQ(count({.seed = 1}), 2U) << "with the baseline";
  EXPECT_EQ(count({.seed = 1}), 0U);
  EXPECT_EQ(count({.seed = 1, .show_hidden = true}), 1U);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(count({.seed = 1, .thorough = true}), 1U);
}

TEST_F(MeasuredEvaluatorTest, CheckEvaluatesTheReferenceAndFindsDrafts) {
  evaluator_->Check(*Open());
  EXPECT_EQ(calls_.size(), kReferenceSeeds);
  std::ofstream(root_ / "affine/oracle.cc", std::ios::app) << kOracleToWrite << "\n";
  const auto findings = evaluator_->Check(*Open());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "oracle_not_written");
}

}  // namespace
}  // namespace kgrpo::evaluator
