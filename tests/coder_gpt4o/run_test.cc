// Whole runs of kgrpo-host with the plugin coder_gpt4o and a service on this machine.
#include "run_with_service.h"

#include "test.h"

#include <stdlib.h>

namespace kgrpo::coder_gpt4o {
namespace {

using test::Result;

TEST_F(RunWithServiceTest, CheckFindsWhatARunWouldComeToLater) {
  WritePipeline("http://127.0.0.1:1/v1");
  EXPECT_EQ(Host("check p.yaml").code, 0);
  // The file of a key that was written into it is not in the folder: nothing here repeats it.
  const Result key = Host("check p.yaml --set coder.options.api_key=hush");
  EXPECT_EQ(key.code, 3);
  EXPECT_THAT(key.err, AllOf(HasSubstr("use api_key_env: the name of an environment variable"), HasSubstr("revoked"),
                             Not(HasSubstr("known are"))));
  const Result uniform = Host("check p.yaml --set trainer.suggestions=uniform --set trainer.episodes=4");
  EXPECT_EQ(uniform.code, 3) << uniform.err;
  EXPECT_THAT(uniform.err,
              AllOf(HasSubstr("stage 1 (fakes) draws suggestions uniformly"), HasSubstr("whose coder has a list")));
  const Result two = Host("check p.yaml --set coder.options.seed=mine --set coder.options.max_cost=0.001");
  EXPECT_THAT(two.err, AllOf(HasSubstr("coder (coder_gpt4o): options.seed: expected an integer"),
                             HasSubstr("\n--set: coder (coder_gpt4o): options.max_cost: it has room for no call"),
                             HasSubstr("p.yaml: 2 mistakes\n")));
  const json found =
      json::parse(Host("check p.yaml --json --set coder.options.seed=mine --set coder.options.max_cost=0.001").out);
  EXPECT_EQ(found["failures"].size(), 2u);
  // Mistakes found by the client read like those found by the options' reader.
  EXPECT_THAT(Host("check p.yaml --set coder.options.base_url=https://host/v1/chat/completions").err,
              HasSubstr("coder (coder_gpt4o): options.base_url: it must not end with /chat/completions"));
  for (const char* mode : {"replay", "cache"}) {
    EXPECT_THAT(
        Host(std::string("check p.yaml --set coder.options.recording=p.yaml --set coder.options.mode=") + mode).err,
        HasSubstr("coder (coder_gpt4o): options.recording: p.yaml is no recording"));
  }
  EXPECT_THAT(Host("check p.yaml --set coder.options.model=other").err, HasSubstr("cost unknown: no price for other"));
  EXPECT_THAT(Host("check p.yaml --set coder.options.mode=cache --set coder.options.temperature=0.7").err,
              HasSubstr("set seed: sample"));
}

TEST_F(RunWithServiceTest, ARunIsRecordedAndReplaysWithoutTheService) {
  std::string live;
  {
    Server server([](const auto& request, auto& response, int attempt) {
      if (attempt == 1 && request.body.size() % 3 == 0) return AnswerError(response, 500, "<html>oops</html>");
      AnswerKernel(request, response);
    });
    WritePipeline(server.Url());
    const Result result = Host("p.yaml --set output_dir=first");
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("the coder cost $0.60: 432 tokens in 24 answers"));
    EXPECT_THAT(result.out, HasSubstr("$0.60"));
    EXPECT_GE(server.Count(), 24u);
    live = Samples("first");
  }
  EXPECT_EQ(Number(directory_.path() / "first/artifacts/coder/exchanges.sqlite", "SELECT count(*) FROM exchanges"), 24);
  EXPECT_DOUBLE_EQ(Number(directory_.path() / "first/run.sqlite",
                          "SELECT value FROM metrics WHERE name = 'coder/cost_total' AND step = 3"),
                   0.6);
  // Nobody listens there any more, and no key is needed.
  unsetenv("OPENAI_API_KEY");
  const Result replayed =
      Host("p.yaml --set output_dir=second --set coder.options.mode=replay --set coder.options.recording=first");
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_EQ(Samples("second"), live);
  EXPECT_EQ(Number(directory_.path() / "second/run.sqlite", "SELECT sum(coder_cost) FROM rounds"), 0);
  EXPECT_THAT(
      replayed.out,
      HasSubstr("the coder: 24 of 24 answers came from a recording or a cache, and nothing was paid for them\n"));
  // Another prompt is not in it.
  const Result missing = Host(
      "p.yaml --set output_dir=third --set coder.options.mode=replay --set coder.options.recording=first "
      "--set coder.options.temperature=1");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("has no answer to this request"));
}

