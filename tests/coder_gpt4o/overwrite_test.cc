// A run that replaces another one, with the plugin coder_gpt4o: nothing that the earlier one was told or has paid is
// the new one's, and it is kept until the new one can start.
#include "run_with_service.h"

#include <gtest/gtest.h>

#include <atomic>

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
