// Finds uses of registers that were never set, which the compiler leaves for variables that are read before they are
// written. Lowering finds the registers and the instructions that use them (lowering_unset.cc). Checked launches watch
// only those instructions (unset_uses.cc).
#ifndef KGRPO_INTERPRETER_SIMT_UNSET_USES_H_
#define KGRPO_INTERPRETER_SIMT_UNSET_USES_H_

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// How an instruction treats unset sources. If the result may not depend on an unset source, it counts as set, so that a
// value that may not matter is not reported.
enum class UnsetRule : uint8_t {
  kAny,          // the result is unset if any source is
  kDifference,   // the same, but x - x and x ^ x are zero for any x
  kAll,          // unset if all register sources are: the bits may come from several
  kNever,        // the result is set
  kSelect,       // selp: unset if the chosen source or the predicate is
  kAnd,          // of predicates: an unset source counts unless another source is false
  kOr,           // the same, unless another source is true
  kShuffle,      // unset if the lane that is read is
  kTogether,     // votes and the like: unset if the value is in all lanes
  kAccumulate,   // matrix products: unset if the same element of the addend is
  kLoad,         // the address must be set; the result is set
  kStore,        // address and value must be set; to shared or local memory, an unset value counts as unwritten
  kStoreMatrix,  // wmma.store: the same, if every lane's elements are unset
  kUse           // everything that it reads must be set: atomics, copies, branches
};

// An instruction that reads or writes registers that may be unset. Registers are numbered among those, from 0; -1 is
// one that is always set.
struct UnsetUse {
  UnsetRule rule = UnsetRule::kAny;
  bool branches = false;  // a branch: its predicate must be set too
  int32_t guard = -1;     // its predicate
  int32_t address = -1;   // of loads and stores
  std::vector<int32_t> reads, writes;
};

// The unset lanes of such a register in a warp. Private to unset_uses.cc and the kernels' starts.
struct UnsetRegister {
  uint32_t lanes = 0;
  uint32_t read_at = 0;  // 1 + the pc that first read the unset register that the value comes from
};

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_UNSET_USES_H_
