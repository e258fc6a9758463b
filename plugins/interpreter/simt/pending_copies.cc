// Copies into shared memory (cp.async) between their issue and the wait that completes them, in checked launches.
// Called by the instructions that make copies, and by the checks of all that touches shared memory.
#include <bit>
#include <string>

#include "interpreter/simt/access.h"

namespace kgrpo::simt {

void BeginCopy(Warp& warp, const Instruction& in, int lane, const Access& target) {
  CheckStoreOrder(warp, in, lane, target, AccessKind::kStore, true);
  const uint64_t offset = target.address[lane];
  warp.block->shared_pending[offset / 64] |= BitsOf(offset, target.bytes);
  ++warp.block->copies_pending;
}

void EndCopy(Warp& warp, const Instruction& in, int lane, const Access& target) {
  const uint64_t offset = target.address[lane];
  warp.block->shared_pending[offset / 64] &= ~BitsOf(offset, target.bytes);
  --warp.block->copies_pending;
  CheckStoreOrder(warp, in, lane, target, AccessKind::kStore, true);
}

bool TouchesCopies(const Warp& warp, uint32_t mask, const Access& access) {
  const Block& block = *warp.block;
  if (block.copies_pending == 0 || access.space != Space::kShared) return false;
  uint64_t pending = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t offset = access.address[std::countr_zero(m)];
    pending |= block.shared_pending[offset / 64] & BitsOf(offset, access.bytes);
  }
  return pending != 0;
}

bool ReportPending(Warp& warp, const Instruction& in, int lane, const Access& access, const char* verb) {
  const uint64_t offset = access.address[lane];
  if ((warp.block->shared_pending[offset / 64] & BitsOf(offset, access.bytes)) == 0) return false;
  for (const Warp& peer : warp.block->warps) {
    for (const std::vector<PendingCopy>& group : peer.copies) {
      for (const PendingCopy& copy : group) {
        if (copy.shared_offset >= offset + access.bytes || offset >= uint64_t{copy.shared_offset} + copy.bytes)
          continue;
        const ThreadId other = IdOf(peer, copy.lane);
        const int line = warp.grid->kernel->lines[copy.pc].line;
        const std::string where = DescribeShared(*warp.grid, offset, access.bytes);
        Report(warp, in.index, lane, FindingCode::kRace, false, offset, where,
               std::string(verb) + " " + ByteCount(access.bytes) + " " + where + ", to which " + NameThread(other) +
                   " copies by cp.async" + (line > 0 ? " at line " + std::to_string(line) : "") +
                   ": no wait has completed that copy (a race)",
               &other, line);
        return true;
      }
    }
  }
  return false;
}

}  // namespace kgrpo::simt
