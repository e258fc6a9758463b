// The evaluator on a GPU: every verdict with a real kernel, known cheats, and after each of them an honest kernel,
// whose verdict must not be affected. Skipped without a GPU.
#include <unistd.h>

#include "affine_candidates.h"
#include "evaluator_cuda/device_evaluator.h"
#include "test.h"
#include "test_device.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::kHonest;
using evaluator::kKernel;
using evaluator::kLaunch;
using evaluator::WithBody;
using evaluator::WithKernel;

const std::string kProblems = std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/";
class DeviceEvaluatorGpuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_directory_ = testing::TempDir() + "/device_evaluator_gpu_test_" + std::to_string(getpid());
    std::filesystem::create_directories(cache_directory_);
    DeviceEvaluator::Options options;
    options.device = TestDevice();
    options.call_seconds = 3;
    options.timing.memory_bytes = uint64_t{512} << 20;
    try {
      evaluator_ = new DeviceEvaluator(options);
    } catch (const Error& error) {
      missing_ = error.what();
    }
    affine_ = new OpenProblem(kProblems + "affine", cache_directory_);
    row_sum_ = new OpenProblem(kProblems + "row_sum", cache_directory_);
    append_offset_ = new OpenProblem(kProblems + "append_offset", cache_directory_);
  }
  static void TearDownTestSuite() {
    delete evaluator_;
    delete affine_;
    delete row_sum_;
    delete append_offset_;
    std::filesystem::remove_all(cache_directory_);
  }
  void SetUp() override {
    if (evaluator_ != nullptr) return;
    if (missing_.find("needs an NVIDIA GPU") == std::string::npos) FAIL() << missing_;
    GTEST_SKIP() << missing_;
  }

  static KernelEvaluation Affine(const std::string& source) { return evaluator_->Evaluate(*affine_, source, 1, false); }

  // Judges a bad candidate for `affine`, then the reference.
  static void ExpectVerdict(const std::string& source, const std::string& verdict, const std::string& words = "") {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, verdict) << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr(words));
    const KernelEvaluation after = Affine(affine_->problem.reference_source);
    EXPECT_EQ(after.verdict, "correct") << "after: " << evaluation.verdict << ": " << after.diagnosis;
  }

  static DeviceEvaluator* evaluator_;
  static OpenProblem *affine_, *row_sum_, *append_offset_;
  static std::string cache_directory_, missing_;
};

DeviceEvaluator* DeviceEvaluatorGpuTest::evaluator_ = nullptr;
OpenProblem *DeviceEvaluatorGpuTest::affine_ = nullptr, *DeviceEvaluatorGpuTest::row_sum_ = nullptr,
            *DeviceEvaluatorGpuTest::append_offset_ = nullptr;
std::string DeviceEvaluatorGpuTest::cache_directory_, DeviceEvaluatorGpuTest::missing_;

TEST_F(DeviceEvaluatorGpuTest, CorrectWithATimeAndMetrics) {
  const KernelEvaluation evaluation = Affine(WithBody(kHonest));
  ASSERT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  EXPECT_TRUE(evaluation.correct);
  std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
  EXPECT_GT(evaluation.seconds, 1e-6);
  EXPECT_LT(evaluation.seconds, 1e-4);
  EXPECT_LE(evaluation.seconds_low, evaluation.seconds);
  EXPECT_GE(evaluation.seconds_high, evaluation.seconds);
  EXPECT_NEAR(metrics["speedup"], 1, 0.05);  // the reference beside itself
  EXPECT_EQ(metrics["same_bits_twice"], 1);
  EXPECT_GT(metrics["registers"], 0);
}

// append_offset takes the device half of what a launch takes the host.
TEST_F(DeviceEvaluatorGpuTest, AShortKernelIsTimedBehindGates) {
  EXPECT_THAT(evaluator_->Describe(), testing::Not(HasSubstr("are timed with it")));
  const KernelEvaluation evaluation =
      evaluator_->Evaluate(*append_offset_, append_offset_->problem.reference_source, 1, false);
  ASSERT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
  EXPECT_EQ(metrics["timing_gated"], 1);
  EXPECT_EQ(metrics["timing_baseline_gated"], 1);
  EXPECT_GT(metrics["timing_early_checks"], 0);
  EXPECT_LT(evaluation.seconds, 4e-6);
  EXPECT_NEAR(metrics["speedup"], 1, 0.05);  // the reference beside itself
}

