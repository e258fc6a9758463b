// Runs an instruction that uses registers that may be unset. Reports an unset value that matters: in an address, a
// branch, an atomic, or a store to global memory. Checked launches only; see unset_uses.h.
#include "simt/state/unset_uses.h"

#include <algorithm>
#include <bit>

#include "simt/check/access.h"
#include "simt/state/handlers.h"
#include "simt/state/warp_sync.h"

namespace kgrpo::simt {
namespace {

uint32_t LanesOf(const Warp& warp, int32_t reg) { return reg < 0 ? 0 : warp.unset[static_cast<size_t>(reg)].lanes; }

bool IsLoaded(const Warp& warp, int32_t reg) { return reg >= 0 && warp.unset[static_cast<size_t>(reg)].loaded; }

// Returns 1 + the pc that first read the unset value of `reg`: this pc if nothing has written `reg`.
uint32_t ReadAt(const Warp& warp, int32_t reg, uint32_t pc) {
  const uint32_t at = warp.unset[static_cast<size_t>(reg)].read_at;
  return at == 0 ? pc + 1 : at;
}

// The suspect that the value of `reg` comes from, that of one of `lanes` if it can be told; null if it is none.
const Suspect* SuspectOf(const Warp& warp, int32_t reg, uint32_t lanes) {
  if (!IsLoaded(warp, reg)) return nullptr;
  const auto found = warp.suspects.find(warp.unset[static_cast<size_t>(reg)].read_at - 1);
  if (found == warp.suspects.end()) return nullptr;
  const Suspect* any = nullptr;
  for (size_t l = 0; l < kLanes; ++l) {
    const Suspect& one = found->second[l];
    if (one.bytes == 0) continue;
    if (((lanes >> l) & 1u) != 0) return &one;
    if (any == nullptr) any = &one;
  }
  return any;
}

FindingCode CodeOf(const Suspect& suspect) {
  return suspect.earlier != 0 || suspect.race != 0 ? FindingCode::kRace : FindingCode::kUninitialised;
}

// The fault is that of the load. `partly`: a value of which the kernel may ignore this part.
void ReportSuspect(Warp& warp, const Suspect& suspect, bool partly) {
  Grid& grid = *warp.grid;
  const auto space = static_cast<Space>(suspect.space);
  const FindingCode code = CodeOf(suspect);
  const bool may_be_unused = partly && code == FindingCode::kUninitialised && space == Space::kShared;
  if (may_be_unused && grid.config->unwritten_shared) return;
  for (Finding& known : grid.result->findings) {  // counted without building the text
    if (suspect.race != 0 || known.code != code || known.line != LineAt(grid, suspect.pc)) continue;
    ++known.times;
    known.may_be_unused = known.may_be_unused && may_be_unused;
    return;
  }
  Finding finding;
  if (suspect.race != 0) {
    finding = grid.config->racing_reads->races[suspect.race - 1];
  } else if (suspect.earlier != 0) {
    const bool atomic = grid.events[EventNumber(suspect.earlier)].atomic;
    finding = RaceOf(warp, suspect.pc, suspect.thread, space, suspect.address, suspect.bytes, "reads", suspect.earlier,
                     atomic ? "updates" : "writes");
  } else {
    finding = MakeFinding(grid, suspect.pc, IdOf(grid, warp.block->index, suspect.thread), code, suspect.address, "",
                          UnwrittenText(grid, space, suspect.address, suspect.bytes));
  }
  finding.may_be_unused = may_be_unused;
  AddFinding(grid, std::move(finding));
}

void ReportUnset(Warp& warp, const Instruction& in, uint32_t lanes, int32_t reg, const char* what, uint64_t address = 0,
                 bool fatal = false) {
  if (const Suspect* suspect = SuspectOf(warp, reg, lanes)) {
    ReportSuspect(warp, *suspect, false);
    if (fatal) throw Fault{};
    return;
  }
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
  uint32_t any = 0, all = use.reads.empty() ? 0 : kAllLanes, loaded = 0;
  for (const int32_t reg : use.reads) {
    const uint32_t lanes = LanesOf(warp, reg);
    if ((lanes & mask) != 0 && *blamed < 0) *blamed = reg;
    any |= lanes;
    all &= lanes;
    if (IsLoaded(warp, reg)) loaded |= lanes;
  }
  if ((loaded & mask) != 0 && !IsLoaded(warp, *blamed)) {
    for (const int32_t reg : use.reads)
      if (IsLoaded(warp, reg) && (LanesOf(warp, reg) & mask) != 0) *blamed = reg;
  }
  const auto read = [&](size_t i) { return i < use.reads.size() ? LanesOf(warp, use.reads[i]) : 0; };
  switch (use.rule) {
    case UnsetRule::kAny: return any;
    case UnsetRule::kAll: return all | loaded;
    case UnsetRule::kTogether: return (mask & ~any) == 0 || (mask & loaded) != 0 ? mask : 0;
    case UnsetRule::kShuffle: {
      uint32_t from[kLanes];
      ShuffledFrom(warp, in, from);
      uint32_t lanes = 0;
      for (const int l : EachBit(mask)) {
        lanes |= (read(0) >> from[l] & 1u) << l;
      }
      return in.a < 0 ? 0 : lanes;
    }
    default: return 0;
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

// Called before and after a store of an unset value: reported for global memory before it, so that it comes before a
// race of the store; else the bytes are marked unwritten after it.
void AroundStore(Warp& warp, const Instruction& in, const UnsetUse& use, uint32_t mask, bool before) {
  uint32_t any = 0, all = use.reads.empty() ? 0 : kAllLanes;  // lanes in which any or all elements are unset
  int32_t blamed = -1, part = -1;                             // part: a suspect among several elements
  for (const int32_t reg : use.reads) {
    any |= LanesOf(warp, reg) & mask;
    all &= LanesOf(warp, reg) & mask;
    blamed = std::max(blamed, reg);
    if (IsLoaded(warp, reg) && (LanesOf(warp, reg) & mask) != 0) part = reg;
  }
  if (any == 0) return;
  if (use.rule == UnsetRule::kStoreMatrix) {
    if (before && all == kAllLanes) ReportUnset(warp, in, all, blamed, "stores a matrix");
    return;
  }
  Access access;
  Resolve(warp, in, mask, uint32_t{in.size} * in.count, AccessKind::kStore, access);
  if (before != (access.space == Space::kGlobal)) return;
  if (before) {
    if (all != 0) return ReportUnset(warp, in, all, blamed, "stores a value", access.address[std::countr_zero(all)]);
    if (const Suspect* suspect = SuspectOf(warp, part, any)) ReportSuspect(warp, *suspect, true);
    return;
  }
  access.bytes = in.size;
  for (size_t i = 0; i < use.reads.size(); ++i) {
    if (const uint32_t lanes = LanesOf(warp, use.reads[i]) & mask; lanes != 0) {
      MarkUnwritten(warp, lanes, access);
      for (const int l : EachBit(lanes)) {
        const uint64_t offset = access.space == Space::kLocal
                                    ? static_cast<uint64_t>(access.host[l] - warp.block->local.data())
                                    : access.address[l];
        const uint64_t key = StoredKey(access.space, offset);
        if (const Suspect* suspect = SuspectOf(warp, use.reads[i], 1u << l)) {
          warp.block->stored_suspects[key] = *suspect;
        } else {
          warp.block->stored_suspects.erase(key);
        }
      }
    }
    for (int l = 0; l < kLanes; ++l) {
      access.address[l] += in.size;
      if (!access.direct) access.host[l] += in.size;
    }
  }
  if (access.space == Space::kShared && LineOf(warp, in.index) > 0) {
    const Finding about = MakeFinding(*warp.grid, in.index, {}, FindingCode::kUninitialised, 0, "", "");
    NoteFact(*warp.grid,
             "Kernel '" + about.kernel + "', line " + std::to_string(about.line) +
                 " stores a value to shared memory that was never set",
             "; no result depends on it");
  }
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

void Watch(Grid& grid, bool loads) {
  const Kernel& kernel = *grid.kernel;
  const auto limit = static_cast<int32_t>(loads ? kernel.unset_registers : kernel.unset_without_loads);
  if (limit == 0) return;
  const auto among = [limit](int32_t reg) { return reg >= 0 && reg < limit; };
  for (size_t pc = 0; pc < grid.watched_code.size(); ++pc) {
    if (kernel.unset_use_at[pc] == 0) continue;
    const UnsetUse& use = kernel.unset_uses[kernel.unset_use_at[pc] - 1];
    if (!among(use.guard) && !among(use.address) && std::none_of(use.reads.begin(), use.reads.end(), among) &&
        std::none_of(use.writes.begin(), use.writes.end(), among))
      continue;
    Instruction& watched = grid.watched_code[pc];
    watched.run = &WatchUnset;
    if (!among(use.guard)) continue;
    watched.predicate = kernel.all_lanes;  // runs even if the predicate is false, to look at the guard
    watched.flip = 0;
  }
  grid.watches_loads = loads;
  for (Block* block : grid.resident)
    for (Warp& warp : block->warps) warp.unset.resize(kernel.unset_registers);
}

void AddSuspect(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, int lane, uint32_t elements,
                Suspect what) {
  const bool stored = what.pc != 0;  // found again by a load: the first one is the fault
  if (!stored) {
    what.pc = in.index;
    what.space = static_cast<uint8_t>(access.space);
  }
  std::array<Suspect, kLanes>& suspects = warp.suspects[what.pc];
  if (what.earlier != 0) {
    const AccessEvent& earlier = warp.grid->events[EventNumber(what.earlier)];
    if (earlier.warp == warp.id && earlier.block == warp.block->index)
      mask &= ~(1u << LaneOf(what.earlier));  // a lane reads its own write in order
  }
  for (const int l : EachBit(mask)) {
    if (l != lane && (access.space == Space::kLocal || access.address[l] != access.address[lane])) continue;
    if (!stored) what.thread = static_cast<uint32_t>(warp.id * kLanes + l);
    uint32_t lanes = 1u << l, registers = elements;
    if (access.target == Access::Target::kFragment) registers = kAllLanes;
    if (access.target == Access::Target::kRow || access.target == Access::Target::kTransposedRow) {
      const int row = l % 8;
      lanes = access.target == Access::Target::kRow ? 0xFu << (4 * row) : 0x11111111u << (row / 2);
      registers = 1u << (l / 8);
    }
    for (const int target : EachBit(lanes)) suspects[static_cast<size_t>(target)] = what;
    for (uint32_t e = 0; e < warp.loaded.size(); ++e)
      if (((registers >> e) & 1u) != 0) warp.loaded[e] |= lanes;
  }
  if (!warp.suspicious) warp.loaded_at = what.pc;
  warp.suspicious = true;
}

void AddShuffleSuspects(Warp& warp, const Instruction& in, uint32_t mask, const uint32_t* from) {
  if (warp.grid->watched_code.empty()) return;
  std::array<Suspect, kLanes>& suspects = warp.suspects[in.index];
  for (const int l : EachBit(mask)) {
    suspects[static_cast<size_t>(l)] = {.address = from[l],
                                        .pc = in.index,
                                        .thread = static_cast<uint32_t>(warp.id * kLanes + l),
                                        .bytes = 4,
                                        .space = static_cast<uint8_t>(Space::kGeneric)};
  }
  warp.loaded[0] |= mask;
  warp.loaded_at = in.index;
  warp.suspicious = true;
  // If the shuffle is being watched, its result is marked after that.
  if (!warp.tainted || warp.grid->watched_code[in.index].run != &WatchUnset) SetSuspects(warp, in, mask);
}

void SetSuspects(Warp& warp, const Instruction& in, uint32_t mask) {
  Grid& grid = *warp.grid;
  if (!grid.watches_loads) Watch(grid, true);
  const UnsetUse& use = grid.kernel->unset_uses[grid.kernel->unset_use_at[in.index] - 1];
  for (size_t i = 0; i < use.writes.size() && i < warp.loaded.size(); ++i) {
    if (use.writes[i] < 0 || warp.loaded[i] == 0) continue;
    UnsetRegister& target = warp.unset[static_cast<size_t>(use.writes[i])];
    target = {(target.lanes & ~mask) | warp.loaded[i], warp.loaded_at + 1, true};
  }
  warp.loaded.fill(0);
  warp.suspicious = false;
  warp.tainted = true;
}

void WatchUnset(Warp& warp, const Instruction& watched, uint32_t mask) {
  const Kernel& kernel = *warp.grid->kernel;
  const Instruction& in = kernel.code[watched.index];
  const UnsetUse& use = kernel.unset_uses[kernel.unset_use_at[in.index] - 1];
  if (!warp.tainted) {
    if (use.guard >= 0) mask &= PredicateOf(warp, in.predicate) ^ in.flip;
    if (mask != 0) {
      in.run(warp, in, mask);
    } else {
      Cover(warp, in.index, kPassed);
    }
    return;
  }
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
    if (use.rule == UnsetRule::kUse || use.rule == UnsetRule::kArgument) {
      for (const int32_t reg : use.reads) {
        if ((LanesOf(warp, reg) & mask) == 0 || (use.rule == UnsetRule::kArgument && !IsLoaded(warp, reg))) continue;
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
  if (use.rule ==
      UnsetRule::kAccumulate) {  // a product of a suspect is in several elements, perhaps in none that counts
    for (size_t i = 0; i + use.writes.size() < use.reads.size(); ++i) {
      if (const Suspect* suspect = SuspectOf(warp, use.reads[i], mask);
          suspect != nullptr && (LanesOf(warp, use.reads[i]) & mask) != 0)
        ReportSuspect(warp, *suspect, true);
    }
  }
  const bool loaded = blamed >= 0 && IsLoaded(warp, blamed);
  if (use.loads) {  // the load itself marks suspects
    for (const int32_t reg : use.writes) {
      if (reg < 0) continue;
      UnsetRegister& target = warp.unset[static_cast<size_t>(reg)];
      target.lanes = (target.lanes & ~mask) | doubtful;
      if (doubtful != 0) target = {target.lanes, read_at, loaded};
    }
  }
  const bool stores = (use.rule == UnsetRule::kStore || use.rule == UnsetRule::kStoreMatrix) && mask != 0;
  if (stores) AroundStore(warp, in, use, mask, true);
  if (mask != 0) {
    in.run(warp, in, mask);
  } else {
    Cover(warp, in.index, kPassed);
  }
  if (stores) AroundStore(warp, in, use, mask, false);
  if (use.loads || stores) return;
  const uint32_t done = (mask | doubtful) & ~Parked(warp, in.index);
  for (size_t i = 0; i < use.writes.size(); ++i) {
    if (use.writes[i] < 0) continue;
    UnsetRegister& target = warp.unset[static_cast<size_t>(use.writes[i])];
    const uint32_t lanes = result | (addends.empty() ? 0 : addends[i]);
    target.lanes = (target.lanes & ~done) | (lanes & done);
    if ((lanes & done) != 0 && read_at != 0) target = {target.lanes, read_at, loaded};
  }
  if (warp.suspicious) SetSuspects(warp, in, warp.loaded[0]);
}

}  // namespace kgrpo::simt
