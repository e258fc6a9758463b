// A judge without a GPU and two of this folder's problems, open. Used by judge_test.cc and judge_verdicts_test.cc.
#ifndef KGRPO_TESTS_EVALUATOR_JUDGE_FIXTURE_H
#define KGRPO_TESTS_EVALUATOR_JUDGE_FIXTURE_H

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "evaluator_sim/judge.h"

namespace kgrpo::evaluator_sim {

inline const std::string kProblems = std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/";

class JudgeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_directory_ = testing::TempDir() + "/judge_test_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_directory_);
    Judge::Options options;
    options.host_seconds = 2;
    options.warp_instructions = 30'000'000;
    options.compile_seconds = 15;
    judge_ = new Judge(options);
    affine_ = new OpenProblem(kProblems + "affine", cache_directory_);
    row_sum_ = new OpenProblem(kProblems + "row_sum", cache_directory_);
  }
  static void TearDownTestSuite() {
    delete judge_;
    delete affine_;
    delete row_sum_;
    std::filesystem::remove_all(cache_directory_);
  }

  static Judgement Affine(const std::string& source, bool thorough = false) {
    return judge_->Evaluate(*affine_, source, 1, thorough);
  }
  static Judgement RowSum(const std::string& source) { return judge_->Evaluate(*row_sum_, source, 1, false); }

  // Judges a bad candidate for `affine`, then the reference.
  static Judgement AffineThenReference(const std::string& source) {
    Judgement judgement = Affine(source);
    const Judgement after = Affine(affine_->problem().reference_source);
    EXPECT_EQ(after.verdict, "correct") << "after: " << judgement.verdict << ": " << after.diagnosis;
    return judgement;
  }

  static inline Judge* judge_ = nullptr;
  static inline OpenProblem *affine_ = nullptr, *row_sum_ = nullptr;
  static inline std::string cache_directory_;
};

}  // namespace kgrpo::evaluator_sim
#endif
