// Runs an instruction that uses registers that may be unset. Reports an unset value that matters: in an address, a
// branch, an atomic, or a store to global memory. Checked launches only; see unset_uses.h.
#include "interpreter/simt/unset_uses.h"

#include <algorithm>
#include <bit>

#include "interpreter/simt/access.h"
#include "interpreter/simt/handlers.h"
#include "interpreter/simt/warp_sync.h"

namespace kgrpo::simt {
namespace {

uint32_t LanesOf(const Warp& warp, int32_t reg) {
  return reg < 0 ? 0 : warp.unset[static_cast<size_t>(reg)].lanes;
}

// Returns 1 + the pc that first read the unset value of `reg`: this pc if nothing has written `reg`.
uint32_t ReadAt(const Warp& warp, int32_t reg, uint32_t pc) {
  const uint32_t at = warp.unset[static_cast<size_t>(reg)].read_at;
  return at == 0 ? pc + 1 : at;
}

void ReportUnset(Warp& warp, const Instruction& in, uint32_t lanes, int32_t reg, const char* what, uint64_t address = 0,
                 bool fatal = false) {
  for (Finding& known : warp.grid->result->findings) {
    if (fatal || known.code != FindingCode::kUninitialised || known.line != LineOf(warp, in.index)) continue;
    ++known.times;  // counted as in Report, without building the text
    return;
  }
  const int line = LineOf(warp, in.index), read = LineOf(warp, ReadAt(warp, reg, in.index) - 1);
  const std::string where = address == 0 ? "" : warp.grid->memory->Describe(address);
  Report(warp, in.index, std::countr_zero(lanes), FindingCode::kUninitialised, fatal, address, where,
         std::string(what) + " that comes from a variable that was never set" +
             (read > 0 && read != line ? " (read at line " + std::to_string(read) + ")" : "") +
             (where.empty() ? "" : ", " + where));
  if (fatal) throw Fault{};
}

// Returns the lanes in which the result is unset, from the sources' lanes, and the source to blame.
uint32_t ResultOf(const Warp& warp, const Instruction& in, const UnsetUse& use, uint32_t mask, int32_t* blamed) {
  uint32_t any = 0, all = use.reads.empty() ? 0 : kAllLanes;
  for (const int32_t reg : use.reads) {
    const uint32_t lanes = LanesOf(warp, reg);
    if ((lanes & mask) != 0 && *blamed < 0) *blamed = reg;
    any |= lanes;
    all &= lanes;
  }
  const auto read = [&](size_t i) { return i < use.reads.size() ? LanesOf(warp, use.reads[i]) : 0; };
  switch (use.rule) {
    case UnsetRule::kAny:
      return any;
    case UnsetRule::kAll:
      return all;
    case UnsetRule::kTogether:
      return (mask & ~any) == 0 ? mask : 0;
    case UnsetRule::kShuffle: {
      uint32_t from[kLanes];
      ShuffledFrom(warp, in, from);
      uint32_t lanes = 0;
      for (uint32_t m = mask; m != 0; m &= m - 1) {
        const int l = std::countr_zero(m);
        lanes |= (read(0) >> from[l] & 1u) << l;
      }
      return in.a < 0 ? 0 : lanes;
    }
    default:
      return 0;
  }
}

// The unset lanes of in.a, in.b and in.c, for instructions whose sources may be constants.
struct Sources {
  uint32_t a = 0, b = 0, c = 0;
};
Sources UnsetSourcesOf(const Warp& warp, const Instruction& in, const UnsetUse& use) {
  Sources sources;
  size_t next = 0;
  const auto take = [&](Operand operand) {
    return operand >= 0 && operand != kNoOperand && next < use.reads.size() ? LanesOf(warp, use.reads[next++]) : 0;
  };
  sources.a = take(in.a);
  sources.b = take(in.b);
  sources.c = take(in.c);
  return sources;
}

// Returns the lanes in which the result is unset, if that depends on the sources' values. Call it before the
// instruction runs.
uint32_t ChosenOf(const Warp& warp, const Instruction& in, const UnsetUse& use) {
  const Sources unset = UnsetSourcesOf(warp, in, use);
  const uint32_t flip = (in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u;
  if (use.rule == UnsetRule::kSelect) {
    const uint32_t first = PredicateOf(warp, in.c) ^ flip;
    return unset.c | (unset.a & first) | (unset.b & ~first);
  }
  const uint32_t a = PredicateOf(warp, in.a), b = PredicateOf(warp, in.b);
  if (use.rule == UnsetRule::kAnd) return (unset.a & (unset.b | b)) | (unset.b & (unset.a | a));
  return (unset.a & (unset.b | ~b)) | (unset.b & (unset.a | ~a));
}

// After a store of an unset value: reported for global memory, else the bytes are marked unwritten.
void AfterStore(Warp& warp, const Instruction& in, const UnsetUse& use, uint32_t mask) {
  uint32_t all = use.reads.empty() ? 0 : kAllLanes;  // for a vector: lanes in which all elements are unset
  int32_t blamed = -1;
  for (const int32_t reg : use.reads) {
    all &= LanesOf(warp, reg);
    blamed = std::max(blamed, reg);
  }
  if ((all &= mask) == 0) return;
  if (use.rule == UnsetRule::kStoreMatrix) {
    if (all == kAllLanes) ReportUnset(warp, in, all, blamed, "stores a matrix");
    return;
  }
  Access access;
  Resolve(warp, in, mask, uint32_t{in.size} * in.count, AccessKind::kStore, access);
  if (access.space == Space::kGlobal)
    return ReportUnset(warp, in, all, blamed, "stores a value", access.address[std::countr_zero(all)]);
  MarkUnwritten(warp, all, access);
}

// Returns the parked lanes, which will execute the instruction again.
uint32_t Parked(const Warp& warp, uint32_t pc) {
  uint32_t parked = 0;
  for (uint8_t i = 0; i < warp.group_count; ++i) {
    if (warp.groups[i].parked && warp.groups[i].pc == pc) parked |= warp.groups[i].mask;
  }
  return parked;
}

}  // namespace

void WatchUnset(Warp& warp, const Instruction& watched, uint32_t mask) {
  const Kernel& kernel = *warp.grid->kernel;
  const Instruction& in = kernel.code[watched.index];
  const UnsetUse& use = kernel.unset_uses[kernel.unset_use_at[in.index] - 1];
  uint32_t doubtful = 0;  // lanes whose predicate is unset
  if (use.guard >= 0) {
    doubtful = LanesOf(warp, use.guard) & mask;
    if (doubtful != 0 && (use.branches || use.rule == UnsetRule::kStore || use.rule == UnsetRule::kUse))
      ReportUnset(warp, in, doubtful, use.guard,
                  use.branches ? "takes a branch by a value" : "stores or not by a value");
    mask &= PredicateOf(warp, in.predicate) ^ in.flip;
  }
  int32_t blamed = use.guard;
  if (doubtful == 0) blamed = -1;
  uint32_t result = doubtful;
  if (mask != 0) {
    // An unset address may point anywhere, also within bounds, so it is reported itself.
    if (use.address >= 0 && (LanesOf(warp, use.address) & mask) != 0)
      ReportUnset(warp, in, LanesOf(warp, use.address) & mask, use.address, "uses an address", 0, true);
    if (use.rule == UnsetRule::kUse) {
      for (const int32_t reg : use.reads) {
        if ((LanesOf(warp, reg) & mask) == 0) continue;
        ReportUnset(warp, in, LanesOf(warp, reg) & mask, reg,
                    use.branches ? "takes a branch by a value" : "uses a value");
        break;
      }
    }
    result |= ResultOf(warp, in, use, mask, &blamed) & mask;
    if (use.rule == UnsetRule::kSelect || use.rule == UnsetRule::kAnd || use.rule == UnsetRule::kOr)
      result |= ChosenOf(warp, in, use) & mask;
  }
  const uint32_t read_at = blamed >= 0 ? ReadAt(warp, blamed, in.index) : 0;
  // Read before the instruction runs: it may park the lanes, and its results may overwrite its sources.
  std::vector<uint32_t> addends;
  if (use.rule == UnsetRule::kAccumulate && use.reads.size() >= use.writes.size()) {
    for (size_t i = 0; i < use.writes.size(); ++i)
      addends.push_back(LanesOf(warp, use.reads[use.reads.size() - use.writes.size() + i]) & mask);
  }
  if (mask != 0) in.run(warp, in, mask);
  const bool stores = use.rule == UnsetRule::kStore || use.rule == UnsetRule::kStoreMatrix;
  if (stores && mask != 0) return AfterStore(warp, in, use, mask);
  const uint32_t done = (mask | doubtful) & ~Parked(warp, in.index);
  for (size_t i = 0; i < use.writes.size(); ++i) {
    if (use.writes[i] < 0) continue;
    UnsetRegister& target = warp.unset[static_cast<size_t>(use.writes[i])];
    const uint32_t lanes = result | (addends.empty() ? 0 : addends[i]);
    target.lanes = (target.lanes & ~done) | (lanes & done);
    if ((lanes & done) != 0 && read_at != 0) target.read_at = read_at;
  }
}

}  // namespace kgrpo::simt
