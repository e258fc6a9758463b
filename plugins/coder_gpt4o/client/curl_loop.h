// curl's multi interface: many transfers on one thread. Used by dispatcher.cc, on its thread.
#ifndef KGRPO_CODER_GPT4O_CLIENT_CURL_LOOP_H
#define KGRPO_CODER_GPT4O_CLIENT_CURL_LOOP_H

#include <curl/curl.h>

#include <utility>

namespace kgrpo::coder_gpt4o {

// Seconds of the steady clock.
double Now();

class CurlLoop {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where the system gives no descriptor or no memory. `connections`: how many to
  // keep open between transfers.
  explicit CurlLoop(long connections);
  ~CurlLoop() { curl_multi_cleanup(multi_); }  // every handle was removed before

  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  void Add(CURL* easy) { curl_multi_add_handle(multi_, easy); }
  void Remove(CURL* easy) { curl_multi_remove_handle(multi_, easy); }  // not from within a callback of curl's

  // Waits until something happens, Wake is called or so many seconds are over; then each transfer takes what there is.
  void Turn(double seconds);

  // A transfer that ended: its handle and how; a null handle when there is none.
  std::pair<CURL*, CURLcode> NextDone();

  // Ends a Turn that is under way or comes. [any thread]
  void Wake() { curl_multi_wakeup(multi_); }

 private:
  CURLM* multi_ = nullptr;
};

}  // namespace kgrpo::coder_gpt4o
#endif
