// One HTTP request over libcurl, blocking. Connections are kept and shared by the calls of an HttpCaller. Used by
// server_pool.cc.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace kgrpo::evaluator_remote {

struct HttpAnswer {
  int status = 0;          // 0: there was none, and `failure` says why
  std::string body;        // JSON, mostly
  std::string failure;     // "Connection refused"
  double retry_after = 0;  // seconds; 0: not said
  bool cancelled = false;
};

struct HttpOptions {
  std::string token;  // sent as a bearer token; empty: none
  double request_seconds = 600;
  std::function<bool()> cancelled;  // asked about once a second
};

// [any thread]
class HttpCaller {
 public:
  explicit HttpCaller(HttpOptions options);
  ~HttpCaller();
  HttpCaller(const HttpCaller&) = delete;
  HttpCaller& operator=(const HttpCaller&) = delete;

  // POST with a JSON body, or GET where that is empty. Never throws for what the other side does.
  HttpAnswer Call(const std::string& url, const std::string& body);

 private:
  void* Take();
  void Return(void* handle);

  const HttpOptions options_;
  std::mutex mutex_;
  std::vector<void*> idle_;  // CURL*, each with the connections that it has open
};

}  // namespace kgrpo::evaluator_remote
