// What the checks and the instructions report to the count of a launch for the time model (time/counter.h).
#pragma once

#include <cstdint>

#include "simt/check/access.h"

namespace kgrpo::simt {

class AccessCounter {
 public:
  virtual ~AccessCounter() = default;
  // Each memory access, once resolved.
  virtual void CountAccess(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) = 0;
  // The instruction takes as long as so many: values that a match compares, targets of a branch through a table, words
  // of constant memory; of a sleep its nanoseconds.
  virtual void CountTimes(const Warp& warp, const Instruction& in, uint32_t times) = 0;
  // The instructions of the warp that were traced so far; what it has executed since then was no work.
  virtual size_t Traced(const Warp& warp) const = 0;
  virtual void ForgetSince(const Warp& warp, size_t traced) = 0;
  // The load that the warp executes went past the L1; `first`: to data that is new to the block.
  virtual void MarkBeyondL1(const Warp& warp, const Instruction& in, bool first) = 0;
  // An arrival after the warp's earlier cp.async.
  virtual void CountAsyncArrival(const Instruction& in, uint32_t barrier) = 0;
  // A bulk copy; `another`: of a further lane of the instruction.
  virtual void CountBulk(Warp& warp, const Instruction& in, const BulkCopy& copy, bool another) = 0;
  // All bulk loads of an mbarrier so far have arrived; a warp has waited for them.
  virtual void CountArrival(uint32_t barrier) = 0;
  virtual void CountWait(const Warp& warp, const Instruction& in, uint32_t barrier) = 0;
  // A GPU's warp sleeps until the mbarrier's phase is complete: a wait that failed is not counted.
  virtual void ForgetPoll(const Warp& warp, const Instruction& in, uint32_t mask) = 0;
};

}  // namespace kgrpo::simt
