// Operations in which the lanes of a warp take part together: shuffles, votes, matches, reductions, __syncwarp.
#include <bit>
#include <cstring>

#include "simt/check/access_counter.h"
#include "simt/state/handlers.h"
#include "simt/state/vector_clones.h"
#include "simt/state/warp_sync.h"

namespace kgrpo::simt {
namespace {

// Result of a shuffle from a lane that takes no part; on a GPU it is undefined.
constexpr uint32_t kUndefined = 0xFFFFFFFFu;

// Returns the operand with the mask of participating lanes; a constant is the same for all lanes.
Operand MembersOperand(const Warp& warp, const Instruction& in) {
  return in.run == &Shuffle ? warp.grid->kernel->operands[in.extra] : in.b;
}

// Runs `operate(lanes)` for each set of lanes that name the same members and are all here; parks the others.
template <typename Operate>
void Together(Warp& warp, const Instruction& in, uint32_t mask, Operate operate) {
  const Operand operand = MembersOperand(warp, in);
  if (operand < 0 && warp.alive == mask && (SourceAs<uint32_t>(warp, operand)[0] & mask) == mask) {
    // The usual case: all alive lanes are here and name each other.
    operate(mask);
    SynchroniseLanes(warp, mask);
    return;
  }
  uint32_t waiting = 0;
  for (uint32_t m = mask; m != 0;) {
    const int lead = std::countr_zero(m);
    const uint32_t members = MembersOf(warp, in, lead);
    uint32_t lanes = 0;
    for (uint32_t n = m; n != 0; n &= n - 1) {
      const int l = std::countr_zero(n);
      if (MembersOf(warp, in, l) != members) continue;
      lanes |= 1u << l;
      if (((members >> l) & 1u) == 0) {
        Report(warp, in.index, l, FindingCode::kInvalidShuffle, true, 0, "",
               "uses a warp operation whose mask does not name its own lane " + std::to_string(l));
        throw Fault{};
      }
    }
    m &= ~lanes;
    if ((members & warp.alive & ~lanes) != 0) {
      waiting |= lanes;
    } else {
      operate(lanes);
      SynchroniseLanes(warp, lanes);
    }
  }
  if (waiting != 0) Park(warp, waiting, in.index);
}

template <typename T>
T ReduceAdd(T a, T b) {
  return a + b;
}
template <typename T>
T ReduceMin(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T ReduceMax(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
T ReduceAnd(T a, T b) {
  return a & b;
}
template <typename T>
T ReduceOr(T a, T b) {
  return a | b;
}
template <typename T>
T ReduceXor(T a, T b) {
  return a ^ b;
}

template <typename T, T (*F)(T, T)>
void Redux(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [&](uint32_t lanes) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    T result = static_cast<T>(a[std::countr_zero(lanes)]);
    for (const int l : EachBit(lanes & (lanes - 1))) result = F(result, static_cast<T>(a[l]));
    uint32_t* d = TargetAs<uint32_t>(warp, in.d);
    for (const int l : EachBit(lanes)) d[l] = static_cast<uint32_t>(result);
  });
}

// Finds the lane that each lane of a shuffle reads: itself if the lane lies outside of its segment. Returns the lanes
// with a source inside. b: the distance or lane. c: the last lane and the segments, as in PTX.
template <ShuffleMode kMode>
inline uint32_t SourcesOf(const uint32_t* b, const uint32_t* c, uint32_t* from) {
  uint32_t valid = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const uint32_t by = b[l] & 31u, clamp = c[l] & 31u, segment = (c[l] >> 8) & 31u;
    const uint32_t lowest = l & segment, highest = lowest | (clamp & ~segment);
    const uint32_t source = kMode == ShuffleMode::kUp          ? l - by
                            : kMode == ShuffleMode::kDown      ? l + by
                            : kMode == ShuffleMode::kButterfly ? l ^ by
                                                               : lowest | (by & ~segment);
    const bool inside = kMode == ShuffleMode::kUp ? static_cast<int32_t>(source) >= static_cast<int32_t>(highest)
                                                  : static_cast<int32_t>(source) <= static_cast<int32_t>(highest);
    valid |= inside ? 1u << l : 0u;
    from[l] = inside ? source : l;
  }
  return valid;
}
KGRPO_VECTOR_CLONES uint32_t ShuffleSources(ShuffleMode mode, const uint32_t* b, const uint32_t* c, uint32_t* from) {
  switch (mode) {
    case ShuffleMode::kUp: return SourcesOf<ShuffleMode::kUp>(b, c, from);
    case ShuffleMode::kDown: return SourcesOf<ShuffleMode::kDown>(b, c, from);
    case ShuffleMode::kButterfly: return SourcesOf<ShuffleMode::kButterfly>(b, c, from);
    case ShuffleMode::kIndex: break;
  }
  return SourcesOf<ShuffleMode::kIndex>(b, c, from);
}

uint64_t ValueAt(const Warp& warp, const Instruction& in, int lane) {
  return in.size == 8 ? SourceAs<uint64_t>(warp, in.a)[lane] : SourceAs<uint32_t>(warp, in.a)[lane];
}

}  // namespace

