// Finds which instructions of a trace ptxas schedules together: more than a basic block. Short branches become
// predicates, except those over a jump back, and small loops are unrolled, so that loads of several iterations are
// pending at once.
// Used by the scoreboard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simt/state/program.h"

namespace kgrpo::simt {

// One instruction that a traced warp executed.
struct TraceEntry {
  uint32_t pc : 30;
  uint32_t beyond_l1 : 1;  // a load that the L1 did not hold
  // Such a load of a sector that is new to the block; an earlier block's loads may have left it in the L2.
  uint32_t first : 1;
  // A wait for an mbarrier: 1 + index of the last TraceCopy that must have arrived, or 0. Else how many times the
  // instruction waits (Counter::CountTimes), or 0.
  uint32_t awaits = 0;
};

// A bulk load that some warp of the block issued before the traced warp's entry `position`, or an arrival at an
// mbarrier that follows the warp's earlier cp.async (cp.async.mbarrier.arrive).
struct TraceCopy {
  uint32_t position;
  uint32_t pc;
  bool first;     // as TraceEntry::first
  float sectors;  // a warp's even share of the bulk load's
};

class Regions {
 public:
  explicit Regions(const Kernel& kernel);

  // True for a branch over so few instructions that ptxas makes predicates of it.
  static bool BecomesPredicate(const Instruction& branch);

  // The end of the region that begins at trace[at]. `whole` says whether it consists of whole basic blocks, and then
  // `key` holds their numbers; otherwise its order is the trace's.
  size_t End(const std::vector<TraceEntry>& trace, size_t at, bool* whole, std::vector<uint32_t>* key) const;

 private:
  bool UnrolledByPtxas(const BasicBlock& block) const;
  bool Joins(uint32_t from, uint32_t to, uint32_t* turns) const;
  size_t BlockEnd(const std::vector<TraceEntry>& trace, size_t at, uint32_t* block) const;

  const Kernel& kernel_;
  std::vector<uint32_t> block_of_;  // by pc of a block's first instruction: its index + 1
  std::vector<uint8_t> unrolled_;   // by block: a loop of one block that ptxas unrolls
  std::vector<uint8_t> loop_head_;  // by block: the target of a backward branch
};

}  // namespace kgrpo::simt
