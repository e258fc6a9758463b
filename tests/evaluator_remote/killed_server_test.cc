// A run judged by three servers, one of which is killed in the middle: it goes on, and what it records is what a run
// without servers records, each evaluation once.
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/directories.h"
#include "host_binary.h"
#include "test.h"

namespace kgrpo::test {
namespace {

// `kgrpo-host serve` as a process of its own.
class ServerProcess {
 public:
  ServerProcess(const fs::path& directory, const std::string& name) : output_(directory / (name + ".out")) {
    process_ = fork();
    if (process_ != 0) return;
    if (chdir(directory.c_str()) != 0 || freopen(output_.c_str(), "w", stdout) == nullptr) _exit(1);
    setenv("KGRPO_PLUGIN_PATH", KGRPO_BINARY_DIR "/tests/plugins", 1);
    setenv("KGRPO_CACHE_DIR", "cache", 1);
    execl(KGRPO_BINARY_DIR "/bin/kgrpo-host", "kgrpo-host", "serve", "--evaluator", "fakes", "--listen", "127.0.0.1:0",
          "--problems", "problems/*", static_cast<char*>(nullptr));
    _exit(1);
  }
  ~ServerProcess() { End(SIGTERM); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int Port() {
    std::smatch match;
    for (int i = 0; i < 10000 && port_ == 0; ++i) {
      const std::string text = Read(output_);
      if (std::regex_search(text, match, std::regex("http://127.0.0.1:([0-9]+)\n"))) port_ = std::stoi(match[1]);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return port_;
  }

  // So many kernels it has judged.
  int Judged() {
    const httplib::Result result = httplib::Client("127.0.0.1", Port()).Get("/metrics");
    if (!result) return 0;
    int sum = 0;
    std::istringstream lines(result->body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("kgrpo_evaluations_total")) sum += std::stoi(line.substr(line.rfind(' ')));
    }
    return sum;
  }

  int End(int signal) {
    if (process_ <= 0) return 0;
    kill(process_, signal);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }

 private:
  fs::path output_;
  pid_t process_ = 0;
  int port_ = 0;
};

// A signal may come before `serve` has its own handlers, while it drains, or before main().
TEST(ServerProcessTest, EndsWheneverItIsToldTo) {
  const TemporaryDirectory directory;
  Write(directory.path() / "problems/one/reference.cu", "void launch() {}\n");
  for (int milliseconds = 0; milliseconds < 60; milliseconds += 2) {
    ServerProcess server(directory.path(), "server");
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const int status = server.End(SIGTERM);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGTERM : WEXITSTATUS(status) == 0) << status;
  }
}

// A pipeline on small fakes, judged here and by three servers.
class KilledServerTest : public testing::Test {
 protected:
  KilledServerTest() {
    Write(directory_.path() / "problems/one/reference.cu", "void launch() {}\n");
    Write(directory_.path() / "problems/two/reference.cu", "void launch() {} // two\n");
    Write(
        directory_.path() / "p.yaml",
        "seed: 5\npolicy: {plugin: fakes, options: {model: random}}\n"
        "coder: {plugin: fakes, options: {techniques: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, "
        "v, w, x, y, z]}}\n"
        "evaluator: {plugin: fakes}\nreward: {plugin: fakes}\ntrainer: {plugin: fakes}\n"
        "problems: {train: ['problems/*']}\n"
        "loop: {max_steps: 40, batch_size: 8, rounds: 2, workers: 6, sampling: {max_new_tokens: 6}}\n"
        "checkpoint: {every: 1000}\nprompt: {user: 'improve {{problem.name}}'}\n");
    for (const char* name : {"a", "b", "c"})
      servers_.push_back(std::make_unique<ServerProcess>(directory_.path(), name));
  }

  // Runs it by the servers at these addresses, kills the second one on the way, and compares what was recorded.
  void RunAndKill(const std::string& addresses) {
    const Result local = RunHost(directory_.path(), "p.yaml --set output_dir=local");
    ASSERT_EQ(local.code, 0) << local.err;
    Result remote;
    std::thread run([&] {
      remote = RunHost(directory_.path(),
                       "p.yaml --set output_dir=remote --set evaluator.plugin=evaluator_remote --set "
                       "'evaluator.options={request_seconds: 20, servers: [" +
                           addresses + "]}'");
    });
    int before = 0;
    for (int i = 0; i < 5000 && before < 30; ++i) {
      before = servers_[1]->Judged();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    servers_[1]->End(SIGKILL);
    run.join();
    ASSERT_EQ(remote.code, 0) << remote.err;
    EXPECT_GE(before, 30) << "it was killed while it judged";
    EXPECT_LT(before, 120);
    warnings_ = remote.err;

    const std::map<int64_t, std::string> expected = StepSamples(directory_.path() / "local"),
                                         recorded = StepSamples(directory_.path() / "remote");
    Database database(directory_.path() / "remote/run.sqlite");
    Statement rounds(database, "SELECT count(*) FROM rounds");
    EXPECT_TRUE(rounds.Step());
    EXPECT_EQ(rounds.Integer(0), 640);
    EXPECT_EQ(recorded, expected);
    EXPECT_EQ(servers_[0]->End(SIGTERM), 0) << "it drains and ends well";
  }

  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::string warnings_;
};

TEST_F(KilledServerTest, TheRunGoesOnAndRecordsEachEvaluationOnce) {
  std::string addresses;
  for (const auto& server : servers_)
    addresses += (addresses.empty() ? "" : ", ") + ("\"http://127.0.0.1:" + std::to_string(server->Port())) + "\"";
  RunAndKill(addresses);
  EXPECT_NE(warnings_.find("its evaluations go to other servers"), std::string::npos) << warnings_;
}

// A port that was free a moment ago.
int FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(listener);
  return ntohs(address.sin_port);
}

TEST_F(KilledServerTest, SoItDoesBehindHaproxyAsTheExampleSetsItUp) {
  if (std::system("command -v haproxy > /dev/null") != 0) GTEST_SKIP() << "haproxy is not installed";
  std::string text = Read(KGRPO_SOURCE_DIR "/examples/haproxy/haproxy.cfg");
  const int front = FreePort();
  const auto replace = [&](const std::string& from, int port) {
    const size_t at = text.find("127.0.0.1:" + from + "\n");
    ASSERT_NE(at, std::string::npos);
    text.replace(at + 10, from.size(), std::to_string(port));
  };
  replace("8420", front);
  for (int i = 0; i < 3; ++i) replace(std::to_string(8421 + i), servers_[static_cast<size_t>(i)]->Port());
  Write(directory_.path() / "haproxy.cfg", text);
  const pid_t proxy = fork();
  if (proxy == 0) {
    if (chdir(directory_.path().c_str()) != 0 || freopen("haproxy.log", "w", stderr) == nullptr) _exit(1);
    execlp("haproxy", "haproxy", "-db", "-f", "haproxy.cfg", static_cast<char*>(nullptr));
    _exit(1);
  }
  RunAndKill("\"http://127.0.0.1:" + std::to_string(front) + "\"");
  kill(proxy, SIGKILL);
  waitpid(proxy, nullptr, 0);
}

}  // namespace
}  // namespace kgrpo::test
