// Bulk copies of one dimension (cp.async.bulk): the copy engine moves bytes between global and shared memory while the
// thread goes on. A load is complete when its mbarrier's phase is, a store when a wait for its group is.
//
// A copy happens as late as possible: a load when a thread waits for a phase of its mbarrier that lacks nothing else, a
// store when its thread waits or exits. Until then (checked launches) no thread may access the destination or write to
// the source: see pending_copies.cc. For race detection the copy engine is one more agent beside the block's warps.
// Only warps that waited for the mbarrier know of its writes.
#include "simt/ops/bulk_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "simt/check/access.h"
#include "simt/check/access_counter.h"
#include "simt/check/race_order.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kPiece = 16;        // bytes: the unit of sizes and addresses
constexpr size_t kMostCopies = 16384;  // incomplete copies per block: the smallest ones fill 227 KiB

// One lane's access to 16 bytes of the copy, `at` bytes from its start.
Access PieceOf(Warp& warp, const BulkCopy& copy, bool shared, uint32_t at) {
  Access access;
  access.space = shared ? Space::kShared : Space::kGlobal;
  access.pattern = Pattern::kGeneral;
  access.bytes = kPiece;
  access.distinct = 1u << copy.lane;
  access.direct = true;
  access.allocation = nullptr;
  access.address[copy.lane] = shared ? copy.shared_offset + at : copy.global + at;
  if (shared) {
    access.base = reinterpret_cast<uintptr_t>(warp.block->shared);
  } else {
    access.allocation = FindAllocation(*warp.grid, copy.global);
    access.base = reinterpret_cast<uintptr_t>(access.allocation->data()) - access.allocation->address();
  }
  return access;
}

// Calls f for each piece until it returns false.
template <typename Function>
void ForPieces(Warp& warp, const BulkCopy& copy, bool shared, Function f) {
  for (uint32_t at = 0; at < copy.bytes; at += kPiece) {
    const Access access = PieceOf(warp, copy, shared, at);
    if (!f(access)) return;
  }
}

[[noreturn]] void ReportAndStop(Warp& warp, const Instruction& in, int lane, FindingCode code, DeviceAddress address,
                                const std::string& text) {
  Report(warp, in.index, lane, code, true, address, "", text);
  throw Fault{};
}

// Size, alignment and bounds of both ends.
void CheckEnds(Warp& warp, const Instruction& in, int lane, const BulkCopy& copy) {
  Grid& grid = *warp.grid;
  const std::string what = "copies " + ByteCount(copy.bytes) + " by cp.async.bulk";
  const std::string shared = DescribeShared(grid, copy.shared_offset, copy.bytes);
  if (copy.bytes % kPiece != 0)
    ReportAndStop(warp, in, lane, FindingCode::kMisaligned, copy.global,
                  what + ", a size that is not a multiple of 16");
  const uint64_t end = copy.shared_offset + copy.bytes;
  if (copy.shared_offset > grid.shared_limit || end > grid.shared_limit ||
      (grid.checked && ArrayAround(grid, copy.shared_offset, end) == nullptr))
    ReportAndStop(warp, in, lane, FindingCode::kOutOfBounds, copy.shared_offset,
                  what + (copy.loads ? " to" : " from") + " shared memory out of bounds, " + shared);
  const Allocation* allocation = FindAllocation(grid, copy.global);
  const std::string there = grid.memory->Describe(copy.global);
  if (allocation == nullptr || allocation->end() - copy.global < copy.bytes)
    ReportAndStop(warp, in, lane, FindingCode::kOutOfBounds, copy.global,
                  what + (copy.loads ? " from" : " to") + " global memory out of bounds, " + there);
  if (copy.shared_offset % kPiece != 0)
    ReportAndStop(warp, in, lane, FindingCode::kMisaligned, copy.shared_offset,
                  what + " at an address of shared memory that is not a multiple of 16, " + shared);
  if (copy.global % kPiece != 0)
    ReportAndStop(warp, in, lane, FindingCode::kMisaligned, copy.global,
                  what + " at an address that is not a multiple of 16, " + there);
  if (!copy.loads && allocation->read_only())
    ReportAndStop(warp, in, lane, FindingCode::kTrap, copy.global, "writes to constant memory, " + there);
}

// Checks a store's source: threads' writes to it must have passed a fence.proxy.async before the copy engine reads it.
// Reports a missing fence and returns false.
bool CheckProxyFence(Warp& warp, const Instruction& in, int lane, const Access& access) {
  const RaceShadow::Span span = warp.block->shared_shadow.At(access.address[lane], access.bytes);
  const Grid& grid = *warp.grid;
  for (uint32_t g = 0; g < span.count; ++g) {
    for (const AccessCell cell : {span.write[g], span.atomic[g]}) {
      const AccessEvent& event = grid.events[EventNumber(cell)];
      if (cell == 0 || event.warp == grid.warps_per_block || event.block != warp.block->index) continue;
      if (event.clock < warp.known[2 * size_t{grid.agents} + event.warp]) continue;
      const ThreadId other = IdOf(grid, event.block, event.warp * kLanes + LaneOf(cell));
      const int line = LineAt(grid, event.pc);
      const std::string where = DescribeShared(grid, access.address[lane], access.bytes);
      Report(warp, in.index, lane, FindingCode::kRace, false, access.address[lane], where,
             "reads " + ByteCount(access.bytes) + " " + where + " by cp.async.bulk, which " + NameThread(other) +
                 " writes" + (line > 0 ? " at line " + std::to_string(line) : "") +
                 ", with no fence.proxy.async between (a race of the copy engine with ordinary stores)",
             &other, line);
      return false;
    }
  }
  return true;
}

