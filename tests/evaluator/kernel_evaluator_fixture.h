// An evaluator without a GPU, with two of this folder's problems open. Used by kernel_evaluator_test.cc and
// kernel_evaluator_verdicts_test.cc.
#ifndef KGRPO_TESTS_EVALUATOR_KERNEL_EVALUATOR_FIXTURE_H
#define KGRPO_TESTS_EVALUATOR_KERNEL_EVALUATOR_FIXTURE_H

#include <unistd.h>

#include "evaluator_sim/kernel_evaluator.h"
#include "test.h"

namespace kgrpo::evaluator_sim {

inline const std::string kProblems = std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/";

class KernelEvaluatorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_directory_ = testing::TempDir() + "/kernel_evaluator_test_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_directory_);
    KernelEvaluator::Options options;
    options.host_seconds = 2;
    options.warp_instructions = 30'000'000;
    options.compile_seconds = 15;
    evaluator_ = new KernelEvaluator(options);
    affine_ = new OpenProblem(kProblems + "affine", cache_directory_);
    row_sum_ = new OpenProblem(kProblems + "row_sum", cache_directory_);
  }
  static void TearDownTestSuite() {
    delete evaluator_;
    delete affine_;
    delete row_sum_;
    std::filesystem::remove_all(cache_directory_);
  }

  static KernelEvaluation Affine(const std::string& source, bool thorough = false) {
    return evaluator_->Evaluate(*affine_, source, 1, thorough);
  }
  static KernelEvaluation RowSum(const std::string& source) {
    return evaluator_->Evaluate(*row_sum_, source, 1, false);
  }

  // After bad candidates.
  static void ExpectReferenceIsCorrect() {
    const KernelEvaluation evaluation = Affine(affine_->problem.reference_source);
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  }

  static inline KernelEvaluator* evaluator_ = nullptr;
  static inline OpenProblem *affine_ = nullptr, *row_sum_ = nullptr;
  static inline std::string cache_directory_;
};

}  // namespace kgrpo::evaluator_sim
#endif
