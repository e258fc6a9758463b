// The whole: kgrpo-host with the plugin coder_gpt4o and a service on this machine. The other parts are the small ones
// of tests/fixtures/plugins. Nowhere may the key turn up.
#include "../cli/host_binary.h"
#include "../coder_gpt4o_client/server.h"
#include "host/directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

namespace kgrpo::coder_gpt4o {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Result;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKey = "sk-test-1234567890abcdef";

// Another kernel for each prompt, the same for the same.
std::string KernelFor(const std::string& body) {
  const size_t number = std::hash<std::string>()(json::parse(body)["messages"].dump()) % 1000000;
  return "// a\nvoid launch() { int n" + std::to_string(number) + "; }\n";
}

void AnswerKernel(const httplib::Request& request, httplib::Response& response) {
  AnswerRight(request, response, "Done.\n```cuda\n" + KernelFor(request.body) + "```");
}

// A number that an SQL query finds in a run's database.
double Number(const fs::path& file, const char* sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  const double number = sqlite3_column_double(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return number;
}

class RunWithServiceTest : public testing::Test {
 protected:
  RunWithServiceTest() {
    setenv("OPENAI_API_KEY", kKey, 1);
    for (const char* variable : {"http_proxy", "https_proxy", "all_proxy"}) unsetenv(variable);
    test::Write(directory_.path() / "problems/one/reference.cu", "void launch() {}\n");
    test::Write(directory_.path() / "problems/two/reference.cu", "void launch() {} // two\n");
  }

  void WritePipeline(const std::string& url, const std::string& options = "") {
    test::Write(directory_.path() / "p.yaml",
                "seed: 5\n"
                "policy: {plugin: fakes, options: {model: random}}\n"
                "coder:\n  plugin: coder_gpt4o\n  options:\n    base_url: " +
                    url +
                    "\n    backoff_base_seconds: 0.01\n    backoff_cap_seconds: 0.02\n    prices: {gpt-4o: {prompt: "
                    "1000, completion: "
                    "2000}}\n" +
                    options +
                    "evaluator: {plugin: fakes}\nreward: {plugin: fakes}\ntrainer: {plugin: fakes}\n"
                    "problems: {train: ['problems/*'], heldout: [problems/two]}\n"
                    "loop: {max_steps: 3, batch_size: 4, rounds: 2, sampling: {max_new_tokens: 6}}\n"
                    "prompt: {user: 'improve {{problem.name}}'}\n");
  }

  // Every output, and with it everything in the folder, is free of the key.
  Result Host(const std::string& arguments) {
    const Result result = test::RunHost(directory_.path(), arguments);
    for (const auto& [file, text] : test::Tree(directory_.path()))
      EXPECT_EQ(text.find(kKey), std::string::npos) << "the key is in " << file;
    return result;
  }

  // The coder's part of a run's samples.
  std::string Samples(const std::string& run) {
    std::string all;
    for (const auto& [file, text] : test::Tree(directory_.path() / run / "rollouts")) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        const json row = json::parse(line);
        all += row["completion"].get<std::string>() + row["code_c"].get<std::string>() +
               row["coder_outcome"].get<std::string>() + row["reward"].dump() + "\n";
      }
    }
    return all;
  }

  TemporaryDirectory directory_;
};

TEST_F(RunWithServiceTest, CoderCheckShowsEverythingButTheKey) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url());
  const Result result = Host("coder-check p.yaml --suggestion 'use fewer threads'");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("POST to " + server.Url()), HasSubstr("\"model\":\"gpt-4o\""),
                                HasSubstr("[system]\n    You are an expert CUDA programmer."),
                                HasSubstr("use fewer threads"), HasSubstr("---- answer\n    Done.\n"),
                                HasSubstr("---- kernel\n    // a\n    void launch() { int n")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("outcome   ok\n"), HasSubstr("1 attempt\n"),
                                HasSubstr("tokens    11 sent, 7 answered\n"), HasSubstr("cost      $0.025000\n")));
  ASSERT_EQ(server.Count(), 1u);
  EXPECT_EQ(server.Requests()[0].get_header_value("Authorization"), std::string("Bearer ") + kKey);

  const json shown = json::parse(Host("coder-check p.yaml --json").out);
  EXPECT_EQ(shown["outcome"], "ok");
  EXPECT_DOUBLE_EQ(shown["cost"].get<double>(), 0.025);
  EXPECT_FALSE(fs::exists(directory_.path() / "runs"));
}

