#include "host/cancel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <limits>

namespace kgrpo {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> cancel_requested{false};
std::atomic<Clock::time_point> deadline{Clock::time_point::max()};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may write it");

}  // namespace

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { RequestCancel(); };
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);  // the next one finds the default action: it ends us
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A terminal that closes; under nohup it is ignored, and stays so.
  struct sigaction before = {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

void SetDeadline(double seconds) {
  deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double SecondsToDeadline() {
  const Clock::time_point end = deadline;
  if (end == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(end - Clock::now()).count());
}

bool CancelRequested() {
  return cancel_requested.load(std::memory_order_relaxed) || SecondsToDeadline() == 0;
}
void RequestCancel() {
  cancel_requested.store(true, std::memory_order_relaxed);
}
void ClearCancel() {
  cancel_requested.store(false, std::memory_order_relaxed);
  deadline = Clock::time_point::max();
}

}  // namespace kgrpo
