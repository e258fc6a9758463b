#include "interpreter/client/connection.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "interpreter/client/call_prices.h"

using namespace kgrpo::interpreter;  // NOLINT: a C interface in the global namespace over our own types

namespace {

void WriteAll(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(kSocket, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(120);
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

void ReadAll(void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = read(kSocket, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(120);
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

std::mutex& ConnectionMutex() {
  static std::mutex mutex;
  return mutex;
}

std::atomic<uint64_t> g_spent = 0;

// Host code between two requests that costs nothing: it is part of the calls' prices, which begin at 200 ns.
constexpr uint64_t kFreeNanoseconds = 300;
// The processor time that priced host code, and our own between two requests, may take on a slow machine.
constexpr uint64_t kSlowest = 6, kOwnNanoseconds = 8'000;

uint64_t g_resumed = 0;    // the thread's processor time when the candidate's code went on
uint64_t g_processor = 0;  // what that code took since the last request

uint64_t ThreadNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Beyond(uint64_t value, uint64_t least) { return value > least ? value - least : 0; }

// The candidate's code has called the runtime.
void StopClock() {
  const uint64_t now = ThreadNanoseconds();
  g_processor += now - g_resumed;
  g_resumed = now;
}

}  // namespace

void kgrpo::interpreter::Spend(const char* call, double parts) {
  StopClock();
  const CallPrice* price = FindCallPrice(call);
  if (price != nullptr) g_spent += static_cast<uint64_t>(price->nanoseconds + price->of_each * parts);
}

extern "C" Reply kgrpo_ask(Request request, const void* payload, const void* more_payload, size_t more_bytes,
                           void* target, size_t capacity) {
  const std::lock_guard<std::mutex> lock(ConnectionMutex());
  const uint64_t code = TakeHostCode();
  g_spent += Beyond(code, kFreeNanoseconds);
  if (request.continues == 0) StopClock();
  request.unexplained = Beyond(std::exchange(g_processor, 0), kSlowest * code + kOwnNanoseconds);
  request.continues |= static_cast<uint32_t>(std::min<uint64_t>(g_spent.exchange(0) / 10, INT32_MAX)) << 1;
  WriteAll(&request, sizeof request);
  if (request.payload_bytes > more_bytes) WriteAll(payload, request.payload_bytes - more_bytes);
  if (more_bytes > 0) WriteAll(more_payload, more_bytes);
  Reply reply = {};
  ReadAll(&reply, sizeof reply);
  const size_t kept = reply.payload_bytes < capacity ? reply.payload_bytes : capacity;
  if (kept > 0) ReadAll(target, kept);
  char dropped[4096];
  for (size_t left = reply.payload_bytes - kept; left > 0;) {
    const size_t part = left < sizeof dropped ? left : sizeof dropped;
    ReadAll(dropped, part);
    left -= part;
  }
  g_resumed = ThreadNanoseconds();
  return reply;
}
