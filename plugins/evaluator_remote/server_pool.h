// The servers that an evaluator_remote may ask: picks the one with the fewest requests in flight, pauses one that
// fails, and tries the others until there is an answer or the time is over. Used by remote_evaluator.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "evaluator_remote/http_call.h"

namespace kgrpo::evaluator_remote {

struct PoolOptions {
  // "http://10.0.0.7:8421", or "dns://evaluators:8421" for every address that the name has at the time.
  std::vector<std::string> servers;
  double wait_seconds = 300;  // to wait for an answer before a call fails; a server that says it is busy has answered
  HttpOptions http;
  std::function<void(const std::string&)> warn;
  double resolve_seconds = 10;  // between two look-ups of the dns:// names
  // The addresses of NAME:PORT, each as http://HOST:PORT; none if the name is unknown. Default: the system's resolver.
  std::function<std::vector<std::string>(const std::string& name_and_port)> resolve;
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
  HttpAnswer AskOne(const std::string& address, const std::string& path) { return caller_.Call(address + path, ""); }
  std::vector<std::string> Addresses();

 private:
  struct Server {
    std::string address;
    size_t under_way = 0;
    size_t failures = 0;              // in a row
    Clock::time_point rests_until{};  // after a failure, or as the server asked, at most 10 s
    std::string last_failure;
    uint64_t picked = 0;
    std::string name = {};  // the dns:// name that it was found by; "" for a given address
  };

  void LookUpNames();
  Server* Pick();  // null where all rest
  void Rest(Server& server, const HttpAnswer& answer);

  const PoolOptions options_;
  HttpCaller caller_;
  std::mutex mutex_;
  std::list<Server> servers_;       // calls under way hold pointers
  std::vector<std::string> names_;  // of dns:// addresses: NAME:PORT
  Clock::time_point look_up_at_{};
  uint64_t picks_ = 0;
  std::optional<Clock::time_point> down_since_;  // set while the last answer of every server was a failure
};

}  // namespace kgrpo::evaluator_remote