uint32_t MembersOf(const Warp& warp, const Instruction& in, int lane) {
  return SourceAs<uint32_t>(warp, MembersOperand(warp, in))[lane];
}

void ShuffledFrom(const Warp& warp, const Instruction& in, uint32_t* from) {
  ShuffleSources(static_cast<ShuffleMode>(in.size), SourceAs<uint32_t>(warp, in.b), SourceAs<uint32_t>(warp, in.c),
                 from);
}

void Shuffle(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [&](uint32_t lanes) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    alignas(64) uint32_t from[kLanes], result[kLanes];
    const uint32_t valid = ShuffleSources(static_cast<ShuffleMode>(in.size), SourceAs<uint32_t>(warp, in.b),
                                          SourceAs<uint32_t>(warp, in.c), from);
    for (int l = 0; l < kLanes; ++l) result[l] = a[from[l]];
    uint32_t* d = TargetAs<uint32_t>(warp, in.d);
    if (lanes == kAllLanes) {
      std::memcpy(d, result, sizeof result);
    } else {
      uint32_t undefined = 0;
      for (const int l : EachBit(lanes)) {
        const bool takes_part = ((lanes >> from[l]) & 1u) != 0;
        d[l] = takes_part ? result[l] : kUndefined;
        undefined |= (takes_part ? 0u : 1u) << l;
      }
      if (undefined != 0 && warp.grid->checked) AddShuffleSuspects(warp, in, undefined, from);
    }
    if (in.e != kNoOperand) SetPredicate(warp, in.e, lanes, valid);
  });
}

void Vote(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [&](uint32_t lanes) {
    const uint32_t p = (PredicateOf(warp, in.c) ^ ((in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u)) & lanes;
    bool result = false;
    switch (static_cast<VoteMode>(in.size)) {
      case VoteMode::kBallot:
        for (const int l : EachBit(lanes)) TargetAs<uint32_t>(warp, in.d)[l] = p;
        return;
      case VoteMode::kAll: result = p == lanes; break;
      case VoteMode::kAny: result = p != 0; break;
      case VoteMode::kUniform: result = p == lanes || p == 0; break;
    }
    SetPredicate(warp, in.e, lanes, result ? kAllLanes : 0u);
  });
}

void MatchAny(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [&](uint32_t lanes) {
    uint32_t result[kLanes];
    for (const int l : EachBit(lanes)) {
      result[l] = 0;
      for (uint32_t n = lanes; n != 0; n &= n - 1) {
        const int k = std::countr_zero(n);
        result[l] |= static_cast<uint32_t>(ValueAt(warp, in, k) == ValueAt(warp, in, l)) << k;
      }
    }
    for (const int l : EachBit(lanes)) TargetAs<uint32_t>(warp, in.d)[l] = result[l];
    uint32_t values = 0;
    for (const int l : EachBit(lanes)) values += std::countr_zero(result[l]) == l ? 1 : 0;
    if (warp.grid->counter != nullptr) warp.grid->counter->CountTimes(warp, in, values);
  });
}

void MatchAll(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [&](uint32_t lanes) {
    const uint64_t first = ValueAt(warp, in, std::countr_zero(lanes));
    bool same = true;
    for (const int l : EachBit(lanes)) same &= ValueAt(warp, in, l) == first;
    for (const int l : EachBit(lanes)) TargetAs<uint32_t>(warp, in.d)[l] = same ? lanes : 0u;
    if (in.e != kNoOperand) SetPredicate(warp, in.e, lanes, same ? kAllLanes : 0u);
  });
}

Handler FindRedux(const Opcode& op) {
  const bool is_signed = op.type() == Type::kS32;
  if (op.type() == Type::kF32) return nullptr;
  if (op.Has("add")) return &Redux<uint32_t, &ReduceAdd<uint32_t>>;
  if (op.Has("min")) return is_signed ? &Redux<int32_t, &ReduceMin<int32_t>> : &Redux<uint32_t, &ReduceMin<uint32_t>>;
  if (op.Has("max")) return is_signed ? &Redux<int32_t, &ReduceMax<int32_t>> : &Redux<uint32_t, &ReduceMax<uint32_t>>;
  if (op.Has("and")) return &Redux<uint32_t, &ReduceAnd<uint32_t>>;
  if (op.Has("or")) return &Redux<uint32_t, &ReduceOr<uint32_t>>;
  if (op.Has("xor")) return &Redux<uint32_t, &ReduceXor<uint32_t>>;
  return nullptr;
}

void SyncWarp(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [](uint32_t) {});
}

void ActiveMask(Warp& warp, const Instruction& in, uint32_t mask) {
  for (const int l : EachBit(mask)) TargetAs<uint32_t>(warp, in.d)[l] = mask;
}

void ElectOne(Warp& warp, const Instruction& in, uint32_t mask) {
  Together(warp, in, mask, [&](uint32_t lanes) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(lanes));
    for (const int l : EachBit(lanes)) TargetAs<uint32_t>(warp, in.d)[l] = leader;
    if (in.e != kNoOperand) SetPredicate(warp, in.e, lanes, 1u << leader);
  });
}

}  // namespace kgrpo::simt
