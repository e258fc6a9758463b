// `eval suite --as-kernelbench`: both counts, the verdicts that differ, speedups over PyTorch's times. Judged by
// evaluator_sim.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

class SuiteRulesTest : public CliTest {
 protected:
  SuiteRulesTest() {
    Add("kb_l1_001_affine");
    Add("kb_l1_002_affine");
    Write("kernels/kb_l1_001_affine.cu", Kernel("1.00005f"));
    Write("kernels/kb_l1_002_affine.cu", Kernel("1.0f"));
    Write("times.json", R"({"level1": {"1_Affine.py": {"mean": 0.5, "hardware": "a device"}}})");
  }

  std::string Kept() { return test::Read(directory_.path() / "kernels/results.jsonl"); }

  void Add(const std::string& name, const std::string& traits = "KernelBench level 1") {
    const std::string yaml = "name: " + name + R"(
title: Affine map
family: elementwise
split: train
traits: [)" + traits +
                             R"(]
description: out[i] = 2 x[i] + y[i] for n float32 values.
parameters:
  - {name: x, role: input, dtype: float32, shape: [n], distribution: normal}
  - {name: y, role: input, dtype: float32, shape: [n], distribution: normal}
  - {name: out, role: output, dtype: float32, shape: [n]}
  - {name: n, role: scalar, dtype: int32, value: n}
sizes: {visible: [{n: 100}], hidden: [{n: 33}], timing: {n: 65536}}
needs: {bytes: "12*n", flops: "2*n"}
)";
    Write("suite/" + name + "/problem.yaml", yaml);
    Write("suite/" + name + "/reference.cu", Kernel("1.0f"));
    Write("suite/" + name + "/oracle.cc",
          "extern \"C\" void oracle(const double* x, const double* y, double* out, int64_t n) {\n"
          "  for (int64_t i = 0; i < n; ++i) out[i] = 2 * x[i] + y[i];\n}\n");
  }

  static std::string Kernel(const std::string& factor) {
    return "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
           "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i < n) out[i] = (2.0f * x[i] + y[i]) * " +
           factor +
           ";\n}\nextern \"C\" void launch(const float* x, const float* y, float* out, int n) {\n"
           "  k<<<(n + 255) / 256, 256>>>(x, y, out, n);\n}\n";
  }
};

TEST_F(SuiteRulesTest, CountsByBothRulesAndNamesWhatDiffers) {
  const Result result = Run("eval suite suite --kernels kernels --pytorch-times times.json --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json found = json::parse(result.out);
  EXPECT_EQ(found["groups"][0]["correct"], 1);
  EXPECT_EQ(found["groups_as_kernelbench"][0]["correct"], 2);
  EXPECT_EQ(found["pytorch_hardware"], "a device");
  const json& first = found["results"][0];
  EXPECT_EQ(first["verdict"], "wrong");
  EXPECT_EQ(first["as_kernelbench"]["verdict"], "correct");
  const double seconds = first["as_kernelbench"]["seconds"].get<double>();
  EXPECT_NEAR(first["as_kernelbench"]["speedup"].get<double>(), 0.5e-3 / seconds, 1e-3 * 0.5e-3 / seconds);
  EXPECT_NEAR(found["results"][1]["as_kernelbench"]["speedup"].get<double>(), 1, 0.01)
      << "PyTorch's time is not known: over the reference";

  const Result again = Run("eval suite suite --kernels kernels --pytorch-times times.json --json");
  EXPECT_EQ(again.out, result.out);
  const Result table = Run("eval suite suite --kernels kernels --pytorch-times times.json --markdown");
  EXPECT_THAT(table.out, HasSubstr("**as KernelBench counts**"));
  EXPECT_THAT(table.out, HasSubstr("| kb_l1_001_affine | wrong | correct | At n=100: "));
  EXPECT_THAT(Run("eval suite suite --kernels kernels").out, Not(HasSubstr("KernelBench counts")));
}

TEST_F(SuiteRulesTest, PrintsALineForEachKernelAndNamesThoseThatAreNotJudged) {
  Add("third");
  Write("kernels/therd.cu", Kernel("1.0f"));
  Write("kernels/notes.txt", "");
  const Result result = Run("eval suite suite --kernels kernels");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, testing::StartsWith("PROBLEM           VERDICT  SPEEDUP OR DIAGNOSIS\n"
                                              "kb_l1_001_affine  wrong    At n=100: "));
  EXPECT_THAT(result.out, HasSubstr("\nkb_l1_002_affine  correct  1.00\n\nGROUP "));
  EXPECT_THAT(result.out, testing::EndsWith("\nresults of each kernel: kernels/results.jsonl\n"));
  EXPECT_EQ(result.err,
            "warning: kernels: not judged, as no problem of the suite has the name: therd.cu; expected: third.cu\n");
}

