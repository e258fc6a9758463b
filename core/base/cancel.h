// The flag that says "the user asked to stop", and a deadline after which it counts as set. After HandleSignals,
// Ctrl-C, SIGTERM and SIGHUP set it. The loop and long commands poll it, and so do plugins through
// kgrpo_host_interface.
#ifndef KGRPO_BASE_CANCEL_H
#define KGRPO_BASE_CANCEL_H

#include <atomic>
#include <cstdint>

namespace kgrpo {

// After this call the first SIGINT, SIGTERM or SIGHUP (unless SIGHUP is ignored, as by nohup) requests a stop. A line
// on standard error says at once which step or plugin calls the stop waits for. A second signal ends the process at
// once, as it would by default. Call once, before threads start.
void HandleSignals();

// After this call a write to a pipe that nobody reads fails and does not end the process: `run FILE | head` trains on,
// and run.log has the rest. Programs that the process starts do not inherit it.
void KeepOnWithoutReader();

// After this call a signal still requests a stop but prints nothing: of several ranks only one reports it. [any thread]
void HandleSignalsSilently();

// Sets the step that the first signal's message names ("stopping in step 3"), until the next call. 0: no step.
// [any thread]
void NoteStepUnderWay(uint64_t step);

// Requests a stop `seconds` from now. Called at most once in a process. [any thread]
void SetDeadline(double seconds);
double SecondsToDeadline();  // infinity if no deadline is set; never negative. [any thread]

bool CancelRequested();  // true also after the deadline, or if this thread's CancelScope has its flag set. [any thread]
const char*
StopWords();  // the reason for a requested stop: "stopped by the user", "stopped at the time limit". [any thread]
void RequestCancel();  // [any thread, also a signal handler]
void ClearCancel();    // for tests: withdraws the request and the deadline

// While it lives, CancelRequested() on this thread is true also when `flag` is set. This cancels one evaluation of
// many. Not nested.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>* flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
};

}  // namespace kgrpo
#endif
