// Every kernel of the catalogue through the judge on a GPU, and after each that is not right the reference, which must
// be unharmed. Skipped where there is no GPU. One kernel: --gtest_filter='*/cheats_01_side_stream'; parts of them all:
// GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX.
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "catalogue.h"
#include "evaluator_cuda/judge.h"

namespace kgrpo::judging {
namespace {

using evaluator::Judgement;
using evaluator_cuda::Judge;
using evaluator_cuda::OpenProblem;

constexpr uint64_t kKey = 0x6a3f8d21c4b57e09;  // of the inputs: nothing that a kernel would guess

class JudgingGpuTest : public testing::TestWithParam<Entry> {
 protected:
  static void SetUpTestSuite() {
    cache_directory_ = testing::TempDir() + "/judging_gpu_test_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_directory_);
    Judge::Options options;
    options.call_seconds = 3;
    options.compile_seconds = 20;
    options.timing.memory_bytes = uint64_t{512} << 20;
    try {
      judge_ = new Judge(options);
    } catch (const Error& error) {
      missing_ = error.what();
    }
  }
  static void TearDownTestSuite() {
    delete judge_;
    problems_.clear();
    std::filesystem::remove_all(cache_directory_);
  }
  void SetUp() override {
    if (judge_ != nullptr) return;
    if (missing_.find("needs an NVIDIA GPU") == std::string::npos) FAIL() << missing_;
    GTEST_SKIP() << missing_;
  }

  static const OpenProblem& Problem(const std::string& directory) {
    std::unique_ptr<OpenProblem>& problem = problems_[directory];
    if (!problem) problem = std::make_unique<OpenProblem>(directory, cache_directory_);
    return *problem;
  }

  // What is amiss with the judgement, or with the judge: no candidate may make it give up.
  static std::string AmissWith(const Entry& entry, std::string* verdict) {
    try {
      const Judgement judgement = judge_->Evaluate(Problem(entry.problem), entry.source, kKey, false);
      *verdict = judgement.verdict;
      double speedup = 0;
      for (const auto& [name, value] : judgement.metrics) {
        if (name == "speedup") speedup = value;
      }
      return Amiss(entry, "cuda", judgement, speedup);
    } catch (const Error& error) {
      *verdict = "none";
      return std::string("the judge gave up: ") + error.what();
    }
  }

  static Judge* judge_;
  static std::map<std::string, std::unique_ptr<OpenProblem>> problems_;
  static std::string cache_directory_, missing_;
};

Judge* JudgingGpuTest::judge_ = nullptr;
std::map<std::string, std::unique_ptr<OpenProblem>> JudgingGpuTest::problems_;
std::string JudgingGpuTest::cache_directory_, JudgingGpuTest::missing_;

TEST_P(JudgingGpuTest, SaysWhatTheFileSays) {
  const Entry& entry = GetParam();
  if (entry.needs_namespaces && judge_->Describe().find("mount namespaces") == std::string::npos)
    GTEST_SKIP() << "this machine's sandbox has no namespaces: " << judge_->Describe();
  std::string verdict;
  const std::string amiss = AmissWith(entry, &verdict);
  const OpenProblem& problem = Problem(entry.problem);
  if (verdict != "right") {
    const Judgement after = judge_->Evaluate(problem, problem.problem.reference_source, kKey, false);
    EXPECT_EQ(after.verdict, "right") << "the reference after " << verdict << ": " << after.diagnosis;
  }
  const auto open = entry.open.find("cuda");
  if (open == entry.open.end()) {
    EXPECT_EQ(amiss, "");
  } else if (amiss.empty()) {  // not a failure: some of these gains come and go from run to run
    std::cout << "It is seen to here (" << verdict
              << "): if it always is, take out the line `open: cuda: " << open->second << "`\n";
  } else {
    GTEST_SKIP() << "open: " << open->second << "\n" << amiss;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, JudgingGpuTest, testing::ValuesIn(Catalogue()),
                         [](const testing::TestParamInfo<Entry>& entry) { return TestName(entry.param); });

}  // namespace
}  // namespace kgrpo::judging