// A reference that works a hundred times as much as it has to.
TEST_F(SuiteRulesTest, GivesTheGeometricMeanAnIntervalAndFlagsExcessiveSpeedups) {
  std::string slow = Kernel("1.0f");
  slow.replace(slow.find("  if (i < n)"), 12,
               "  float s = 0.0f;\n  for (int r = 0; r < 4000; ++r) s += 1.0f / (r + x[i % n] * x[i % n] + 1.0f);\n"
               "  if (s < 0.0f) return;\n  if (i < n)");
  Write("suite/kb_l1_001_affine/reference.cu", slow);
  Write("kernels/kb_l1_001_affine.cu", Kernel("1.0f"));
  const Result result = Run("eval suite suite --kernels kernels --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json found = json::parse(result.out);
  const double first = found["results"][0]["speedup"], second = found["results"][1]["speedup"];
  EXPECT_GT(first, 10);
  EXPECT_TRUE(found["results"][0]["excessive_speedup"].get<bool>());
  EXPECT_FALSE(found["results"][1].contains("excessive_speedup"));
  const json& group = found["groups"][0];
  const double mean = (std::log(first) + std::log(second)) / 2, half = std::abs(std::log(first) - std::log(second)) / 2;
  EXPECT_NEAR(group["geometric_mean"].get<double>(), std::exp(mean), 1e-6 * std::exp(mean));
  // Of two values Student's t is 12.706 and the mean's deviation half their distance.
  EXPECT_NEAR(std::log(group["geometric_mean_high"].get<double>()), mean + 12.7062 * half, 1e-3);
  EXPECT_NEAR(std::log(group["geometric_mean_low"].get<double>()), mean - 12.7062 * half, 1e-3);
  const Result table = Run("eval suite suite --kernels kernels");
  EXPECT_THAT(table.out,
              HasSubstr("speedups above 10, which KernelBench flags as excessive (look at these kernels): 1"));
}

// A verdict that a busy machine may have caused is judged again.
TEST_F(SuiteRulesTest, KeepsNoVerdictOfTheMoment) {
  const std::string command = "eval suite suite --kernels kernels --json";
  const Result first = Run(command);
  const std::string kept = Kept();
  const size_t verdict = kept.find("\"wrong\"");
  ASSERT_NE(verdict, std::string::npos) << kept;
  for (const char* of_the_moment : {"\"interference\"", "\"not judged\""}) {
    Write("kernels/results.jsonl", std::string(kept).replace(verdict, 7, of_the_moment));
    EXPECT_EQ(Run(command).out, first.out);
    EXPECT_THAT(Kept(), HasSubstr("\"wrong\"")) << "the new result is kept";
  }
}

// PyTorch's times are of the original sizes.
TEST_F(SuiteRulesTest, ComparesNoSmallSizesWithPytorch) {
  const std::string command = "eval suite suite --kernels kernels --pytorch-times times.json";
  EXPECT_THAT(
      Run(command).out,
      HasSubstr("of 2 speedups: 1 over PyTorch's times of times.json, measured on a device; 1 over the reference"));
  // The same time, had it been measured here.
  std::string kept = Kept();
  const std::string listed = "\"pytorch_listed\":true";
  ASSERT_NE(kept.find(listed), std::string::npos) << kept;
  Write("kernels/results.jsonl", kept.replace(kept.find(listed), listed.size(), "\"pytorch_listed\":false"));
  EXPECT_THAT(Run(command).out,
              HasSubstr("a device; 1 over PyTorch eager, measured on this device; 1 over the reference"));
  Add("kb_l1_001_affine", "KernelBench level 1, small sizes");
  const Result result = Run(command);
  EXPECT_THAT(result.out, HasSubstr("0 over PyTorch's times")) << "a changed problem is judged again";
}

TEST_F(SuiteRulesTest, RefusesFilesWithoutTimes) {
  Write("none.json", R"({"level1": {"1_Affine.py": {"mean": "fast"}}})");
  Write("text.json", "no JSON");
  const std::string suite = "eval suite suite --kernels kernels --pytorch-times ";
  for (const char* file : {"none.json", "text.json"}) {
    const Result result = Run(suite + file);
    EXPECT_EQ(result.code, 3);
    EXPECT_THAT(result.err, HasSubstr(std::string(file) + ": holds no times; expected"));
  }
  EXPECT_THAT(Run(suite + "missing.json").err, HasSubstr("there is no such file"));
  EXPECT_EQ(Run("eval kernel kernels/kb_l1_001_affine.cu --problem suite/kb_l1_001_affine --as-kernelbench").code, 2);
}

}  // namespace
}  // namespace kgrpo
