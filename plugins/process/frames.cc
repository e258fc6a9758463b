#include "process/frames.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>

namespace kgrpo::process {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostParts = 64;

Heard ReadExactly(int fd, void* data, size_t bytes, double* seconds, double spin_seconds) {
  const Clock::time_point begin = Clock::now();
  const bool limited = *seconds >= 0;
  const double allowed = *seconds;
  double gone = 0;
  for (auto* at = static_cast<char*>(data); bytes > 0;) {
    const double left = std::clamp(allowed - gone, 0.0, 1e6);
    const int wait = gone < spin_seconds ? 0 : limited ? static_cast<int>(left * 1000) + 1 : -1;
    struct pollfd event = {fd, POLLIN, 0};
    const int ready = poll(&event, 1, wait);
    gone = std::chrono::duration<double>(Clock::now() - begin).count();
    if (limited) *seconds = std::max(0.0, allowed - gone);
    if (limited && *seconds <= 0) return Heard::kLate;
    if (ready <= 0) continue;
    const ssize_t count = read(fd, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Heard::kEnded;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return Heard::kWhole;
}

bool WaitReadable(int fd, double most, double* seconds) {
  const Clock::time_point begin = Clock::now();
  struct pollfd event = {fd, POLLIN, 0};
  const int ready = poll(&event, 1, static_cast<int>(std::clamp(std::min(most, *seconds), 0.0, 1e6) * 1000) + 1);
  *seconds = std::max(0.0, *seconds - std::chrono::duration<double>(Clock::now() - begin).count());
  return ready > 0;
}

bool SendExactly(int fd, std::initializer_list<std::string_view> parts, double seconds) {
  const Clock::time_point begin = Clock::now();
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const ssize_t sent = send(fd, part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        const double left = seconds - std::chrono::duration<double>(Clock::now() - begin).count();
        if (seconds >= 0 && left <= 0) return false;
        struct pollfd event = {fd, POLLOUT, 0};
        poll(&event, 1, seconds < 0 ? -1 : static_cast<int>(std::min(left, 1e6) * 1000) + 1);
        continue;
      }
      if (sent <= 0) return false;
      part.remove_prefix(static_cast<size_t>(sent));
    }
  }
  return true;
}

bool WriteFrames(int fd, const std::vector<std::string>& parts) {
  std::string message;
  const auto number = [&message](uint64_t value) {
    message.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(parts.size());
  for (const std::string& part : parts) number(part.size());
  for (const std::string& part : parts) message += part;
  return SendExactly(fd, {message}, -1);
}

bool ReadFrames(int fd, std::vector<std::string>* parts, double seconds, size_t most_bytes) {
  const auto read = [&](void* data, size_t bytes) { return ReadExactly(fd, data, bytes, &seconds) == Heard::kWhole; };
  uint64_t count = 0;
  if (!read(&count, sizeof count) || count > kMostParts) return false;
  std::array<uint64_t, kMostParts> sizes;
  if (!read(sizes.data(), count * sizeof(uint64_t))) return false;
  parts->clear();
  for (uint64_t i = 0; i < count; ++i) {
    if (sizes[i] > most_bytes) return false;
    most_bytes -= sizes[i];
    parts->emplace_back(sizes[i], '\0');
    if (!read(parts->back().data(), sizes[i])) return false;
  }
  return true;
}

}  // namespace kgrpo::process