// However a candidate keeps its calls from being launched ahead, the reference's are.
TEST_F(DeviceEvaluatorGpuTest, TheReferenceIsGatedWhereTheCandidateCannotBe) {
  const std::string launch = "extern \"C\" void add_offset(";
  const std::map<std::string, double> most_speedup = {
      // Launched as fast as the host can, which for this kernel is almost as fast as the device is.
      {"  static cudaStream_t unused = nullptr;\n  if (!unused) cudaStreamCreate(&unused);\n", 1.05},
      {"  cudaDeviceSynchronize();\n", 0.75}};
  for (const auto& [body, most] : most_speedup) {
    std::string source = append_offset_->problem.reference_source;
    const size_t entry = source.find(launch);
    ASSERT_NE(entry, std::string::npos);
    source.insert(source.find("{\n", entry) + 2, body);
    const KernelEvaluation evaluation = evaluator_->Evaluate(*append_offset_, source, 1, false);
    ASSERT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
    EXPECT_EQ(metrics["timing_gated"], 0) << body;
    EXPECT_EQ(metrics["timing_baseline_gated"], 1) << body;
    EXPECT_LT(metrics["baseline_seconds"], 4e-6) << body;
    EXPECT_LT(metrics["speedup"], most) << body;
    EXPECT_THAT(evaluation.diagnosis, HasSubstr("cannot be launched ahead"));
  }
}

TEST_F(DeviceEvaluatorGpuTest, SaysHowItWasLaunchedAndWhatLimitsIt) {
  const KernelEvaluation evaluation = Affine(WithBody(kHonest));
  std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
  EXPECT_EQ(metrics["launches"], 1);
  EXPECT_GT(metrics["grid_blocks"], 0);
  EXPECT_GT(metrics["block_threads"], 0);
  EXPECT_EQ(metrics["shared_bytes"], metrics["static_shared_bytes"] + metrics["dynamic_shared_bytes"]);
  // The runtime's own count, and ours by each resource.
  EXPECT_EQ(metrics["resident_blocks"],
            std::min({metrics["resident_blocks_by/registers"], metrics["resident_blocks_by/shared_memory"],
                      metrics["resident_blocks_by/threads"], metrics["resident_blocks_by/blocks"]}));
  EXPECT_GT(metrics["occupancy"], 0);
  EXPECT_LE(metrics["occupancy"], 1);
  EXPECT_THAT(evaluation.diagnosis,
              AllOf(HasSubstr("Memory bandwidth binds"), HasSubstr("at once on a multiprocessor")));
}

TEST_F(DeviceEvaluatorGpuTest, TheCeilingsAreThoseOfADevice) {
  const Ceilings& ceilings = evaluator_->device().ceilings();
  EXPECT_GT(ceilings.fp32_operations_per_second, 1e12);
  EXPECT_GT(ceilings.fp64_operations_per_second, ceilings.fp32_operations_per_second / 128);
  EXPECT_LT(ceilings.fp64_operations_per_second, ceilings.fp32_operations_per_second);
  EXPECT_GT(ceilings.tensor_operations_per_second, 2 * ceilings.fp32_operations_per_second);
  if (evaluator_->device().name().find("H100") != std::string::npos) {
    EXPECT_GT(ceilings.tensor_operations_per_second, 450e12) << "mma.sync reaches some 62% of 989 TFLOP/s";
    EXPECT_LT(ceilings.tensor_operations_per_second, 989e12);
  }
}

// Skipped where there is no Nsight Compute, or it may not count.
TEST_F(DeviceEvaluatorGpuTest, ProfilesACorrectKernel) {
  DeviceEvaluator::Options options;
  options.device = TestDevice();
  options.timing.memory_bytes = uint64_t{256} << 20;
  options.workers = 1;
  options.profile = true;
  try {
    DeviceEvaluator evaluator(options);
    const KernelEvaluation evaluation = evaluator.Evaluate(*affine_, affine_->problem.reference_source, 1, false);
    ASSERT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
    EXPECT_EQ(metrics["profile.kernels"], 1);
    EXPECT_GT(metrics["profile.seconds"], 1e-7);
    EXPECT_GT(metrics["profile.occupancy"], 0);
    EXPECT_GT(metrics["profile.dram_fraction"], 0);
    EXPECT_THAT(evaluation.diagnosis, HasSubstr("Profiled by Nsight Compute"));
    // A kernel that is wrong is not profiled.
    EXPECT_THAT(evaluator.Evaluate(*affine_, WithBody("out[i] = 0;"), 1, false).diagnosis,
                testing::Not(HasSubstr("Profiled")));
  } catch (const Error& error) {
    const std::string why = error.what();
    if (why.find("ncu is not installed") == std::string::npos && why.find("ERR_NVGPUCTRPERM") == std::string::npos &&
        why.find("inside namespaces") == std::string::npos) {
      FAIL() << why;
    }
    GTEST_SKIP() << why;
  }
}

