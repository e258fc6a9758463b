// A server that sends arbitrary bytes, for tests of behaviour that no HTTP server has.
#ifndef KGRPO_TESTS_CODER_GPT4O_CLIENT_SOCKET_SERVER_H
#define KGRPO_TESTS_CODER_GPT4O_CLIENT_SOCKET_SERVER_H

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

namespace kgrpo::coder_gpt4o {

// One request on a connection, read to its end.
class Exchange {
 public:
  Exchange(int socket, std::string request, const std::atomic<bool>& stopping)
      : socket_(socket), request_(std::move(request)), stopping_(stopping) {}

  const std::string& Request() const { return request_; }
  bool AwaitNext() const;                   // waits for the next complete request on this connection; false: none came
  bool Send(std::string_view bytes) const;  // false when the client is gone
  void Reset() const;                       // the connection ends with a TCP reset
  void HoldUntilClosed() const;             // sends nothing until the client leaves or the server ends
  bool Trickle(std::string_view bytes) const;  // sends byte by byte with pauses; false: the client left

 private:
  int socket_;
  std::string request_;
  const std::atomic<bool>& stopping_;
};

class SocketServer {
 public:
  // Called on a thread of its own for each connection's first request; the connection is closed after it. `number`
  // counts the requests from 1.
  using Script = std::function<void(const Exchange& exchange, int number)>;

  explicit SocketServer(Script script);
  ~SocketServer();

  int Port() const { return port_; }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  int Count() const { return count_; }

 private:
  void Serve(int socket);

  Script script_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> count_ = 0;
  std::list<std::thread> connections_;  // of the accepting thread
  std::thread thread_;
};

// An answer's header and body.
std::string Http(const std::string& body, const std::string& headers = "");
void AnswerOnce(const Exchange& exchange);        // a valid answer, and nothing else on this connection
std::string ChunkedHead();                        // begins a stream
std::string HttpChunk(const std::string& bytes);  // continues it; empty: ends it

// A port on which nobody listens.
int ClosedPort();

}  // namespace kgrpo::coder_gpt4o
#endif
