// Which plugin function each thread is in, so that a crash, an exit() or a stop can name it.
//
// The wrappers of plugin/instances.h hold a PluginCall around every call. The signal handlers of base/faults.cc and
// base/cancel.cc read the slots while the threads run. A call costs a few stores into its thread's slot and no lock.
#ifndef KGRPO_BASE_PLUGIN_CALLS_H
#define KGRPO_BASE_PLUGIN_CALLS_H

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/signal_text.h"

namespace kgrpo {

// A plugin's name, from its library's file name. Never freed: a signal handler may read it at any time.
struct PluginName {
  char name[64];
};

// Returns the plugin whose library holds `table`, an interface table; a plugin named `otherwise` if no library does.
// [any thread]
const PluginName* PluginOfTable(const void* table, std::string_view otherwise);

// Returns the plugin whose code lies at `address`; null if none does. Knows only the libraries that PluginOfTable has
// seen. May be called in a signal handler.
const PluginName* PluginOfCode(const void* address);

namespace internal {

struct CallSlot {
  std::atomic<bool> taken{false};
  std::atomic<const PluginName*> plugin{nullptr};
  std::atomic<const char*> function{nullptr};
  std::atomic<uint64_t> begun{0};  // calls of all threads that had this slot
};
inline constinit thread_local CallSlot* call_slot = nullptr;
CallSlot* TakeCallSlot();  // sets call_slot

}  // namespace internal

// Marks this thread as being in `function` of `plugin` while the object lives. `function` is a literal. May be nested,
// as when a plugin calls the host back.
class PluginCall {
 public:
  PluginCall(const PluginName* plugin, const char* function)
      : slot_(internal::call_slot != nullptr ? internal::call_slot : internal::TakeCallSlot()),
        outer_plugin_(slot_->plugin.load(std::memory_order_relaxed)),
        outer_function_(slot_->function.load(std::memory_order_relaxed)) {
    slot_->plugin.store(plugin, std::memory_order_relaxed);
    slot_->function.store(function, std::memory_order_relaxed);
    slot_->begun.store(slot_->begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  ~PluginCall() {
    slot_->plugin.store(outer_plugin_, std::memory_order_relaxed);
    slot_->function.store(outer_function_, std::memory_order_relaxed);
  }
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  internal::CallSlot* slot_;
  const PluginName* outer_plugin_;
  const char* outer_function_;
};

// The innermost plugin function that this thread is in, and its plugin; both null outside of any. CurrentCall may be
// called in a signal handler.
struct CallUnderWay {
  const PluginName* plugin = nullptr;
  const char* function = nullptr;
};
CallUnderWay CurrentCall();

// Reads the calls of the thread that constructed it, from other threads, until that thread ends.
class ThreadCalls {
 public:
  ThreadCalls() : slot_(internal::call_slot != nullptr ? internal::call_slot : internal::TakeCallSlot()) {}
  // The plugin and the function may come from two different calls if a call begins meanwhile. [any thread]
  CallUnderWay Current() const {
    return {slot_->plugin.load(std::memory_order_relaxed), slot_->function.load(std::memory_order_relaxed)};
  }
  // Number of calls begun in the thread's slot, also by earlier threads. [any thread]
  uint64_t begun() const { return slot_->begun.load(std::memory_order_relaxed); }

 private:
  const internal::CallSlot* slot_;
};

// Appends the distinct functions that threads are in ("reward_x's score, coder_y's implement"), at most three; returns
// true if there was one. May be called in a signal handler.
bool AppendCallsUnderWay(SignalText& text);

}  // namespace kgrpo
#endif