// Writes a load's bytes to shared memory.
void ArriveOfCopy(Warp& warp, const BulkCopy& copy) {
  Grid& grid = *warp.grid;
  Block& block = *warp.block;
  const Access source = PieceOf(warp, copy, false, 0);
  std::memcpy(block.shared + copy.shared_offset, source.At(copy.lane), copy.bytes);
  if (!grid.checked) return;
  const uint32_t event = NoteArrival(grid, block, copy);
  ForPieces(warp, copy, true, [&](const Access& access) {
    block.shared_pending[access.address[copy.lane] / 64] &= ~BitsOf(access.address[copy.lane], kPiece);
    MarkWritten(warp, 1u << copy.lane, access);
    const RaceShadow::Span span = block.shared_shadow.At(access.address[copy.lane], kPiece);
    for (uint32_t g = 0; g < span.count; ++g) {
      span.write[g] = event * kLanes + copy.lane;
      for (uint32_t reader = 0; reader < block.shared_shadow.readers(); ++reader) {
        if (block.shared_shadow.last_read(reader) != 0) span.Reader(reader)[g] = 0;
      }
      if (block.shared_shadow.atomics()) span.atomic[g] = 0;
    }
    return true;
  });
  block.copies_pending -= copy.bytes / kPiece;
}

// Records a copy. It is charged as one instruction per piece. `first`: the first copy of its instruction.
void Add(Warp& warp, const Instruction& in, const BulkCopy& copy, bool first) {
  Grid& grid = *warp.grid;
  std::vector<BulkCopy>& copies = warp.block->bulk_copies;
  if (copies.size() == kMostCopies) {
    ReportAndStop(warp, in, copy.lane, FindingCode::kUnsupported, copy.global,
                  "begins a bulk copy while " + std::to_string(kMostCopies) +
                      " of its block are not complete, the most that the interpreter keeps");
  }
  if (grid.counter != nullptr) grid.counter->CountBulk(warp, in, copy, !first);
  Charge(grid, copy.bytes / kPiece);
  copies.push_back(copy);
}

// Counts a store's pending reads of its source: 1 adds them, -1 removes them.
void CountSource(Block& block, const BulkCopy& copy, int change) {
  for (uint64_t piece = copy.shared_offset / kPiece; piece < (copy.shared_offset + copy.bytes) / kPiece; ++piece)
    block.shared_sources[piece] += static_cast<uint32_t>(change);
}

// Copies a store's bytes. The destination counts as written, but accesses to it are races until the store ends.
void ReadSource(Warp& warp, BulkCopy& copy) {
  if (copy.source_read) return;
  copy.source_read = true;
  Block& block = *warp.block;
  const Access target = PieceOf(warp, copy, false, 0);
  std::memcpy(target.At(copy.lane), block.shared + copy.shared_offset, copy.bytes);
  ForPieces(warp, copy, false, [&](const Access& access) {
    MarkWritten(warp, 1u << copy.lane, access);
    return true;
  });
  if (!warp.grid->checked) return;
  block.copies_pending -= copy.bytes / kPiece;
  CountSource(block, copy, -1);
}

// Ends the stores of `lane` whose group is below `groups`. With `read`, checked launches only end their reading.
void EndStores(Warp& warp, int lane, uint32_t groups, bool read) {
  std::vector<BulkCopy>& copies = warp.block->bulk_copies;
  ChargeWalk(*warp.grid, copies.size());
  for (BulkCopy& copy : copies) {
    if (!copy.loads && copy.warp == warp.id && copy.lane == lane && copy.group < groups) ReadSource(warp, copy);
  }
  if (read && warp.grid->checked) return;
  warp.grid->bulk_stores -= static_cast<uint32_t>(std::erase_if(copies, [&](const BulkCopy& copy) {
    return !copy.loads && copy.warp == warp.id && copy.lane == lane && copy.group < groups;
  }));
}

