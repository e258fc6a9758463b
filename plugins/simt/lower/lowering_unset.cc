// Finds the instructions that may read unset registers: see unset_uses.h. Data flow gives the registers that may be
// read before they are written. The registers computed from them are found here, regardless of the order of the code.
#include <algorithm>

#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

UnsetRule UnsetRuleOf(const Opcode& op) {
  const std::string_view base = op.base;
  const auto is_one_of = [base](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), base) != names.end();
  };
  if (op.Has("param")) return base == "st" ? UnsetRule::kArgument : UnsetRule::kNever;
  if (is_one_of({"ld", "ldu", "ldmatrix"})) return UnsetRule::kLoad;
  if (base == "st") return UnsetRule::kStore;
  if (base == "wmma" && op.Has("load")) return UnsetRule::kLoad;
  if (base == "wmma" && op.Has("store")) return UnsetRule::kStoreMatrix;
  if (is_one_of({"mma", "wmma"})) return UnsetRule::kAccumulate;
  if (is_one_of({"atom", "red", "cp", "sust", "bra", "brx"})) return UnsetRule::kUse;
  if (base == "sub" || base == "xor") return UnsetRule::kDifference;
  if (base == "selp") return UnsetRule::kSelect;
  if (base == "and") return op.type() == Type::kPred ? UnsetRule::kAnd : UnsetRule::kAll;
  if (base == "or") return op.type() == Type::kPred ? UnsetRule::kOr : UnsetRule::kAll;
  if (is_one_of({"mov", "lop3", "prmt", "bfi", "shf"})) return UnsetRule::kAll;
  if (base == "setp" && (op.Has("and") || op.Has("or") || op.Has("xor"))) return UnsetRule::kAll;
  if (base == "shfl") return UnsetRule::kShuffle;
  if (is_one_of({"vote", "match", "redux", "movmatrix"})) return UnsetRule::kTogether;
  if (is_one_of({"bar", "barrier", "mbarrier", "stmatrix", "slct", "elect", "activemask", "call", "ret", "exit"}))
    return UnsetRule::kNever;
  return UnsetRule::kAny;
}

namespace {

// Returns true if an instruction's result may be unset because a source is.
bool PassesOn(UnsetRule rule) {
  return rule != UnsetRule::kNever && rule != UnsetRule::kLoad && rule != UnsetRule::kStore &&
         rule != UnsetRule::kStoreMatrix && rule != UnsetRule::kArgument && rule != UnsetRule::kUse;
}

}  // namespace

void Lowerer::FinishUnset(const std::vector<uint32_t>& unset) {
  // With subroutines nothing is watched, since the registers that a call preserves are not computed.
  if (!kernel_.subroutines.empty()) return;
  std::vector<int32_t> number(types_.size(), -1);
  uint32_t count = 0;
  for (const uint32_t reg : unset) number[reg] = static_cast<int32_t>(count++);
  kernel_.first_unset = count;
  kernel_.all_lanes = all_lanes_;
  const auto size = static_cast<uint32_t>(kernel_.code.size());
  const auto visit = [&](uint32_t pc, bool writes, auto each) {
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m)
      if (((kernel_.mentions[m] & 1u) != 0) == writes) each(kernel_.mentions[m] / 2);
  };
  const auto number_results = [&](uint32_t pc) {
    bool added = false;
    visit(pc, true, [&](uint32_t reg) {
      if (number[reg] >= 0) return;
      number[reg] = static_cast<int32_t>(count++);
      added = true;
    });
    return added;
  };
  const auto spread = [&] {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t pc = 0; pc < size; ++pc) {
        bool reads = false;
        visit(pc, false, [&](uint32_t reg) { reads |= number[reg] >= 0; });
        changed |= reads && PassesOn(unset_rules_[pc]) && number_results(pc);
      }
    }
  };
  const auto loads = [&](uint32_t pc) { return unset_rules_[pc] == UnsetRule::kLoad && loads_registers_[pc] != 0; };
  spread();
  kernel_.unset_without_loads = count;
  for (uint32_t pc = 0; pc < size; ++pc)
    if (loads(pc) || unset_rules_[pc] == UnsetRule::kShuffle) number_results(pc);
  spread();
  kernel_.unset_registers = count;
  if (count == 0) return;
  kernel_.unset_use_at.assign(size, 0);
  for (uint32_t pc = 0; pc < size; ++pc) {
    const Instruction& in = kernel_.code[pc];
    UnsetUse use;
    use.rule = unset_rules_[pc];
    use.branches = in.run == &Branch || in.run == &BranchIndexed || in.run == &Exit;
    const auto number_of = [&](Operand operand) {
      return operand >= 0 && operand != kNoOperand ? number[static_cast<size_t>(operand)] : -1;
    };
    use.guard = number_of(in.predicate);
    const bool accesses =
        use.rule == UnsetRule::kLoad || use.rule == UnsetRule::kStore || use.rule == UnsetRule::kStoreMatrix;
    if (accesses) use.address = number_of(in.a);
    bool touched = use.guard >= 0, saw_guard = false, saw_address = false;
    std::vector<uint32_t> sources;
    visit(pc, false, [&](uint32_t reg) {
      // The mentions include the predicate and the address.
      if (!saw_guard && static_cast<Operand>(reg) == in.predicate) {
        saw_guard = true;
        return;
      }
      touched |= number[reg] >= 0;
      if (accesses && !saw_address && static_cast<Operand>(reg) == in.a) {
        saw_address = true;
        return;
      }
      if (use.rule == UnsetRule::kStoreMatrix && static_cast<Operand>(reg) == in.b) return;  // the stride between rows
      sources.push_back(reg);
      use.reads.push_back(number[reg]);
    });
    visit(pc, true, [&](uint32_t reg) {
      touched |= number[reg] >= 0;
      use.writes.push_back(number[reg]);
    });
    if (!touched) continue;
    use.loads = loads(pc);
    // A vector's elements, those that are not wanted too; matrix loads have one result for each register.
    if ((use.loads && use.writes.size() <= in.count) || use.rule == UnsetRule::kStore) {
      std::vector<int32_t>& elements = use.loads ? use.writes : use.reads;
      elements.clear();
      for (uint32_t i = 0; i < in.count; ++i) elements.push_back(number_of(kernel_.operands[in.extra + i]));
    }
    if (use.rule == UnsetRule::kDifference)
      use.rule = sources.size() == 2 && sources[0] == sources[1] ? UnsetRule::kNever : UnsetRule::kAny;
    kernel_.unset_uses.push_back(std::move(use));
    kernel_.unset_use_at[pc] = static_cast<uint32_t>(kernel_.unset_uses.size());
  }
}

}  // namespace kgrpo::simt
