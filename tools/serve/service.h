// The evaluator as a service: HTTP and JSON over the instances of an evaluator plugin. docs/service.md is its page for
// users, openapi.cc its description for programs. Made by `kgrpo-host serve` (main.cc) and by tests.
#ifndef KGRPO_SERVE_SERVICE_H
#define KGRPO_SERVE_SERVICE_H

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "serve/clients.h"
#include "serve/evaluation_queue.h"
#include "serve/http_server.h"
#include "serve/served_problems.h"
#include "serve/service_metrics.h"

namespace kgrpo::serve {

inline constexpr int kClientGone = 499;  // nobody reads it; nginx's number, for log and metrics

struct ServiceOptions {
  size_t workers = 1;                                     // kernels judged at the same time
  size_t queue = 256;                                     // evaluations that wait, at most
  std::list<ClientToken> tokens = {};                     // bearer tokens of clients; empty: no client needs one
  bool inline_code = false;                               // problems in requests may hold native code
  double drain_seconds = 60;                              // for requests under way, after a stop request
  bool json_log = false;                                  // the line of each request is JSON
  std::function<void(const std::string& line)> log = {};  // takes those lines; empty: the log, at kInfo
  HttpLimits http = {};
};

class Service {
 public:
  // `devices`: at least one; requests that name none use the first. `about`: the answer of GET /v1/evaluator, apart
  // from the devices.
  Service(ServiceOptions options, std::vector<ServedDevice> devices, const std::vector<std::string>& problems,
          nlohmann::ordered_json about);
  ~Service();

  // As HttpServer::Bind.
  int Bind(const std::string& host, int port) { return http_.Bind(host, port); }

  // Serves until `stop`, called every 20 ms, returns true. Then drains: refuses new evaluations, finishes those under
  // way, and cancels them after drain_seconds. Call once.
  void Run(const std::function<bool()>& stop);

  // Requests that are being answered.
  size_t active() const { return active_; }

 private:
  struct Unit;
  struct Pending;
  class Active;
  using Json = nlohmann::ordered_json;

  void AddRoutes();
  // service_telling.cc
  void DeclareMetrics();
  void CountRequest(const std::string& path, int status);
  void Log(const httplib::Request& request, const httplib::Response& response, const RequestNote& note) const;
  void CheckToken(const httplib::Request& request);
  void PostEvaluations(const httplib::Request& request, httplib::Response& response,
                       const httplib::ContentReader& read);
  std::vector<Unit> UnitsOf(const EvaluationsRequest& request);
  std::shared_ptr<Pending> Submit(EvaluationsRequest request, Clients::Client* client);
  void Judge(Pending& pending, size_t number);
  void Stream(const std::shared_ptr<Pending>& pending, httplib::Response& response,
              httplib::ContentProviderResourceReleaser ended);
  void CancelUnlessEnded(Pending& pending);
  static void NoteVerdicts(const Pending& pending);
  void AnswerWhole(Pending& pending, httplib::Response& response);
  Json ResultJson(const Pending& pending, size_t number) const;
  Json DescribeProblem(ServedProblem& problem) const;
  std::string MetricsText() const;
  Json Health() const;

  const ServiceOptions options_;
  const std::vector<ServedDevice> devices_;
  const Json about_;
  Clients clients_;
  ServedProblems problems_;
  ServiceMetrics metrics_;
  std::atomic<size_t> active_{0};
  std::atomic<bool> draining_{false};
  EvaluationQueue queue_;  // uses the above
  HttpServer http_;        // uses all of the above
};

}  // namespace kgrpo::serve
#endif
