// A run that replaces another one, with the plugin coder_gpt4o: the new run gets neither answers nor spending of the
// earlier one, which is kept until the new one can start.
#include "run_with_service.h"

#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

TEST_F(RunWithServiceTest, ANewRunAsksAnewWhatAReplacedOneHadAsked) {
  std::atomic<int> calls{0};
  Server server([&](const auto& request, auto& response, int) {
    ++calls;
    AnswerKernel(request, response);
  });
  WritePipeline(server.Url());
  const std::string run = "p.yaml --set loop.max_steps=1 --set output_dir=run";
  ASSERT_EQ(Host(run).code, 0);
  const int asked = calls;
  ASSERT_GT(asked, 0);
  const auto recording = directory_.path() / "run/artifacts/coder/exchanges.sqlite";
  const auto count = [&] { return Number(recording, "SELECT count(*) FROM exchanges"); };
  const auto spent = [&] { return Number(recording, "SELECT cost FROM spending"); };
  const double kept = count(), cost = spent();
  EXPECT_GT(cost, 0);

  EXPECT_NE(Host("run " + run + " --overwrite --set reward.plugin=absent").code, 0);  // found before the plugins
  EXPECT_NE(Host("run " + run + " --overwrite --set coder.options.recording=x --set coder.options.mode=replay").code,
            0);
  EXPECT_EQ(calls, asked);
  EXPECT_EQ(count(), kept);
  EXPECT_DOUBLE_EQ(spent(), cost);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "run/artifacts.earlier"));

  ASSERT_EQ(Host("run " + run + " --overwrite").code, 0);
  EXPECT_EQ(calls, 2 * asked);
  EXPECT_EQ(count(), kept);
  EXPECT_DOUBLE_EQ(spent(), cost);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "run/artifacts.earlier"));
}

// Without --overwrite a new run takes the place of one that failed in its first step, says so, and asks no question
// again that was paid for.
TEST_F(RunWithServiceTest, ANewRunTakesUpTheAnswersOfOneThatFailedAtOnce) {
  std::atomic<int> calls{0}, answered{0};
  std::atomic<bool> healthy{false};
  Server server([&](const auto& request, auto& response, int) {
    if (!healthy && ++calls > 3) return AnswerError(response, 401, ErrorBody("no such account"));
    ++answered;
    AnswerKernel(request, response);
  });
  WritePipeline(server.Url(), "    max_concurrency: 1\n");
  const std::string run = "p.yaml --set loop.max_steps=1 --set output_dir=run";
  EXPECT_NE(Host(run).code, 0);
  EXPECT_EQ(answered, 3);
  const std::string notice =
      "output_dir run holds a run without a finished step: a new run replaces it, and keeps its plugins' files "
      "in artifacts/, such as the coder's answers\n";
  EXPECT_THAT(Host("check " + run).err, HasSubstr("note: " + notice));
  healthy = true;
  const test::Result result = Host(run);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out + result.err, HasSubstr(notice));
  EXPECT_EQ(answered, Number(directory_.path() / "run/artifacts/coder/exchanges.sqlite",
                             "SELECT count(*) FROM exchanges WHERE answered = 1"));
  EXPECT_THAT(Host("run " + run + " --overwrite").out, Not(HasSubstr("without a finished step")));
}

// A new run that was killed before it had begun has left the earlier one's artifacts aside.
TEST_F(RunWithServiceTest, WhatAKilledCommandSetAsideIsPutBack) {
  std::atomic<int> calls{0};
  Server server([&](const auto& request, auto& response, int) {
    ++calls;
    AnswerKernel(request, response);
  });
  WritePipeline(server.Url());
  ASSERT_EQ(Host("p.yaml --set output_dir=run").code, 0);
  const int asked = calls;
  const auto run = directory_.path() / "run";
  const auto recording = run / "artifacts/coder/exchanges.sqlite";
  const double kept = Number(recording, "SELECT count(*) FROM exchanges");
  std::filesystem::rename(run / "artifacts", run / "artifacts.earlier");
  test::Write(run / "artifacts/coder/other.txt", "of the run that never began");
  Host("resume run");
  EXPECT_EQ(calls, asked);
  EXPECT_EQ(Number(recording, "SELECT count(*) FROM exchanges"), kept);
  EXPECT_FALSE(std::filesystem::exists(run / "artifacts.earlier"));
  EXPECT_FALSE(std::filesystem::exists(run / "artifacts/coder/other.txt"));
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
