#include "serve/http_server.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "serve/framing.h"

namespace kgrpo::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 511;                       // cpp-httplib's own is 5
constexpr double kLingerSeconds = 2;                // for a client that is still sending to read its answer
constexpr size_t kLingerBytes = size_t{256} << 20;  // bytes of its request to discard meanwhile
constexpr size_t kBodySlack = size_t{64} << 10;     // what chunked transfer adds to a body
constexpr const char* kTooMany =
    R"({"error": {"code": "too_many_connections", "message": "too many connections; try again"}})";

Clock::time_point FromNow(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

int MillisecondsUntil(Clock::time_point end) {
  return static_cast<int>(
      std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count()));
}

std::string Body(const std::string& code, const std::string& message) {
  const nlohmann::ordered_json json = {{"error", {{"code", code}, {"message", message}}}};
  return DumpJson(json) + "\n";
}

std::string SecondsText(double seconds) { return std::to_string(static_cast<int>(seconds)) + " s"; }

// The address of a connection's other side.
std::string AddressOf(socket_t socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return "unknown";
  return text;
}

}  // namespace

// ---- one connection -----------------------------------------------------------------------------

// The bytes of one connection. A request's bytes and time are counted from its first byte.
class HttpServer::Connection : public httplib::Stream {
 public:
  Connection(socket_t socket, const HttpLimits& limits, std::atomic<size_t>* body_bytes)
      : socket_(socket), limits_(limits), body_bytes_(*body_bytes) {
    current_ = this;
  }
  ~Connection() override {
    current_ = nullptr;
    body_bytes_ -= own_body_bytes_;
  }

  // The connection that this thread serves.
  static thread_local Connection* current_;

  RequestNote note;

  // Waits for a request's first byte. False after idle_seconds, or when the server stops.
  bool AwaitRequest(int stop_event) {
    body_bytes_ -= std::exchange(own_body_bytes_, 0);
    if (at_ == filled_) {
      pollfd waited[2] = {{socket_, POLLIN, 0}, {stop_event, POLLIN, 0}};
      const double seconds = std::exchange(first_, false) ? limits_.request_seconds : limits_.idle_seconds;
      const int count = poll(waited, 2, static_cast<int>(seconds * 1000));
      if (count <= 0 || waited[1].revents != 0) return false;
    }
    left_ = limits_.header_bytes;
    begin_ = Clock::now();
    end_ = FromNow(limits_.request_seconds);
    note = {};
    trouble_.reset();
    in_body_ = answered_ = false;
    return true;
  }

  void BeginBody() {
    in_body_ = true;
    left_ = limits_.body_bytes + kBodySlack;
  }

  // Counts bytes of the body until the request ends. Returns false if all requests together have too many.
  bool KeepBody(size_t bytes) {
    own_body_bytes_ += bytes;
    return (body_bytes_ += bytes) <= limits_.all_body_bytes;
  }

  // The reason why the request could not be read, if it could not.
  const std::optional<HttpError>& trouble() const { return trouble_; }
  bool answered() const { return answered_; }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool last() const { return last_; }
  void CloseAfterwards() { last_ = true; }
  const HttpLimits& limits() const { return limits_; }

  bool Gone() const {
    char byte = 0;
    const ssize_t got = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  // Ends the sending side, and reads and discards the client's data for a while: closing at once would reset the
  // connection, and the client could lose the answer.
  void Linger() {
    ::shutdown(socket_, SHUT_WR);
    const Clock::time_point end = FromNow(kLingerSeconds);
    char buffer[16384];
    for (size_t bytes = 0; bytes < kLingerBytes;) {
      pollfd waited = {socket_, POLLIN, 0};
      if (poll(&waited, 1, MillisecondsUntil(end)) <= 0) break;
      const ssize_t got = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got <= 0) break;
      bytes += static_cast<size_t>(got);
    }
  }

  // ---- httplib::Stream
  bool is_readable() const override { return true; }
  bool is_writable() const override { return !Gone(); }
  socket_t socket() const override { return -1; }  // cpp-httplib uses it only for select(), which is not used here

