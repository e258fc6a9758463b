// Runs and evaluations that end early, with a service on this machine: the spending is reported.
#include "run_with_service.h"

#include "test.h"

#include <gtest/gtest-spi.h>
#include <unistd.h>

#include <csignal>

namespace kgrpo::coder_gpt4o {
namespace {

using test::Result;
using ::testing::ContainsRegex;

// Answers three calls, then stops the command whose line holds the word, and answers no more until it is over.
class StoppingServer {
 public:
  explicit StoppingServer(const std::string& word, int with = SIGINT)
      : server_([this, word, with](const auto& request, auto& response, int) {
          const int call = ++calls_;
          if (call <= 3) return AnswerKernel(request, response);
          if (call == 4 && !StopHost(word, with)) return AnswerError(response, 400, ErrorBody("nobody to stop"));
          over_.wait();
        }) {}
  std::string Url() const { return server_.Url(); }
  void End() { end_.set_value(); }

 private:
  std::promise<void> end_;
  std::shared_future<void> over_ = std::shared_future<void>(end_.get_future());
  std::atomic<int> calls_{0};
  Server server_;
};

TEST(StopHostTest, FailsWhereThereIsNothingToStop) {
  EXPECT_TRUE(HostProcess("a-word-of-no-command").empty());
  EXPECT_NONFATAL_FAILURE(StopHost("a-word-of-no-command"), "no kgrpo-host runs with a-word-of-no-command");
}

TEST_F(RunWithServiceTest, AStoppedRunTellsWhatItHasCost) {
  const std::string word = "run-" + std::to_string(getpid());
  StoppingServer server(word);
  WritePipeline(server.Url(), "    max_concurrency: 1\n");
  const Result result = Host("p.yaml --set output_dir=" + word);
  server.End();
  EXPECT_EQ(result.code, 130);
  // Three answers of $0.025, and the prompt and max_tokens of the one that was cut short.
  EXPECT_THAT(
      result.err,
      AllOf(ContainsRegex("stopped by the user; no checkpoint was written yet; the coder has cost "
                          "\\$[0-9.]+ so far, of it up to \\$[0-9.]+ for attempts without an answer; to start again: "
                          "kgrpo-host resume ")));
  const double spent =
      Number(directory_.path() / word / "artifacts/coder/exchanges.sqlite", "SELECT cost FROM spending");
  EXPECT_GT(spent, 3 * 0.025);
  char text[64];
  std::snprintf(text, sizeof text, "the coder has cost $%.2f so far", spent);
  EXPECT_THAT(result.err, HasSubstr(text));
}

// The summary must not be all that says so: a script sees the exit code, and -q shows no summary.
TEST_F(RunWithServiceTest, ARunWithoutAnAnswerOfUseFails) {
  Server server([](const auto& request, auto& response, int) { AnswerRight(request, response, "I would tile it."); });
  WritePipeline(server.Url());
  const Result shorter = Host("p.yaml --set output_dir=short --set loop.max_steps=2");
  EXPECT_EQ(shorter.code, 1);
  EXPECT_THAT(shorter.err,
              ContainsRegex("nothing was learned: in no step was a sample left to train on; of the coder's "
                            "failures the commonest, 8 times, is no_code: "));
  EXPECT_THAT(shorter.out, AllOf(ContainsRegex("step 1: the coder's 4 answers all failed; "
                                               "the commonest, 4 times, is no_code: .*\\. After 3 such steps in a row "
                                               "the run stops\n"),
                                 HasSubstr("final/ (a stage learned nothing, see above)")));
  const Result longer = Host("p.yaml -q --set output_dir=long --set loop.max_steps=5");
  EXPECT_EQ(longer.code, 4);
  EXPECT_THAT(longer.err,
              ContainsRegex("error: step 3: the coder's last 12 answers all failed; .*\\(a checkpoint of "
                            "step 3 was written; the coder has cost \\$[0-9.]+ so far; fix the cause, then: "
                            "kgrpo-host resume long\\)"));
}

TEST_F(RunWithServiceTest, ATerminalThatClosesStopsARunCleanly) {
  const auto before = std::signal(SIGHUP, SIG_DFL);  // which the command inherits; nohup may have had it ignored
  const std::string word = "hangup-" + std::to_string(getpid());
  StoppingServer server(word, SIGHUP);
  WritePipeline(server.Url(), "    max_concurrency: 1\n");
  const Result result = Host("p.yaml --set output_dir=" + word);
  server.End();
  std::signal(SIGHUP, before);
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err, HasSubstr("stopped by the user"));
}

// The cost of a call is recorded before the call is sent, so a killed run counts the calls in flight.
TEST_F(RunWithServiceTest, AKilledRunCountsTheCallsThatWereInFlight) {
  const std::string word = "killed-" + std::to_string(getpid());
  const auto recording = directory_.path() / word / "artifacts/coder/exchanges.sqlite";
  {
    StoppingServer server(word, SIGKILL);
    WritePipeline(server.Url(), "    max_concurrency: 1\n    max_tokens: 100\n");
    Host("p.yaml --set output_dir=" + word);
    server.End();
  }
  const double answered = Number(recording, "SELECT cost FROM spending");
  const double in_flight = Number(recording, "SELECT total(cost) FROM in_flight");
  EXPECT_DOUBLE_EQ(answered, 3 * 0.025);
  EXPECT_GT(in_flight, 100 * 2000e-6);  // max_tokens, and the prompt
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  const std::string resolved = (directory_.path() / word / "resolved.yaml").string();
  std::string text = test::Read(resolved);
  const size_t url = text.find("http://"), end = text.find_first_of("\"\n ", url);
  ASSERT_NE(url, std::string::npos);
  test::Write(resolved, text.replace(url, end - url, server.Url()));
  const Result resumed = Host("resume " + word);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, ContainsRegex("[0-9]+ calls? w.* in flight when the run's process was killed"));
  EXPECT_EQ(Number(recording, "SELECT count(*) FROM in_flight"), 0);
  EXPECT_DOUBLE_EQ(Number(recording, "SELECT lost_cost FROM spending"), in_flight);
  EXPECT_NEAR(Number(directory_.path() / word / "run.sqlite",
                     "SELECT value FROM metrics WHERE name = 'coder/cost_total' AND step = 3"),
              Number(recording, "SELECT count(*) FROM exchanges") * 0.025 + in_flight, 1e-9);
}

