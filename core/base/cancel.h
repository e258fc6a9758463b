// The one flag that says "the user asked to stop", and the time at which it will be set by itself. Set by Ctrl-C,
// SIGTERM and SIGHUP once HandleSignals was called; polled by the loop, by long commands, and by plugins through
// kgrpo_host_interface.
#ifndef KGRPO_BASE_CANCEL_H
#define KGRPO_BASE_CANCEL_H

#include <atomic>
#include <cstdint>

namespace kgrpo {

// From now on the first SIGINT, SIGTERM or SIGHUP (unless that is ignored, as by nohup) requests a stop and says at
// once on standard error what it waits for; a second one ends the process at once, as it would by default. Call once,
// before threads start.
void HandleSignals();

// From now on a signal is taken as before, and nothing is said of it: of several ranks one speaks. [any thread]
void HearSignalsSilently();

// Sets the step that the first signal's message says is waited for ("step 3"), until the next call. 0: none.
// [any thread]
void NoteStepUnderWay(uint64_t step);

// Requests a stop that many seconds from now. Once a process. [any thread]
void SetDeadline(double seconds);
double SecondsToDeadline();  // infinity where none is set, at least 0. [any thread]

bool CancelRequested();  // also once the deadline has passed, or where this thread's CancelScope says so. [any thread]
const char*
StopWords();           // of a stop that was requested: "stopped by the user", "stopped at the time limit". [any thread]
void RequestCancel();  // [any thread, also a signal handler]
void ClearCancel();    // for tests: as if nobody had asked

// While it lives, work of this thread stops for `flag` too: how one evaluation of many is cancelled. Not nested.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>* flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
};

}  // namespace kgrpo
#endif
