// The host's message when a plugin ends the process, by a crash or by calling exit(). Plugins run in the host's
// process with all its rights, so neither can be prevented.
#ifndef KGRPO_BASE_FAULTS_H
#define KGRPO_BASE_FAULTS_H

#include <string_view>

namespace kgrpo {

// From now on a crash (SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL) is explained on standard error before it ends the
// process with status 1, by its signal with KGRPO_CRASH=core in the environment, or as a handler that was installed
// before has it (a sanitizer's). An exit() that ExpectExit did not announce ends it with status 1 after a line that
// says so. In forked children nothing is said. Call once, from main.
void ExplainFaults();

// The end of main. What calls exit() from now on is no plugin.
void ExpectExit();

// Lets the exit() of ExplainFaults be noticed before the destructors of the libraries that were loaded since run, which
// may hang or crash. Does nothing without ExplainFaults. [any thread]
void WatchExit();

// From now on the explanations end with how to resume the run in this folder. [main thread]
void NoteResumableRun(std::string_view directory);

// A stack for signal handlers of the thread that makes it, so that a stack overflow is explained too.
class AlternateStack {
 public:
  AlternateStack();
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = nullptr;  // null where the thread has another one, or without ExplainFaults
};

}  // namespace kgrpo
#endif
