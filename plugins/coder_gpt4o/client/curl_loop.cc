#include "coder_gpt4o/client/curl_loop.h"

#include <kgrpo/sdk/error.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <mutex>

namespace kgrpo::coder_gpt4o {

constexpr size_t kEvents = 64;  // that one call of epoll brings at most

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CurlLoop::CurlLoop(long connections) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });  // never undone: others may use curl too
  multi_ = curl_multi_init();
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  if (multi_ == nullptr || epoll_ < 0 || wake_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
    if (epoll_ >= 0) close(epoll_);
    if (wake_ >= 0) close(wake_);
    throw Error(KGRPO_ERROR_UNAVAILABLE, "no epoll instance can be made: too many open files? See ulimit -n");
  }
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlLoop::OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlLoop::OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, connections);
}

CurlLoop::~CurlLoop() {
  curl_multi_cleanup(multi_);
  close(wake_);
  close(epoll_);
}

void CurlLoop::Add(CURL* easy) {
  curl_multi_add_handle(multi_, easy);
}

void CurlLoop::Remove(CURL* easy) {
  curl_multi_remove_handle(multi_, easy);
}

void CurlLoop::Turn(double seconds) {
  double wait = std::max(0.0, seconds);
  if (timer_at_ >= 0) wait = std::min(wait, std::max(0.0, timer_at_ - Now()));
  Act(static_cast<int>(std::ceil(std::min(wait, 3600.0) * 1000)));
}

void CurlLoop::ReadAll(size_t sockets) {
  // Sockets take turns in epoll's list; one that always has more to read must not keep this from ending.
  for (size_t turns = sockets / kEvents + 2; turns > 0 && Act(0) > 0; --turns) {
  }
}

// Waits for events so long, hands them to curl and says how many there were.
size_t CurlLoop::Act(int milliseconds) {
  std::array<epoll_event, kEvents> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), milliseconds);
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.fd == wake_) {
      uint64_t calls = 0;
      static_cast<void>(!read(wake_, &calls, sizeof calls));
      continue;
    }
    int mask = 0;
    if ((event.events & EPOLLIN) != 0) mask |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) mask |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, event.data.fd, mask, &running);
  }
  if (timer_at_ >= 0 && Now() >= timer_at_) {
    timer_at_ = -1;  // before the call, which may set it again
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  return static_cast<size_t>(std::max(0, count));
}

std::pair<CURL*, CURLcode> CurlLoop::NextDone() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) return {message->easy_handle, message->data.result};
  }
  return {nullptr, CURLE_OK};
}

void CurlLoop::Wake() {
  const uint64_t one = 1;
  static_cast<void>(!write(wake_, &one, sizeof one));  // fails only when the counter is full: awake anyway
}

int CurlLoop::OnSocket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  const int epoll = static_cast<CurlLoop*>(self)->epoll_;
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);  // fails where the socket was closed: it left by itself
    return 0;
  }
  epoll_event event = {};
  event.data.fd = socket;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) event.events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) event.events |= EPOLLOUT;
  // A number may stand for a new socket that curl has not told of, or for an old one.
  if (epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) != 0 && errno == ENOENT) {
    epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
  }
  return 0;
}

int CurlLoop::OnTimer(CURLM*, long milliseconds, void* self) {
  static_cast<CurlLoop*>(self)->timer_at_ = milliseconds < 0 ? -1 : Now() + static_cast<double>(milliseconds) / 1000;
  return 0;
}

}  // namespace kgrpo::coder_gpt4o
