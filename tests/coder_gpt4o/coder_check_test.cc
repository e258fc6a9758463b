// `coder-check`, with a service on this machine: its output, and its messages while it waits.
#include "run_with_service.h"

#include "test.h"

#include <sys/resource.h>
#include <unistd.h>

namespace kgrpo::coder_gpt4o {
namespace {

using test::Result;
using ::testing::ContainsRegex;

TEST_F(RunWithServiceTest, CoderCheckShowsEverythingButTheKey) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url());
  const Result result = Host("coder-check p.yaml --suggestion 'use fewer threads'");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("POST to " + server.Url() + "/chat/completions\n"), HasSubstr("\"model\":\"gpt-4o\""),
            HasSubstr("[system]\n    You are an expert CUDA programmer."), HasSubstr("use fewer threads"),
            HasSubstr("---- answer\n    Done.\n"), HasSubstr("---- kernel\n    // a\n    void launch() { int n")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("outcome   ok: a kernel was found; it was neither compiled nor judged\n"),
                                HasSubstr("1 attempt\n"), HasSubstr("tokens    11 sent, 7 answered\n"),
                                HasSubstr("cost      $0.025000\n"), Not(HasSubstr("estimate"))));
  ASSERT_EQ(server.Count(), 1u);
  EXPECT_EQ(server.Requests()[0].get_header_value("Authorization"), std::string("Bearer ") + kKey);

  const json shown = json::parse(Host("coder-check p.yaml --json").out);
  EXPECT_EQ(shown["outcome"], "ok");
  EXPECT_FALSE(shown["reused"].get<bool>());
  EXPECT_DOUBLE_EQ(shown["cost"].get<double>(), 0.025);
  EXPECT_FALSE(fs::exists(directory_.path() / "runs"));
}

TEST_F(RunWithServiceTest, CoderCheckCallsAnEstimateOne) {
  Server server([](const auto&, auto& response, int) {  // without a word of tokens
    response.set_content(R"({"choices": [{"index": 0, "message": {"content": "No."}, "finish_reason": "stop"}]})",
                         "application/json");
  });
  WritePipeline(server.Url(), "    mode: cache\n    recording: cache.sqlite\n");
  for (const bool reused : {false, true}) {  // what is estimated stays so
    const Result result = Host("coder-check p.yaml");
    EXPECT_THAT(result.out,
                AllOf(ContainsRegex("\ncost      \\$[0-9.]+\nestimate  some of these tokens and of this cost"),
                      HasSubstr(reused ? "source    a recording" : "1 attempt\n")));
  }
  EXPECT_TRUE(json::parse(Host("coder-check p.yaml --json").out)["estimated"].get<bool>());
}

// The likeliest mistakes of a user: the port, the path, the address of a web page.
TEST_F(RunWithServiceTest, CoderCheckNamesTheAddressWhereNoServiceIs) {
  const auto check = [&](const std::string& url) {
    WritePipeline(url, "    max_outage_seconds: 0.1\n    max_attempts: 2\n");
    const Result result = Host("coder-check p.yaml");
    EXPECT_EQ(result.code, 4) << result.err;
    return result.err;
  };
  EXPECT_THAT(check("http://127.0.0.1:1/v1"),
              AllOf(ContainsRegex("attempt 1 failed: the service cannot be reached: [^\n]*; nothing at "
                                  "http://127.0.0.1:1/v1/chat/completions has answered yet as a service of chat "
                                  "completions does: check base_url\n"),
                    ContainsRegex("error: [^\n]*Check base_url, proxy and the network")));
  Server page([](const auto&, auto& response, int) { response.set_content("<html>Log in</html>", "text/html"); });
  EXPECT_THAT(check(page.Url()), AllOf(HasSubstr("not a JSON object but a web page; it begins: Log in"),
                                       ContainsRegex("error: [^\n]*Check base_url")));
  const std::string bare = page.Url().substr(0, page.Url().rfind("/v1"));
  EXPECT_THAT(check(bare), HasSubstr("most services want /v1 at its end: " + bare + "/v1\n"));
}

