#include "base/faults.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/plugin_calls.h"
#include "base/signal_text.h"

namespace kgrpo {
namespace {

constexpr size_t kStackSize = 64 << 10;  // above MINSIGSTKSZ of processors with AVX-512

struct Crash {
  int signal;
  const char* name;
};
constexpr Crash kCrashes[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}, {SIGILL, "SIGILL"}};

std::atomic<pid_t> explaining{0};  // process id of the caller of ExplainFaults
std::atomic<bool> exit_expected{false};
struct sigaction before[std::size(kCrashes)];
bool leaves_core = false;  // KGRPO_CRASH=core

char resume_hint[4200];  // empty without a run
std::atomic<bool> resumable{false};

void AppendResumeHint(SignalText& text) {
  if (resumable.load(std::memory_order_acquire)) text << resume_hint;
}

const void* InstructionOf(const void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  (void)context;
  return nullptr;
#endif
}

void OnCrash(int signal, siginfo_t*, void* context) {
  size_t which = 0;
  while (which + 1 < std::size(kCrashes) && kCrashes[which].signal != signal) ++which;
  if (explaining.load() == getpid()) {
    const CallUnderWay call = CurrentCall();
    const PluginName* code = PluginOfCode(InstructionOf(context));
    SignalText text;
    text << "kgrpo-host: crashed in ";
    if (call.plugin != nullptr && (code == nullptr || code == call.plugin))
      text << call.plugin->name << "'s " << call.function << " (" << kCrashes[which].name << ")";
    else if (code != nullptr && call.plugin != nullptr)  // a trainer that called the policy
      text << code->name << ", called by " << call.plugin->name << "'s " << call.function << " ("
           << kCrashes[which].name << ")";
    else if (code != nullptr)
      text << "a thread of " << code->name << " (" << kCrashes[which].name << ")";
    else
      text << "no plugin's function (" << kCrashes[which].name << ")";
    text << (call.plugin != nullptr || code != nullptr ? ": a fault of that plugin"
                                                       : ": a fault of the host, or of a plugin's thread");
    AppendResumeHint(text);
    text << "\n";
    text.Write();
  }
  // Without an earlier handler (a sanitizer's, a debugger's) the process exits with the code of any other failed run. A
  // forked child ends by the signal, because its parent waits for that.
  const bool unhandled = before[which].sa_handler == SIG_DFL || before[which].sa_handler == SIG_IGN;
  if (unhandled && !leaves_core && explaining.load() == getpid()) _exit(1);
  // Otherwise the earlier handler or the default action ends the process: once this handler returns, a fault occurs
  // again, and a raised signal is pending.
  sigaction(signal, &before[which], nullptr);
  raise(signal);
}

void OnExit() {
  if (exit_expected || explaining.load() != getpid()) return;
  std::fflush(nullptr);
  const CallUnderWay call = CurrentCall();
  SignalText text;
  text << "kgrpo-host: exit() was called ";
  if (call.plugin != nullptr)
    text << "in " << call.plugin->name << "'s " << call.function << ": a fault of that plugin";
  else
    text << "outside of any plugin's function: a fault of a plugin's thread";
  AppendResumeHint(text);
  text << "\n";
  text.Write();
  _exit(1);  // with the plugin's exit code an interrupted run might look finished
}

bool NeedsQuotes(std::string_view path) {
  return path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=@:,") !=
         std::string_view::npos;
}

}  // namespace

void ExplainFaults() {
  explaining = getpid();
  const char* const wanted = std::getenv("KGRPO_CRASH");
  leaves_core = wanted != nullptr && std::string_view(wanted) == "core";
  static AlternateStack main_stack;
  struct sigaction action = {};
  action.sa_sigaction = OnCrash;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (size_t i = 0; i < std::size(kCrashes); ++i) sigaction(kCrashes[i].signal, &action, &before[i]);
  WatchExit();
}

void ExpectExit() { exit_expected = true; }

void WatchExit() {
  // Exit functions run in the reverse order of their registration, and so do the destructors of libraries.
  if (explaining.load() != 0) {
    std::atexit(OnExit);
    std::at_quick_exit(OnExit);
  }
}

void SetResumableRun(std::string_view directory) {
  std::string hint = "; the run can be resumed with: kgrpo-host resume ";
  hint += NeedsQuotes(directory) ? "'" + std::string(directory) + "'" : std::string(directory);
  if (hint.size() >= sizeof resume_hint) return;
  resumable = false;
  std::memcpy(resume_hint, hint.c_str(), hint.size() + 1);
  resumable.store(true, std::memory_order_release);
}

AlternateStack::AlternateStack() {
  if (explaining.load() == 0) return;
  stack_t now = {};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;  // a sanitizer installed one
  void* memory = mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;  // without the stack only a stack overflow goes unexplained
  stack_t ours = {};
  ours.ss_sp = memory;
  ours.ss_size = kStackSize;
  if (sigaltstack(&ours, nullptr) == 0)
    memory_ = memory;
  else
    munmap(memory, kStackSize);
}

AlternateStack::~AlternateStack() {
  if (memory_ == nullptr) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(memory_, kStackSize);
}

}  // namespace kgrpo