TEST_F(RunWithServiceTest, AStoppedEvaluationTellsWhatItHasCost) {
  const std::string word = "eval-" + std::to_string(getpid());
  StoppingServer server(word);
  WritePipeline(server.Url(), "    max_concurrency: 1\n");
  const Result result = Host("eval policy p.yaml --policy 'fixed:" + word + "' --episodes 3");
  server.End();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err, ContainsRegex("error: stopped by the user; the coder has cost \\$[0-9.]+ so far, of it up to "
                                        "\\$[0-9.]+ for attempts without an answer\n"));
}

TEST_F(RunWithServiceTest, AnEvaluationThatCannotPaySaysWhatItHasCost) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    max_tokens: 100\n    max_cost: 1.1\n");
  const Result result = Host("eval policy p.yaml --policy fixed:tile --episodes 30");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(
      result.err,
      ContainsRegex(
          "error: the coder has cost \\$[0-9.]+ of max_cost \\$1.1[^\n]* \\(raise it with --set "
          "coder.options.max_cost=...\\); another eval starts from the beginning and pays for all answers again\n"));
}

TEST_F(RunWithServiceTest, AnEvaluationSaysThatItsAnswersWereThere) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    mode: cache\n    recording: cache.sqlite\n");
  const std::string command = "eval policy p.yaml --policy fixed:tile,unroll --episodes 1";
  EXPECT_THAT(Host(command).out, HasSubstr("$0.05, 36 tokens\n"));
  EXPECT_THAT(Host(command).out,
              HasSubstr("2 of 2 answers came from a recording or a cache, and nothing was paid for them\n"));
  const nlohmann::json report = nlohmann::json::parse(Host(command + " --json").out);
  EXPECT_EQ(report["coder_answers"], 2);
  EXPECT_EQ(report["coder_answers_reused"], 2);
  EXPECT_EQ(server.Count(), 2u);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
