// Calls of functions that are not inlined: recursive ones, and those whose address is taken. Each lane has a stack of
// frames in its local memory, and beside it the registers that a return restores: all activations of a function use the
// same registers.
#include <bit>
#include <cstring>
#include <vector>

#include "simt/state/handlers.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {
namespace {

std::byte* LocalOf(Warp& warp, int lane) {
  const size_t bytes = warp.grid->kernel->local_bytes;
  return warp.block->local.data() + (static_cast<size_t>(warp.id) * kLanes + static_cast<size_t>(lane)) * bytes;
}

// Checked launches: marks local memory that a call or return writes, or, for a fresh frame, as unwritten.
void MarkLocal(Warp& warp, const std::byte* first, uint32_t bytes, bool written) {
  if (!warp.grid->checked) return;
  const auto start = static_cast<uint64_t>(first - warp.block->local.data());
  for (uint64_t at = start; at < start + bytes; ++at) {
    uint64_t& word = warp.block->local_written[at / 64];
    const uint64_t bit = uint64_t{1} << (at % 64);
    word = written ? word | bit : word & ~bit;
  }
}

uint64_t ReadRegister(const Warp& warp, const Subroutine::Register& reg, int lane) {
  if (reg.bytes == 8) return SourceAs<uint64_t>(warp, reg.at)[lane];
  if (reg.bytes == 4) return SourceAs<uint32_t>(warp, reg.at)[lane];
  return PredicateOf(warp, reg.at) >> lane & 1u;
}
void WriteRegister(Warp& warp, const Subroutine::Register& reg, int lane, uint64_t value) {
  if (reg.bytes == 8) {
    TargetAs<uint64_t>(warp, reg.at)[lane] = value;
  } else if (reg.bytes == 4) {
    TargetAs<uint32_t>(warp, reg.at)[lane] = static_cast<uint32_t>(value);
  } else {
    SetPredicate(warp, reg.at, 1u << lane, value != 0 ? kAllLanes : 0u);
  }
}

[[noreturn]] void Fail(Warp& warp, const Instruction& in, int lane, FindingCode code, const std::string& text) {
  Report(warp, in.index, lane, code, true, 0, "", text);
  throw Fault{};
}

// Sends the lanes, each to its pc.
void Depart(Warp& warp, uint32_t mask, const uint32_t* pcs) {
  for (uint32_t m = mask; m != 0;) {
    const uint32_t pc = pcs[std::countr_zero(m)];
    uint32_t together = 0;
    for (uint32_t n = m; n != 0; n &= n - 1) {
      if (pcs[std::countr_zero(n)] == pc) together |= 1u << std::countr_zero(n);
    }
    m &= ~together;
    warp.groups[warp.group_count++] = {pc, together, false};
  }
  warp.active &= ~mask;
  warp.limit = 0;
}

}  // namespace

void CallSubroutine(Warp& warp, const Instruction& in, uint32_t mask) {
  const Kernel& kernel = *warp.grid->kernel;
  const Operand* addresses = &kernel.operands[in.extra];  // of the arguments, then of the results
  if (warp.calls.empty()) warp.calls.resize(kLanes);
  uint32_t pcs[kLanes];
  for (const int l : EachBit(mask)) {
    auto index = static_cast<size_t>(in.offset);
    if (in.offset < 0) {
      const uint64_t address = SourceAs<uint64_t>(warp, in.a)[l];
      for (index = 0; index < kernel.subroutines.size() && kernel.subroutines[index].address != address;) ++index;
      if (index == kernel.subroutines.size())
        Fail(warp, in, l, FindingCode::kTrap, "calls through a pointer that is no function's address");
    }
    const Subroutine& callee = kernel.subroutines[index];
    if (callee.parameters.size() != in.count || callee.results.size() != in.size)
      Fail(warp, in, l, FindingCode::kTrap,
           "calls '" + callee.name + "' through a pointer to a function of another type");
    uint64_t& stack = TargetAs<uint64_t>(warp, kernel.stack_register)[l];
    uint64_t& frame = TargetAs<uint64_t>(warp, kernel.frame_register)[l];
    const uint64_t fresh = (stack + 15) / 16 * 16;
    if (fresh + callee.frame_bytes > kernel.local_bytes)
      Fail(warp, in, l, FindingCode::kOutOfBounds, "calls '" + callee.name + "' so deeply that its stack overflows");
    std::byte* local = LocalOf(warp, l);
    MarkLocal(warp, local + fresh, callee.frame_bytes, false);
    for (size_t i = 0; i < callee.parameters.size(); ++i) {
      MarkLocal(warp, local + fresh + callee.parameters[i].offset, callee.parameters[i].bytes, true);
      std::memcpy(local + fresh + callee.parameters[i].offset, local + SourceAs<uint32_t>(warp, addresses[i])[l],
                  callee.parameters[i].bytes);
    }
    std::vector<uint64_t>& kept = warp.calls[static_cast<size_t>(l)];
    for (const Subroutine::Register& reg : callee.registers) kept.push_back(ReadRegister(warp, reg, l));
    for (uint32_t i = 0; i < in.size; ++i) kept.push_back(SourceAs<uint32_t>(warp, addresses[in.count + i])[l]);
    kept.insert(kept.end(), {stack, frame, in.index + 1u, index});
    stack = fresh + callee.frame_bytes;
    frame = fresh;
    pcs[l] = callee.pc;
    Cover(warp, callee.pc, kEntered);
    if (!warp.grid->checked) continue;
    // What the function does not set may hold anything: here NaNs.
    for (const Subroutine::Register& reg : callee.registers) WriteRegister(warp, reg, l, ~uint64_t{0});
  }
  Cover(warp, in.index, mask == warp.active ? kTaken : kTaken | kPassed);
  Depart(warp, mask, pcs);
}

void ReturnFromSubroutine(Warp& warp, const Instruction&, uint32_t mask) {
  const Kernel& kernel = *warp.grid->kernel;
  uint32_t pcs[kLanes];
  for (const int l : EachBit(mask)) {
    std::vector<uint64_t>& kept = warp.calls[static_cast<size_t>(l)];
    auto pop = [&] {
      const uint64_t value = kept.back();
      kept.pop_back();
      return value;
    };
    const Subroutine& callee = kernel.subroutines[pop()];
    pcs[l] = static_cast<uint32_t>(pop());
    uint64_t& frame = TargetAs<uint64_t>(warp, kernel.frame_register)[l];
    std::byte* local = LocalOf(warp, l);
    const std::byte* from = local + frame;
    frame = pop();
    TargetAs<uint64_t>(warp, kernel.stack_register)[l] = pop();
    for (size_t i = callee.results.size(); i-- > 0;) {
      std::byte* to = local + pop();
      std::memcpy(to, from + callee.results[i].offset, callee.results[i].bytes);
      MarkLocal(warp, to, callee.results[i].bytes, true);
    }
    for (size_t i = callee.registers.size(); i-- > 0;) WriteRegister(warp, callee.registers[i], l, pop());
  }
  Depart(warp, mask, pcs);
}

}  // namespace kgrpo::simt
