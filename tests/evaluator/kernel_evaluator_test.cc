// The evaluator without a GPU: an evaluation's content, both compile routes, the compiler's verdicts, permitted
// includes, the cache, and many threads at once. Verdicts on kernels that run: kernel_evaluator_verdicts_test.cc.
#include "evaluator_sim/kernel_evaluator.h"
#include "affine_candidates.h"
#include "judge/front/evaluator.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using evaluator::kHonest;
using evaluator::kKernel;
using evaluator::kLaunch;
using evaluator::WithBody;
using evaluator::WithKernel;

TEST_F(KernelEvaluatorTest, CorrectWithATimeAndMetrics) {
  const KernelEvaluation evaluation = Affine(WithBody(kHonest));
  EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  EXPECT_TRUE(evaluation.compiled);
  EXPECT_TRUE(evaluation.correct);
  EXPECT_GT(evaluation.seconds, 1e-6);
  EXPECT_LT(evaluation.seconds, 1e-3);
  EXPECT_THAT(evaluation.diagnosis, HasSubstr("no GPU used"));
  std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
  EXPECT_GT(metrics["registers"], 0);
  EXPECT_GT(metrics["occupancy"], 0);
  EXPECT_GT(metrics["dram_bytes"], 1e6);
  EXPECT_EQ(metrics["launches"], 1);
}

TEST_F(KernelEvaluatorTest, TellsWhereTheTimeGoes) {
  // 48 KiB a block: four blocks on a multiprocessor. Line 4 meets one bank with all lanes, line 6 stores every second.
  const std::string kernel =
      "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
      "  __shared__ float s[12288];\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  s[threadIdx.x * 32] = i < n ? 2.0f * x[i] + y[i] : 0;\n"
      "  __syncthreads();\n"
      "  if (i < n) out[n - 1 - i] = s[(threadIdx.x) * 32] * 0 + 2.0f * x[n - 1 - i] + y[n - 1 - i];\n"
      "}\n";
  const KernelEvaluation evaluation = Affine(kernel + kLaunch + " { " + kHonest + " }\n");
  ASSERT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
  const std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
  EXPECT_EQ(metrics.size(), evaluation.metrics.size()) << "a name twice";
  EXPECT_EQ(metrics.at("resident_blocks"), 4);
  EXPECT_EQ(metrics.at("resident_blocks_by/shared_memory"), 4);
  EXPECT_EQ(metrics.at("resident_blocks_by/threads"), 8);
  EXPECT_EQ(metrics.at("resident_blocks_by/blocks"), 32);
  EXPECT_DOUBLE_EQ(metrics.at("waves"), metrics.at("grid_blocks") / (4 * 132));
  EXPECT_EQ(metrics.at("modelled_seconds"), evaluation.seconds);
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
  EXPECT_GT(metrics.at("issue_peak"), metrics.at("issued_instructions") / evaluation.seconds);
  double of_lines = 0;
  for (const auto& [name, value] : metrics) of_lines += name.starts_with("line/") ? value : 0;
  EXPECT_GT(of_lines, 0.5);
  EXPECT_LE(of_lines, 1);
}

TEST_F(KernelEvaluatorTest, SameSourceSameEvaluation) {
  EXPECT_EQ(Affine(WithBody(kHonest)).ToJson(), Affine(WithBody(kHonest)).ToJson());
}

TEST_F(KernelEvaluatorTest, BothRoutesAgree) {
  const KernelEvaluation fast = Affine(WithBody(kHonest)), thorough = Affine(WithBody(kHonest), true);
  EXPECT_EQ(thorough.verdict, "correct") << thorough.diagnosis;
  EXPECT_NEAR(fast.seconds / thorough.seconds, 1, 0.05);  // other samples
}

TEST_F(KernelEvaluatorTest, CompilerVerdicts) {
  EXPECT_EQ(Affine("this is no C++").verdict, "not_compiled");
  const KernelEvaluation typo = Affine(WithKernel("if (i < n) out[i] = 2.0f * xx[i] + y[i];"));
  EXPECT_EQ(typo.verdict, "not_compiled");
  EXPECT_THAT(typo.diagnosis, HasSubstr("| kernel.cu(1): error: identifier \"xx\" is undefined"));
  EXPECT_FALSE(typo.compiled);
  const KernelEvaluation signature =
      Affine(kKernel + "extern \"C\" void launch(const float* x, float* out, int n) {}\n");
  EXPECT_EQ(signature.verdict, "not_compiled");
  const std::string of_launch =
      "It defines launch with another signature than the problem's, extern \"C\" void launch(const float* x, const "
      "float* y, float* out, int n). It does not compile. The compiler says:";
  EXPECT_THAT(signature.diagnosis, testing::StartsWith(of_launch));
  EXPECT_EQ(Affine(kKernel + "void launch(float* x, float* out, int n) {}\n").diagnosis,
            "The source does not define extern \"C\" void launch(const float* x, const float* y, float* out, int n).");
  const KernelEvaluation shared =
      Affine(WithKernel("__shared__ float s[20000]; s[i % 20000] = x[i]; if (i < n) out[i] = s[(i + 1) % 20000];"));
  EXPECT_EQ(shared.verdict, "not_compiled");
  EXPECT_THAT(shared.diagnosis, HasSubstr("shared"));
  EXPECT_EQ(Affine("").verdict, "not_compiled");
  EXPECT_EQ(Affine(std::string("int a;\0int b;", 13)).verdict, "not_compiled");
}

