#include "evaluator_remote/http_call.h"

#include <curl/curl.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace kgrpo::evaluator_remote {
namespace {

constexpr size_t kLargestAnswer = size_t{64} << 20;

struct Receiving {
  HttpAnswer* answer;
  const HttpOptions* options;
};

size_t OnBody(char* data, size_t one, size_t count, void* context) {
  HttpAnswer& answer = *static_cast<Receiving*>(context)->answer;
  if (answer.body.size() + one * count > kLargestAnswer) return 0;  // ends the transfer
  answer.body.append(data, one * count);
  return one * count;
}

int OnProgress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Receiving& receiving = *static_cast<Receiving*>(context);
  if (!receiving.options->cancelled || !receiving.options->cancelled()) return 0;
  receiving.answer->cancelled = true;
  return 1;
}

}  // namespace

HttpCaller::HttpCaller(HttpOptions options) : options_(std::move(options)) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });  // never undone: others may use curl too
}

HttpCaller::~HttpCaller() {
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* HttpCaller::Take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      void* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  CURL* handle = curl_easy_init();
  if (handle == nullptr) throw Error(KGRPO_ERROR_UNAVAILABLE, "libcurl cannot be started: too many open files?");
  return handle;
}

void HttpCaller::Return(void* handle) {
  curl_easy_reset(handle);  // its connections stay
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(handle);
}

HttpAnswer HttpCaller::Call(const std::string& url, const std::string& body) {
  CURL* handle = Take();
  HttpAnswer answer;
  Receiving receiving = {&answer, &options_};
  char error[CURL_ERROR_SIZE] = "";
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      curl_slist_append(curl_slist_append(nullptr, "Content-Type: application/json"), "Expect:"), curl_slist_free_all);
  if (!options_.token.empty())
    headers.reset(curl_slist_append(headers.release(), ("Authorization: Bearer " + options_.token).c_str()));
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  if (!body.empty()) {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &receiving);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &receiving);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);  // a machine that is gone is noticed within minutes
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, 20L);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, 10L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.request_seconds * 1000));
  const CURLcode code = curl_easy_perform(handle);
  if (code == CURLE_OK) {
    long status = 0;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &retry_after);
    answer.status = static_cast<int>(status);
    answer.retry_after = static_cast<double>(retry_after);
  } else {
    answer.failure = *error != '\0' ? error : curl_easy_strerror(code);
  }
  Return(handle);
  return answer;
}

}  // namespace kgrpo::evaluator_remote
