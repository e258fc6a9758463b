// cpp-httplib's server with additions for untrusted clients: a limit on connections, on the bytes and the
// time of a whole request, a way to notice that the client left, and errors as JSON. Used by service.cc.
//
// Each connection has a thread, from its first byte to its end.
#ifndef KGRPO_SERVE_HTTP_SERVER_H
#define KGRPO_SERVE_HTTP_SERVER_H

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace kgrpo::serve {

struct HttpLimits {
  size_t connections = 512;
  size_t header_bytes = size_t{32} << 10;
  size_t body_bytes = size_t{16} << 20;
  size_t all_body_bytes = size_t{512} << 20;  // of all requests that are read or answered at the same time
  double request_seconds = 30;                // from a request's first byte to its last
  double write_seconds = 60;                  // for the client to accept one piece of an answer
  double idle_seconds = 75;                   // between two requests of a connection; before the first, request_seconds
};

// An error answer: {"error": {"code": ..., "message": ...}}. Handlers throw it.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, std::string code, const std::string& message, int retry_after = 0)
      : std::runtime_error(message), status(status), code(std::move(code)), retry_after(retry_after) {}
  int status;
  std::string code;  // a word for programs: "queue_full"
  int retry_after;   // seconds; 0: not said
};

// What the log says of a request beside its method, path, status and seconds. Its handlers fill it in.
struct RequestNote {
  std::string id;      // the client's X-Request-Id, or one made here; sent back
  std::string client;  // address
  std::string token;   // name of the token
  std::string problem;
  std::string verdict;
  std::string cause;   // of an error: its code and message
  double seconds = 0;  // from the request's first byte to the end of its answer
};

// Writes an HttpError as the response, and notes it as the cause.
void Answer(const HttpError& error, httplib::Response& response);

class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(const HttpLimits& limits);
  ~HttpServer() override;

  // Listens; port 0 takes a free one. Returns the port. Throws kgrpo::Error with the reason. Once.
  int Bind(const std::string& host, int port);

  // Answers until Stop; returns when the last connection has ended. Bind came before.
  void Run();

  // Sets a function that is called with every answer before it is sent, so that a client finds its own request in the
  // metrics. Before Run. [any thread]
  void OnAnswer(httplib::Logger seen) { on_answer_ = std::move(seen); }

  // Sets a function that is called once for each request, when its answer is sent or its connection was refused.
  // Before Run. [any thread]
  using Ended = std::function<void(const httplib::Request&, const httplib::Response&, const RequestNote&)>;
  void OnEnd(Ended ended) { on_end_ = std::move(ended); }

  // The note of the request that this thread answers.
  static RequestNote& Note();

  // Throws HttpError if the lengths that a request states can be read in two ways: a proxy in front might take its body
  // for another request.
  static void RequireOneLength(const httplib::Request& request);

  // Ends Run, even if another thread has not called it yet. [any thread]
  void Stop();

  size_t connections() const { return connections_; }
  size_t refused_connections() const { return refused_; }

  // Returns the body of the request that this thread answers. Throws HttpError where it is too large or too slow.
  static std::string ReadBody(const httplib::Request& request, const httplib::ContentReader& read);

  // True if the client of the request that this thread answers has closed its connection.
  static bool ClientGone();

  // Closes the connection after the request that this thread answers.
  static void CloseAfterwards();

 private:
  class Connection;
  class ConnectionThreads;

  bool process_and_close_socket(socket_t socket) override;
  void Refuse(socket_t socket);

  const HttpLimits limits_;
  httplib::Logger on_answer_;
  Ended on_end_;
  const uint64_t first_id_;
  std::atomic<uint64_t> ids_{0};  // made so far
  int listener_ = -1;
  int stop_event_ = -1;             // readable once Stop was called
  std::atomic<bool> ended_{false};  // Run has returned
  std::atomic<size_t> connections_{0}, refused_{0};
  std::atomic<size_t> body_bytes_{0};  // of requests that are read or answered now
};

}  // namespace kgrpo::serve
#endif
