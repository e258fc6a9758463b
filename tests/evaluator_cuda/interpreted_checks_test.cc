#include "evaluator_cuda/interpreted_checks.h"

#include "interpreter/interpreted_cases.h"
#include "interpreter/loaded_kernel.h"
#include "judge/compile/compiler.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/problem/cases.h"
#include "test.h"

namespace kgrpo::evaluator_cuda {
namespace {

const Trouble kRace = {"race", "thread (0,0,0) and thread (1,0,0)"};

TEST(InterpretedChecks, AFindingDecidesWhatADeviceLetsPass) {
  EXPECT_EQ(Decide({}, kRace).code, "race");
  EXPECT_EQ(Decide({}, {}).code, "");
}

TEST(InterpretedChecks, AFindingExplainsWrongValuesFaultsAndHangs) {
  for (const char* code :
       {"wrong", "non_deterministic", "out_of_bounds", "misaligned", "trap", "timeout", "unsynchronised"}) {
    EXPECT_EQ(Decide({code, "the device's words"}, kRace).sentence, kRace.sentence) << code;
    EXPECT_EQ(Decide({code, "the device's words"}, {}).code, code);
  }
}

TEST(InterpretedChecks, WhatTheDeviceAloneCanTellStays) {
  for (const char* code : {"crash", "forbidden", "input_modified", "no_launch", "device_fault"})
    EXPECT_EQ(Decide({code, ""}, kRace).code, code);
}

// An assertion that fails in both, a call that ends in neither: the interpreter says where.
TEST(InterpretedChecks, SayWhereBothEnd) {
  EXPECT_EQ(Decide({"trap", "a launch failure"}, {"trap", "line 7"}).sentence, "line 7");
  EXPECT_EQ(Decide({"timeout", "3 seconds"}, {"timeout", "line 9"}).sentence, "line 9");
  EXPECT_EQ(Decide({}, {"timeout", "line 9"}).code, "");
  EXPECT_EQ(Decide({}, {"trap", "line 7"}).code, "");
  EXPECT_EQ(Decide({"timeout", "3 seconds"}, {"unavailable", "too many"}).sentence, "3 seconds");
}

// Compiles kernels of the problem `affine`.
struct Bench {
  const std::string helpers = evaluator::FindHelperDirectory();
  const evaluator::CudaToolkit toolkit = evaluator::CudaToolkit::Find();
  const evaluator::Sandbox sandbox{evaluator::SandboxMode::kAuto, helpers, toolkit.readable};
  evaluator::Compiler compiler{
      toolkit, sandbox, helpers, {.route = evaluator::CompileRoute::kFast, .workers = 1, .library_directory = helpers}};
  const evaluator::Problem problem =
      evaluator::LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");