  ssize_t read(char* data, size_t size) override {
    if (at_ < filled_) return Take(data, size);
    for (;;) {
      if (left_ == 0)
        return Fail(in_body_ ? TooLarge()
                             : HttpError(431, "headers_too_large",
                                         "the request's headers take more than " +
                                             std::to_string(limits_.header_bytes >> 10) + " KiB"));
      pollfd waited = {socket_, POLLIN, 0};
      const int count = poll(&waited, 1, MillisecondsUntil(end_));
      if (count < 0 && errno == EINTR) continue;
      if (count == 0)
        return Fail(HttpError(408, "too_slow",
                              "the request did not arrive whole within " + SecondsText(limits_.request_seconds)));
      const ssize_t got = recv(socket_, buffer_, std::min(sizeof buffer_, left_), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got;
      left_ -= static_cast<size_t>(got);
      at_ = 0;
      filled_ = static_cast<size_t>(got);
      return Take(data, size);
    }
  }

  ssize_t write(const char* data, size_t size) override {
    answered_ = true;
    const Clock::time_point end = FromNow(limits_.write_seconds);
    for (size_t sent = 0; sent < size;) {
      pollfd waited = {socket_, POLLOUT, 0};
      const int count = poll(&waited, 1, MillisecondsUntil(end));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return -1;
      const ssize_t put = send(socket_, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (put < 0) return -1;
      sent += static_cast<size_t>(put);
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = AddressOf(socket_);
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }

  HttpError TooLarge() const {
    return {413, "too_large",
            "the request's body is larger than " + std::to_string(limits_.body_bytes >> 20) +
                " MiB; send fewer evaluations at a time"};
  }

 private:
  ssize_t Take(char* data, size_t size) {
    const size_t count = std::min(size, filled_ - at_);
    std::memcpy(data, buffer_ + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t Fail(const HttpError& error) {
    trouble_.emplace(error);
    last_ = true;
    return -1;
  }

  const socket_t socket_;
  const HttpLimits& limits_;
  std::atomic<size_t>& body_bytes_;  // of all connections
  size_t own_body_bytes_ = 0;        // those of this request
  size_t left_ = 0;                  // bytes that this request may still send
  Clock::time_point begin_, end_;
  std::optional<HttpError> trouble_;
  bool first_ = true, in_body_ = false, answered_ = false, last_ = false;
  char buffer_[16384];
  size_t at_ = 0, filled_ = 0;
};

thread_local HttpServer::Connection* HttpServer::Connection::current_ = nullptr;

void Answer(const HttpError& error, httplib::Response& response) {
  HttpServer::Note().cause = error.code + ": " + error.what();
  response.status = error.status;
  response.set_content(Body(error.code, error.what()), "application/json");
  if (error.retry_after > 0) response.set_header("Retry-After", std::to_string(error.retry_after));
  if (error.status == 401) response.set_header("WWW-Authenticate", "Bearer");
}

// One thread for each connection, up to a limit.
class HttpServer::ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(HttpServer& server) : server_(server) {}

  void enqueue(std::function<void()> serve) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      refusing_ = count_ >= server_.limits_.connections;
      if (!refusing_) server_.connections_ = ++count_;
    }
    if (!refusing_) {
      try {
        std::thread([this, serve] {
          serve();
          const std::lock_guard<std::mutex> lock(mutex_);
          server_.connections_ = --count_;
          ended_.notify_all();
        }).detach();
        return;
      } catch (const std::system_error&) {  // no more threads
        const std::lock_guard<std::mutex> lock(mutex_);
        server_.connections_ = --count_;
        refusing_ = true;
      }
    }
    serve();  // refuses the connection and closes it
    refusing_ = false;
  }

  void shutdown() override {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [this] { return count_ == 0; });
  }

  // True while this thread handles a connection beyond the limit.
  static thread_local bool refusing_;

 private:
  HttpServer& server_;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t count_ = 0;
};

thread_local bool HttpServer::ConnectionThreads::refusing_ = false;

// ---- the server ---------------------------------------------------------------------------------

HttpServer::HttpServer(const HttpLimits& limits)
    : limits_(limits), first_id_(std::random_device()()), stop_event_(eventfd(0, EFD_CLOEXEC)) {
  if (stop_event_ < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("eventfd: ") + std::strerror(errno));
  new_task_queue = [this] { return new ConnectionThreads(*this); };
  set_tcp_nodelay(true);
  set_payload_max_length(limits.body_bytes);
  set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (request.get_header_value<uint64_t>("Content-Length") <= limits_.body_bytes) return 100;
    Answer(Connection::current_->TooLarge(), response);
    CloseAfterwards();
    return 413;
  });
  set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const HttpError& error) {
      Answer(error, response);
    } catch (const std::exception& error) {
      Answer(HttpError(500, "internal", error.what()), response);
    }
  });
  // Requests that cpp-httplib itself refuses have a response without a body.
  set_error_handler(HandlerWithResponse([](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return HandlerResponse::Unhandled;
    Connection& connection = *Connection::current_;
    if (connection.trouble()) {
      Answer(*connection.trouble(), response);
    } else if (response.status == 404) {
      Answer(HttpError(404, "no_such_path",
                       "there is nothing at " + request.method + " " + request.path + "; GET / lists what there is"),
             response);
    } else if (response.status == 413) {
      Answer(connection.TooLarge(), response);
    } else {
      connection.CloseAfterwards();
      Answer(HttpError(response.status, "bad_request", "this is not an HTTP request"), response);
    }
    return HandlerResponse::Handled;
  }));
  set_post_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    RequestNote& note = Note();
    note.client = request.remote_addr;
    note.id = request.get_header_value("X-Request-Id");
    if (note.id.size() > 64 || !IsOfCharacters(note.id, "._-")) {
      char made[32];
      std::snprintf(made, sizeof made, "%08llx-%llu", static_cast<unsigned long long>(first_id_),
                    static_cast<unsigned long long>(++ids_));
      note.id = made;
    }
    response.set_header("X-Request-Id", note.id);
    if (on_answer_) on_answer_(request, response);
    if (!Connection::current_->last()) return;
    response.headers.erase("Keep-Alive");
    response.headers.erase("Connection");
    response.set_header("Connection", "close");
  });
  set_logger([this](const httplib::Request& request, const httplib::Response& response) {
    Note().seconds = Connection::current_->Seconds();
    if (on_end_) on_end_(request, response, Note());
  });
}

