#include "evaluator_cuda/interpreted_checks.h"

#include <gtest/gtest.h>

#include <kgrpo/sdk/error.h>

#include <functional>
#include <string>

#include "evaluator_shared/cases.h"
#include "evaluator_shared/compiler.h"
#include "evaluator_shared/cuda_toolkit.h"

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
}

// A kernel of the problem `affine` through the checks, without a GPU.
InterpretedFinding Interpret(const std::string& kernel, const std::function<bool()>& cancelled = {}) {
  const std::string helpers = evaluator::FindHelperDirectory();
  const evaluator::CudaToolkit toolkit = evaluator::CudaToolkit::Find("");
  const evaluator::Sandbox sandbox(evaluator::SandboxMode::kAuto, helpers, toolkit.readable);
  evaluator::Compiler compiler(toolkit, sandbox, helpers,
                               {.route = evaluator::CompileRoute::kFast, .workers = 1, .library_directory = helpers});
  const evaluator::Problem problem =
      evaluator::LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
  const evaluator::CompileOutcome compiled = compiler.Compile(problem, kernel, false);
  EXPECT_TRUE(compiled.Succeeded()) << compiled.diagnosis;
  InterpretedChecks checks(sandbox, helpers, "h100", 2, cancelled);
  return checks.Start(problem, compiled.kernel, evaluator::CorrectnessCases(problem, 1, 2), nullptr).Get();
}

std::string Affine(const std::string& body) {
  return "__global__ void affine(const float* x, const float* y, float* out, int n) {\n" + body +
         "}\nextern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
         "  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);\n}\n";
}

const char* const kPlain =
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) out[i] = 2.0f * x[i] + y[i];\n";

TEST(InterpretedChecks, FindWhatADeviceLetsPass) {
  const InterpretedFinding right = Interpret(Affine(kPlain));
  EXPECT_EQ(right.trouble.code, "") << right.trouble.sentence;
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