  evaluator::CompiledKernel Compile(const std::string& source) {
    evaluator::CompileOutcome compiled = compiler.Compile(problem, source, false);
    EXPECT_TRUE(compiled.Succeeded()) << compiled.diagnosis;
    return std::move(compiled.kernel);
  }
};

// A kernel through the checks, without a GPU.
InterpretedFinding Interpret(const std::string& source, const std::function<bool()>& cancelled = {}) {
  Bench bench;
  const evaluator::CompiledKernel kernel = bench.Compile(source);
  InterpretedChecks checks(bench.sandbox, bench.helpers, "h100", 2, cancelled);
  return checks.Start(bench.problem, kernel, evaluator::CorrectnessCases(bench.problem, 1, 2), nullptr).Get();
}

std::string Affine(const std::string& body) {
  return "__global__ void affine(const float* x, const float* y, float* out, int n) {\n" + body +
         "}\nextern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
         "  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);\n}\n";
}

const char* const kPlain =
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = 2.0f * x[i] + y[i];\n";

TEST(InterpretedChecks, FindWhatADeviceLetsPass) {
  const InterpretedFinding correct = Interpret(Affine(kPlain));
  EXPECT_EQ(correct.trouble.code, "") << correct.trouble.sentence;
  const InterpretedFinding unset =
      Interpret(Affine("  __shared__ float never[256];\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                       "  if (i < n) out[i] = 2.0f * x[i] + y[i] + 0.0f * ((volatile float*)never)[threadIdx.x];\n"));
  EXPECT_EQ(unset.trouble.code, "uninitialised");
}

// Other values are no finding: approximations and the order of float atomics are the interpreter's own.
TEST(InterpretedChecks, ValuesAreTheDevices) {
  const InterpretedFinding wrong =
      Interpret(Affine("  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = x[i];\n"));
  EXPECT_EQ(wrong.trouble.code, "") << wrong.trouble.sentence;
}

TEST(InterpretedChecks, WhatCannotRunIsSaid) {
  const InterpretedFinding finding =
      Interpret(Affine("  asm volatile(\"barrier.cluster.arrive.aligned;\\n\\tbarrier.cluster.wait.aligned;\");\n" +
                       std::string(kPlain)));
  EXPECT_FALSE(IsFinding(finding.trouble));
  EXPECT_NE(finding.trouble.sentence.find("barrier.cluster"), std::string::npos) << finding.trouble.sentence;
  EXPECT_EQ(Decide({}, finding.trouble).code, "");
}

// Stores two elements of a vector in shared memory and loads all four, a to d.
std::string HalfSet(const std::string& result) {
  return Affine(
      "  __shared__ float4 pairs[256];\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) { pairs[threadIdx.x].x = x[i]; pairs[threadIdx.x].y = y[i]; }\n  __syncthreads();\n"
      "  float a, b, c, d;\n  unsigned at = (unsigned)__cvta_generic_to_shared(&pairs[threadIdx.x]);\n"
      "  if (i >= n) return;\n"
      "  asm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\" : \"=f\"(a), \"=f\"(b), \"=f\"(c), "
      "\"=f\"(d) : \"r\"(at));\n  out[i] = " +
      result + ";\n");
}

// Nobody says here what is correct. Vectors of which some elements are nobody's are no finding where these change
// nothing.
TEST(InterpretedChecks, HalfSetVectorsAreFoundWhereAnythingDependsOnTheRest) {
  const InterpretedFinding unused = Interpret(HalfSet("2.0f * a + b"));
  EXPECT_EQ(unused.trouble.code, "") << unused.trouble.sentence;
  EXPECT_EQ(Interpret(HalfSet("2.0f * a + b + 0.0f * d")).trouble.code, "uninitialised");
}

// A use is seen in the first run: a bound that leaves no room for further ones does not hide it.
TEST(InterpretedChecks, HalfSetVectorsAreFoundWithinAnyBound) {
  Bench bench;
  const evaluator::CompiledKernel kernel = bench.Compile(HalfSet("2.0f * a + b + 0.0f * d"));
  const simt::Device device = simt::Device::Load(bench.helpers + "/devices/h100.yaml");
  interpreter::WorkerPool workers(bench.sandbox, bench.helpers, 1, 41);
  Trouble trouble;
  interpreter::LoadedKernel loaded(bench.problem, kernel, interpreter::ParsePtx(bench.problem, kernel, &trouble),
                                   {device, workers, 400'000'000, 10});
  ASSERT_FALSE(trouble || loaded.Start());
  const std::vector<evaluator::CorrectnessCase> cases = evaluator::CorrectnessCases(bench.problem, 1, 2);
  interpreter::InterpretedCases interpreted(
      loaded, bench.problem, cases,
      {.expected = {}, .before_each = [] {}, .values_decide = false, .most_warp_instructions = 1});
  trouble = interpreted.Run();
  EXPECT_TRUE(IsFinding(trouble));
  EXPECT_EQ(trouble.code, "uninitialised") << trouble.sentence;
}

// A GPU's kernels reach memory that the host has pinned.
TEST(InterpretedChecks, PinnedHostMemoryAccusesNobody) {
  const auto launch = [](const std::string& allocation) {
    return "__global__ void affine(const float* x, const float* y, float* out, const float* a, int n) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = a[0] * x[i] + y[i];\n}\n"
           "extern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
           "  static float* a = nullptr;\n  if (!a) " +
           allocation + "\n  a[0] = 2.0f;\n  affine<<<(n + 255) / 256, 256>>>(x, y, out, a, n);\n}\n";
  };
  const Trouble pinned = Interpret(launch("cudaMallocHost(reinterpret_cast<void**>(&a), 4);")).trouble;
  EXPECT_EQ(pinned.code, "unsupported");
  EXPECT_NE(pinned.sentence.find("kernel 'affine', line 3"), std::string::npos) << pinned.sentence;
  EXPECT_EQ(Interpret(launch("a = new float[1];")).trouble.code, "out_of_bounds");
}

// At a size beyond a constant of the kernel, which the device does not run, values count. Lines that no size reaches
// are named.
TEST(InterpretedChecks, SizesBeyondAConstant) {
  Bench bench;
  const evaluator::OpenProblem open(bench.problem, testing::TempDir(), evaluator::Rules::kOurs);
  InterpretedChecks checks(bench.sandbox, bench.helpers, "h100", 1, {});
  const auto reference =
      std::make_shared<const evaluator::CompiledKernel>(bench.Compile(bench.problem.reference_source));
  const auto interpret = [&](const std::string& condition) {
    const evaluator::CompiledKernel kernel = bench.Compile(
        Affine("  if (" + condition + ") {\n    __threadfence();\n    out[0] = 0;\n    return;\n  }\n" + kPlain));
    return checks
        .Start(
            bench.problem, kernel, evaluator::CorrectnessCases(bench.problem, 1, 1), nullptr, [&] { return reference; },
            &open)
        .Get();
  };
  const Trouble wrong = Decide({}, interpret("n == 5000").trouble);
  EXPECT_EQ(wrong.code, "wrong");
  EXPECT_THAT(wrong.sentence, HasSubstr("beyond a constant of the kernel,"));
  const InterpretedFinding never = interpret("n > 2000000000");
  EXPECT_EQ(never.trouble.code, "") << never.trouble.sentence;
  EXPECT_EQ(never.not_judged, "lines 3-4, which no size reaches: n > 2000000000");
}

// More candidates than threads: each gets its own finding.
TEST(InterpretedChecks, ManyAtOnceOnFewThreads) {
  Bench bench;
  const evaluator::CompiledKernel correct = bench.Compile(Affine(kPlain));
  const evaluator::CompiledKernel beyond = bench.Compile(
      Affine("  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i <= n) out[i] = 2.0f * x[i] + y[i];\n"));
  InterpretedChecks checks(bench.sandbox, bench.helpers, "h100", 2, {});
  std::vector<InterpretedChecks::Running> findings;
  findings.reserve(12);
  for (int i = 0; i < 12; ++i) {
    findings.push_back(checks.Start(bench.problem, i % 3 == 0 ? beyond : correct,
                                    evaluator::CorrectnessCases(bench.problem, static_cast<uint64_t>(i), 1), nullptr));
  }
  for (size_t i = 0; i < findings.size(); ++i)
    EXPECT_EQ(findings[i].Get().trouble.code, i % 3 == 0 ? "out_of_bounds" : "");
}

// Of no threads none is ever free: the test ends only where a stop ends the wait for one.
TEST(InterpretedChecks, AStopEndsTheWaitForAThread) {
  Bench bench;
  const evaluator::CompiledKernel kernel = bench.Compile(Affine(kPlain));
  InterpretedChecks checks(bench.sandbox, bench.helpers, "h100", 0, {});
  const InterpretedChecks::Running waits =
      checks.Start(bench.problem, kernel, evaluator::CorrectnessCases(bench.problem, 1, 1), nullptr);
  EXPECT_FALSE(waits.IsDone());
}

TEST(InterpretedChecks, EndWhenTheUserWantsTheRunToEnd) {
  try {
    Interpret(Affine(kPlain), [] { return true; });
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), KGRPO_ERROR_CANCELLED) << error.what();
  }
}

}  // namespace
}  // namespace kgrpo::evaluator_cuda
