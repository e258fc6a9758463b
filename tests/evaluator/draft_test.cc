// Problems drafted from kernels: compared with the shipped problems, which were written by hand; error messages word
// for word.
#include "evaluator_shared/draft/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "evaluator_shared/draft/oracle_text.h"
#include "evaluator_shared/draft/problem_text.h"
#include "evaluator_shared/inputs.h"
#include "evaluator_shared/oracle.h"

namespace kgrpo::evaluator {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Ask kNobody = [](const std::string&, const std::string&) { return std::string(); };

class DraftTest : public testing::Test {
 protected:
  DraftTest() : folder_(fs::path(testing::TempDir()) / ("draft_test_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~DraftTest() override { fs::remove_all(folder_); }

  // The drafted problem, as it is read from the files that are written.
  Problem Written(const CudaSource& source, const Draft& draft) {
    const OracleText oracle = MakeOracle(source, draft);
    const fs::path folder = folder_ / draft.name;
    fs::create_directories(folder);
    std::ofstream(folder / "reference.cu") << ReferenceText(source, draft);
    std::ofstream(folder / "oracle.cc") << oracle.text;
    std::ofstream(folder / "problem.yaml") << ProblemText(source, draft, oracle);
    return LoadProblem(folder.string());
  }

  fs::path folder_;
};

std::vector<Problem> ShippedProblems() {
  std::vector<Problem> problems;
  for (const auto& entry : fs::directory_iterator(KGRPO_SOURCE_DIR "/problems"))
    problems.push_back(LoadProblem(entry.path().string()));
  return problems;
}

// The options that a user would have to give for a shipped problem: its sizes and scalars.
DraftOptions OptionsOf(const Problem& problem) {
  DraftOptions options;
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.IsTensor()) continue;
    if (parameter.value.Symbols().empty()) {
      options["value"][parameter.name] = parameter.value.text();
    } else {
      options["size"][parameter.name] = std::to_string(parameter.value.EvaluateInteger(problem.timing));
    }
  }
  return options;
}

// Answers questions about shapes, and about sizes that no parameter tells, as the problem's author would.
Ask AuthorOf(const Problem& problem, int* asked) {
  return [&problem, asked](const std::string&, const std::string& option) {
    ++*asked;
    for (const Parameter& parameter : problem.parameters) {
      if (option != "--shape " + parameter.name + "=D,D") continue;
      std::string shape;
      for (const Expression& dimension : parameter.shape) shape += (shape.empty() ? "" : ",") + dimension.text();
      return shape;
    }
    for (const auto& [symbol, value] : problem.timing) {
      if (option == "--size " + symbol + "=N") return std::to_string(value);
    }
    return std::string();
  };
}

TEST_F(DraftTest, RolesTypesAndShapesAreThoseOfTheShippedProblems) {
  int tensors = 0, asked = 0;
  for (const Problem& problem : ShippedProblems()) {
    const CudaSource source("reference.cu", problem.reference_source);
    const Draft draft = MakeDraft(source, problem.name, OptionsOf(problem), AuthorOf(problem, &asked));
    ASSERT_EQ(draft.parameters.size(), problem.parameters.size()) << problem.name;
    const Problem drafted = Written(source, draft);
    EXPECT_EQ(drafted.Signature(), problem.Signature());
    for (size_t p = 0; p < problem.parameters.size(); ++p) {
      const Parameter &wanted = problem.parameters[p], &got = drafted.parameters[p];
      EXPECT_EQ(got.name, wanted.name) << problem.name;
      EXPECT_EQ(got.role, wanted.role) << problem.name << ": " << wanted.name;
      EXPECT_EQ(got.dtype, wanted.dtype) << problem.name << ": " << wanted.name;
      if (!wanted.IsTensor()) continue;
      ++tensors;
      // By elements: two dimensions may be drafted as one.
      EXPECT_EQ(got.Elements(drafted.timing), wanted.Elements(drafted.timing)) << problem.name << ": " << wanted.name;
    }
  }
  EXPECT_GT(tensors, 80);
  EXPECT_LT(asked, tensors * 2 / 3);  // the others were understood
}

// A translated oracle must give what the shipped problem's own gives, up to rounding in float64.
TEST_F(DraftTest, TranslatedOraclesAgreeWithThoseThatPeopleWrote) {
  int translated = 0;
  for (const Problem& problem : ShippedProblems()) {
    const CudaSource source("reference.cu", problem.reference_source);
    int asked = 0;
    const Draft draft = MakeDraft(source, problem.name, OptionsOf(problem), AuthorOf(problem, &asked));
    const OracleText oracle = MakeOracle(source, draft);
    if (!oracle.translated) {
      EXPECT_THAT(oracle.text, HasSubstr("// ORACLE TO BE WRITTEN"));
      EXPECT_THAT(oracle.why_not, HasSubstr("line "));
      continue;
    }
    ++translated;
    const Problem drafted = Written(source, draft);
    const auto theirs = Oracle::Load(problem, folder_.string()), ours = Oracle::Load(drafted, folder_.string());
    const Bindings& size = problem.visible[0];
    const std::vector<Argument> arguments = DrawArguments(problem, size, 7, 0);
    const std::vector<Expected> wanted = theirs->Run(problem, size, arguments),
                                got = ours->Run(drafted, size, arguments);
    for (size_t p = 0; p < wanted.size(); ++p) {
      ASSERT_EQ(got[p].reals.size(), wanted[p].reals.size());
      for (size_t i = 0; i < wanted[p].reals.size(); ++i)
        ASSERT_NEAR(got[p].reals[i], wanted[p].reals[i], 1e-6 * (1 + std::abs(wanted[p].reals[i]))) << problem.name;
    }
  }
  EXPECT_GE(translated, 1);
}

constexpr const char* kSaxpy =
    "// y = a x + y\n"
    "__global__ void saxpy(int n, float a, const float* x, float* y) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

TEST_F(DraftTest, AKernelAloneGetsALauncher) {
  const CudaSource source("saxpy.cu", kSaxpy);
  const Draft draft = MakeDraft(source, "saxpy", {{"size", {{"n", "4096"}}}, {"value", {{"a", "2"}}}}, kNobody);
  EXPECT_EQ(ReferenceText(source, draft), std::string(kSaxpy) +
                                              "\nextern \"C\" void launch(int n, float a, const float* x, float* y) {\n"
                                              "  saxpy<<<(n + 255) / 256, 256>>>(n, a, x, y);\n}\n");
  const Problem problem = Written(source, draft);
  EXPECT_EQ(problem.parameters[3].role, Role::kInout);
  EXPECT_EQ(problem.needed_bytes.Evaluate(problem.timing), 12 * 4096);
  EXPECT_EQ(problem.needed_flops.Evaluate(problem.timing), 2 * 4096);
  EXPECT_THAT(MakeOracle(source, draft).text, HasSubstr("    y[i] = a * x[i] + y[i];\n"));
}

// The launcher is somebody's: another name, a stream, pointers that lack const, size_t, and a main beside it.
TEST_F(DraftTest, ALauncherOfOtherTypesIsWrapped) {
  const CudaSource source(
      "scale.cu",
      "__global__ void scale(float* in, float* out, size_t count) {\n"
      "  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)\n"
      "    out[i] = __expf(in[i]) * rsqrtf(2.0f);\n"
      "}\n"
      "void run(float* from, float* to, size_t count, cudaStream_t stream) {\n"
      "  scale<<<(count + 127) / 128, 128, 0, stream>>>(from, to, count);\n"
      "}\n"
      "int main() { return 0; }\n");
  const Draft draft = MakeDraft(source, "scale", {{"size", {{"count", "5000"}}}}, kNobody);
  const std::string text = ReferenceText(source, draft);
  EXPECT_THAT(text, HasSubstr("extern \"C\" void launch(const float* from, float* to, long long count) {\n"
                              "  run(const_cast<float*>(from), to, static_cast<size_t>(count), 0);\n}\n"));
  EXPECT_EQ(EntryText(source, draft, "k.cu"), "launch: run takes a stream; judge copies of reference.cu, not k.cu");
  EXPECT_EQ(text.find("main"), std::string::npos);
  EXPECT_THAT(MakeOracle(source, draft).text,
              HasSubstr("static double rsqrtf(double x) { return 1.0 / std::sqrt(x); }\n\n"
                        "extern \"C\" void oracle(const double* from, double* to, int64_t count) {\n"
                        "  for (int64_t i = 0; i < count; ++i) {\n"
                        "    to[i] = std::exp(from[i]) * rsqrtf(2.0);\n"));
  Written(source, draft);
}

TEST_F(DraftTest, WhatIsNoMapIsASkeleton) {
  const auto why = [&](const std::string& body) {
    const CudaSource source("k.cu", "__global__ void k(const float* x, float* y, int n) {\n" + body + "}\n");
    const DraftOptions options = {{"size", {{"n", "64"}}}, {"shape", {{"x", "n"}, {"y", "n"}}}};
    const Draft draft = MakeDraft(source, "k", options, kNobody);
    const OracleText oracle = MakeOracle(source, draft);
    EXPECT_FALSE(oracle.translated);
    EXPECT_THAT(oracle.text, HasSubstr("// ORACLE TO BE WRITTEN"));
    return oracle.why_not;
  };
  const std::string index = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
  EXPECT_EQ(why(index + "if (i < n) y[i] = x[i + 1];\n"), "line 3: x at another index than the element's");
  EXPECT_EQ(why(index + "if (i < n) y[i] = x[i];\ny[0] = 1;\n"), "line 4: statements after the guard");
  EXPECT_EQ(why(index + "if (i < n) y[i] = __shfl_sync(~0u, x[i], 0);\n"), "line 3: __shfl_sync");
  EXPECT_EQ(why(index + "y[i] = x[i];\n"), "line 3: no guard");
  EXPECT_EQ(why(index + "y[0] = 0;\nif (i < n) y[i] = x[i];\n"), "line 3: a statement between the index and its guard");
  EXPECT_EQ(why(index + "if (i < n) y[i] = x[i] * blockDim.x;\n"), "line 3: blockDim");
}

std::string ErrorOf(const std::string& text, const DraftOptions& options) {
  try {
    const CudaSource source("k.cu", text);
    MakeDraft(source, "k", options, kNobody);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST_F(DraftTest, WhatIsMissingOrUnknownIsSaid) {
  EXPECT_EQ(ErrorOf(kSaxpy, {}),
            "the kernel does not tell these values; add these options:\n"
            "  --size n=N: the value of the size n for timing, such as 1048576\n"
            "  --value a=X: the value of the scalar a");
  EXPECT_EQ(ErrorOf(kSaxpy, {{"size", {{"m", "1"}}}}), "k.cu:2: --size m: saxpy has no parameter of that name");
  EXPECT_EQ(ErrorOf(kSaxpy, {{"size", {{"n", "many"}}}, {"value", {{"a", "1"}}}}),
            "--size n=many: expected a whole number from 1 up");
  EXPECT_EQ(ErrorOf("int f() { return 1; }\n", {}), "k.cu:1: there is no __global__ function");
  EXPECT_EQ(ErrorOf("__global__ void a(float* x) {}\n__global__ void b(float* x) {}\n", {}),
            "k.cu:2: there are several kernels (a, b): choose one by --function NAME");
  EXPECT_EQ(ErrorOf("template <int N>\n__global__ void a(float* x) {}\n", {}),
            "k.cu:1: a is a template: add a launcher that calls it with the types you want");
  EXPECT_THAT(ErrorOf("__global__ void a(float4* x) {}\n", {}),
              HasSubstr("k.cu:1: a: the parameter x is of type float4, which problems do not have"));
  EXPECT_THAT(ErrorOf("__global__ void a(float* x) { /* never ends\n", {}), HasSubstr("k.cu:1: "));
}

}  // namespace
}  // namespace kgrpo::evaluator
