// Finds uses of registers that were never set: the compiler's remains of variables that are read before they are
// written. Lowering finds which registers those may be, and which instructions touch them (lowering_unset.cc); checked
// launches watch only those instructions (unset_uses.cc).
#ifndef KGRPO_INTERPRETER_SIMT_UNSET_USES_H_
#define KGRPO_INTERPRETER_SIMT_UNSET_USES_H_

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// How an instruction treats unset sources. If it is not certain that the result depends on one, it counts as
// set: nobody is accused for a value that may not matter.
enum class UnsetRule : uint8_t {
  kAny,          // the result is unset where any source is
  kDifference,   // likewise, but x - x and x ^ x are zero whatever x is
  kAll,          // where all registers among them are: bits may be put together of several
  kNever,        // the result is set
  kSelect,       // selp: where the chosen one is, or what chooses
  kAnd,          // of predicates: unless another source is false
  kOr,           // unless another source is true
  kShuffle,      // where the lane that is read is
  kTogether,     // votes and the like: where those of all lanes are
  kAccumulate,   // matrix products: where the same element of the addend is
  kLoad,         // the address must be set; the result is
  kStore,        // the address must be set, and the value, unless it goes to shared or local memory: then it is not
                 // written there
  kStoreMatrix,  // wmma.store: the same, where no element of any lane is set
  kUse           // whatever it reads must be set: atomics, copies, branches
};

// An instruction that reads or writes registers that may be unset. Registers are numbered among those, from 0; -1 is
// one that is always set.
struct UnsetUse {
  UnsetRule rule = UnsetRule::kAny;
  bool branches = false;  // also whether it takes place must be known
  int32_t guard = -1;     // its predicate
  int32_t address = -1;   // of loads and stores
  std::vector<int32_t> reads, writes;
};

// Private to unset_uses.cc and the kernels' starts: what is unset in a warp, by such register.
struct UnsetRegister {
  uint32_t lanes = 0;
  uint32_t read_at = 0;  // 1 + the pc that first read one that nothing had set, of those that it comes from
};

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_UNSET_USES_H_