TEST_F(KernelEvaluatorTest, IncludePolicy) {
  for (const char* line :
       {"#include \"/etc/passwd\"", "#include </dev/zero>", "#include <cub/cub.cuh>", "#include <cublas_v2.h>",
        "#include \"../../reference.cu\"", "#define H <cmath>\n#include H", "#inc\\\nlude \"/etc/passwd\"",
        "%:include \"/etc/passwd\"", "#/**/include \"/etc/passwd\"", "#include_next <math.h>"}) {
    const KernelEvaluation evaluation = Affine(std::string(line) + "\n" + WithBody(kHonest));
    EXPECT_EQ(evaluation.verdict, "forbidden") << line << ": " << evaluation.diagnosis;
    EXPECT_THAT(evaluation.diagnosis, testing::Not(HasSubstr("root:"))) << line;
  }
  std::string unmarked =
      WithBody(kHonest);  // the call is of the same unit: the launch function's linkage does not matter
  ASSERT_NE(unmarked.find("extern \"C\" "), std::string::npos);
  unmarked.erase(unmarked.find("extern \"C\" "), std::string("extern \"C\" ").size());
  EXPECT_EQ(Affine(unmarked).verdict, "correct");
  EXPECT_EQ(Affine("#include <cuda_runtime.h>\n#include <cmath>\n#include <cstdio>\n#include <stdint.h>\n" +
                   WithBody(kHonest))
                .verdict,
            "correct");
}

TEST_F(KernelEvaluatorTest, ReferenceIsTheOracleWhereThereIsNone) {
  const OpenProblem open(kProblems + "append_offset", cache_directory_);
  EXPECT_EQ(evaluator_->Evaluate(open, open.problem.reference_source, 3, false).verdict, "correct");
  std::string wrong = open.problem.reference_source;
  wrong.replace(wrong.find("(int)i"), 6, "(int)i & 63");
  EXPECT_EQ(evaluator_->Evaluate(open, wrong, 3, false).verdict, "wrong");
}

TEST_F(KernelEvaluatorTest, ManyThreadsAtOnce) {
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
    EXPECT_EQ(verdicts[i], i % 3 == 0 ? "correct" : i % 3 == 1 ? "crash" : "wrong") << i;
}

// One with a cache, as the plugin has it.
class CachedEvaluatorTest : public KernelEvaluatorTest {
 protected:
  static std::unique_ptr<evaluator::Evaluator> MakeEvaluator(uint64_t seed = 0,
                                                             evaluator::EvaluationMemory::Report report = {}) {
    return std::make_unique<evaluator::Evaluator>(
        std::make_unique<KernelEvaluator>(KernelEvaluator::Options{}),
        evaluator::EvaluatorOptions{.cache_directory = cache_directory_, .seed = seed}, std::move(report));
  }
};

TEST_F(CachedEvaluatorTest, CachedByContent) {
  const std::string source = WithBody(kHonest);
  std::string first;
  {
    const auto evaluator = MakeEvaluator();
    first = evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), source, {.seed = 1}).ToJson();
    EXPECT_EQ(evaluator->Baseline(*evaluator->Open(kProblems + "affine")).verdict, "correct");
  }
  std::vector<double> cached;
  const auto evaluator = MakeEvaluator(0, [&](const char* name, double value) {
    if (std::string(name) == "cached") cached.push_back(value);
  });
  EXPECT_EQ(evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), source, {.seed = 99}).ToJson(), first);
  EXPECT_THAT(cached, testing::ElementsAre(1)) << "it was not judged again";
  const std::string& reference = affine_->problem.reference_source;
  const std::string thorough =
      evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), reference, {.thorough = true}).ToJson();
  EXPECT_EQ(evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), reference, {.thorough = true}).ToJson(),
            thorough);
  evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), source, {.thorough = true});
  EXPECT_THAT(cached, testing::ElementsAre(1, 0, 1)) << "of thorough evaluations the reference's alone is kept";
}

