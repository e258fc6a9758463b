// Judges every kernel of the catalogue, and every bug, by the evaluator without a GPU. Threads judge ahead of the
// tests, since most of an evaluation is waiting for processes and time limits.
#include <unistd.h>

#include "agreement.h"
#include "catalogue.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "test.h"

namespace kgrpo::judging {
namespace {

using evaluator::KernelEvaluation;
using evaluator_sim::KernelEvaluator;
using evaluator_sim::OpenProblem;

constexpr size_t kAhead = 4;                   // evaluations at a time: two use 1.2 of two cores
constexpr uint64_t kKey = 0x6a3f8d21c4b57e09;  // of the inputs: nothing that a kernel would guess

// The catalogue and the bugs: one suite, which shares one evaluator.
const std::vector<Entry>& All() {
  static const std::vector<Entry> kEntries = [] {
    std::vector<Entry> entries = Catalogue();
    entries.insert(entries.end(), Bugs().begin(), Bugs().end());
    return entries;
  }();
  return kEntries;
}

class JudgingSimTest : public testing::TestWithParam<Entry> {
 protected:
  static void SetUpTestSuite() {
    cache_directory_ = testing::TempDir() + "/judging_sim_test_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_directory_);
    KernelEvaluator::Options options;
    options.host_seconds = 2;
    options.warp_instructions = 30'000'000;
    options.compile_seconds = 20;
    options.concurrency = kAhead + 1;  // those below and the references
    evaluator_ = new KernelEvaluator(options);
    std::set<std::string> wanted;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *all.GetTestSuite(i);
      for (int k = 0; k < suite.total_test_count(); ++k) {
        const std::string name = suite.GetTestInfo(k)->name();
        if (suite.GetTestInfo(k)->should_run()) wanted.insert(name.substr(name.find('/') + 1));
      }
    }
    for (const Entry& entry : All()) {
      if (wanted.count(TestName(entry)) == 0) continue;
      const OpenProblem& problem = Problem(entry.problem);
      tasks_.emplace_back([&entry, &problem] { return evaluator_->Evaluate(problem, entry.source, kKey, false); });
      evaluations_[entry.name] = tasks_.back().get_future();
    }
    for (size_t i = 0; i < kAhead; ++i) {
      threads_.emplace_back([] {
        for (size_t next = next_task_++; next < tasks_.size(); next = next_task_++) tasks_[next]();
      });
    }
  }
  static void TearDownTestSuite() {
    for (std::thread& thread : threads_) thread.join();
    delete evaluator_;
    problems_.clear();
    reference_seconds_.clear();
    std::filesystem::remove_all(cache_directory_);
  }

  static const OpenProblem& Problem(const std::string& directory) {
    std::unique_ptr<OpenProblem>& problem = problems_[directory];
    if (!problem) problem = std::make_unique<OpenProblem>(directory, cache_directory_);
    return *problem;
  }

  static double ReferenceSeconds(const std::string& directory) {
    if (reference_seconds_.count(directory) == 0) {
      const OpenProblem& problem = Problem(directory);
      reference_seconds_[directory] =
          evaluator_->Evaluate(problem, problem.problem.reference_source, kKey, false).seconds;
    }
    return reference_seconds_[directory];
  }