TEST_F(RunWithServiceTest, CoderCheckSaysWhyThereIsNoKernel) {
  Server server(
      [](const auto& request, auto& response, int) { AnswerRight(request, response, "I would not know how."); });
  WritePipeline(server.Url());
  const Result result = Host("coder-check p.yaml --problem problems/two");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("outcome   no_code"), HasSubstr("nothing in the answer defines launch"),
                                HasSubstr("I would not know how.")));
}

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
  EXPECT_THAT(uniform.err, AllOf(HasSubstr("stage 1 (fakes) draws suggestions uniformly"), HasSubstr("coder_offline")));
  const Result two = Host("check p.yaml --set coder.options.seed=mine --set coder.options.max_cost=0.001");
  EXPECT_THAT(two.err, HasSubstr("p.yaml: 2 mistakes"));
  EXPECT_THAT(Host("check p.yaml --set coder.options.model=other").err, HasSubstr("cost unknown: no price for other"));
  EXPECT_THAT(Host("check p.yaml --set coder.options.mode=cache --set coder.options.temperature=0.7").err,
              HasSubstr("write seed: sample"));
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
  // Another prompt is not in it.
  const Result missing = Host(
      "p.yaml --set output_dir=third --set coder.options.mode=replay --set coder.options.recording=first "
      "--set coder.options.temperature=1");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("has no answer to this request"), HasSubstr("temperature is 1")));
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
  // Resumed, it is as far as before; with more money it goes on, and pays nothing twice.
  EXPECT_EQ(Host("resume run").code, 1);
  EXPECT_EQ(server.Count(), before);
  std::string resolved = test::Read(directory_.path() / "run/resolved.yaml");
  const size_t at = resolved.find("max_cost: 1.1");
  ASSERT_NE(at, std::string::npos);
  test::Write(directory_.path() / "run/resolved.yaml", resolved.replace(at, 13, "max_cost: 100"));
  const Result resumed = Host("resume run");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(server.Count(), 24u);
  EXPECT_DOUBLE_EQ(Number(directory_.path() / "run/run.sqlite", "SELECT sum(coder_cost) FROM rounds"), 0.6);
}

// The soft limit on the size of core files of the process whose command line holds the word; -1 where none is found.
double CoreLimitOf(const std::string& word) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (test::Read(entry.path() / "comm") != "kgrpo-host\n") continue;
    if (test::Read(entry.path() / "cmdline").find(word) == std::string::npos) continue;
    std::istringstream limits(test::Read(entry.path() / "limits"));
    for (std::string line; std::getline(limits, line);) {
      if (!line.starts_with("Max core file size")) continue;
      std::istringstream soft(line.substr(18));
      std::string value;
      soft >> value;
      return value == "unlimited" ? 1e30 : std::stod(value);
    }
  }
  return -1;
}

TEST_F(RunWithServiceTest, AProcessWithAKeyWritesNoCoreFiles) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
  if (limit.rlim_max == 0) GTEST_SKIP() << "core files are forbidden here anyway";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_CORE, &limit), 0);
  const std::string word = "word-of-" + std::to_string(getpid());
  std::atomic<double> seen{-1};
  Server server([&](const auto& request, auto& response, int) {
    seen = CoreLimitOf(word);
    AnswerKernel(request, response);
  });
  WritePipeline(server.Url());
  EXPECT_EQ(Host("coder-check p.yaml --suggestion " + word).code, 0);
  EXPECT_EQ(seen, 0);
  WritePipeline(server.Url(), "    api_key_env: null\n");  // without a key there is nothing to hide
  EXPECT_EQ(Host("coder-check p.yaml --suggestion " + word).code, 0);
  EXPECT_GT(seen, 0);
}

TEST_F(RunWithServiceTest, AKeyThatIsRefusedStopsTheRunAndIsNotShown) {
  Server server([](const auto& request, auto& response, int) {
    AnswerError(response, 401, ErrorBody("Incorrect API key provided: " + request.get_header_value("Authorization")));
  });
  WritePipeline(server.Url());
  const Result result = Host("p.yaml --set output_dir=run");
  EXPECT_EQ(result.code, 4) << result.err;
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

TEST_F(RunWithServiceTest, MistakesAreFoundBeforeTheRunStarts) {
  WritePipeline("http://127.0.0.1:1/v1");
  const auto refused = [&](const std::string& settings) {
    const Result result = Host("p.yaml --set output_dir=run " + settings);
    EXPECT_EQ(result.code, 3) << settings;
    EXPECT_FALSE(fs::exists(directory_.path() / "run")) << settings;
    return result.err;
  };
  EXPECT_THAT(refused("--set coder.options.modle=gpt-4o"), HasSubstr("unknown key; did you mean \"model\""));
  EXPECT_THAT(refused("--set coder.options.base_url=nonsense"), HasSubstr("base_url"));
  EXPECT_THAT(refused("--set coder.options.model=other --set coder.options.max_cost=1"), HasSubstr("price of other"));
  EXPECT_THAT(refused("--set coder.options.mode=replay --set coder.options.recording=nowhere"),
              HasSubstr("no recording at"));
  EXPECT_THAT(refused("--set coder.options.ca_file=/no/such/file"), HasSubstr("/no/such/file"));
  // A key where the name of a variable should be, or under a key of its own: never repeated.
  EXPECT_THAT(refused("--set coder.options.api_key_env=sk-hush-hush"),
              AllOf(HasSubstr("api_key_env"), Not(HasSubstr("hush"))));
  EXPECT_THAT(refused("--set coder.options.api_key=sk-hush-hush"), AllOf(HasSubstr("api_key"), Not(HasSubstr("hush"))));
  unsetenv("OPENAI_API_KEY");
  EXPECT_THAT(refused(""), HasSubstr("OPENAI_API_KEY is not set"));
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
