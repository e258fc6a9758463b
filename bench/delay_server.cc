#include "delay_server.h"

#include <arpa/inet.h>
#include <kgrpo/sdk/error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <map>
#include <string_view>

#include "base/keyed.h"

namespace kgrpo::bench {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string Http(const char* status, const std::string& type, const std::string& body) {
  return std::string("HTTP/1.1 ") + status + "\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string Piece(uint32_t number) { return "  float value_" + std::to_string(number % 100) + " = x[i];"; }

std::string RightAnswer(const DelayServerOptions& options) {
  const std::string usage =
      R"("usage":{"prompt_tokens":1000,"completion_tokens":)" + std::to_string(options.events) + "}";
  if (!options.stream) {
    return Http("200 OK", "application/json",
                R"({"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":")" +
                    AnswerText(options) + R"("},"finish_reason":"stop"}],)" + usage + "}");
  }
  // As OpenAI writes its chunks.
  const auto chunk = [](const std::string& delta, const std::string& finish) {
    return R"(data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06",)"
           R"("system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{)" +
           delta + R"(},"logprobs":null,"finish_reason":)" + finish + R"(}],"usage":null})" + "\n\n";
  };
  std::string stream = chunk(R"("role":"assistant","content":"","refusal":null)", "null");
  for (uint32_t i = 0; i < options.events; ++i) stream += chunk(R"("content":")" + Piece(i) + "\"", "null");
  stream += chunk("", "\"stop\"") + R"(data: {"choices":[],)" + usage + "}\n\ndata: [DONE]\n\n";
  return Http("200 OK", "text/event-stream", stream);
}

struct Connection {
  std::string in;
  std::string_view out;  // what is still to be sent
};

struct Due {
  double at;
  int socket;
  uint64_t connection;  // socket numbers are reused
  int kind;             // 0: right; else a way to fail
};

class Loop {
 public:
  Loop(const DelayServerOptions& options, int listener, int life)
      : options_(options), right_(RightAnswer(options)), listener_(listener), life_(life), epoll_(epoll_create1(0)) {
    Watch(listener_, EPOLL_CTL_ADD, EPOLLIN);
    Watch(life_, EPOLL_CTL_ADD, EPOLLIN);
  }

  void Run() {
    std::array<epoll_event, 256> events;
    for (;;) {
      const double wait = due_.empty() ? 1 : std::max(0.0, due_.front().at - Now());
      const int count =
          epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), static_cast<int>(std::ceil(wait * 1000)));
      for (int i = 0; i < count; ++i) {
        const int socket = events[static_cast<size_t>(i)].data.fd;
        if (socket == life_) return;
        if (socket == listener_) {
          Accept();
        } else if ((events[static_cast<size_t>(i)].events & EPOLLOUT) != 0) {
          Write(socket);
        } else {
          Read(socket);
        }
      }
      for (; !due_.empty() && due_.front().at <= Now(); due_.pop_front()) Answer(due_.front());
    }
  }

 private:
  void Watch(int socket, int operation, uint32_t what) const {
    epoll_event event = {};
    event.events = what;
    event.data.fd = socket;
    epoll_ctl(epoll_, operation, socket, &event);
  }

  void Accept() {
    for (;;) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
      if (socket < 0) return;
      const int one = 1;
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      connections_[socket] = {};
      numbers_[socket] = ++last_number_;
      Watch(socket, EPOLL_CTL_ADD, EPOLLIN);
    }
  }

  void Close(int socket) {
    connections_.erase(socket);
    numbers_.erase(socket);
    close(socket);
  }

  void Read(int socket) {
    Connection& connection = connections_[socket];
    std::array<char, 16384> bytes;
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      Close(socket);
      return;
    }
    connection.in.append(bytes.data(), static_cast<size_t>(got));
    const size_t head = connection.in.find("\r\n\r\n");
    const size_t length = connection.in.find("Content-Length: ");
    if (head == std::string::npos || length > head) return;
    const size_t whole = head + 4 + std::strtoul(connection.in.c_str() + length + 16, nullptr, 10);
    if (connection.in.size() < whole) return;
    connection.in.erase(0, whole);
    const uint64_t draw = Keyed(options_.seed, "delay_server", {}, requests_++);
    const bool fails = static_cast<double>(draw >> 11) * 0x1p-53 < options_.failing;
    due_.push_back(
        {Now() + options_.delay_seconds, socket, numbers_[socket], fails ? 1 + static_cast<int>(failed_++ % 3) : 0});
  }

  void Answer(const Due& due) {
    const auto number = numbers_.find(due.socket);
    if (number == numbers_.end() || number->second != due.connection) return;  // the client left
    static const std::string limited = Http("429 Too Many Requests", "application/json",
                                            R"({"error":{"message":"slow down","code":"rate_limit_exceeded"}})");
    static const std::string broken = Http("500 Internal Server Error", "text/html", "<html><h1>500</h1></html>");
    std::string_view answer = right_;
    if (due.kind == 1) answer = limited;
    if (due.kind == 2) answer = broken;
    if (due.kind == 3) {
      static_cast<void>(!send(due.socket, right_.data(), right_.size() / 2, MSG_NOSIGNAL));
      const linger now = {1, 0};  // so that closing sends a reset
      setsockopt(due.socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      Close(due.socket);
      return;
    }
    connections_[due.socket].out = answer;
    Write(due.socket);
  }

  void Write(int socket) {
    Connection& connection = connections_[socket];
    const ssize_t sent = send(socket, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent > 0) connection.out.remove_prefix(static_cast<size_t>(sent));
    Watch(socket, EPOLL_CTL_MOD, connection.out.empty() ? EPOLLIN : EPOLLOUT);
  }

  DelayServerOptions options_;
  std::string right_;
  int listener_;
  int life_;
  int epoll_;
  std::map<int, Connection> connections_;
  std::map<int, uint64_t> numbers_;
  std::deque<Due> due_;
  uint64_t last_number_ = 0;
  uint64_t requests_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace

std::string AnswerText(const DelayServerOptions& options) {
  std::string text;
  for (uint32_t i = 0; i < options.events; ++i) text += Piece(i);
  return text;
}

DelayServer::DelayServer(const DelayServerOptions& options) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  int ends[2] = {-1, -1};
  const bool listening = bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                         listen(listener, 1024) == 0 &&
                         getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0 && pipe(ends) == 0;
  if (!listening) throw Error(KGRPO_ERROR_UNAVAILABLE, "the delay server cannot listen on 127.0.0.1");
  port_ = ntohs(address.sin_port);
  process_ = fork();
  if (process_ < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "the delay server cannot be started: fork failed");
  if (process_ == 0) {
    close(ends[1]);
    Loop(options, listener, ends[0]).Run();
    _exit(0);
  }
  close(ends[0]);
  close(listener);
  life_ = ends[1];
}

DelayServer::~DelayServer() {
  close(life_);
  waitpid(process_, nullptr, 0);
}

}  // namespace kgrpo::bench
