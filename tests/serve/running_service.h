// A service of two devices and two problems that runs in the process, and a client. Used by the tests of this folder
// and of evaluator_remote.
#ifndef KGRPO_TESTS_SERVE_RUNNING_SERVICE_H
#define KGRPO_TESTS_SERVE_RUNNING_SERVICE_H

#include <httplib.h>

#include "base/cancel.h"
#include "base/directories.h"
#include "base/services.h"
#include "fake_judge.h"
#include "serve/service.h"
#include "test.h"

namespace kgrpo::test {

using Json = nlohmann::ordered_json;

inline void WriteProblem(const std::filesystem::path& folder, const std::string& source = "void launch() {}\n") {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "problem.yaml") << "name: " << folder.filename().string() << "\n";
  std::ofstream(folder / "reference.cu") << source;
}

// Waits at most ten seconds for `condition`. Returns true if it was met.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class RunningService {
 public:
  explicit RunningService(serve::ServiceOptions options = {}, int port = 0) {
    WriteProblem(directory_.path() / "one");
    WriteProblem(directory_.path() / "two", "void launch() {} // two\n");
    std::vector<serve::ServedDevice> devices;
    for (const char* name : {"fast", "slow"}) {
      const nlohmann::json seconds = {{"seconds", std::string(name) == "fast" ? 1.0 : 8.0}};
      devices.push_back({name, std::make_unique<Evaluator>(&kFakeJudge, services_.ForInstance(name), seconds)});
    }
    const std::vector<std::string> problems = {(directory_.path() / "one").string(),
                                               (directory_.path() / "two").string()};
    service_ =
        std::make_unique<serve::Service>(std::move(options), std::move(devices), problems,
                                         Json{{"evaluator", "fake"}, {"version", "1"}, {"metrics", Json::array()}});
    port_ = service_->Bind("127.0.0.1", port);
    thread_ = std::thread([this] { service_->Run([this] { return stop_.load(); }); });
  }
  ~RunningService() { Stop(); }
  RunningService(const RunningService&) = delete;
  RunningService& operator=(const RunningService&) = delete;

  void AskToStop() { stop_ = true; }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int port() const { return port_; }
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::filesystem::path problem(const std::string& name) const { return directory_.path() / name; }
  serve::Service& service() { return *service_; }

  httplib::Client Client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(30);
    return client;
  }

 private:
  TemporaryDirectory directory_;
  HostServices services_{{}};
  std::unique_ptr<serve::Service> service_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  int port_ = 0;
};

struct Answer {
  int status = 0;
  Json json;
  httplib::Headers headers;
};

inline Answer Post(httplib::Client&& client, const Json& body, const std::string& path = "/v1/evaluations") {
  const httplib::Result result = client.Post(path, body.dump(), "application/json");
  if (!result) return {0, httplib::to_string(result.error()), {}};
  return {result->status, Json::parse(result->body, nullptr, false), result->headers};
}

inline Answer Get(httplib::Client&& client, const std::string& path) {
  const httplib::Result result = client.Get(path);
  if (!result) return {0, httplib::to_string(result.error()), {}};
  return {result->status, Json::parse(result->body, nullptr, false), result->headers};
}

class ServeTest : public testing::Test {
 protected:
  ServeTest() {
    ResetJudge();
    ClearCancel();
  }
  ~ServeTest() override { ClearCancel(); }
};

}  // namespace kgrpo::test
#endif
