// Judges every kernel of the catalogue by both evaluators, every bug by the one on a GPU, then every reference kernel.
// After each kernel that is not correct on the GPU the reference must still be judged correct. Each verdict is checked
// against the kernel's first lines, and the two verdicts against each other (agreement.h). Skipped without a GPU.
// One kernel: --gtest_filter='*/cheats_01_side_stream'; parts of all: GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX.
#include <unistd.h>

#include "agreement.h"
#include "catalogue.h"
#include "evaluator_cuda/device_evaluator.h"
#include "evaluator_sim/kernel_evaluator.h"
#include "test.h"

namespace kgrpo::judging {
namespace {

using evaluator::KernelEvaluation;

constexpr uint64_t kKey = 0x6a3f8d21c4b57e09;  // of the inputs: nothing that a kernel would guess

// An evaluator and the problems that were opened for it.
template <typename Evaluator, typename OpenProblem>
struct Bench {
  std::unique_ptr<Evaluator> evaluator;
  std::map<std::string, std::unique_ptr<OpenProblem>> problems;
  std::string cache_directory;

  const OpenProblem& Problem(const std::string& directory) {
    std::unique_ptr<OpenProblem>& problem = problems[directory];
    if (!problem) problem = std::make_unique<OpenProblem>(directory, cache_directory);
    return *problem;
  }
  KernelEvaluation Evaluate(const std::string& directory, const std::string& source) {
    return evaluator->Evaluate(Problem(directory), source, kKey, false);
  }
};

// An evaluator's verdict, or why it gave up: no candidate may make it do that.
struct Said {
  KernelEvaluation evaluation;
  std::string gave_up;
};

class JudgingGpuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (cuda_.evaluator || !missing_.empty()) return;
    const std::string directory = testing::TempDir() + "/judging_gpu_test_" + std::to_string(getpid());
    std::filesystem::create_directories(directory);
    cuda_.cache_directory = sim_.cache_directory = directory;
    evaluator_cuda::DeviceEvaluator::Options options;
    options.call_seconds = 3;
    options.compile_seconds = 20;
    options.timing.memory_bytes = uint64_t{512} << 20;
    try {
      cuda_.evaluator = std::make_unique<evaluator_cuda::DeviceEvaluator>(options);
    } catch (const Error& error) {
      missing_ = error.what();
      return;
    }
    evaluator_sim::KernelEvaluator::Options sim_options;  // as sim_test.cc has them
    sim_options.host_seconds = 2;
    sim_options.warp_instructions = 30'000'000;
    sim_options.compile_seconds = 20;
    sim_.evaluator = std::make_unique<evaluator_sim::KernelEvaluator>(sim_options);
  }
  static void TearDownTestSuite() {
    sim_seconds_.clear();
    const std::string directory = cuda_.cache_directory;
    cuda_ = {};
    sim_ = {};
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }
  void SetUp() override {
    if (cuda_.evaluator) return;
    if (missing_.find("needs an NVIDIA GPU") == std::string::npos) FAIL() << missing_;
    GTEST_SKIP() << missing_;
  }

  template <typename AnyBench>
  static Said Ask(AnyBench& bench, const std::string& directory, const std::string& source) {
    Said said;
    try {
      said.evaluation = bench.Evaluate(directory, source);
    } catch (const std::exception& error) {
      said.gave_up = std::string("the evaluator gave up: ") + error.what();
      said.evaluation.verdict = "none";
    }
    return said;
  }

  // Both at once: the one without a GPU needs but a core.
  static void AskBoth(const std::string& directory, const std::string& source, Said* cuda, Said* sim) {
    std::future<Said> other = std::async(std::launch::async, [&] { return Ask(sim_, directory, source); });
    *cuda = Ask(cuda_, directory, source);
    *sim = other.get();
  }

  // Of the reference over what took `seconds`, as the evaluator without a GPU models both.
  static double SimSpeedup(const std::string& directory, double seconds) {
    double& reference = sim_seconds_[directory];
    if (reference == 0) reference = sim_.Evaluate(directory, sim_.Problem(directory).problem.reference_source).seconds;
    return reference / seconds;
  }

  static Bench<evaluator_cuda::DeviceEvaluator, evaluator_cuda::OpenProblem> cuda_;
  static Bench<evaluator_sim::KernelEvaluator, evaluator_sim::OpenProblem> sim_;
  static std::map<std::string, double> sim_seconds_;
  static std::string missing_;
};

