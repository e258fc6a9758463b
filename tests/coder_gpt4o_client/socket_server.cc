#include "socket_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"
#include "test.h"

namespace kgrpo::coder_gpt4o {
namespace {

constexpr int kLookMilliseconds = 20;  // how often a waiting thread looks whether the test is over

int Listen(int* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(listen(listener, 64), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  *port = ntohs(address.sin_port);
  return listener;
}

// Waits until something can be read; false once the test is over.
bool Readable(int socket, const std::atomic<bool>& stopping) {
  while (!stopping) {
    pollfd waiting = {socket, POLLIN, 0};
    if (poll(&waiting, 1, kLookMilliseconds) > 0) return true;
  }
  return false;
}

// One request with its body; false where the client leaves before its end, or the test is over.
bool ReadRequest(int socket, const std::atomic<bool>& stopping, std::string& request) {
  char bytes[4096];
  size_t whole = std::string::npos;
  while (request.size() < whole && Readable(socket, stopping)) {
    const ssize_t got = recv(socket, bytes, sizeof bytes, 0);
    if (got <= 0) break;
    request.append(bytes, static_cast<size_t>(got));
    const size_t head = request.find("\r\n\r\n");
    const size_t length = request.find("Content-Length: ");
    if (head != std::string::npos && length < head)
      whole = head + 4 + std::strtoul(request.c_str() + length + 16, nullptr, 10);
    if (head != std::string::npos && length >= head) whole = head + 4;
  }
  return request.size() >= whole;
}

}  // namespace

bool Exchange::AwaitNext() const {
  std::string request;
  return ReadRequest(socket_, stopping_, request);
}

bool Exchange::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void Exchange::Reset() const {
  const linger now = {1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);  // closed so, a socket sends a reset
}

void Exchange::HoldUntilClosed() const {
  char byte = 0;
  while (Readable(socket_, stopping_) && recv(socket_, &byte, 1, 0) > 0) {
  }
}

bool Exchange::Trickle(std::string_view bytes) const {
  for (const char byte : bytes) {
    pollfd gone = {socket_, POLLIN, 0};
    if (poll(&gone, 1, kLookMilliseconds) > 0 || stopping_ || !Send({&byte, 1})) return false;
  }
  return true;
}

SocketServer::SocketServer(Script script) : script_(std::move(script)) {
  listener_ = Listen(&port_);
  thread_ = std::thread([this] {
    while (Readable(listener_, stopping_)) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) connections_.emplace_back([this, socket] { Serve(socket); });
    }
  });
}

SocketServer::~SocketServer() {
  stopping_ = true;
  thread_.join();
  for (std::thread& connection : connections_) connection.join();
  close(listener_);
}

void SocketServer::Serve(int socket) {
  std::string request;
  if (ReadRequest(socket, stopping_, request)) script_({socket, std::move(request), stopping_}, ++count_);
  close(socket);
}

std::string Http(const std::string& body, const std::string& headers) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

void AnswerOnce(const Exchange& exchange) { exchange.Send(Http(WholeAnswer("right"), "Connection: close\r\n")); }

std::string ChunkedHead() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
}

std::string HttpChunk(const std::string& bytes) {
  std::ostringstream chunk;
  chunk << std::hex << bytes.size() << "\r\n" << bytes << "\r\n";
  return chunk.str();
}

int ClosedPort() {
  int port = 0;
  close(Listen(&port));
  return port;
}

}  // namespace kgrpo::coder_gpt4o