TEST_F(DeviceEvaluatorGpuTest, ASlowKernelIsSlowAndStillCorrect) {
  const KernelEvaluation evaluation = Affine(WithKernel(
      "if (i < n) { float v = x[i]; for (int r = 0; r < 20000; ++r) v = v * 1.0000001f + 1e-9f; out[i] = 2.0f * x[i] + "
      "y[i] + (v == 12345.678f ? 1.0f : 0.0f); }"));
  EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
  EXPECT_LT(metrics["speedup"], 0.2);
}

TEST_F(DeviceEvaluatorGpuTest, OtherProblems) {
  for (const OpenProblem* open : {row_sum_, append_offset_}) {
    const KernelEvaluation evaluation = evaluator_->Evaluate(*open, open->problem.reference_source, 1, false);
    EXPECT_EQ(evaluation.verdict, "correct") << open->problem.name << ": " << evaluation.diagnosis;
  }
}

TEST_F(DeviceEvaluatorGpuTest, CompilerVerdicts) {
  EXPECT_EQ(Affine("this is no C++").verdict, "not_compiled");
  EXPECT_EQ(Affine("#include <cub/cub.cuh>\n" + WithBody(kHonest)).verdict, "forbidden");
}

TEST_F(DeviceEvaluatorGpuTest, WrongResults) {
  ExpectVerdict(WithKernel("if (i < n) out[i] = 2.0f * x[i] - y[i];"), "wrong", "elements of out are wrong");
  ExpectVerdict(WithKernel("if (i < n && i % 7 != 3) out[i] = 2.0f * x[i] + y[i];"), "wrong", "never written");
  ExpectVerdict(WithKernel("if (i < n) out[i] = 0.0f;"), "wrong");
  ExpectVerdict(WithKernel("if (i < n) out[i] = 2.0f * (float)(signed char)(x[i] * 16) / 16 + y[i];"), "wrong");
  ExpectVerdict(WithBody("k<<<(n + 255) / 256, 256>>>(x, y, out, n > 900000 ? n / 2 : n);"), "wrong",
                "was never written");
  // Right at the other sizes; the message names the element, both values and the error.
  ExpectVerdict(WithKernel("if (i < n) out[i] = 2.0f * x[i] + y[i] + (i == 900001 ? 100.0f : 0.0f);"), "wrong",
                "differ from what the reference kernel makes of the same inputs; the worst is out[900001] = ");
  ExpectVerdict(WithKernel("if (i < n) out[i] = 2.0f * x[i] + y[i] + (i == 900001 ? 100.0f : 0.0f);"), "wrong",
                " times the tolerance (relative ");
}

TEST_F(DeviceEvaluatorGpuTest, DeviceFaults) {
  ExpectVerdict(WithKernel("if (i < n) out[i + (1 << 30)] = 2.0f * x[i] + y[i];"), "out_of_bounds");
  // The device finds it by its guard zones, the interpreter by the instruction.
  ExpectVerdict(WithKernel("if (i < n) { out[i] = 2.0f * x[i] + y[i]; out[i + n + 3] = 1.0f; }"), "out_of_bounds",
                "past the end of 'out'");
  ExpectVerdict(WithKernel("if (i == 0) *(double*)((char*)out + 4) = 1; if (i < n) out[i] = 2.0f * x[i] + y[i];"),
                "misaligned");
  ExpectVerdict(WithKernel("if (i == 0) __trap();"), "trap");
  ExpectVerdict(WithKernel("while (true) __nanosleep(100);"), "timeout");
}

