// curl's multi interface driven by epoll: what a turn costs depends on what happened, not on how many transfers are in
// flight (curl_multi_perform looks at all of them each time). Used by dispatcher.cc, on its thread.
#ifndef KGRPO_CODER_GPT4O_CLIENT_CURL_LOOP_H
#define KGRPO_CODER_GPT4O_CLIENT_CURL_LOOP_H

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace kgrpo::coder_gpt4o {

// Seconds of the steady clock.
double Now();

class CurlLoop {
 public:
  // Throws Error(KGRPO_ERROR_UNAVAILABLE) where the system gives no epoll or no memory. `connections`: how many to keep
  // open between transfers.
  explicit CurlLoop(long connections);
  ~CurlLoop();  // every handle was removed before

  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  void Add(CURL* easy);
  void Remove(CURL* easy);  // not from within a callback of curl's

  // Waits until something happens, Wake is called or so many seconds are over, and lets curl act on it.
  void Turn(double seconds);

  // Lets curl act on all that has happened already, without waiting. `sockets`: how many may be open, about.
  void ReadAll(size_t sockets);

  // A transfer that ended: its handle and how; a null handle when there is none.
  std::pair<CURL*, CURLcode> NextDone();

  // Ends a Turn that is under way or comes. [any thread]
  void Wake();

 private:
  size_t Act(int milliseconds);
  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int OnTimer(CURLM* multi, long milliseconds, void* self);

  CURLM* multi_ = nullptr;
  int epoll_ = -1;
  int wake_ = -1;         // an eventfd
  double timer_at_ = -1;  // when curl wants to be called; -1: need not be
};

}  // namespace kgrpo::coder_gpt4o
#endif