TEST_F(CachedEvaluatorTest, HiddenSizesAreNamedForTheirAuthorAlone) {
  const auto evaluator = MakeEvaluator();
  const std::string unwritten = WithKernel("if (i < n && n != 33) out[i] = 2.0f * x[i] + y[i];");
  EXPECT_EQ(evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), unwritten, {.show_hidden = true}).diagnosis,
            "At n=33 (hidden): out was never written.");
  EXPECT_EQ(
      evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), unwritten, {.thorough = true, .show_hidden = true})
          .diagnosis,
      "At n=33 (hidden): out was never written.");
  EXPECT_EQ(evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), unwritten, {}).diagnosis,
            "At a size that is not shown: out was never written.")
      << "what was shown is not kept";
  const std::string large = WithKernel("if (i < n) out[i] = 2.0f * x[i] + y[i] * (n < 100000);");
  EXPECT_THAT(evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), large, {.show_hidden = true}).diagnosis,
              testing::StartsWith("At the timing size (n=1048576): "));
  EXPECT_THAT(evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), large, {}).diagnosis,
              testing::StartsWith("At the timing size: "));
}

TEST_F(CachedEvaluatorTest, SeedsOfThoroughEvaluationsAndOfTheOption) {
  const auto error = [&](uint64_t option, const evaluator::Evaluator::Request& request) {
    const auto evaluator = MakeEvaluator(option);
    const KernelEvaluation evaluation =
        evaluator->Evaluate(*evaluator->Open(kProblems + "affine"), WithBody(kHonest), request);
    const std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
    return metrics.at("worst_error/out");
  };
  const double thorough = error(0, {.seed = 1, .thorough = true});
  EXPECT_EQ(error(0, {.seed = 1, .thorough = true}), thorough);
  EXPECT_NE(error(0, {.seed = 2, .thorough = true}), thorough);
  EXPECT_EQ(error(0, {.seed = 1}), error(0, {.seed = 2})) << "a quick evaluation is one for all runs";
  EXPECT_NE(error(1, {}), error(2, {}));
}

// Of a tolerance of 2 u + 24 u relative, and as much of the root mean square, which is sqrt(5) here.
TEST_F(KernelEvaluatorTest, TellsHowNearToItsToleranceAKernelComes) {
  const auto error = [](const std::string& expression) {
    const KernelEvaluation evaluation = Affine(WithKernel("if (i < n) out[i] = " + expression + ";"));
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    const std::map<std::string, double> metrics(evaluation.metrics.begin(), evaluation.metrics.end());
    return metrics.at("worst_error/out");
  };
  EXPECT_LT(error("2.0f * x[i] + y[i]"), 0.05);
  const double off = error("(2.0f * x[i] + y[i]) * 1.000001f");
  EXPECT_GT(off, 0.4);
  EXPECT_LT(off, 0.7);
  const KernelEvaluation wrong = Affine(WithKernel("if (i < n) out[i] = (2.0f * x[i] + y[i]) * 1.00001f;"));
  EXPECT_EQ(wrong.verdict, "wrong");
  for (const auto& [name, value] : wrong.metrics) EXPECT_NE(name, "worst_error/out");
}

// append_offset has no oracle, so whoever is asked for the reference's outputs has computed them.
TEST_F(KernelEvaluatorTest, ExpectedAtTheTimingSizeIsComputedOnce) {
  const std::string cache = cache_directory_ + "/expected_once";
  std::filesystem::create_directories(cache);
  int computed = 0;
  const auto ask = [&](bool keep) {
    const OpenProblem open(kProblems + "append_offset", cache, keep);
    const auto expected = open.ExpectedAtTiming([&](const std::vector<evaluator::Argument>& arguments) {
      ++computed;
      std::vector<evaluator::Expected> outputs(arguments.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        const evaluator::Parameter& parameter = open.problem.parameters[i];
        const auto elements = static_cast<size_t>(arguments[i].elements);
        if (!parameter.IsWritten()) continue;
        if (evaluator::Info(parameter.dtype).is_floating)
          outputs[i].reals.assign(elements, 1);
        else
          outputs[i].wholes.assign(elements, 1);
      }
      return outputs;
    });
    EXPECT_NE(expected, nullptr);
  };
  ask(false);
  ask(false);
  EXPECT_EQ(computed, 2) << "nothing is kept";
  ask(true);
  ask(true);
  EXPECT_EQ(computed, 3);
  const std::filesystem::path file = std::filesystem::directory_iterator(cache + "/expected")->path();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 8);
  ask(true);
  EXPECT_EQ(computed, 4) << "a file that was cut short is computed again";
  ask(true);
  EXPECT_EQ(computed, 4);
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