// The copy that the instruction asks of a lane.
BulkCopy CopyOf(const Warp& warp, const Instruction& in, int lane) {
  const Operand* more = &warp.grid->kernel->operands[in.extra];
  BulkCopy copy;
  copy.lane = static_cast<uint8_t>(lane);
  copy.warp = warp.id;
  copy.pc = in.index;
  copy.bytes = SourceAs<uint32_t>(warp, in.c)[lane];
  const uint64_t shared =
      (in.flags & kFlagShared32) != 0 ? SourceAs<uint32_t>(warp, in.a)[lane] : SourceAs<uint64_t>(warp, in.a)[lane];
  copy.shared_offset = shared + static_cast<uint64_t>(in.offset);
  copy.global = SourceAs<uint64_t>(warp, in.b)[lane] + SourceAs<uint64_t>(warp, more[0])[0];
  copy.group = warp.bulk_groups[static_cast<size_t>(lane)];
  return copy;
}

}  // namespace

void LoadBulk(Warp& warp, const Instruction& in, uint32_t mask) {
  Grid& grid = *warp.grid;
  const Operand* more = &grid.kernel->operands[in.extra];
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    BulkCopy copy = CopyOf(warp, in, l);
    copy.loads = true;
    const uint64_t at = in.size == 4 ? SourceAs<uint32_t>(warp, more[1])[l] : SourceAs<uint64_t>(warp, more[1])[l];
    const uint64_t offset = at + SourceAs<uint64_t>(warp, more[2])[0];
    copy.barrier = static_cast<uint32_t>(offset);
    CheckEnds(warp, in, l, copy);
    const auto barrier = warp.block->phase_barriers.find(copy.barrier);
    if (offset != copy.barrier || barrier == warp.block->phase_barriers.end())
      ReportAndStop(warp, in, l, FindingCode::kTrap, copy.barrier, "uses an mbarrier that was never initialised");
    if (copy.bytes == 0) continue;
    if (grid.checked) {
      const size_t known = grid.result->findings.size();
      ForPieces(warp, copy, false, [&](const Access& access) {
        CheckInitialised(warp, in, 1u << l, access);
        CheckLoadOrder(warp, in, 1u << l, access);
        return grid.result->findings.size() == known;
      });
      ForPieces(warp, copy, true, [&](const Access& access) {
        BeginCopy(warp, in, l, access);
        return true;
      });
    }
    Add(warp, in, copy, m == mask);
    ++barrier->second.copies;
  }
  if (grid.checked) ++warp.clock;
}

void StoreBulk(Warp& warp, const Instruction& in, uint32_t mask) {
  Grid& grid = *warp.grid;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const BulkCopy copy = CopyOf(warp, in, l);
    CheckEnds(warp, in, l, copy);
    if (copy.bytes == 0) continue;
    if (grid.checked) {
      const size_t known = grid.result->findings.size();
      ForPieces(warp, copy, true, [&](const Access& access) {
        CheckInitialised(warp, in, 1u << l, access);
        CheckLoadOrder(warp, in, 1u << l, access);
        return grid.result->findings.size() == known && CheckProxyFence(warp, in, l, access);
      });
      ForPieces(warp, copy, false, [&](const Access& access) {
        CheckStoreOrder(warp, in, l, access, AccessKind::kStore, true);
        return grid.result->findings.size() == known;
      });
      warp.block->copies_pending += copy.bytes / kPiece;
      CountSource(*warp.block, copy, 1);
    }
    Add(warp, in, copy, m == mask);
    ++grid.bulk_stores;
  }
  if (grid.checked) ++warp.clock;
}

void CommitBulkCopies(Warp& warp, const Instruction&, uint32_t mask) {
  for (const int l : EachBit(mask)) ++warp.bulk_groups[static_cast<size_t>(l)];
}

void WaitBulkCopies(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto keep = static_cast<uint32_t>(in.offset);
  for (const int l : EachBit(mask)) {
    const uint32_t committed = warp.bulk_groups[static_cast<size_t>(l)];
    if (committed > keep) EndStores(warp, l, committed - keep, in.size == 1);
  }
}

void EndBulkStores(Warp& warp, uint32_t mask) {
  for (const int l : EachBit(mask)) EndStores(warp, l, UINT32_MAX, false);
}

void CompleteBulkLoads(Warp& warp, const Instruction& in, int lane, uint32_t offset, PhaseBarrier& barrier) {
  if (barrier.copies == 0 || barrier.pending > 0 || barrier.bytes <= 0) return;
  ChargeWalk(*warp.grid, warp.block->bulk_copies.size());
  std::erase_if(warp.block->bulk_copies, [&](const BulkCopy& copy) {
    if (!copy.loads || copy.barrier != offset || barrier.bytes == 0) return false;
    if (copy.bytes > barrier.bytes)
      ReportAndStop(warp, in, lane, FindingCode::kTrap, offset,
                    "waits for an mbarrier that still expects " + std::to_string(barrier.bytes) +
                        " bytes, while the next bulk copy brings " + std::to_string(copy.bytes) +
                        ": it never completes");
    ArriveOfCopy(warp, copy);
    if (warp.grid->checked) AnnounceArrival(warp, barrier);
    barrier.bytes -= copy.bytes;
    --barrier.copies;
    return true;
  });
  if (warp.grid->counter != nullptr) warp.grid->counter->CountArrival(offset);
}

}  // namespace kgrpo::simt
