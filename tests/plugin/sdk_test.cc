// The parts of kgrpo/sdk beyond wrappers: sampling, Adam, processes within limits.
#include <kgrpo/sdk/adam.h>
#include <kgrpo/sdk/process.h>
#include <kgrpo/sdk/sampling.h>
#include "test.h"

namespace kgrpo {
namespace {

using testing::DoubleNear;

kgrpo_sampling Sampling(double temperature, uint32_t top_k = 0, double top_p = 1, double min_p = 0) {
  return {sizeof(kgrpo_sampling), 1, temperature, top_k, top_p, min_p};
}

// How often each token is drawn, over numbers spread evenly on [0, 1).
std::vector<double> Shares(const std::vector<double>& probabilities, const kgrpo_sampling& sampling) {
  std::vector<double> logprobs, shares(probabilities.size());
  for (double probability : probabilities) logprobs.push_back(std::log(probability));
  constexpr int kDraws = 1000;
  for (int i = 0; i < kDraws; ++i) shares[SampleToken(logprobs, sampling, (i + 0.5) / kDraws)] += 1.0 / kDraws;
  return shares;
}

TEST(Sampling, DrawsByProbabilityWhatIsLeft) {
  const std::vector<double> all = {0.1, 0.4, 0.0, 0.3, 0.2};
  const auto are = [](double a, double b, double c, double d, double e) {
    return ElementsAre(DoubleNear(a, 2e-3), DoubleNear(b, 2e-3), DoubleNear(c, 0), DoubleNear(d, 2e-3),
                       DoubleNear(e, 2e-3));
  };
  EXPECT_THAT(Shares(all, Sampling(1)), are(0.1, 0.4, 0, 0.3, 0.2));
  EXPECT_THAT(Shares(all, Sampling(0)), are(0, 1, 0, 0, 0));
  EXPECT_THAT(Shares(all, Sampling(1, 2)), are(0, 4.0 / 7, 0, 3.0 / 7, 0));
  EXPECT_THAT(Shares(all, Sampling(1, 0, 0.65)), are(0, 4.0 / 7, 0, 3.0 / 7, 0));
  EXPECT_THAT(Shares(all, Sampling(1, 0, 0.75)), are(0, 4.0 / 9, 0, 3.0 / 9, 2.0 / 9));
  EXPECT_THAT(Shares(all, Sampling(1, 0, 0)), are(0, 1, 0, 0, 0));
  EXPECT_THAT(Shares(all, Sampling(1, 0, 1, 0.4)), are(0, 4.0 / 9, 0, 3.0 / 9, 2.0 / 9));
  EXPECT_THAT(Shares(all, Sampling(1, 3, 0.7)), are(0, 4.0 / 7, 0, 3.0 / 7, 0));  // 0.4 and 0.3 are 7/9 of three
}

TEST(Sampling, NeverDrawsWhatCannotCome) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const std::vector<double> logprobs = LogSoftmax({kNever, 1, kNever, 1}, 2);
  EXPECT_NEAR(logprobs[1], std::log(0.5), 1e-15);
  EXPECT_NEAR(Entropy(logprobs), std::log(2), 1e-15);
  EXPECT_EQ(SampleToken(logprobs, Sampling(1), 0.0), 1u);
  EXPECT_EQ(SampleToken(logprobs, Sampling(1), std::nextafter(1.0, 0.0)), 3u);
}

TEST(Adam, StepsByTheLearningRateWhereTheGradientStaysTheSame) {
  std::vector<float> values = {1, 2, 3};
  const std::vector<float> gradients = {0.5F, -1e-3F, 0};
  Adam adam({{"all", values.data(), gradients.data(), 3, false}});
  EXPECT_NEAR(adam.GradientNorm(), std::hypot(0.5, 1e-3), 1e-8);
  for (int step = 1; step <= 20; ++step) {
    adam.Step(0.01);
    EXPECT_NEAR(values[0], 1 - 0.01 * step, 1e-5);
    EXPECT_NEAR(values[1], 2 + 0.01 * step, 1e-5);
    EXPECT_EQ(values[2], 3);
  }
}

// optax.adam(0.1) from 1.0 with the gradients 1, -2, 0.5 (optax 0.2.8, float64): the values after each step.
TEST(Adam, StepsAsOptaxDoes) {
  std::vector<float> value = {1}, gradient = {0};
  Adam adam({{"one", value.data(), gradient.data(), 1, false}});
  const std::array<std::array<float, 2>, 3> steps = {{{1, 0.900000001F}, {-2, 0.936610353F}, {0.5F, 0.95027942F}}};
  for (const auto& [given, expected] : steps) {
    gradient[0] = given;
    adam.Step(0.1);
    EXPECT_NEAR(value[0], expected, 1e-6);
  }
}

TEST(Process, GivesOutputErrorsAndExitCode) {
  const ProcessResult result = RunProcess({"sh", "-c", "echo out; echo err >&2; read line; exit 7"});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.ok());
}

TEST(Process, EndsAtItsLimits) {
  ProcessLimits limits;
  limits.seconds = 0.2;
  limits.output_bytes = 1000;
  // A child that it leaves behind holds its output open. None of these ends by itself before ctest's own time limit.
  ProcessResult result = RunProcess({"sh", "-c", "sleep 3000 & sleep 3000"}, limits);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
  result = RunProcess({"sh", "-c", "exec >&- 2>&-; sleep 3000"}, limits);
  EXPECT_TRUE(result.timed_out);
  limits.seconds = 30;
  result = RunProcess({"yes"}, limits);
  EXPECT_TRUE(result.too_much);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(result.ok());
  result = RunProcess({"sh", "-c", "kill -SEGV $$"}, limits);
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_FALSE(result.ok());
}

TEST(Process, SaysWhatCannotBeStarted) {
  EXPECT_THAT(test::MessageOf([&] { RunProcess({"no_such_program"}); }),
              HasSubstr("cannot start no_such_program: No such file or directory"));
}

TEST(TemporaryFolder, IsGoneAtTheEnd) {
  std::string file;
  {
    const TemporaryFolder folder;
    file = folder.Write("a", "text");
    EXPECT_TRUE(std::ifstream(file).good());
  }
  EXPECT_FALSE(std::ifstream(file).good());
}

}  // namespace
}  // namespace kgrpo
