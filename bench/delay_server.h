// A chat-completions service that answers every request after the same delay, and some of them with an error: one
// thread in a process of its own, so that what it costs is not counted with the client. Used by coder_bench.cc.
#ifndef KGRPO_BENCH_DELAY_SERVER_H
#define KGRPO_BENCH_DELAY_SERVER_H

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace kgrpo::bench {

struct DelayServerOptions {
  double delay_seconds = 0.2;
  double failing = 0;     // of all requests, that share fails: by 429, 500 and a reset connection in turn
  bool stream = true;     // whether the answer is a stream
  uint32_t events = 200;  // of a stream: so many pieces of text; a whole answer holds the same text
  uint64_t seed = 1;      // which requests fail
};

class DelayServer {
 public:
  // Forks: call it while the process has one thread. Throws Error(KGRPO_ERROR_UNAVAILABLE).
  explicit DelayServer(const DelayServerOptions& options);
  ~DelayServer();  // ends the process

  DelayServer(const DelayServer&) = delete;
  DelayServer& operator=(const DelayServer&) = delete;

  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

 private:
  int port_ = 0;
  int life_ = -1;  // a pipe's end: the server lives until it is closed
  pid_t process_ = -1;
};

// The text of every right answer.
std::string AnswerText(const DelayServerOptions& options);

}  // namespace kgrpo::bench

#endif
