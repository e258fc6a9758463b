// Finds uses of unset values: of registers that were never set, which the compiler leaves for variables that are read
// before they are written, and of suspects: loaded values that nobody has written or that race, and what a shuffle
// reads from a lane that takes no part. Compilers load ahead of a guard and drop the value, so such a load is a fault
// only where its value is used.
//
// Lowering finds the registers that may be unset and the instructions that use them (lowering_unset.cc). A checked
// launch watches those instructions (unset_uses.cc): from the start what uses registers that were never set, from the
// first suspect on what uses loaded values.
#pragma once

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// How an instruction treats unset sources. If the result may not depend on an unset source, it counts as set, so that a
// value that may not matter is not reported.
enum class UnsetRule : uint8_t {
  kAny,          // the result is unset if any source is
  kDifference,   // the same, but x - x and x ^ x are zero for any x
  kAll,          // unset if all register sources are: the bits may come from several (or any is a suspect)
  kNever,        // the result is set
  kSelect,       // selp: unset if the chosen source or the predicate is
  kAnd,          // of predicates: an unset source counts unless another source is false
  kOr,           // the same, unless another source is true
  kShuffle,      // unset if the lane that is read is; a suspect if that takes no part
  kTogether,     // votes and the like: unset if the value is in all lanes (or a suspect in any)
  kAccumulate,   // matrix products: unset if the same element of the addend is; suspects in the factors are used
  kLoad,         // the address must be set; the result is set, or a suspect
  kStore,        // address and value must be set; to shared or local memory, an unset value counts as unwritten
  kStoreMatrix,  // wmma.store: the same, if every lane's elements are unset
  kArgument,     // of a function, which may not look at it: only a suspect is used
  kUse           // everything that it reads must be set: atomics, copies, branches
};

// An instruction that reads or writes registers that may be unset. Registers are numbered among those, from 0; -1 is
// one that is always set.
struct UnsetUse {
  UnsetRule rule = UnsetRule::kAny;
  bool branches = false;               // a branch: its predicate must be set too
  bool loads = false;                  // a load of registers: its values may be suspects (those of a shuffle, too)
  int32_t guard = -1;                  // its predicate
  int32_t address = -1;                // of loads and stores
  std::vector<int32_t> reads, writes;  // of a load or store by element, -1 where that is none
};

// The unset lanes of such a register in a warp. Private to unset_uses.cc and the kernels' starts.
struct UnsetRegister {
  uint32_t lanes = 0;
  uint32_t read_at = 0;  // 1 + the pc that first read the unset register, or loaded the suspect, that it comes from
  bool loaded = false;   // a suspect
};

// What makes a loaded value one.
struct Suspect {
  uint64_t address = 0;
  uint32_t pc = 0;
  uint32_t thread = 0;   // of the block
  uint32_t bytes = 0;    // 0: not a suspect
  uint32_t earlier = 0;  // the unordered write (an AccessCell); 0: nobody has written it
  uint32_t race = 0;     // 1 + index in LaunchConfig::racing_reads, or 0
  uint8_t space = 0;     // a Space; kGeneric: a shuffle from lane `address`, which takes no part
};

}  // namespace kgrpo::simt
