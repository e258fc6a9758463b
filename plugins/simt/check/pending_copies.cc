// Asynchronous copies between their issue and the wait that completes them, in checked launches: cp.async and
// cp.async.bulk. Called by the instructions that make copies, and by the checks of all that touches memory.
#include <algorithm>
#include <bit>
#include <string>

#include "simt/check/access.h"

namespace kgrpo::simt {
namespace {

bool Overlaps(uint64_t first, uint64_t bytes, uint64_t other, uint64_t other_bytes) {
  return first < other + other_bytes && other < first + bytes;
}

// Calls f for each bulk copy that conflicts with accesses of `warp` to global memory: the stores of all blocks, whose
// destinations must not be accessed, and, for writes, the loads of its own block, whose sources must not be written.
template <typename Function>
void ForGlobalCopies(const Warp& warp, bool writes, Function f) {
  size_t walked = 0;
  if (warp.grid->bulk_stores != 0) {
    for (const Block* block : warp.grid->resident) {
      walked += block->bulk_copies.size();
      for (const BulkCopy& copy : block->bulk_copies) {
        if (!copy.loads) f(*block, copy);
      }
    }
  }
  if (writes) {
    walked += warp.block->bulk_copies.size();
    for (const BulkCopy& copy : warp.block->bulk_copies) {
      if (copy.loads) f(*warp.block, copy);
    }
  }
  ChargeWalk(*warp.grid, walked);
}

void ReportCopy(Warp& warp, const Instruction& in, int lane, const Access& access, const ThreadId& other, uint32_t pc,
                const std::string& verb, const std::string& does, const std::string& missing) {
  const uint64_t address = access.address[lane];
  const int line = warp.grid->kernel->lines[pc].line;
  const std::string where = access.space == Space::kShared ? DescribeShared(*warp.grid, address, access.bytes)
                                                           : warp.grid->memory->Describe(address);
  Report(warp, in.index, lane, FindingCode::kRace, false, address, where,
         verb + " " + ByteCount(access.bytes) + " " + where + ", " +
             (does.find("from") == std::string::npos ? "to which " : "which ") + NameThread(other) + " " + does +
             (line > 0 ? " at line " + std::to_string(line) : "") + ": " + missing + " (a race)",
         &other, line);
}

void ReportBulkCopy(Warp& warp, const Instruction& in, int lane, const Access& access, const Block& block,
                    const BulkCopy& copy, bool source, const char* verb) {
  const ThreadId other = IdOf(block.warps[static_cast<size_t>(copy.warp)], copy.lane);
  std::string missing = source ? "no wait has completed that read" : "no wait has completed that copy";
  if (copy.loads && !source) {
    const auto barrier = block.phase_barriers.find(copy.barrier);
    if (barrier != block.phase_barriers.end() && barrier->second.bytes <= 0)
      missing += ", whose bytes its mbarrier does not expect (expect_tx)";
  }
  ReportCopy(warp, in, lane, access, other, copy.pc, verb,
             source ? "copies from there by cp.async.bulk" : "copies by cp.async.bulk", missing);
}

bool ReportPendingGlobal(Warp& warp, const Instruction& in, int lane, const Access& access, bool writes,
                         const char* verb) {
  const Block* block = nullptr;
  const BulkCopy* found = nullptr;
  ForGlobalCopies(warp, writes, [&](const Block& of, const BulkCopy& copy) {
    if (found != nullptr || !Overlaps(access.address[lane], access.bytes, copy.global, copy.bytes)) return;
    block = &of;
    found = &copy;
  });
  if (found == nullptr) return false;
  ReportBulkCopy(warp, in, lane, access, *block, *found, found->loads, verb);
  return true;
}

}  // namespace

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

bool TouchesCopies(const Warp& warp, uint32_t mask, const Access& access, bool writes) {
  const Block& block = *warp.block;
  if (access.space == Space::kGlobal) {
    if (warp.grid->bulk_stores == 0 && (!writes || block.bulk_copies.empty())) return false;
    uint64_t low = UINT64_MAX, high = 0;
    for (const int lane : EachBit(mask)) {
      low = std::min(low, access.address[lane]);
      high = std::max(high, access.address[lane]);
    }
    bool touches = false;
    ForGlobalCopies(warp, writes, [&](const Block&, const BulkCopy& copy) {
      touches |= Overlaps(low, high - low + access.bytes, copy.global, copy.bytes);
    });
    return touches;
  }
  if (block.copies_pending == 0 || access.space != Space::kShared) return false;
  const bool sources = writes && !block.shared_sources.empty();
  bool touches = false;
  for (const int lane : EachBit(mask)) {
    const uint64_t offset = access.address[lane];
    touches |= (block.shared_pending[offset / 64] & BitsOf(offset, access.bytes)) != 0;
    touches |= sources && block.shared_sources[offset / 16] != 0;
  }
  return touches;
}

bool ReportPending(Warp& warp, const Instruction& in, int lane, const Access& access, bool writes, const char* verb) {
  if (access.space == Space::kGlobal) return ReportPendingGlobal(warp, in, lane, access, writes, verb);
  if (!TouchesCopies(warp, 1u << lane, access, writes)) return false;
  const uint64_t offset = access.address[lane];
  for (const Warp& peer : warp.block->warps) {
    for (const std::vector<PendingCopy>& group : peer.copies) {
      for (const PendingCopy& copy : group) {
        if (!Overlaps(offset, access.bytes, copy.shared_offset, copy.bytes)) continue;
        ReportCopy(warp, in, lane, access, IdOf(peer, copy.lane), copy.pc, verb, "copies by cp.async",
                   "no wait has completed that copy");
        return true;
      }
    }
  }
  ChargeWalk(*warp.grid, warp.block->bulk_copies.size());
  for (const BulkCopy& copy : warp.block->bulk_copies) {
    if (copy.source_read || (!copy.loads && !writes)) continue;
    if (!Overlaps(offset, access.bytes, copy.shared_offset, copy.bytes)) continue;
    ReportBulkCopy(warp, in, lane, access, *warp.block, copy, !copy.loads, verb);
    return true;
  }
  return false;
}

}  // namespace kgrpo::simt
