// The parts of lowering that need all of a kernel's code: basic blocks, the registers' slots, uniform addresses.
#include <set>

#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

void Lowerer::FinishBlocks() {
  const size_t n = kernel_.code.size();
  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  for (size_t i = 0; i < n; ++i) {
    const Instruction& in = kernel_.code[i];
    if (in.run == &Branch) {
      leader[in.extra] = true;
      leader[i + 1] = true;
    }
    if (in.run == &BranchIndexed || in.run == &Exit || in.run == &Barrier || in.run == &CallSubroutine ||
        in.run == &ReturnFromSubroutine)
      leader[i + 1] = true;
  }
  for (const Subroutine& subroutine : kernel_.subroutines) leader[subroutine.pc] = true;
  for (const uint32_t target : kernel_.branch_targets) leader[target] = true;
  for (uint32_t i = 0; i < n; ++i) {
    if (!leader[i]) continue;
    uint32_t last = i + 1;
    while (last < n && !leader[last]) ++last;
    kernel_.blocks.push_back({i, last});
  }
}

void Lowerer::FinishRegisters() {
  constexpr uint64_t kMostLiveBits = uint64_t{1} << 33;
  if (uint64_t{kernel_.blocks.size()} * types_.size() > kMostLiveBits) {
    Unsupported("a kernel of " + std::to_string(types_.size()) + " registers and " +
                std::to_string(kernel_.blocks.size()) + " basic blocks");
  }
  std::vector<uint32_t> whole, unset;
  for (const auto& [kind, reg] : specials_) whole.push_back(reg);
  // Liveness is not computed across calls of functions: there no two registers share a slot.
  if (!kernel_.subroutines.empty()) {
    for (uint32_t reg = 0; reg < types_.size(); ++reg) whole.push_back(reg);
  }
  std::vector<Operand> offsets;
  uint32_t most_alive = 0;
  kernel_.register_bytes = AssignSlots(kernel_, types_, whole, offsets, most_alive, unset);
  std::set<uint32_t> special;  // these are set when the warp starts
  for (const auto& [kind, reg] : specials_) special.insert(reg);
  for (const uint32_t reg : unset) {
    if (special.contains(reg)) continue;
    const uint32_t bytes = types_[reg] == Type::kPred ? 4 : kLanes * (TypeBytes(types_[reg]) == 8 ? 8 : 4);
    kernel_.unset.push_back({static_cast<uint32_t>(offsets[reg]), bytes});
  }
  kernel_.registers_estimate = most_alive;
  kernel_.virtual_registers = static_cast<uint32_t>(types_.size());
  if (!kernel_.subroutines.empty()) {
    FinishSubroutines(offsets);
    kernel_.registers_estimate = 64;
  }
  std::erase_if(unset, [&](uint32_t reg) { return special.contains(reg); });
  FinishUnset(unset);
  FinishControl(offsets);
  auto place = [&](Operand& operand) {
    if (operand >= 0 && operand != kNoOperand) operand = offsets[static_cast<size_t>(operand)];
  };
  for (Instruction& in : kernel_.code) {
    for (Operand* operand : {&in.d, &in.a, &in.b, &in.c, &in.e, &in.predicate}) place(*operand);
  }
  for (Operand& operand : kernel_.operands) place(operand);
  for (const auto& [kind, reg] : specials_) kernel_.specials.push_back({kind, static_cast<uint32_t>(offsets[reg])});
}

// Finds the atomics whose address is the same in all lanes of a warp: it derives from nothing that differs among lanes.
void Lowerer::FinishUniform() {
  const size_t n = kernel_.code.size();
  std::vector<uint8_t> varies(types_.size(), 0);
  for (const auto& [kind, reg] : specials_) {
    varies[reg] =
        kind != SpecialSlot::Kind::kCtaX && kind != SpecialSlot::Kind::kCtaY && kind != SpecialSlot::Kind::kCtaZ;
  }
  auto sources_vary = [&](size_t pc) {
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      if ((kernel_.mentions[m] & 1u) == 0 && varies[kernel_.mentions[m] / 2] != 0) return true;
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t pc = 0; pc < n; ++pc) {
      const auto latency = static_cast<LatencyClass>(kernel_.costs[pc].latency);
      const bool loads = latency == LatencyClass::kGlobal || latency == LatencyClass::kShared ||
                         latency == LatencyClass::kLocal || latency == LatencyClass::kAtomic ||
                         latency == LatencyClass::kShuffle;
      if (!loads && !sources_vary(pc)) continue;
      for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
        if ((kernel_.mentions[m] & 1u) == 0 || varies[kernel_.mentions[m] / 2] != 0) continue;
        varies[kernel_.mentions[m] / 2] = 1;
        changed = true;
      }
    }
  }
  kernel_.uniform_address.assign(n, 0);
  for (size_t pc = 0; pc < n; ++pc) {
    if (!atomic_address_.contains(static_cast<uint32_t>(pc))) continue;
    const int64_t reg = atomic_address_[static_cast<uint32_t>(pc)];
    kernel_.uniform_address[pc] = reg < 0 || varies[static_cast<size_t>(reg)] == 0 ? 1 : 0;
    const auto space = static_cast<Space>(kernel_.code[pc].space);
    if (kernel_.uniform_address[pc] == 0 && (space == Space::kGlobal || space == Space::kGeneric))
      kernel_.scatters_atomics = true;
  }
}

}  // namespace kgrpo::simt
