// The servers that an evaluator_remote may ask: picks the one with the fewest requests in flight, pauses one that
// fails, and tries the others until there is an answer or the time is over. Used by remote_evaluator.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "evaluator_remote/http_call.h"

namespace kgrpo::evaluator_remote {

struct PoolOptions {
  std::vector<std::string> servers;  // "http://10.0.0.7:8421"
  double wait_seconds = 300;  // to wait for an answer before a call fails; a server that says it is busy has answered
  HttpOptions http;
  std::function<void(const std::string&)> warn;
};

// [any thread]
class ServerPool {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws kgrpo::Error for an address that is none.
  explicit ServerPool(PoolOptions options);

  // Returns the answer of some server to POST (or GET, where `body` is empty): a usable 200, or a 4xx other than 408
  // and 429, which every other server would give too. `usable` checks a 200; any other answer is tried again. Gives up
  // after wait_seconds without an answer, or `most_seconds` if that is less; while no server answers any call, this
  // time counts from the first of them. Throws KGRPO_ERROR_UNAVAILABLE with each server's last failure, or
  // KGRPO_ERROR_CANCELLED.
  HttpAnswer Ask(const std::string& path, const std::string& body, const std::function<bool(const HttpAnswer&)>& usable,
                 double most_seconds = std::numeric_limits<double>::infinity());

  // One GET of each server, without waiting.
  HttpAnswer AskOne(size_t server, const std::string& path) {
    return caller_.Call(servers_[server].address + path, "");
  }
  size_t size() const { return servers_.size(); }
  const std::string& address(size_t server) const { return servers_[server].address; }

 private:
  struct Server {
    std::string address;
    size_t under_way = 0;
    size_t failures = 0;              // in a row
    Clock::time_point rests_until{};  // after a failure, or as the server asked, at most 10 s
    std::string last_failure;
    uint64_t picked = 0;
  };

  Server* Pick();  // null where all rest
  void Rest(Server& server, const HttpAnswer& answer);

  const PoolOptions options_;
  HttpCaller caller_;
  std::mutex mutex_;
  std::vector<Server> servers_;
  uint64_t picks_ = 0;
  std::optional<Clock::time_point> down_since_;  // set while the last answer of every server was a failure
};

}  // namespace kgrpo::evaluator_remote
