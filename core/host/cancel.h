// The one flag that says "the user asked to stop". Set by Ctrl-C, SIGTERM and SIGHUP once HandleSignals was called;
// polled by the loop, by long commands, and by plugins through kgrpo_host.cancelled.
#ifndef KGRPO_HOST_CANCEL_H
#define KGRPO_HOST_CANCEL_H

namespace kgrpo {

// From now on the first SIGINT, SIGTERM or SIGHUP (unless that is ignored, as by nohup) requests a stop; a second one
// ends the process at once, as it would by default. Call once, before threads start.
void HandleSignals();

bool CancelRequested();  // [any thread]
void RequestCancel();    // [any thread, also a signal handler]
void ClearCancel();      // for tests: as if nobody had asked

}  // namespace kgrpo
#endif
