// What the service tells of itself: metrics, health, and the line of each request.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <kgrpo/evaluation.h>
#include <kgrpo/support/dump_json.h>
#include "base/wall_clock.h"
#include "serve/service.h"

namespace kgrpo::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestLogged = 300;
constexpr const char* kBareCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-[]";  // need no quotes in a line of the log

double ResidentBytes() {
  std::ifstream stream("/proc/self/statm");
  double all = 0, resident = 0;
  stream >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double OpenDescriptors() {
  std::error_code code;
  double count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", code), end; !code && at != end; at.increment(code))
    ++count;
  return count;
}

constexpr const char* kRoutes[] = {"/",
                                   "/openapi.json",
                                   "/healthz",
                                   "/metrics",
                                   "/v1/problems",
                                   "/v1/problems/{name}",
                                   "/v1/evaluator",
                                   "/v1/evaluations"};

// The path's label in the metrics; never text from a client.
std::string RouteOf(const std::string& path) {
  if (path.starts_with("/v1/problems/")) return "/v1/problems/{name}";
  return std::ranges::find(kRoutes, path) != std::end(kRoutes) ? path : "other";
}

}  // namespace

// Counters begin at 0, so that the first event is an increase.
void Service::DeclareMetrics() {
  for (const char* path : kRoutes) metrics_.Count("requests_total", {{"path", path}, {"status", "200"}}, 0);
  metrics_.Count("requests_aborted_total", {}, 0);
  for (const char* reason : {"queue_full", "client_limit"})
    metrics_.Count("requests_refused_total", {{"reason", reason}}, 0);
  metrics_.Declare("queue_seconds", {});
  for (const ServedDevice& device : devices_) {
    metrics_.Declare("evaluation_seconds", {{"device", device.name}});
    for (const char* verdict : {KGRPO_VERDICT_CORRECT, KGRPO_VERDICT_NOT_COMPILED, "wrong"})
      metrics_.Count("evaluations_total", {{"device", device.name}, {"verdict", verdict}}, 0);
    for (const char* code : {"cancelled", "internal", "invalid_problem", "not_judged", "unavailable", "unsupported"})
      metrics_.Count("evaluation_errors_total", {{"device", device.name}, {"code", code}}, 0);
  }
}

void Service::CountRequest(const std::string& path, int status) {
  metrics_.Count("requests_total", {{"path", RouteOf(path)}, {"status", std::to_string(status)}});
}

void Service::Log(const httplib::Request& request, const httplib::Response& response, const RequestNote& note) const {
  // Load balancers and Prometheus ask every few seconds.
  const bool is_poll = response.status == 200 && (request.path == "/healthz" || request.path == "/metrics");
  if (is_poll && !spdlog::should_log(spdlog::level::debug)) return;
  const auto shown = [](const std::string& text) { return text.substr(0, kLongestLogged); };
  const bool left = request.path == "/v1/evaluations" && response.status == 200 &&
                    !response.content_provider_success_ && response.content_provider_ != nullptr;
  const std::string cause = left ? "client_gone: the client has left" : shown(note.cause);
  Json json = {{"time", SecondsSince1970()},
               {"id", note.id},
               {"client", note.client},
               {"token", note.token},
               {"method", shown(request.method)},
               {"path", shown(request.path)},
               {"status", left ? kClientGone : response.status},
               {"seconds", std::round(note.seconds * 1e6) / 1e6},
               {"problem", shown(note.problem)},
               {"verdict", note.verdict},
               {"cause", cause}};
  std::string line;
  if (options_.json_log) {
    line = DumpJson(json, -1, true);
  } else {
    for (const auto& [key, value] : json.items()) {
      if (key == "time" || value == "") continue;
      const std::string text = value.is_string() ? value.get<std::string>() : "";
      const bool bare = !text.empty() && text.find_first_not_of(kBareCharacters) == std::string::npos;
      line += (line.empty() ? "" : " ") + key + "=" + (bare ? text : DumpJson(value, -1, true));
    }
    line = "request " + line;
  }
  if (options_.log)
    options_.log(line);
  else
    spdlog::info(line);
}

Json Service::Health() const {
  return {{"status", draining_ ? "draining" : "ok"},
          {"waiting", queue_.waiting()},
          {"running", queue_.running()},
          {"workers", queue_.workers()},
          {"queue", queue_.limit()}};
}

std::string Service::MetricsText() const {
  return metrics_.Text({{"queue_waiting", static_cast<double>(queue_.waiting())},
                        {"queue_limit", static_cast<double>(queue_.limit())},
                        {"evaluations_running", static_cast<double>(queue_.running())},
                        {"workers", static_cast<double>(queue_.workers())},
                        {"requests_active", static_cast<double>(active_)},
                        {"connections", static_cast<double>(http_.connections())},
                        {"connections_refused_total", static_cast<double>(http_.refused_connections())},
                        {"draining", draining_ ? 1.0 : 0.0},
                        {"process_resident_bytes", ResidentBytes()},
                        {"process_open_descriptors", OpenDescriptors()}});
}

}  // namespace kgrpo::serve
