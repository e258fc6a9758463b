// The judge without a GPU: what a judgement holds, both of its routes, the compiler's verdicts, what a candidate may
// include, the cache, and many threads at once. judge_verdicts_test.cc has the verdicts on what runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "affine_candidates.h"
#include "evaluator_sim/evaluator.h"
#include "judge_fixture.h"

namespace kgrpo::evaluator_sim {
namespace {

using evaluator::kHonest;
using evaluator::kKernel;
using evaluator::kLaunch;
using evaluator::WithBody;
using evaluator::WithKernel;
using testing::HasSubstr;

TEST_F(JudgeTest, RightWithATimeAndMetrics) {
  const Judgement judgement = Affine(WithBody(kHonest));
  EXPECT_EQ(judgement.verdict, "right") << judgement.diagnosis;
  EXPECT_TRUE(judgement.compiled);
  EXPECT_TRUE(judgement.correct);
  EXPECT_GT(judgement.seconds, 1e-6);
  EXPECT_LT(judgement.seconds, 1e-3);
  EXPECT_THAT(judgement.diagnosis, HasSubstr("no GPU used"));
  std::map<std::string, double> metrics(judgement.metrics.begin(), judgement.metrics.end());
  EXPECT_GT(metrics["registers"], 0);
  EXPECT_GT(metrics["occupancy"], 0);
  EXPECT_GT(metrics["dram_bytes"], 1e6);
  EXPECT_EQ(metrics["launches"], 1);
}

TEST_F(JudgeTest, TellsWhereTheTimeGoes) {
  // 48 KiB a block: four blocks on a multiprocessor. Line 4 meets one bank with all lanes, line 6 stores every second.
  const std::string kernel =
      "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
      "  __shared__ float s[12288];\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  s[threadIdx.x * 32] = i < n ? 2.0f * x[i] + y[i] : 0;\n"
      "  __syncthreads();\n"
      "  if (i < n) out[n - 1 - i] = s[(threadIdx.x) * 32] * 0 + 2.0f * x[n - 1 - i] + y[n - 1 - i];\n"
      "}\n";
  const Judgement judgement = Affine(kernel + kLaunch + " { " + kHonest + " }\n");
  ASSERT_EQ(judgement.verdict, "right") << judgement.diagnosis;
  const std::map<std::string, double> metrics(judgement.metrics.begin(), judgement.metrics.end());
  EXPECT_EQ(metrics.size(), judgement.metrics.size()) << "a name twice";
  EXPECT_EQ(metrics.at("resident_blocks"), 4);
  EXPECT_EQ(metrics.at("resident_blocks_by/shared_memory"), 4);
  EXPECT_EQ(metrics.at("resident_blocks_by/threads"), 8);
  EXPECT_EQ(metrics.at("resident_blocks_by/blocks"), 32);
  EXPECT_DOUBLE_EQ(metrics.at("waves"), metrics.at("grid_blocks") / (4 * 132));
  EXPECT_EQ(metrics.at("modelled_seconds"), judgement.seconds);
  EXPECT_GT(metrics.at("seconds/dram"), 0);
  EXPECT_GT(metrics.at("seconds/int"), 0);
  EXPECT_GT(metrics.at("seconds/shared"), 0);
  EXPECT_NEAR(metrics.at("shared_cycles"), 32, 1);
  EXPECT_NEAR(metrics.at("shared_conflicts"), 31.0 / 32, 0.01);
  EXPECT_NEAR(metrics.at("line_shared_cycles/4"), 32, 1);
  EXPECT_NEAR(metrics.at("line_sectors/4"), 4, 0.01);
  EXPECT_GT(metrics.at("bandwidth_peak"), metrics.at("bandwidth_ceiling"));
  EXPECT_GT(metrics.at("l2_bandwidth_ceiling"), metrics.at("bandwidth_ceiling"));
  EXPECT_GT(metrics.at("arithmetic_peak/tensor"), metrics.at("arithmetic_peak/fp32"));
  EXPECT_GT(metrics.at("issue_peak"), metrics.at("issued_instructions") / judgement.seconds);
  double of_lines = 0;
  for (const auto& [name, value] : metrics) of_lines += name.starts_with("line/") ? value : 0;
  EXPECT_GT(of_lines, 0.5);
  EXPECT_LE(of_lines, 1);
}

TEST_F(JudgeTest, SameSourceSameJudgement) {
  EXPECT_EQ(Affine(WithBody(kHonest)).ToJson(), Affine(WithBody(kHonest)).ToJson());
}

TEST_F(JudgeTest, BothRoutesAgree) {
  const Judgement fast = Affine(WithBody(kHonest)), thorough = Affine(WithBody(kHonest), true);
  EXPECT_EQ(thorough.verdict, "right") << thorough.diagnosis;
  EXPECT_NEAR(fast.seconds / thorough.seconds, 1, 0.05);  // other samples
}

TEST_F(JudgeTest, CompilerVerdicts) {
  EXPECT_EQ(Affine("this is no C++").verdict, "not_compiled");
  const Judgement typo = Affine(WithKernel("if (i < n) out[i] = 2.0f * xx[i] + y[i];"));
  EXPECT_EQ(typo.verdict, "not_compiled");
  EXPECT_THAT(typo.diagnosis, HasSubstr("| kernel.cu(1): error: identifier \"xx\" is undefined"));
  EXPECT_FALSE(typo.compiled);
  const Judgement signature = Affine(kKernel + "extern \"C\" void launch(const float* x, float* out, int n) {}\n");
  EXPECT_EQ(signature.verdict, "not_compiled") << signature.diagnosis;
  const Judgement shared =
      Affine(WithKernel("__shared__ float s[20000]; s[i % 20000] = x[i]; if (i < n) out[i] = s[(i + 1) % 20000];"));
  EXPECT_EQ(shared.verdict, "not_compiled");
  EXPECT_THAT(shared.diagnosis, HasSubstr("shared"));
  EXPECT_EQ(Affine("").verdict, "not_compiled");
  EXPECT_EQ(Affine(std::string("int a;\0int b;", 13)).verdict, "not_compiled");
}

TEST_F(JudgeTest, TemplateBombIsStopped) {
  const Judgement bomb = AffineThenReference(
      "template <int N, int M> struct B { static constexpr long v = B<N - 1, M * 2>::v + B<N - 1, M * 2 + 1>::v; };\n"
      "template <int M> struct B<0, M> { static constexpr long v = M; };\n" +
      WithKernel("out[i] = B<24, 1>::v;"));
  EXPECT_EQ(bomb.verdict, "not_compiled");
}

TEST_F(JudgeTest, IncludePolicy) {
  for (const char* line :
       {"#include \"/etc/passwd\"", "#include </dev/zero>", "#include <cub/cub.cuh>", "#include <cublas_v2.h>",
        "#include \"../../reference.cu\"", "#define H <cmath>\n#include H", "#inc\\\nlude \"/etc/passwd\"",
        "%:include \"/etc/passwd\"", "#/**/include \"/etc/passwd\"", "#include_next <math.h>"}) {
    const Judgement judgement = Affine(std::string(line) + "\n" + WithBody(kHonest));
    EXPECT_EQ(judgement.verdict, "forbidden") << line << ": " << judgement.diagnosis;
    EXPECT_THAT(judgement.diagnosis, testing::Not(HasSubstr("root:"))) << line;
  }
  EXPECT_EQ(Affine("#include <cuda_runtime.h>\n#include <cmath>\n#include <cstdio>\n#include <stdint.h>\n" +
                   WithBody(kHonest))
                .verdict,
            "right");
}

TEST_F(JudgeTest, ReferenceIsTheOracleWhereThereIsNone) {
  const OpenProblem open(kProblems + "append_offset", cache_directory_);
  EXPECT_EQ(judge_->Evaluate(open, open.problem().reference_source, 3, false).verdict, "right");
  std::string wrong = open.problem().reference_source;
  wrong.replace(wrong.find("(int)i"), 6, "(int)i & 63");
  EXPECT_EQ(judge_->Evaluate(open, wrong, 3, false).verdict, "wrong");
}

TEST_F(JudgeTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> verdicts(12);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    threads.emplace_back([i, &verdicts] {
      verdicts[i] = Affine(i % 3 == 0   ? WithBody(kHonest) + "\n// " + std::to_string(i)
                           : i % 3 == 1 ? WithBody("out[0] = 1; // " + std::to_string(i) + "\n")
                                        : WithKernel("if (i < n) out[i] = 0;"))
                        .verdict;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < verdicts.size(); ++i)
    EXPECT_EQ(verdicts[i], i % 3 == 0 ? "right" : i % 3 == 1 ? "crash" : "wrong") << i;
}

TEST_F(JudgeTest, CachedByContent) {
  Evaluator::Options options;
  options.cache_directory = cache_directory_;
  const std::string source = WithBody(kHonest);
  std::string first;
  {
    Evaluator evaluator(options);
    first = evaluator.Evaluate(*affine_, source, 1, false).ToJson();
    EXPECT_EQ(evaluator.Baseline(*affine_).verdict, "right");
  }
  std::vector<double> cached;
  Evaluator evaluator(options, [&](const char* name, double value) {
    if (std::string(name) == "cached") cached.push_back(value);
  });
  EXPECT_EQ(evaluator.Evaluate(*affine_, source, 99, false).ToJson(), first);
  EXPECT_THAT(cached, testing::ElementsAre(1)) << "it was not judged again";
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