// Wherever in the file it stands: found by the schema, by a plugin, or nowhere but in the name of what is not there.
TEST_F(RunWithServiceTest, AKeyAtAWrongPlaceIsNotRepeated) {
  WritePipeline("http://127.0.0.1:1/v1");
  for (const char* place :
       {"seed", "coder.options.max_tokens", "coder.options.prices", "policy.plugin", "policy.options.model",
        "problems.train", "loop.advance", "extends", "output_dir", "name"}) {
    const Result result = test::RunHost(directory_.path(), std::string("check p.yaml --set ") + place + "=" + kKey);
    EXPECT_EQ((result.out + result.err).find(kKey), std::string::npos) << place << ": " << result.out << result.err;
  }
  const Result key = test::RunHost(directory_.path(), std::string("check p.yaml --set coder.options.") + kKey + "=1");
  EXPECT_EQ((key.out + key.err).find(kKey), std::string::npos) << key.err;
  EXPECT_THAT(key.err, HasSubstr("[hidden]"));
}

TEST_F(RunWithServiceTest, TheLimitOfTheCostStopsARunThatCanGoOn) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  // An answer costs $0.025 and could cost about $0.8: one at a time, and not all 24.
  WritePipeline(server.Url(), "    max_tokens: 100\n    max_cost: 1.1\n");
  const Result stopped = Host("p.yaml --set output_dir=run --set checkpoint.every=100");
  EXPECT_EQ(stopped.code, 1) << stopped.err;
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("of max_cost $1.1"), HasSubstr("kgrpo-host resume run")));
  const size_t before = server.Count();
  EXPECT_LT(before, 24u);
  const fs::path recording = directory_.path() / "run/artifacts/coder/exchanges.sqlite";
  EXPECT_LE(Number(recording, "SELECT cost FROM spending"), 1.1);
  EXPECT_DOUBLE_EQ(Number(recording, "SELECT cost FROM spending"), 0.025 * static_cast<double>(before));
  EXPECT_THAT(stopped.err, AllOf(HasSubstr(" (raise it with --set coder.options.max_cost=...); "),
                                 HasSubstr("to continue: kgrpo-host resume run\n")));
  // Resumed, it is as far as before; with more money it goes on, and pays nothing twice.
  EXPECT_EQ(Host("resume run").code, 1);
  EXPECT_EQ(server.Count(), before);
  const std::string resolved = test::Read(directory_.path() / "run/resolved.yaml");
  const Result absent = Host("resume run --set coder.options.max_cost=100 --set coder.options.base_url=nowhere");
  EXPECT_EQ(absent.code, 3) << absent.err;
  EXPECT_EQ(test::Read(directory_.path() / "run/resolved.yaml"), resolved) << "the coder was not made";
  const Result resumed = Host("resume run --set coder.options.max_cost=100");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr(", now with coder.options.max_cost=100\n"));
  EXPECT_EQ(server.Count(), 24u);
  EXPECT_DOUBLE_EQ(Number(directory_.path() / "run/run.sqlite", "SELECT sum(coder_cost) FROM rounds"), 0.6);
  // The run's folder records the settings before and after the resume.
  EXPECT_THAT(test::Read(directory_.path() / "run/resolved.yaml"), HasSubstr("max_cost: 100\n"));
  const json identity = json::parse(test::Read(directory_.path() / "run/run.json"));
  EXPECT_EQ(identity["overrides"], json({"output_dir=run", "checkpoint.every=100"}));
  EXPECT_EQ(identity["resumed"], json::parse(R"([{"after_step": 2, "key": "coder.options.max_cost", "before": 1.1,
                                                  "after": 100}])"));
  EXPECT_EQ(Number(directory_.path() / "run/run.sqlite",
                   "SELECT count(*) FROM run WHERE key = 'resolved_yaml' AND value LIKE '%max_cost: 100%'"),
            1);
  const Result finished = Host("resume run --set coder.options.max_cost=200");
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err, HasSubstr("the run in run is finished"));
}

