// The operands of an instruction as places in a warp's registers or the kernel's constants.
#include <cstring>

#include "simt/lower/lowerer.h"

namespace kgrpo::simt {
namespace {

// The bits of a literal, as an operand of type `type` takes them.
uint64_t Literal(const Arg& arg, Type type) {
  if (arg.number == Arg::Number::kDouble && type == Type::kF32) {
    double value;
    std::memcpy(&value, &arg.bits, 8);
    const auto narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    return bits;
  }
  if (arg.number == Arg::Number::kFloat && type == Type::kF64) {
    float value;
    const auto low = static_cast<uint32_t>(arg.bits);
    std::memcpy(&value, &low, 4);
    const double wide = value;
    uint64_t bits;
    std::memcpy(&bits, &wide, 8);
    return bits;
  }
  return arg.bits;
}

}  // namespace

// ---- constants ----

Operand Lowerer::Constant(uint32_t width, uint64_t bits) {
  if (width == 4) bits &= 0xFFFFFFFFu;
  const auto [it, added] = constants_.try_emplace({width, bits}, 0);
  if (added) it->second = NewConstant(width, bits);
  return ~static_cast<Operand>(it->second);
}

uint32_t Lowerer::NewConstant(uint32_t width, uint64_t bits) {
  std::vector<uint32_t>& words = kernel_.constants;
  const auto at = static_cast<uint32_t>(words.size() * 4);
  for (int l = 0; l < kLanes; ++l) {
    words.push_back(static_cast<uint32_t>(bits));
    if (width == 8) words.push_back(static_cast<uint32_t>(bits >> 32));
  }
  return at;
}

Operand Lowerer::Patched(ConstantPatch patch) {
  const std::tuple<int, bool, int, uint32_t, int64_t> key{static_cast<int>(patch.kind), patch.wide,
                                                          static_cast<int>(patch.type), patch.value, patch.addend};
  const auto [it, added] = patched_.try_emplace(key, 0);
  if (added) {
    patch.at = it->second = NewConstant(patch.wide ? 8 : 4, 0);
    kernel_.patches.push_back(patch);
  }
  return ~static_cast<Operand>(it->second);
}

// ---- registers ----

uint32_t Lowerer::NewRegister(Type type) {
  types_.push_back(type);
  return static_cast<uint32_t>(types_.size() - 1);
}

uint32_t Lowerer::SlotBytes(const Arg& arg) const {
  return arg.kind == Arg::Kind::kRegister && TypeBytes(TypeOf(arg)) == 8 ? 8 : 4;
}

Operand Lowerer::Register(int reg, bool definition) {
  const uint32_t id = instance_->register_base + static_cast<uint32_t>(reg);
  if (types_[id] == Type::kB128) Unsupported("a 128-bit register");
  Mention(id, definition);
  return static_cast<Operand>(id);
}

Operand Lowerer::Target(const Arg& arg) {
  if (arg.kind == Arg::Kind::kSink) return static_cast<Operand>(Scratch());
  if (arg.kind != Arg::Kind::kRegister) Malformed("a result that is not a register");
  return Register(arg.reg, true);
}

Operand Lowerer::TargetOf(const Arg& arg, uint32_t bytes) {
  if (arg.kind == Arg::Kind::kRegister && SlotBytes(arg) != (bytes == 8 ? 8u : 4u))
    Unsupported("a register of another width than its instruction");
  return Target(arg);
}

uint32_t Lowerer::Scratch() {
  const uint32_t reg = NewRegister(Type::kB64);
  Mention(reg, true);
  return reg;
}

// ---- sources ----

Operand Lowerer::SourceArg(const Arg& arg, uint32_t bytes, Type type) {
  const uint32_t width = bytes == 8 ? 8 : 4;
  switch (arg.kind) {
    case Arg::Kind::kRegister:
      if (TypeOf(arg) != Type::kPred && SlotBytes(arg) != width)
        Unsupported("a register of another width than its instruction");
      return Register(arg.reg, false);
    case Arg::Kind::kImmediate: return Constant(width, Literal(arg, type));
    case Arg::Kind::kSpecial: return Special(arg.symbol, width);
    case Arg::Kind::kSymbol: return Address(arg.symbol, arg.offset, width);
    default: Malformed("an operand of the wrong kind");
  }
}

Operand Lowerer::PredicateArg(const Arg& arg, Instruction& in) {
  if (arg.negated) in.flags |= kFlagNegateC;
  if (arg.kind == Arg::Kind::kImmediate) return Constant(4, arg.bits != 0 ? 0xFFFFFFFFu : 0u);
  if (arg.kind == Arg::Kind::kSpecial && arg.symbol == "%is_explicit_cluster") return Constant(4, 0);
  if (arg.kind != Arg::Kind::kRegister || TypeOf(arg) != Type::kPred) Malformed("expected a predicate");
  return Register(arg.reg, false);
}

Operand Lowerer::Special(std::string_view name, uint32_t width) {
  static const std::unordered_map<std::string_view, ConstantPatch::Kind> kUniform = {
      {"%nctaid.x", ConstantPatch::Kind::kGridX},
      {"%nctaid.y", ConstantPatch::Kind::kGridY},
      {"%nctaid.z", ConstantPatch::Kind::kGridZ},
      {"%nclusterid.x", ConstantPatch::Kind::kGridX},  // each block is a cluster
      {"%nclusterid.y", ConstantPatch::Kind::kGridY},
      {"%nclusterid.z", ConstantPatch::Kind::kGridZ},
      {"%ntid.x", ConstantPatch::Kind::kBlockX},
      {"%ntid.y", ConstantPatch::Kind::kBlockY},
      {"%ntid.z", ConstantPatch::Kind::kBlockZ},
      {"%dynamic_smem_size", ConstantPatch::Kind::kDynamicShared},
      {"%total_smem_size", ConstantPatch::Kind::kTotalShared},
      {"%aggr_smem_size", ConstantPatch::Kind::kAggregateShared},
      {"%envreg1", ConstantPatch::Kind::kGridWorkspaceHigh},
      {"%envreg2", ConstantPatch::Kind::kGridWorkspaceLow}};
  static const std::unordered_map<std::string_view, SpecialSlot::Kind> kLaneWise = {
      {"%tid.x", SpecialSlot::Kind::kTidX},
      {"%tid.y", SpecialSlot::Kind::kTidY},
      {"%tid.z", SpecialSlot::Kind::kTidZ},
      {"%ctaid.x", SpecialSlot::Kind::kCtaX},
      {"%ctaid.y", SpecialSlot::Kind::kCtaY},
      {"%ctaid.z", SpecialSlot::Kind::kCtaZ},
      {"%clusterid.x", SpecialSlot::Kind::kCtaX},
      {"%clusterid.y", SpecialSlot::Kind::kCtaY},
      {"%clusterid.z", SpecialSlot::Kind::kCtaZ},
      {"%laneid", SpecialSlot::Kind::kLane},
      {"%warpid", SpecialSlot::Kind::kWarp},
      {"%smid", SpecialSlot::Kind::kSm},
      {"%lanemask_eq", SpecialSlot::Kind::kLaneMaskEq},
      {"%lanemask_le", SpecialSlot::Kind::kLaneMaskLe},
      {"%lanemask_lt", SpecialSlot::Kind::kLaneMaskLt},
      {"%lanemask_ge", SpecialSlot::Kind::kLaneMaskGe},
      {"%lanemask_gt", SpecialSlot::Kind::kLaneMaskGt}};
  // Those that no launch changes, on an H100. Of the reserved shared memory, the cooperative groups' part is at
  // %reserved_smem_offset_1; for NVIDIA's other parts ptxas puts the same numbers into machine code.
  static const std::unordered_map<std::string_view, uint32_t> kFixed = {
      {"%nsmid", 132},
      {"%gridid", 0},
      {"%nwarpid", 64},
      {"%cluster_ctaid.x", 0},
      {"%cluster_ctaid.y", 0},
      {"%cluster_ctaid.z", 0},
      {"%cluster_nctaid.x", 1},
      {"%cluster_nctaid.y", 1},
      {"%cluster_nctaid.z", 1},
      {"%cluster_ctarank", 0},
      {"%cluster_nctarank", 1},
      {"%current_graph_exec", 0},
      {"%reserved_smem_offset_begin", 0},
      {"%reserved_smem_offset_end", kReservedSharedBytes},
      {"%reserved_smem_offset_cap", kReservedSharedBytes},
      {"%reserved_smem_offset_0", 0},
      {"%reserved_smem_offset_1", kReservedSharedBytes - kCooperativeGroupsBytes}};
  kernel_.reserved_shared |= name.starts_with("%reserved_smem");
  if (const auto it = kFixed.find(name); it != kFixed.end()) return Constant(width, it->second);
  // Performance counters without a profiler, the driver's registers, and the unused fourth element of vectors.
  if (name.starts_with("%pm") || (name.starts_with("%envreg") && !kUniform.contains(name)) || name.ends_with("id.w"))
    return Constant(width, 0);
  if (width != 4) Unsupported("special register " + std::string(name) + " in 64 bits");
  if (const auto it = kUniform.find(name); it != kUniform.end()) {
    kernel_.uses_grid_sync |= it->second == ConstantPatch::Kind::kGridWorkspaceLow;
    ConstantPatch patch;
    patch.kind = it->second;
    return Patched(patch);
  }
  const auto it = kLaneWise.find(name);
  if (it == kLaneWise.end()) Unsupported("special register " + std::string(name));
  const auto [slot, added] = specials_.try_emplace(it->second, 0);
  if (added) slot->second = NewRegister(Type::kB32);
  Mention(slot->second, false);
  return static_cast<Operand>(slot->second);
}

void Lowerer::SetList(Instruction& in, const std::vector<Operand>& list) {
  in.extra = static_cast<uint32_t>(kernel_.operands.size());
  kernel_.operands.insert(kernel_.operands.end(), list.begin(), list.end());
}

}  // namespace kgrpo::simt
