#include "host/cancel.h"

#include <atomic>
#include <csignal>

namespace kgrpo {
namespace {

std::atomic<bool> cancel_requested{false};
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

bool CancelRequested() {
  return cancel_requested.load(std::memory_order_relaxed);
}
void RequestCancel() {
  cancel_requested.store(true, std::memory_order_relaxed);
}
void ClearCancel() {
  cancel_requested.store(false, std::memory_order_relaxed);
}

}  // namespace kgrpo
