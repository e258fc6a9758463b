// Which plugin function each thread is in, so that a crash, an exit() or a stop can name it.
//
// The wrappers of plugin/instances.h hold a PluginCall around every call; base/faults.cc and base/cancel.cc read in
// signal handlers, whatever the threads are at. A call costs a few stores into a slot of its thread and no lock.
#ifndef KGRPO_BASE_PLUGIN_CALLS_H
#define KGRPO_BASE_PLUGIN_CALLS_H

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/signal_text.h"

namespace kgrpo {

// A plugin, by its library's name. Never freed: other threads may be reading it in a signal handler.
struct PluginName {
  char name[64];
};

// The plugin whose library holds `table`, an interface table. `otherwise` is its name where no library does.
// [any thread]
const PluginName* PluginOfTable(const void* table, std::string_view otherwise);

// The plugin whose code lies at `address`; null where it is no plugin's. For signal handlers too; knows the libraries
// of PluginOfTable.
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

// "This thread is in `function` of `plugin`", while it lives. `function` is a literal. May be nested, as where a plugin
// calls the host back.
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

// The plugin whose function this thread is in, and that function; null where it is in none. For signal handlers too.
struct CallUnderWay {
  const PluginName* plugin = nullptr;
  const char* function = nullptr;
};
CallUnderWay CurrentCall();

// The calls of the thread that made it, for other threads to read until that thread ends.
class ThreadCalls {
 public:
  ThreadCalls() : slot_(internal::call_slot != nullptr ? internal::call_slot : internal::TakeCallSlot()) {}
  // The two may be of two calls, where one begins meanwhile. [any thread]
  CallUnderWay Current() const {
    return {slot_->plugin.load(std::memory_order_relaxed), slot_->function.load(std::memory_order_relaxed)};
  }
  // How many calls it has begun. [any thread]
  uint64_t begun() const { return slot_->begun.load(std::memory_order_relaxed); }

 private:
  const internal::CallSlot* slot_;
};

// Appends the functions that threads are in ("reward_x's score, coder_y's implement"), three at most; returns whether
// there is one. For signal handlers too.
bool AppendCallsUnderWay(SignalText& text);

}  // namespace kgrpo
#endif