Bench<evaluator_cuda::DeviceEvaluator, evaluator_cuda::OpenProblem> JudgingGpuTest::cuda_;
Bench<evaluator_sim::KernelEvaluator, evaluator_sim::OpenProblem> JudgingGpuTest::sim_;
std::map<std::string, double> JudgingGpuTest::sim_seconds_;
std::string JudgingGpuTest::missing_;

class JudgingGpuKernelTest : public JudgingGpuTest, public testing::WithParamInterface<Entry> {};

TEST_P(JudgingGpuKernelTest, SaysWhatTheFileSays) {
  const Entry& entry = GetParam();
  if (entry.needs_namespaces && cuda_.evaluator->Describe().find("mount namespaces") == std::string::npos)
    GTEST_SKIP() << "this machine's sandbox has no namespaces: " << cuda_.evaluator->Describe();
  Said cuda, sim;
  AskBoth(entry.problem, entry.source, &cuda, &sim);
  const std::string& verdict = cuda.evaluation.verdict;
  if (verdict != "correct") {
    const Said after = Ask(cuda_, entry.problem, cuda_.Problem(entry.problem).problem.reference_source);
    EXPECT_EQ(after.evaluation.verdict, "correct")
        << "the reference after " << verdict << ": " << after.evaluation.diagnosis << after.gave_up;
  }

  const double sim_speedup =
      sim.evaluation.correct && entry.most_speedup ? SimSpeedup(entry.problem, sim.evaluation.seconds) : 0;
  const std::string sim_amiss = sim.gave_up.empty() ? Amiss(entry, "sim", sim.evaluation, sim_speedup) : sim.gave_up;
  if (entry.open.empty()) {  // else sim_test says when it is seen to
    EXPECT_EQ(sim_amiss, "") << "(without a GPU)";
  }
  if (entry.differ.empty() && entry.open.empty() && cuda.gave_up.empty() && sim.gave_up.empty()) {
    EXPECT_TRUE(WhyTheyMaySay(sim.evaluation.verdict, verdict))
        << "the evaluators contradict each other: on a GPU " << verdict << ": " << cuda.evaluation.diagnosis
        << "\nwithout: " << sim.evaluation.verdict << ": " << sim.evaluation.diagnosis;
  }

  double speedup = 0;
  for (const auto& [name, value] : cuda.evaluation.metrics) {
    if (name == "speedup") speedup = value;
  }
  const std::string amiss = cuda.gave_up.empty() ? Amiss(entry, "cuda", cuda.evaluation, speedup) : cuda.gave_up;
  EXPECT_EQ(amiss, "");
}

INSTANTIATE_TEST_SUITE_P(Kernel, JudgingGpuKernelTest, testing::ValuesIn(Catalogue()),
                         [](const testing::TestParamInfo<Entry>& entry) { return TestName(entry.param); });

// The effect of a race on a GPU is chance; beside a GPU the interpreter has the same findings as without one.
class JudgingGpuBugTest : public JudgingGpuTest, public testing::WithParamInterface<Entry> {};

TEST_P(JudgingGpuBugTest, IsFoundAsTheFileSays) {
  const Entry& entry = GetParam();
  const Said cuda = Ask(cuda_, entry.problem, entry.source);
  EXPECT_EQ(cuda.gave_up, "");
  EXPECT_EQ(AmissInFinding(entry, cuda.evaluation), "");
}

INSTANTIATE_TEST_SUITE_P(Bug, JudgingGpuBugTest, testing::ValuesIn(Bugs()),
                         [](const testing::TestParamInfo<Entry>& entry) { return TestName(entry.param); });

class JudgingGpuReferenceTest : public JudgingGpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(JudgingGpuReferenceTest, IsCorrectForBoth) {
  const std::string& directory = GetParam();
  Said cuda, sim;
  AskBoth(directory, cuda_.Problem(directory).problem.reference_source, &cuda, &sim);
  EXPECT_EQ(cuda.evaluation.verdict, "correct") << cuda.evaluation.diagnosis << cuda.gave_up;
  EXPECT_EQ(sim.evaluation.verdict, "correct") << sim.evaluation.diagnosis << sim.gave_up;
}

// The shipped problems' folders and the tests' own.
std::vector<std::string> ProblemFolders() {
  std::vector<std::string> folders;
  for (const char* parent : {"/problems", "/tests/evaluator/problems"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + parent)) {
      if (std::filesystem::exists(entry.path() / "problem.yaml")) folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

INSTANTIATE_TEST_SUITE_P(Reference, JudgingGpuReferenceTest, testing::ValuesIn(ProblemFolders()),
                         [](const testing::TestParamInfo<std::string>& folder) {
                           return std::filesystem::path(folder.param).filename().string();
                         });

}  // namespace
}  // namespace kgrpo::judging