  static KernelEvaluator* evaluator_;
  static std::vector<std::packaged_task<KernelEvaluation()>> tasks_;
  static std::map<std::string, std::future<KernelEvaluation>> evaluations_;  // by entry
  static std::atomic<size_t> next_task_;
  static std::vector<std::thread> threads_;
  static std::map<std::string, std::unique_ptr<OpenProblem>> problems_;
  static std::map<std::string, double> reference_seconds_;
  static std::string cache_directory_;
};

KernelEvaluator* JudgingSimTest::evaluator_ = nullptr;
std::vector<std::packaged_task<KernelEvaluation()>> JudgingSimTest::tasks_;
std::map<std::string, std::future<KernelEvaluation>> JudgingSimTest::evaluations_;
std::atomic<size_t> JudgingSimTest::next_task_{0};
std::vector<std::thread> JudgingSimTest::threads_;
std::map<std::string, std::unique_ptr<OpenProblem>> JudgingSimTest::problems_;
std::map<std::string, double> JudgingSimTest::reference_seconds_;
std::string JudgingSimTest::cache_directory_;

TEST_P(JudgingSimTest, SaysWhatTheFileSays) {
  const Entry& entry = GetParam();
  if (entry.needs_namespaces && evaluator_->Describe().find("mount namespaces") == std::string::npos)
    GTEST_SKIP() << "this machine's sandbox has no namespaces: " << evaluator_->Describe();
  const KernelEvaluation evaluation = evaluations_.at(entry.name).get();
  const double speedup =
      evaluation.correct && entry.most_speedup ? ReferenceSeconds(entry.problem) / evaluation.seconds : 0;
  const std::string amiss =
      entry.wanted.lines.empty() ? Amiss(entry, "sim", evaluation, speedup) : AmissInFinding(entry, evaluation);
  if (entry.open.empty()) {
    EXPECT_EQ(amiss, "");
  } else if (amiss.empty()) {
    ADD_FAILURE() << "It is seen to now (" << evaluation.verdict << "): take out the line `open: sim: " << entry.open
                  << "`";
  } else {
    GTEST_SKIP() << "open: " << entry.open << "\n" << amiss;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, JudgingSimTest, testing::ValuesIn(All()),
                         [](const testing::TestParamInfo<Entry>& entry) { return TestName(entry.param); });

// The catalogue of known hacks has thirty numbers; each has a kernel.
TEST(JudgingCatalogue, HoldsEveryNumber) {
  std::set<std::string> numbers;
  for (const Entry& entry : Catalogue()) {
    if (entry.is_cheat) numbers.insert(entry.name.substr(7, 2));
  }
  for (int number = 1; number <= 30; ++number) {
    EXPECT_EQ(numbers.count((number < 10 ? "0" : "") + std::to_string(number)), 1u) << number;
  }
}

// Enough mistakes of each kind to be found, and enough honest kernels not to be accused.
TEST(JudgingCatalogue, HoldsBugsOfEveryKind) {
  std::map<std::string, int> of_verdict;
  for (const Entry& entry : Bugs()) ++of_verdict[entry.verdicts.at("sim").front()];
  for (const char* verdict : {"out_of_bounds", "misaligned", "uninitialised", "race", "divergent"})
    EXPECT_GE(of_verdict[verdict], 5) << verdict;
  EXPECT_GE(Bugs().size(), 60u);
  EXPECT_GE(std::count_if(Catalogue().begin(), Catalogue().end(), [](const Entry& entry) { return !entry.is_cheat; }),
            100);
}

bool Agree(const Entry& entry) {
  for (const std::string& sim : entry.verdicts.at("sim")) {
    for (const std::string& cuda : entry.verdicts.at("cuda")) {
      if (WhyTheyMaySay(sim, cuda)) return true;
    }
  }
  return false;
}

// Every kernel's file lets the evaluators agree, or says why they need not.
TEST(JudgingCatalogue, LetsTheEvaluatorsAgree) {
  for (const Entry& entry : Catalogue())
    EXPECT_TRUE(Agree(entry) || !entry.differ.empty()) << entry.name << ": neither agrees nor says why (differ:)";
}

// No row of the table contradicts itself or is said twice, and a correct kernel is not called wrong by either evaluator
// alone.
TEST(JudgingAgreement, TableIsSound) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Equivalence& row : Equivalences()) {
    EXPECT_TRUE(seen.emplace(row.sim, row.cuda).second) << row.sim << " and " << row.cuda << " are there twice";
    EXPECT_NE(row.sim, row.cuda);
    EXPECT_FALSE(row.why.empty());
  }
  EXPECT_FALSE(WhyTheyMaySay("correct", "wrong"));
  EXPECT_FALSE(WhyTheyMaySay("wrong", "correct"));
  EXPECT_FALSE(WhyTheyMaySay("correct", "out_of_bounds"));
  EXPECT_EQ(WhyTheyMaySay("wrong", "wrong"), "the same");
  EXPECT_TRUE(WhyTheyMaySay("race", "correct"));
  EXPECT_TRUE(WhyTheyMaySay("unsupported", "wrong"));
}

}  // namespace
}  // namespace kgrpo::judging