TEST_F(DeviceEvaluatorGpuTest, HostFaults) {
  ExpectVerdict(WithBody("out[0] = 1;"), "crash", "segmentation fault");
  ExpectVerdict("#include <cstdlib>\n" + WithBody(kHonest + " exit(0);"), "crash", "exit code 0");
  ExpectVerdict("#include <cstdlib>\n" + WithBody(kHonest + " abort();"), "crash", "abort");
  ExpectVerdict(WithBody("for (;;) {}"), "timeout");
  ExpectVerdict(WithBody("k<<<(n + 255) / 256, 2048>>>(x, y, out, n);"), "invalid_launch");
  ExpectVerdict(WithBody("cudaMemcpy(out, x, n * sizeof(float), cudaMemcpyDeviceToDevice);"), "no_launch");
  ExpectVerdict(WithBody("static float* f = nullptr; if (!f) cudaMalloc(&f, n); " + kHonest), "forbidden",
                "allocates device memory");
}

TEST_F(DeviceEvaluatorGpuTest, SystemCalls) {
  ExpectVerdict("extern \"C\" int fork();\n" + WithBody("fork(); " + kHonest), "forbidden");
  ExpectVerdict(
      "extern \"C\" int pthread_create(unsigned long*, const void*, void* (*)(void*), void*);\n"
      "static void* f(void*) { return nullptr; }\n" +
          WithBody("unsigned long t; pthread_create(&t, nullptr, f, nullptr); " + kHonest),
      "forbidden");
  ExpectVerdict("extern \"C\" int execl(const char*, const char*, ...);\n" +
                    WithBody("execl(\"/bin/true\", \"true\", (char*)0); " + kHonest),
                "forbidden", "execve");
  ExpectVerdict("extern \"C\" int socket(int, int, int);\n" + WithBody("socket(2, 1, 0); " + kHonest), "forbidden",
                "socket");
  ExpectVerdict("extern \"C\" long write(int, const void*, unsigned long);\n" +
                    WithBody("char c[16] = {}; write(3, c, 16); " + kHonest),
                "forbidden");
}

TEST_F(DeviceEvaluatorGpuTest, ChangesToInputs) {
  ExpectVerdict(WithKernel("if (i < n) { out[i] = 2.0f * x[i] + y[i]; ((float*)x)[i] = 0; }"), "input_modified", "x");
}

TEST_F(DeviceEvaluatorGpuTest, WorkOnASideStream) {
  ExpectVerdict(
      WithBody("static cudaStream_t s = nullptr; if (!s) cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); "
               "k<<<(n + 255) / 256, 256, 0, s>>>(x, y, out, n);"),
      "unsynchronised");
  // Joined by an event: fine.
  const KernelEvaluation joined = Affine(
      WithBody("static cudaStream_t s = nullptr; static cudaEvent_t e = nullptr; if (!s) { "
               "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaEventCreateWithFlags(&e, "
               "cudaEventDisableTiming); } cudaEventRecord(e, 0); cudaStreamWaitEvent(s, e, 0); k<<<(n + 255) / 256, "
               "256, 0, s>>>(x, y, out, n); cudaEventRecord(e, s); cudaStreamWaitEvent(0, e, 0);"));
  EXPECT_EQ(joined.verdict, "correct") << joined.diagnosis;
}

TEST_F(DeviceEvaluatorGpuTest, StateBetweenCalls) {
  // Computes at the first call of a size and copies what it kept afterwards.
  ExpectVerdict(
      "__device__ float kept[1 << 21]; __device__ int have;\n"
      "__global__ void k(const float* x, const float* y, float* out, int n) { int i = blockIdx.x * blockDim.x + "
      "threadIdx.x; if (i < n) { if (have != n) kept[i] = 2.0f * x[i] + y[i]; out[i] = kept[i]; } }\n"
      "__global__ void mark(int n) { have = n; }\n" +
          kLaunch + " { " + kHonest + " mark<<<1, 1>>>(n); }\n",
      "wrong");
  // Skips every second call.
  ExpectVerdict(WithBody("static int calls = 0; if (calls++ % 2 == 0) { " + kHonest + " }"), "no_launch");
}

TEST_F(DeviceEvaluatorGpuTest, NoSourceHarmsTheNext) {
  const KernelEvaluation first = Affine(WithBody(kHonest));
  ExpectVerdict(WithKernel("while (true) __nanosleep(1000);"), "timeout");
  const KernelEvaluation second = Affine(WithBody(kHonest));
  EXPECT_EQ(second.verdict, "correct") << second.diagnosis;
  EXPECT_NEAR(second.seconds / first.seconds, 1, 0.2);
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
