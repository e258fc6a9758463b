#include "base/plugin_calls.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>

#include "base/faults.h"

namespace kgrpo {
namespace {

// Slots are reused by later threads and never freed: a handler may read any of them. A thread that finds all of them
// taken is not listed.
constinit internal::CallSlot slots[256];

// The code of a plugin's library. Written before `known` counts it, and constant afterwards.
struct CodeRange {
  uintptr_t begin = 0, end = 0;
  const PluginName* plugin = nullptr;
};
constinit CodeRange ranges[64];
constinit std::atomic<size_t> known{0};

// State of a thread between its first call and its end.
struct ThreadHold {
  explicit ThreadHold(internal::CallSlot* taken) : slot(taken) {}
  // A thread that ends inside a plugin's function called exit(): its slot stays taken and still names that function.
  ~ThreadHold() {
    if (slot->plugin.load(std::memory_order_relaxed) != nullptr) return;
    internal::call_slot = nullptr;
    slot->taken.store(false, std::memory_order_release);
  }
  internal::CallSlot* slot;
  AlternateStack stack;
};

std::string_view LibraryName(const char* path) {
  std::string_view name = path;
  name.remove_prefix(name.find_last_of('/') + 1);  // npos + 1 is 0
  if (name.ends_with(".so")) name.remove_suffix(3);
  if (name.starts_with("lib")) name.remove_prefix(3);
  return name;
}

void NoteRange(uintptr_t base, const PluginName* plugin) {
  CodeRange range = {base, base, plugin};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto* found = static_cast<CodeRange*>(context);
        bool ours = false;
        uintptr_t end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          ours = ours || (found->begin >= begin && found->begin < begin + segment.p_memsz);
          end = std::max(end, begin + segment.p_memsz);
        }
        if (ours) found->end = end;
        return ours ? 1 : 0;
      },
      &range);
  const size_t index = known.load(std::memory_order_relaxed);
  if (range.end == range.begin || index == std::size(ranges)) return;
  ranges[index] = range;
  known.store(index + 1, std::memory_order_release);
}

}  // namespace

const PluginName* PluginOfTable(const void* table, std::string_view otherwise) {
  Dl_info found{};
  Dl_info ourselves{};
  const bool library = dladdr(table, &found) != 0 && found.dli_fname != nullptr && dladdr(slots, &ourselves) != 0 &&
                       found.dli_fbase != ourselves.dli_fbase;
  const std::string_view name = library ? LibraryName(found.dli_fname) : otherwise;

  static std::mutex mutex;
  static auto* plugins = new std::list<PluginName>;  // never destroyed: see PluginName
  const std::lock_guard lock(mutex);
  for (const PluginName& plugin : *plugins) {
    if (name.substr(0, sizeof(plugin.name) - 1) == plugin.name) return &plugin;
  }
  PluginName& made = plugins->emplace_back();
  std::memcpy(made.name, name.data(), std::min(name.size(), sizeof(made.name) - 1));
  if (library) NoteRange(reinterpret_cast<uintptr_t>(found.dli_fbase), &made);
  return &made;
}

const PluginName* PluginOfCode(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const size_t count = known.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (at >= ranges[i].begin && at < ranges[i].end) return ranges[i].plugin;
  }
  return nullptr;
}

internal::CallSlot* internal::TakeCallSlot() {
  static thread_local CallSlot unlisted;
  CallSlot* taken = &unlisted;
  for (CallSlot& slot : slots) {
    bool expected = false;
    if (!slot.taken.compare_exchange_strong(expected, true, std::memory_order_acquire)) continue;
    taken = &slot;
    break;
  }
  static thread_local ThreadHold hold(taken);
  call_slot = taken;
  return taken;
}

CallUnderWay CurrentCall() {
  const internal::CallSlot* slot = internal::call_slot;
  if (slot == nullptr) return {};
  return {slot->plugin.load(std::memory_order_relaxed), slot->function.load(std::memory_order_relaxed)};
}

bool AppendCallsUnderWay(SignalText& text) {
  CallUnderWay listed[3];
  size_t count = 0;
  for (const internal::CallSlot& slot : slots) {
    const CallUnderWay call = {slot.plugin.load(std::memory_order_relaxed),
                               slot.function.load(std::memory_order_relaxed)};
    if (call.plugin == nullptr || call.function == nullptr) continue;
    const bool repeated = std::any_of(listed, listed + count, [&](const CallUnderWay& other) {
      return other.plugin == call.plugin && other.function == call.function;
    });
    if (repeated) continue;
    text << (count > 0 ? ", " : "") << call.plugin->name << "'s " << call.function;
    listed[count++] = call;
    if (count == std::size(listed)) break;
  }
  return count > 0;
}

}  // namespace kgrpo
