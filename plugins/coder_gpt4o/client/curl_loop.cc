#include "coder_gpt4o/client/curl_loop.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

namespace kgrpo::coder_gpt4o {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CurlLoop::CurlLoop(long connections) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });  // never undone: others may use curl too
  multi_ = curl_multi_init();
  if (multi_ == nullptr)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "libcurl cannot be started: too many open files? See ulimit -n");
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, connections);
}

void CurlLoop::Turn(double seconds) {
  const double wait = std::clamp(seconds, 0.0, 3600.0);
  int running = 0;
  curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::ceil(wait * 1000)), nullptr);
  curl_multi_perform(multi_, &running);
}

std::pair<CURL*, CURLcode> CurlLoop::NextDone() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) return {message->easy_handle, message->data.result};
  }
  return {nullptr, CURLE_OK};
}

}  // namespace kgrpo::coder_gpt4o