TEST_F(RunWithServiceTest, CoderCheckSaysThatNothingWasAskedAnew) {
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url(), "    mode: cache\n    recording: cache.sqlite\n");
  const Result first = Host("coder-check p.yaml");
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("/chat/completions, where the cache has no answer\n"), HasSubstr("1 attempt\n"),
                    HasSubstr("cost      $0.025000\n"), Not(HasSubstr("source    "))));
  const Result again = Host("coder-check p.yaml");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, AllOf(HasSubstr("source    a recording or a cache: nothing was asked now, and nothing paid\n"),
                               HasSubstr("tokens    11 sent, 7 answered, when it was recorded\n"),
                               HasSubstr("cost      $0.000000\n"), Not(HasSubstr("attempt"))));
  EXPECT_TRUE(json::parse(Host("coder-check p.yaml --json").out)["reused"].get<bool>());
  EXPECT_EQ(server.Count(), 1u);
}

TEST_F(RunWithServiceTest, CoderCheckTakesAProblemByItsName) {
  test::Write(directory_.path() / "problems/third/reference.cu", "void launch() {} // three\n");
  Server server([](const auto& request, auto& response, int) { AnswerKernel(request, response); });
  WritePipeline(server.Url());
  EXPECT_THAT(Host("coder-check p.yaml").out,
              HasSubstr("problem   one (the first of 3; --problem NAME chooses another one)\n"));
  EXPECT_THAT(Host("coder-check p.yaml --problem third").out, HasSubstr("problem   third\n"));
  EXPECT_THAT(Host("coder-check p.yaml --problem two").out, HasSubstr("problem   two\n"));  // held-out
  EXPECT_THAT(Host("coder-check p.yaml --problem problems/two/").out, HasSubstr("problem   two\n"));
  const Result unknown = Host("coder-check p.yaml --problem thrid");
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("--problem thrid is neither a folder nor a problem of p.yaml; did you mean "
                                     "\"third\"?\n"));
  EXPECT_EQ(server.Count(), 4u);
}

TEST_F(RunWithServiceTest, CoderCheckTellsEachRetryAndWhy) {
  Server server([](const auto& request, auto& response, int attempt) {
    if (attempt <= 2) return AnswerError(response, 500, ErrorBody("out of order"));
    AnswerKernel(request, response);
  });
  WritePipeline(server.Url());
  const Result result = Host("coder-check p.yaml");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.err,
      ContainsRegex("coder: attempt 1 failed: [^\n]*500[^\n]*out of order; up to 7 more, the next in 0.[0-9] s\n"
                    "[^\n]*coder: attempt 2 failed: [^\n]*; up to 6 more, the next in [01].[0-9] s\n"));
  EXPECT_THAT(result.out, HasSubstr("3 attempts\n"));
  EXPECT_EQ(Host("-q coder-check p.yaml --suggestion other").err, "");
}

TEST_F(RunWithServiceTest, CoderCheckEndsWhenItIsStopped) {
  const std::string word = "stop-" + std::to_string(getpid());
  std::promise<void> over;
  const std::shared_future<void> wait(over.get_future());
  Server server([&](const auto&, auto& response, int) {
    if (!StopHost(word)) return AnswerError(response, 400, ErrorBody("nobody to stop"));
    wait.wait();  // stalled: only the stop ends the call
  });
  WritePipeline(server.Url());
  const Result result = Host("coder-check p.yaml --suggestion " + word);
  over.set_value();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err,
              HasSubstr("error: stopped by the user; the call that was cut short may be billed, at up to $"));
}

// The soft limit on the size of core files of the process whose command line holds the word; -1 where none is found.
double CoreLimitOf(const std::string& word) {
  std::istringstream limits(test::Read(HostProcess(word) / "limits"));
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with("Max core file size")) continue;
    std::istringstream soft(line.substr(18));
    std::string value;
    soft >> value;
    return value == "unlimited" ? 1e30 : std::stod(value);
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

}  // namespace
}  // namespace kgrpo::coder_gpt4o
