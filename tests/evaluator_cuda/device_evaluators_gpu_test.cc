// Devices that are missing or not as configured, and several devices side by side. Skipped without a GPU.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "evaluator_cuda/ceiling_kernels.h"
#include "evaluator_cuda/device_evaluators.h"
#include "test.h"
#include "test_device.h"

namespace kgrpo::evaluator_cuda {
namespace {

class DeviceEvaluatorsGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cudaGetDeviceCount(&devices_) != cudaSuccess || devices_ == 0) GTEST_SKIP() << "needs an NVIDIA GPU";
    ASSERT_EQ(cudaSetDevice(TestDevice()), cudaSuccess);
    cache_directory_ = testing::TempDir() + "/device_evaluators_gpu_test_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_directory_);
    options_.timing.memory_bytes = uint64_t{256} << 20;
    options_.workers = 2;
  }
  void TearDown() override {
    if (!cache_directory_.empty()) std::filesystem::remove_all(cache_directory_);
  }

  std::string WhyNot(const std::vector<int>& devices) {
    return test::MessageOf([&] { const DeviceEvaluators evaluators(options_, devices); }, 0, "");
  }

  int devices_ = 0;
  DeviceEvaluator::Options options_;
  std::string cache_directory_;
};

TEST_F(DeviceEvaluatorsGpuTest, SaysWhichDeviceIsNotThere) {
  EXPECT_THAT(WhyNot({devices_}), HasSubstr("device " + std::to_string(devices_) + " is asked for, but there are"));
  EXPECT_THAT(WhyNot({0, 0}), HasSubstr("named twice"));
}

// The bytes free on the device. The memory of processes that have ended becomes free a while later, so it waits until
// two readings agree.
size_t SettledFreeMemory() {
  size_t free = 0, before = 1, total = 0;
  for (; before != free; std::this_thread::sleep_for(std::chrono::milliseconds(300))) {
    before = free;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  }
  return free;
}

TEST_F(DeviceEvaluatorsGpuTest, SaysThatTheDeviceIsFull) {
  const size_t free = SettledFreeMemory();
  const size_t left = size_t{256} << 20;  // a worker's context takes twice that
  ASSERT_GT(free, left);
  void* hoard = nullptr;
  ASSERT_EQ(cudaMalloc(&hoard, free - left), cudaSuccess);
  options_.timing.memory_bytes = uint64_t{2} << 30;
  const std::string why = WhyNot({TestDevice()});
  cudaFree(hoard);
  EXPECT_THAT(why, HasSubstr("end other programs on the device"));
  SettledFreeMemory();
  EXPECT_EQ(WhyNot({TestDevice()}), "");
}

// This program once more, as one that keeps the device busy until it is ended.
class OtherProgram {
 public:
  OtherProgram() {
    int ends[2];
    if (pipe(ends) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execl("/proc/self/exe", "other_program", "--gtest_also_run_disabled_tests",
            "--gtest_filter=DeviceEvaluatorsGpuTest.DISABLED_KeepsTheDeviceBusy", nullptr);
      _exit(1);
    }
    close(ends[1]);
    char text[4096];
    std::string heard;
    for (ssize_t count = 0; heard.find(kBusy) == std::string::npos; heard.append(text, static_cast<size_t>(count))) {
      count = read(ends[0], text, sizeof text);
      if (count <= 0) break;
    }
    is_busy = heard.find(kBusy) != std::string::npos;
    close(ends[0]);
  }
  ~OtherProgram() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

  static constexpr const char* kBusy = "the device is busy";
  bool is_busy = false;

 private:
  pid_t process_ = -1;
};

TEST_F(DeviceEvaluatorsGpuTest, DISABLED_KeepsTheDeviceBusy) {
  void* sink = nullptr;
  ASSERT_EQ(cudaMalloc(&sink, sizeof(float)), cudaSuccess);
  double operations = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (bool said = false; std::chrono::steady_clock::now() - begin < std::chrono::minutes(2);) {
    ASSERT_EQ(LaunchMultiplyAdd(132, 40000, static_cast<float*>(sink), &operations, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (!said) {
      ASSERT_GT(write(STDOUT_FILENO, OtherProgram::kBusy, strlen(OtherProgram::kBusy)), 0);
    }
    said = true;
  }
}

TEST_F(DeviceEvaluatorsGpuTest, AnotherProgramsKernelsAreNoCandidatesFault) {
  const OpenProblem affine(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine", cache_directory_);
  options_.call_seconds = 20;
  std::unique_ptr<DeviceEvaluators> evaluators;
  {
    const OtherProgram other;
    ASSERT_TRUE(other.is_busy);
    evaluators = std::make_unique<DeviceEvaluators>(options_, std::vector<int>{TestDevice()});
    EXPECT_THAT(evaluators->Describe(), HasSubstr("kernels of another program run on it"));
    for (uint64_t i = 0; i < 3; ++i) {
      try {
        const KernelEvaluation evaluation = evaluators->Evaluate(affine, affine.problem.reference_source, i, false);
        EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("end that program"));
      }
    }
  }
  EXPECT_EQ(evaluators->Evaluate(affine, affine.problem.reference_source, 9, false).verdict, "correct");
  EXPECT_THAT(DeviceEvaluators(options_, {TestDevice()}).Describe(),
              testing::Not(HasSubstr("kernels of another program")));
}

TEST_F(DeviceEvaluatorsGpuTest, JudgesOnSeveralDevicesAtOnce) {
  if (devices_ < 2) GTEST_SKIP() << "needs two GPUs";
  DeviceEvaluators evaluators(options_, {0, 1});
  EXPECT_THAT(evaluators.Describe(), HasSubstr("and 1 more of its kind"));
  const OpenProblem affine(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine", cache_directory_);
  std::vector<KernelEvaluation> evaluations(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    threads.emplace_back(
        [&, i] { evaluations[i] = evaluators.Evaluate(affine, affine.problem.reference_source, i + 1, false); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const KernelEvaluation& evaluation : evaluations) {
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    const auto speedup = std::find_if(evaluation.metrics.begin(), evaluation.metrics.end(),
                                      [](const auto& metric) { return metric.first == "speedup"; });
    ASSERT_NE(speedup, evaluation.metrics.end());
    EXPECT_NEAR(speedup->second, 1, 0.1);
  }
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
