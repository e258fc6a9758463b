#include "process/frames.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace kgrpo::evaluator {
namespace {

using Clock = std::chrono::steady_clock;

bool ReadAll(int fd, char* data, size_t bytes, double seconds, Clock::time_point begin) {
  while (bytes > 0) {
    int wait = -1;
    if (seconds >= 0) {
      const double left = seconds - std::chrono::duration<double>(Clock::now() - begin).count();
      if (left <= 0) return false;
      wait = static_cast<int>(left * 1000) + 1;
    }
    struct pollfd event = {fd, POLLIN, 0};
    const int ready = poll(&event, 1, wait);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) continue;  // the time is looked at above
    const ssize_t count = read(fd, data, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    data += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

bool WriteFrames(int fd, const std::vector<std::string>& parts) {
  std::string message;
  const auto number = [&message](uint64_t value) {
    message.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(parts.size());
  for (const std::string& part : parts) {
    number(part.size());
    message += part;
  }
  for (size_t at = 0; at < message.size();) {
    const ssize_t sent = send(fd, message.data() + at, message.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

bool ReadFrames(int fd, std::vector<std::string>* parts, double seconds, size_t most_bytes) {
  const Clock::time_point begin = Clock::now();
  uint64_t count = 0;
  if (!ReadAll(fd, reinterpret_cast<char*>(&count), sizeof count, seconds, begin) || count > 64) return false;
  parts->clear();
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (!ReadAll(fd, reinterpret_cast<char*>(&size), sizeof size, seconds, begin) || size > most_bytes) return false;
    most_bytes -= size;
    parts->emplace_back(size, '\0');
    if (!ReadAll(fd, parts->back().data(), size, seconds, begin)) return false;
  }
  return true;
}

}  // namespace kgrpo::evaluator
