// What a modelled time is made of beside the kernels: the host's part, and which blocks are counted.
#include <filesystem>
#include <regex>

#include "affine_candidates.h"
#include "interpreter/client/call_prices.h"
#include "kernel_evaluator_fixture.h"
#include "test.h"

namespace kgrpo::evaluator_sim {
namespace {

using namespace evaluator;  // NOLINT: the candidates

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(CallPrices, EveryCallOfTheRuntimeHasARow) {
  const std::regex calls(R"(\n[a-zA-Z*_ ]+ \*?(cuda\w+|__cudaLaunch\w+)\([^;{]*\{)");
  size_t found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KGRPO_SOURCE_DIR) + "/plugins/interpreter/client")) {
    if (!entry.path().filename().string().starts_with("cudart")) continue;
    const std::string text = Read(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), calls), end; it != end; ++it) {
      ++found;
      const interpreter::CallPrice* price = interpreter::FindCallPrice((*it)[1].str());
      ASSERT_NE(price, nullptr) << (*it)[1] << ": give it a row in call_prices.h";
    }
  }
  EXPECT_GT(found, 90u);
}

class ModelledTimeTest : public KernelEvaluatorTest {
 protected:
  static double Seconds(const std::string& source) {
    const KernelEvaluation evaluation = Affine(source);
    EXPECT_EQ(evaluation.verdict, "correct") << evaluation.diagnosis;
    return evaluation.seconds;
  }
};

// 100 streams, events and waits took 1.1 ms of an H200's host (bench/results/h200_prices.csv, "the case").
TEST_F(ModelledTimeTest, CallsOfTheHostAndWaitsTakeTime) {
  const double plain = Seconds(WithBody(kHonest));
  const std::string calls =
      "for (int i = 0; i < 100; ++i) { cudaStream_t s; cudaEvent_t e; cudaStreamCreate(&s); cudaEventCreate(&e); "
      "cudaEventRecord(e, s); cudaEventSynchronize(e); cudaDeviceSynchronize(); cudaEventDestroy(e); "
      "cudaStreamDestroy(s); }";
  const double more = Seconds(WithBody(kHonest + calls)) - plain;
  EXPECT_GT(more, 1.1e-3 / 1.5);
  EXPECT_LT(more, 1.1e-3 * 1.5);
}

// Such as printf, whose cost depends on who reads it.
TEST_F(ModelledTimeTest, WithoutAPriceAKernelIsNotTimed) {
  const KernelEvaluation evaluation = Affine(
      "#include <cstdio>\n" + WithKernel("if (i < n) { out[i] = 2.0f * x[i] + y[i]; if (n > 5000 && i % 1024 == 0) "
                                         "printf(\"%d\\n\", i); }"));
  EXPECT_EQ(evaluation.verdict, "not_timed") << evaluation.diagnosis;
}

TEST_F(ModelledTimeTest, EqualKernelsTakeTheSameTime) {
  EXPECT_EQ(Seconds(WithBody(kHonest)), Seconds(WithBody(kHonest) + "\n// another"));
}

}  // namespace
}  // namespace kgrpo::evaluator_sim
