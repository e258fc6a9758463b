// evaluator_remote against services in the process: the requests that it passes on, and its behaviour if a server is
// absent, busy, broken or needs the problem's files.
#include "running_service.h"

#include <sys/socket.h>

#include "evaluator_remote/remote_evaluator.h"
#include "evaluator_remote/server_pool.h"
#include "plugin/library.h"

namespace kgrpo::test {
namespace {

const PluginLibrary& Plugin() {
  static const PluginLibrary library(std::filesystem::path(KGRPO_BINARY_DIR) / "lib" / "kgrpo" / "evaluator_remote.so");
  return library;
}

class RemoteTest : public ServeTest {
 protected:
  Evaluator Remote(const std::vector<std::string>& servers, const nlohmann::json& more = nlohmann::json::object()) {
    nlohmann::json options = {{"servers", servers}, {"wait_seconds", 5}};
    options.update(more);
    return {Plugin().Table<kgrpo_evaluator_interface>(Role::kEvaluator), services_.ForInstance("evaluator"), options};
  }
  static std::string MessageOf(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  HostServices services_{{}};
};

// A port that nobody listens at.
constexpr const char* kNobody = "http://127.0.0.1:1";

TEST_F(RemoteTest, HandsOnWhatTheServerFinds) {
  const RunningService running;
  Evaluator remote = Remote({running.address()}, {{"device", "slow"}});
  const Problem problem = remote.OpenProblem(running.problem("two").string());
  EXPECT_EQ(problem.name(), "two");
  EXPECT_EQ(Copy(problem.info().source), "void launch() {} // two\n");
  EXPECT_EQ(Copy(problem.info().task), "the task");
  EXPECT_EQ(remote.Baseline(problem).seconds, 8);
  const Evaluation evaluation = remote.Evaluate(problem, "x", 9, true);
  EXPECT_EQ(evaluation.seconds, 2);
  EXPECT_EQ(evaluation.diagnosis, "seed 9, thorough");
  EXPECT_EQ(evaluation.metrics, (std::vector<Metric>{{"comments", 3}}));
  EXPECT_EQ(evaluation.remarks, (std::vector<Remark>{{"Group", "label", "text", 2, 0.5}}));
  EXPECT_EQ(remote.Evaluate(problem, "wrong", 0).verdict, "wrong");
}

TEST_F(RemoteTest, SendsAProblemThatTheServerDoesNotHave) {
  const RunningService running;
  const TemporaryDirectory directory;
  WriteProblem(directory.path() / "one", "another kernel under a known name\n");
  Evaluator remote = Remote({running.address()});
  const Problem problem = remote.OpenProblem((directory.path() / "one").string());
  EXPECT_EQ(Copy(problem.info().source), "another kernel under a known name\n");
  EXPECT_EQ(remote.Evaluate(problem, "x", 0).verdict, "correct");
  WriteProblem(directory.path() / "with_oracle");
  std::ofstream(directory.path() / "with_oracle" / "oracle.cc") << "int x;\n";
  EXPECT_NE(MessageOf([&] {
              remote.OpenProblem((directory.path() / "with_oracle").string());
            }).find("oracle.cc may be native code"),
            std::string::npos);
}

TEST_F(RemoteTest, GoesElsewhereWhereAServerIsAbsentBrokenOrBusy) {
  httplib::Server broken;
  broken.Get(".*",
             [](const httplib::Request&, httplib::Response& response) { response.set_content("<html>", "text/html"); });
  broken.Post(".*", [](const httplib::Request&, httplib::Response& response) { response.status = 502; });
  const int broken_port = broken.bind_to_any_port("127.0.0.1");
  std::thread broken_thread([&] { broken.listen_after_bind(); });
  {
    RunningService busy({.workers = 1, .queue = 1}), idle({.workers = 4});
    std::vector<std::thread> clients;
    for (int i = 0; i < 2; ++i)
      clients.emplace_back([&] { Post(busy.Client(), {{"problem", "one"}, {"source", "hold"}}); });
    EXPECT_TRUE(Eventually([&] { return Get(busy.Client(), "/healthz").json["waiting"] == 1; }));
    Evaluator remote =
        Remote({kNobody, "http://127.0.0.1:" + std::to_string(broken_port), busy.address(), idle.address() + "/"});
    const Problem problem = remote.OpenProblem(idle.problem("one").string());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(remote.Evaluate(problem, "x", 0).verdict, "correct");
    judge().released = true;
    for (std::thread& client : clients) client.join();
  }
  broken.stop();
  broken_thread.join();
}

TEST_F(RemoteTest, UsesAServerAgainThatCameBack) {
  auto running = std::make_unique<RunningService>();
  const int port = running->port();
  const std::string folder = running->problem("one").string();
  const TemporaryDirectory directory;
  WriteProblem(directory.path() / "one");
  Evaluator remote = Remote({running->address()});
  const Problem problem = remote.OpenProblem((directory.path() / "one").string());
  running.reset();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    running = std::make_unique<RunningService>(serve::ServiceOptions{}, port);
  });
  EXPECT_EQ(remote.Evaluate(problem, "x", 0).verdict, "correct");
  later.join();
}

// A dns:// address stands for the servers that its name has at the time.
TEST_F(RemoteTest, ServersJoinAndLeaveByAName) {
  auto first = std::make_unique<RunningService>();
  RunningService second;
  std::vector<std::string> found = {first->address()};
  evaluator_remote::ServerPool pool({.servers = {"dns://judges:8421"},
                                     .wait_seconds = 20,
                                     .resolve_seconds = 0,
                                     .resolve = [&](const std::string& name) {
                                       EXPECT_EQ(name, "judges:8421");
                                       return found;
                                     }});
  const auto ask = [](evaluator_remote::ServerPool& one) {
    return one.Ask("/v1/evaluator", "", [](const auto&) { return true; }).status;
  };
  EXPECT_EQ(ask(pool), 200);
  EXPECT_EQ(pool.Addresses(), found);
  found.push_back(second.address());
  EXPECT_EQ(ask(pool), 200);
  EXPECT_EQ(pool.Addresses(), found);
  found = {second.address()};
  first.reset();
  EXPECT_EQ(ask(pool), 200);
  EXPECT_EQ(pool.Addresses(), found);
  found.clear();  // the resolver fails
  EXPECT_EQ(ask(pool), 200);
  EXPECT_EQ(pool.Addresses(), std::vector<std::string>{second.address()});

  evaluator_remote::ServerPool local(
      {.servers = {"dns://localhost:" + std::to_string(second.port())}, .wait_seconds = 20});
  EXPECT_EQ(ask(local), 200);
  EXPECT_EQ(MessageOf([&] { Remote({"dns://judges"}); }),
            "options.servers: \"dns://judges\" has no port; expected dns://NAME:PORT");
}

// A run goes on where an evaluation fails: an outage must not cost the whole wait for each of them.
TEST_F(RemoteTest, AnOutageIsWaitedForOnce) {
  auto running = std::make_unique<RunningService>();
  const int port = running->port();
  Evaluator remote = Remote({running->address()}, {{"wait_seconds", 3}});
  const Problem problem = remote.OpenProblem(running->problem("one").string());
  running.reset();
  const auto seconds = [&] {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NE(MessageOf([&] { remote.Evaluate(problem, "x", 0); }).find("no server answered"), std::string::npos);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double first = seconds();
  EXPECT_GE(first, 3);
  EXPECT_LT(seconds(), first);
  running = std::make_unique<RunningService>(serve::ServiceOptions{}, port);
  ASSERT_TRUE(Eventually([&] {
    try {
      return remote.Evaluate(problem, "x", 0).verdict == "correct";
    } catch (const Error&) {
      return false;  // the server rests from its failures
    }
  }));
  running.reset();
  EXPECT_GE(seconds(), 1) << "after an answer the wait begins anew";
}

TEST_F(RemoteTest, SaysWhyNobodyJudges) {
  const std::string nobody = MessageOf([&] { Remote({kNobody}, {{"wait_seconds", 0.3}}); });
  EXPECT_EQ(
      nobody.substr(0, 104),
      "no server answered within 0.3 s (start one by `kgrpo-host serve`, or raise wait_seconds):\n  http://127.0");
  EXPECT_NE(nobody.find("Failed to connect"), std::string::npos) << nobody;
  EXPECT_EQ(MessageOf([&] { Remote({"10.0.0.1:80"}); }),
            "options.servers: \"10.0.0.1:80\" is no address; expected one such as http://10.0.0.7:8421");
  RunningService running({.tokens = {{"", "secret"}}});
  EXPECT_EQ(MessageOf([&] { Remote({running.address()}); }),
            "this service wants a token: send \"Authorization: Bearer TOKEN\"; its token goes into the variable that "
            "token_env names");
  setenv("KGRPO_REMOTE_TEST_TOKEN", "secret", 1);
  Evaluator remote = Remote({running.address()}, {{"token_env", "KGRPO_REMOTE_TEST_TOKEN"}});
  const Problem problem = remote.OpenProblem(running.problem("one").string());
  EXPECT_EQ(MessageOf([&] {
              Remote({running.address()}, {{"token_env", "KGRPO_REMOTE_TEST_TOKEN"}, {"device", "h100"}});
            }),
            "options.device: the servers do not judge for \"h100\"; they do for fast, slow");
  // Mistakes that can be found on this machine are not sent to any server.
  const auto asked = [&] {
    std::istringstream metrics(running.Client().Get("/metrics", {{"Authorization", "Bearer secret"}})->body);
    std::string lines;
    for (std::string line; std::getline(metrics, line);) {
      if (line.find("path=\"/v1/problems\"") != std::string::npos) lines += line + "\n";
    }
    return lines;
  };
  const int before = judge().evaluations;
  const std::string requests = asked();
  EXPECT_NE(requests, "") << "the problem that was opened is counted";
  EXPECT_NE(MessageOf([&] { remote.OpenProblem("nowhere/at/all"); }).find("there is no problem folder"),
            std::string::npos);
  EXPECT_EQ(asked(), requests);
  EXPECT_EQ(judge().evaluations, before);
}

TEST_F(RemoteTest, StopsWithTheRunAndFreesTheServer) {
  RunningService running({.workers = 1});
  Evaluator remote = Remote({running.address()});
  const Problem problem = remote.OpenProblem(running.problem("one").string());
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    const CancelScope scope(&stop);
    EXPECT_EQ(MessageOf([&] { remote.Evaluate(problem, "hold", 0); }), "stopped by the user");
  });
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  stop = true;
  caller.join();
  EXPECT_TRUE(Eventually([] { return judge().cancelled == 1; }));
}

}  // namespace
}  // namespace kgrpo::test
