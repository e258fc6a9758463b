#include "base/cancel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <limits>

#include "base/plugin_calls.h"
#include "base/signal_text.h"

namespace kgrpo {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> cancel_requested{false}, signal_told{false};
std::atomic<Clock::time_point> deadline{Clock::time_point::max()};
std::atomic<uint64_t> step_under_way{0};
thread_local const std::atomic<bool>* thread_flag = nullptr;
std::atomic<bool> silent{false};
bool on_terminal = false;  // standard error is a terminal, which has echoed "^C" on the line already
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free,
              "signal handlers use them");

// Reports the signal at once, because a plugin's call may take minutes to notice the stop.
void OnSignal(int signal) {
  RequestCancel();
  if (signal_told.exchange(true, std::memory_order_relaxed) || silent.load(std::memory_order_relaxed))
    return;  // Ctrl-C reaches a run of an experiment twice
  SignalText text, calls;
  const uint64_t step = step_under_way.load(std::memory_order_relaxed);
  const bool called = AppendCallsUnderWay(calls);
  text << (on_terminal ? "\n" : "") << "kgrpo-host: stopping";
  if (step > 0) text << " in step " << step;
  if (called) (text << (step > 0 ? ", in " : " after ")).Append(calls);
  text << (signal == SIGINT ? "; press Ctrl-C again to end now\n" : "; a second signal ends it now\n");
  text.Write();
}

}  // namespace

void HandleSignals() {
  struct sigaction action = {};
  on_terminal = isatty(STDERR_FILENO) == 1;
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);  // a second signal ends the process, as by default
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A terminal sends SIGHUP when it closes. nohup has it ignored, and it stays ignored.
  struct sigaction before = {};
  if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

void KeepOnWithoutReader() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // and not SIG_IGN, which programs inherit
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

void HandleSignalsSilently() { silent = true; }

void NoteStepUnderWay(uint64_t step) { step_under_way = step; }

void SetDeadline(double seconds) {
  deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double SecondsToDeadline() {
  const Clock::time_point end = deadline;
  if (end == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(end - Clock::now()).count());
}

bool CancelRequested() {
  if (thread_flag != nullptr && thread_flag->load(std::memory_order_relaxed)) return true;
  return cancel_requested.load(std::memory_order_relaxed) || SecondsToDeadline() == 0;
}

const char* StopWords() {
  const bool by_user = cancel_requested.load(std::memory_order_relaxed);
  return !by_user && SecondsToDeadline() == 0 ? "stopped at the time limit" : "stopped by the user";
}

void RequestCancel() { cancel_requested.store(true, std::memory_order_relaxed); }
void ClearCancel() {
  cancel_requested.store(false, std::memory_order_relaxed);
  signal_told.store(false, std::memory_order_relaxed);
  deadline = Clock::time_point::max();
}

CancelScope::CancelScope(const std::atomic<bool>* flag) { thread_flag = flag; }
CancelScope::~CancelScope() { thread_flag = nullptr; }

}  // namespace kgrpo