// The command that a person tries first names the one that works, and what the other one would throw away.
TEST_F(RunWithServiceTest, ARunWithAnotherLimitOfTheCostIsToldHowToGoOn) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    max_tokens: 100\n    max_cost: 1.1\n");
  const std::string run = "p.yaml --set output_dir=run";
  ASSERT_EQ(Host(run).code, 1);
  ASSERT_EQ(Number(directory_.path() / "run/run.sqlite", "SELECT count(*) FROM steps"), 2);
  // The answers of the step that was not finished are paid for, too.
  const double spent = Number(directory_.path() / "run/artifacts/coder/exchanges.sqlite", "SELECT cost FROM spending");
  ASSERT_GT(spent, 0.4);
  char cost[32];
  std::snprintf(cost, sizeof cost, "$%.2f", spent);
  const std::string advice =
      "output_dir run holds an unfinished run of another configuration (coder.options.max_cost differs): to resume it "
      "with them: kgrpo-host resume run --set coder.options.max_cost=100; otherwise name another folder "
      "(--set output_dir=...), or delete that run (its coder's answers cost " +
      std::string(cost) + ") with --overwrite";
  const Result refused = Host("run " + run + " --set coder.options.max_cost=100");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr(advice));
  EXPECT_THAT(Host("check " + run + " --set coder.options.max_cost=100").out, HasSubstr(advice));
  EXPECT_THAT(Host("run " + run).err, HasSubstr("to delete it (its coder's answers cost " + std::string(cost) +
                                                ") and start again: --overwrite"));
  const Result other = Host("resume run --set coder.options.max_cost=100 --set loop.rounds=3");
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(
      other.err,
      AllOf(HasSubstr("--set: loop.rounds: a resumed run keeps it: the recorded steps depend on it; what may change: "
                      "coder.options, reward, "),
            Not(HasSubstr("max_cost"))));
  EXPECT_EQ(Host("resume run --set coder.options.max_cots=100").code, 3);
  const Result replaced = Host("-q run " + run + " --set coder.options.max_cost=100 --overwrite");
  EXPECT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_THAT(replaced.err, HasSubstr("warning: --overwrite: the run in run is deleted once the new one begins, and "
                                      "with it its coder's answers, which cost " +
                                      std::string(cost) + "\n"));
}

TEST_F(RunWithServiceTest, SaysWhatTheCoderIsAndMayCost) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    max_tokens: 100\n    max_cost: 50\n");
  const std::string what =
      "gpt-4o at " + server.Url() + ", mode live, at most $50 in all; a call costs up to $0.2, besides its prompt\n";
  EXPECT_THAT(Host("check p.yaml").err, HasSubstr("note: coder (coder_gpt4o): " + what));
  EXPECT_THAT(Host("p.yaml --set output_dir=run --set loop.max_steps=1").out, HasSubstr(": " + what));
  EXPECT_THAT(
      Host("check p.yaml --set output_dir=b --set coder.options.mode=replay --set coder.options.recording=run").err,
      HasSubstr("gpt-4o as recorded in run/artifacts/coder/exchanges.sqlite, mode replay: nothing is asked"));
}

TEST_F(RunWithServiceTest, AKeyThatIsRefusedStopsTheRunAndIsNotShown) {
  Server server([](const auto& request, auto& response, int) {
    AnswerError(response, 401, ErrorBody("Incorrect API key provided: " + request.get_header_value("Authorization")));
  });
  WritePipeline(server.Url());
  const Result result = Host("p.yaml --set output_dir=run");
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(no checkpoint was written yet; fix the cause, then: "
                                    "kgrpo-host resume run)"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("401"), Not(HasSubstr(kKey))));
}

TEST_F(RunWithServiceTest, CheckingAsksNobodyAndLeavesNothingBehind) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url());
  for (const char* mode : {"live", "cache"}) {
    const Result result = Host(std::string("check p.yaml --set coder.options.mode=") + mode);
    EXPECT_EQ(result.code, 0) << result.err;
  }
  EXPECT_EQ(server.Count(), 0u);
  EXPECT_FALSE(fs::exists(directory_.path() / "runs"));
  EXPECT_FALSE(fs::exists(directory_.path() / "cache"));
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
