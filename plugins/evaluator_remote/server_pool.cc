#include "evaluator_remote/server_pool.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/number_text.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

namespace kgrpo::evaluator_remote {
namespace {

constexpr double kShortestRest = 0.2, kLongestRest = 10;  // seconds; doubled with each failure in a row
constexpr auto kLookEvery = std::chrono::milliseconds(50);
constexpr int kTooManyRequests = 429, kRequestTimeout = 408;

// The message of a server's error answer.
std::string MessageOf(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.failure;
  const nlohmann::json json = nlohmann::json::parse(answer.body, nullptr, false);
  const std::string status = "HTTP " + std::to_string(answer.status);
  if (json.is_object() && json.contains("error") && json["error"].is_object())
    return status + ": " + json["error"].value("message", "");
  return status;
}

bool IsFinal(const HttpAnswer& answer) {
  return answer.status >= 400 && answer.status < 500 && answer.status != kTooManyRequests &&
         answer.status != kRequestTimeout;
}

ServerPool::Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<ServerPool::Clock::duration>(std::chrono::duration<double>(seconds));
}

constexpr std::string_view kByName = "dns://";

std::vector<std::string> SystemAddresses(const std::string& name_and_port) {
  const size_t colon = name_and_port.rfind(':');
  const std::string name = name_and_port.substr(0, colon), port = name_and_port.substr(colon + 1);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  std::vector<std::string> addresses;
  if (getaddrinfo(name.c_str(), port.c_str(), &hints, &found) != 0) return addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const std::string text = one->ai_family == AF_INET6 ? "[" + std::string(host) + "]" : host;
    addresses.push_back("http://" + text + ":" + port);
  }
  freeaddrinfo(found);
  return addresses;
}

}  // namespace

ServerPool::ServerPool(PoolOptions options) : options_(std::move(options)), caller_(options_.http) {
  for (std::string address : options_.servers) {
    while (address.ends_with('/')) address.pop_back();
    if (address.starts_with(kByName)) {
      names_.push_back(address.substr(kByName.size()));
      const size_t colon = names_.back().rfind(':');
      if (colon == std::string::npos || colon == 0 || colon + 1 == names_.back().size())
        throw Error(KGRPO_ERROR_INVALID, "options.servers: \"" + address + "\" has no port; expected dns://NAME:PORT");
      continue;
    }
    if (!address.starts_with("http://") && !address.starts_with("https://"))
      throw Error(KGRPO_ERROR_INVALID,
                  "options.servers: \"" + address + "\" is no address; expected one such as http://10.0.0.7:8421");
    servers_.emplace_back().address = address;
  }
  LookUpNames();
}

std::vector<std::string> ServerPool::Addresses() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> addresses;
  for (const Server& server : servers_) addresses.push_back(server.address);
  return addresses;
}

// Adds the servers that a name has gained, and drops those that it has lost, once no call of theirs is under way. A
// name that cannot be looked up keeps its servers: the resolver may be what fails.
void ServerPool::LookUpNames() {
  if (names_.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Clock::now() < look_up_at_) return;
    look_up_at_ = Clock::now() + Seconds(options_.resolve_seconds);
  }
  for (const std::string& name : names_) {
    const std::vector<std::string> found = options_.resolve ? options_.resolve(name) : SystemAddresses(name);
    if (found.empty()) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(servers_, [&](const Server& server) {
      return server.name == name && server.under_way == 0 && std::ranges::find(found, server.address) == found.end();
    });
    for (const std::string& address : found) {
      if (std::ranges::none_of(servers_, [&](const Server& server) { return server.address == address; }))
        servers_.push_back({.address = address, .name = name});
    }
  }
}

ServerPool::Server* ServerPool::Pick() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  Server* best = nullptr;
  for (Server& server : servers_) {
    if (server.rests_until > now) continue;
    // After a failure, one call at a time tries a server.
    if (server.failures > 0 && server.under_way > 0) continue;
    if (best == nullptr || std::tie(server.under_way, server.picked) < std::tie(best->under_way, best->picked))
      best = &server;
  }
  if (best == nullptr) return nullptr;
  ++best->under_way;
  best->picked = ++picks_;
  return best;
}

void ServerPool::Rest(Server& server, const HttpAnswer& answer) {
  std::string warning;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    server.last_failure = MessageOf(answer);
    double seconds = answer.retry_after;
    if (answer.status == kTooManyRequests) {
      down_since_.reset();  // a busy server is alive
    } else {
      if (server.failures++ == 0)
        warning = server.address + " failed: " + server.last_failure + "; its evaluations go to other servers";
      seconds = std::max(seconds,
                         std::min(kLongestRest, kShortestRest * std::exp2(static_cast<double>(server.failures - 1))));
      const bool all = std::ranges::all_of(servers_, [](const Server& one) { return one.failures > 0; });
      if (all && !down_since_) down_since_ = Clock::now();
    }
    server.rests_until = Clock::now() + Seconds(std::clamp(seconds, kShortestRest, kLongestRest));
  }
  if (!warning.empty() && options_.warn) options_.warn(warning);
}

HttpAnswer ServerPool::Ask(const std::string& path, const std::string& body,
                           const std::function<bool(const HttpAnswer&)>& usable, double most_seconds) {
  const double wait_seconds = std::min(options_.wait_seconds, most_seconds);
  std::optional<Clock::time_point> end;  // starts at the first failure: a lost evaluation's own time does not count
  const auto over = [&] {
    if (!end) {
      const std::lock_guard<std::mutex> lock(mutex_);
      end = down_since_.value_or(Clock::now()) + Seconds(wait_seconds);
    }
    return Clock::now() >= *end;
  };
  for (;;) {
    if (options_.http.cancelled && options_.http.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    LookUpNames();
    Server* server = Pick();
    if (server == nullptr) {
      if (over()) break;
      std::this_thread::sleep_for(kLookEvery);
      continue;
    }
    HttpAnswer answer = caller_.Call(server->address + path, body);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --server->under_way;
    }
    if (answer.cancelled) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    const bool good = answer.status == 200 && usable(answer);
    if (good || IsFinal(answer)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      server->failures = 0;
      down_since_.reset();
      return answer;
    }
    if (answer.status == 200) {
      answer = {};
      answer.failure = "an answer that cannot be read";
    }
    Rest(*server, answer);
    if (answer.status == kTooManyRequests) end.reset();
    if (over()) break;
  }
  std::string all;
  for (const std::string& name : names_) all += "\n  dns://" + name;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Server& server : servers_)
    all += "\n  " + server.address + ": " + (server.last_failure.empty() ? "busy" : server.last_failure);
  throw Error(KGRPO_ERROR_UNAVAILABLE, "no server answered within " + ThreeDigits(wait_seconds) +
                                           " s (start one by `kgrpo-host serve`, or raise wait_seconds):" + all);
}

}  // namespace kgrpo::evaluator_remote
