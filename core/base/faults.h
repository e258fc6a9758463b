// The host's message when a plugin ends the process, by a crash or by calling exit(). Plugins run in the host's
// process with all its rights, so neither can be prevented.
#ifndef KGRPO_BASE_FAULTS_H
#define KGRPO_BASE_FAULTS_H

#include <string_view>

namespace kgrpo {

// After this call a crash (SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL) is explained on standard error, and then the
// process ends with status 1. With KGRPO_CRASH=core in the environment it ends by its signal. A handler that was
// installed before (a sanitizer's) ends it in its own way. An exit() that ExpectExit did not announce prints a line and
// ends the process with status 1. Forked children print nothing. Call once, from main.
void ExplainFaults();

// Marks the end of main: an exit() after this call is not a plugin's.
void ExpectExit();

// Installs the exit() check of ExplainFaults again, so that it runs before the destructors of libraries loaded since:
// those may hang or crash. Does nothing without ExplainFaults. [any thread]
void WatchExit();

// After this call the explanations end with the command that resumes the run in this folder. [main thread]
void SetResumableRun(std::string_view directory);

// A signal stack for the thread that constructs it, so that a stack overflow is explained too.
class AlternateStack {
 public:
  AlternateStack();
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = nullptr;  // null if the thread had a signal stack already, or without ExplainFaults
};

}  // namespace kgrpo
#endif