HttpServer::~HttpServer() { close(stop_event_); }

int HttpServer::Bind(const std::string& host, int port) {
  set_socket_options([this](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    listener_ = socket;
  });
  const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (bound <= 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot listen on " + host + ":" + std::to_string(port) + ": " +
                                             std::strerror(errno) + "; choose another address by --listen");
  }
  ::listen(listener_, kBacklog);
  return bound;
}

void HttpServer::Run() {
  listen_after_bind();
  ended_ = true;
}

void HttpServer::Stop() {
  const uint64_t one = 1;
  if (::write(stop_event_, &one, sizeof one) != sizeof one) return;  // it cannot fail
  // cpp-httplib loses a stop that comes before its listening thread runs, so wait for it.
  while (!is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stop();
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  if (ConnectionThreads::refusing_) {
    Refuse(socket);
    return false;
  }
  {
    Connection connection(socket, limits_, &body_bytes_);
    while (connection.AwaitRequest(stop_event_)) {
      bool closed = false;
      const bool answered = process_request(connection, connection.last(), closed, nullptr);
      if (!connection.answered() && connection.trouble()) {  // the request line did not arrive
        const std::string body = Body(connection.trouble()->code, connection.trouble()->what());
        connection.note.client = AddressOf(socket);
        connection.note.cause = connection.trouble()->code + ": " + connection.trouble()->what();
        connection.note.seconds = connection.Seconds();
        httplib::Response response;
        response.status = connection.trouble()->status;
        if (on_end_) on_end_({}, response, connection.note);
        connection.write_format(
            "HTTP/1.1 %d Refused\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: "
            "%zu\r\n\r\n%s",
            connection.trouble()->status, body.size(), body.c_str());
      }
      if (!answered || closed || connection.last()) break;
    }
    if (connection.last()) connection.Linger();
  }
  ::close(socket);
  return true;
}

void HttpServer::Refuse(socket_t socket) {
  ++refused_;
  RequestNote note;
  note.client = AddressOf(socket);
  note.cause = "too_many_connections";
  httplib::Response response;
  response.status = 503;
  if (on_end_) on_end_({}, response, note);
  char buffer[4096];
  while (recv(socket, buffer, sizeof buffer, MSG_DONTWAIT) > 0) {
  }
  const std::string answer = std::string(
                                 "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: "
                                 "1\r\nContent-Type: application/json\r\nContent-Length: ") +
                             std::to_string(std::strlen(kTooMany)) + "\r\n\r\n" + kTooMany;
  if (send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

std::string HttpServer::ReadBody(const httplib::Request& request, const httplib::ContentReader& read) {
  Connection& connection = *Connection::current_;
  const auto refuse = [&](HttpError error) {
    connection.CloseAfterwards();  // the rest of the body is not read
    throw error;
  };
  if (request.get_header_value<uint64_t>("Content-Length") > connection.limits().body_bytes)
    refuse(connection.TooLarge());
  if (request.is_multipart_form_data() || request.has_header("Content-Encoding"))
    refuse(HttpError(415, "not_json", "the body must be JSON, without Content-Encoding"));
  connection.BeginBody();
  std::string body;
  bool fits = true, room = true;
  const bool whole = read([&](const char* data, size_t size) {
    fits = body.size() + size <= connection.limits().body_bytes;
    room = connection.KeepBody(size);
    if (fits && room) body.append(data, size);
    return fits && room;
  });
  if (whole) return body;
  if (!room) refuse(HttpError(503, "too_many_bytes", "other requests hold too much memory; try again", 1));
  if (connection.trouble()) refuse(*connection.trouble());
  if (!fits) refuse(connection.TooLarge());
  refuse(HttpError(400, "bad_request", "the request's body ended early"));
  return body;  // never
}

RequestNote& HttpServer::Note() { return Connection::current_->note; }

void HttpServer::RequireOneLength(const httplib::Request& request) {
  const bool has_body =
      request.has_header("Transfer-Encoding") || request.get_header_value<uint64_t>("Content-Length") > 0;
  const std::string wrong = FramingFault(request);
  if (!wrong.empty() || (has_body && request.method != "POST")) CloseAfterwards();  // the body is not read
  if (!wrong.empty()) throw HttpError(400, "bad_request", "the request has " + wrong);
}

bool HttpServer::ClientGone() { return Connection::current_->Gone(); }

void HttpServer::CloseAfterwards() { Connection::current_->CloseAfterwards(); }

}  // namespace kgrpo::serve
