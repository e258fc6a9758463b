// The price of a candidate's host code by what it executes, which is the same on every machine; its processor time is
// not. The evaluator's compile options (kCountHostCode) put a call of __sanitizer_cov_trace_pc before each basic block.
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "interpreter/client/connection.h"

namespace {

// Tenths of a nanosecond. Most loops of docs/time_model.md, at -O0 as both compile routes compile, are within a factor
// of 1.8 of an H200's host. A library's function has the price of a small one of libm.
constexpr uint32_t kBlockTenths = 12, kBytesPerTenth = 5, kLibraryCallTenths = 80;

uintptr_t g_begin = 0, g_bytes = 0;  // the candidate's machine code
uint32_t* g_prices = nullptr;        // by the offset there of a block; 0: not known
uint64_t g_tenths = 0;

template <typename Value>
Value At(uintptr_t address) {
  Value value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

bool IsCall(uintptr_t at) { return At<uint8_t>(at) == 0xe8; }
uintptr_t TargetOf(uintptr_t call) { return call + 5 + static_cast<uintptr_t>(At<int32_t>(call + 1)); }

// True for an entry of the linkage table that jumps out of the candidate's code.
bool IsOfLibrary(uintptr_t entry) {
  if (entry - g_begin >= g_bytes - 16) return false;
  if (At<uint32_t>(entry) == 0xfa1e0ff3) entry += 4;  // endbr64
  if (At<uint8_t>(entry) == 0xf2) ++entry;            // bnd
  if (At<uint16_t>(entry) != 0x25ff) return false;    // jmp *offset(%rip)
  const auto slot = entry + 6 + static_cast<uintptr_t>(At<int32_t>(entry + 2));
  return At<uintptr_t>(slot) - g_begin >= g_bytes;
}

// The block begins after a call of the counter and ends at the next one.
uint32_t PriceOf(uintptr_t block) {
  uint32_t calls = 0;
  uintptr_t end = block;
  if (IsCall(block - 5)) {
    const uintptr_t counter = TargetOf(block - 5), last = g_begin + g_bytes - 5;
    for (; end < last && !(IsCall(end) && TargetOf(end) == counter); ++end)
      if (IsCall(end) && IsOfLibrary(TargetOf(end))) ++calls;
  }
  return kBlockTenths + static_cast<uint32_t>(end - block) / kBytesPerTenth + kLibraryCallTenths * calls;
}

// Finds the code around an address.
bool FindCode(uintptr_t address) {
  const auto look = [](dl_phdr_info* object, size_t, void* wanted) {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr, bytes = object->dlpi_phdr[i].p_memsz;
      if (object->dlpi_phdr[i].p_type != PT_LOAD || *static_cast<uintptr_t*>(wanted) - begin >= bytes) continue;
      g_begin = begin;
      g_bytes = bytes;
      return 1;
    }
    return 0;
  };
  if (dl_iterate_phdr(look, &address) == 0) return false;
  std::free(g_prices);
  g_prices = static_cast<uint32_t*>(std::calloc(g_bytes, sizeof *g_prices));
  return true;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-reserved-identifier): the compiler's name
extern "C" void __sanitizer_cov_trace_pc() {
  const auto block = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  if (block - g_begin >= g_bytes && !FindCode(block)) return;
  uint32_t& price = g_prices[block - g_begin];
  if (price == 0) price = PriceOf(block);
  g_tenths += price;
}

uint64_t kgrpo::interpreter::TakeHostCode() {
  const uint64_t nanoseconds = g_tenths / 10;
  g_tenths = 0;
  return nanoseconds;
}
