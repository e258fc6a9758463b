// Integer arithmetic on intervals, lane by lane: the possible contents of a warp's registers in several blocks at once.
// Used by the census of blocks (block_census.h).
//
// A register that is equal in all of these blocks is kept in the warp's registers. One that may differ has the least
// and the greatest value of each lane beside them. The value may be anything if the operation is unknown here, or if
// the result wraps around in some blocks only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/schedule/intervals.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {

class IntervalRegisters {
 public:
  explicit IntervalRegisters(const Kernel& kernel);

  // Forgets all intervals: all blocks have the values of the warp's registers.
  void Clear();
  // The 32-bit register at `at` lies between `low` and `high` in all lanes; it depends on the block's coordinates
  // `depends`, a bit each.
  void SetRange(Operand at, uint32_t low, uint32_t high, uint8_t depends);

  // True if all blocks agree on the predicate in the lanes of `mask`.
  bool Agrees(Operand predicate, uint32_t mask) const;
  // True if all blocks agree on a 32-bit register.
  bool AgreesOnValue(Operand at) const { return SpreadOf(at) < 0; }
  // Returns the coordinates (a bit each) that a register or predicate depends on, if the blocks disagree on it.
  uint8_t DependsOn(Operand at) const;

  // Executes an instruction that only computes.
  void Execute(Warp& warp, const Instruction& in, uint32_t mask);

 private:
  // Of 32-bit registers as unsigned numbers, of 64-bit ones as signed.
  struct Spread {
    uint32_t bytes = 0;
    uint8_t depends = 0;
    std::array<int64_t, kLanes> low, high;
  };

  bool IsPredicate(Operand at) const { return at >= 0 && static_cast<uint32_t>(at) < predicate_bytes_; }
  int32_t SpreadOf(Operand at) const {
    return at < 0 || at == kNoOperand || IsPredicate(at) ? -1 : spread_at_[static_cast<uint32_t>(at) / kGranule];
  }
  bool IsKnown(Operand at) const;
  uint8_t Dependences(const Instruction& in) const;
  Interval Read(const Warp& warp, Operand at, Type type, int lane) const;
  void Write(Warp& warp, Operand at, uint32_t bytes, uint32_t mask, uint8_t depends,
             const std::array<Interval, kLanes>& values);
  void WriteAnything(Operand at, uint32_t mask, uint8_t depends);
  void AfterKnown(Warp& warp, const Instruction& in, uint32_t mask);
  void Compare(Warp& warp, const Instruction& in, uint32_t mask, uint8_t depends);
  void PredicateLogic(Warp& warp, const Instruction& in, uint32_t mask, uint8_t depends);
  uint32_t KnownOf(Operand predicate) const;

  static constexpr uint32_t kGranule = 4 * kLanes;

  const uint32_t predicate_bytes_;
  std::vector<int32_t> spread_at_;  // by 128 bytes of the registers: index in spreads_, or -1
  std::vector<Spread> spreads_;
  size_t used_ = 0;                       // of spreads_
  std::vector<uint32_t> unknown_;         // by predicate: lanes on which the blocks do not agree
  std::vector<uint8_t> unknown_depends_;  // by predicate
};

}  // namespace kgrpo::simt
