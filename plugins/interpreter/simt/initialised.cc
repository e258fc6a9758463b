// Which bytes have been written: reads of others are findings of checked launches.
#include <algorithm>
#include <bit>
#include <string>

#include "interpreter/simt/access.h"

namespace kgrpo::simt {
namespace {

bool BitsAreSet(const uint64_t* words, uint64_t first, uint64_t count) {
  for (const uint64_t end = first + count; first < end;) {
    const uint64_t here = std::min(end - first, 64 - first % 64);
    const uint64_t need = (~uint64_t{0} >> (64 - here)) << (first % 64);
    if ((words[first / 64] & need) != need) return false;
    first += here;
  }
  return true;
}

void SetBits(uint64_t* words, uint64_t first, uint64_t count) {
  for (const uint64_t end = first + count; first < end;) {
    const uint64_t here = std::min(end - first, 64 - first % 64);
    words[first / 64] |= (~uint64_t{0} >> (64 - here)) << (first % 64);
    first += here;
  }
}

bool SharedWritten(const Block& block, uint64_t offset, uint32_t bytes) {
  const uint64_t need = BitsOf(offset, bytes);
  return (block.shared_written[offset / 64] & need) == need;
}

// The offset in the block's local memory that `lane` accesses.
uint64_t LocalOffset(const Warp& warp, int lane, const Access& access) {
  return static_cast<uint64_t>(access.host[lane] - warp.block->local.data());
}

}  // namespace

void CheckInitialised(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, bool of_several) {
  const uint32_t lanes = access.distinct & mask;
  if (access.space == Space::kGlobal) {
    if (access.allocation != nullptr && access.allocation->WrittenBytes() == access.allocation->bytes()) return;
    if (access.pattern == Pattern::kContiguous &&
        access.allocation->Initialised(access.address[0] - access.allocation->address(),
                                       uint64_t{access.bytes} * kLanes))
      return;
    for (uint32_t m = lanes; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const Allocation* allocation =
          access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[l]);
      if (allocation->Initialised(access.address[l] - allocation->address(), access.bytes)) continue;
      const std::string where = warp.grid->memory->Describe(access.address[l]);
      Report(warp, in.index, l, FindingCode::kUninitialised, false, access.address[l], allocation->name(),
             "reads " + ByteCount(access.bytes) + " that nothing has written, " + where);
      return;
    }
  } else if (access.space == Space::kShared) {
    if (TouchesCopies(warp, lanes, access, false)) [[unlikely]] {
      for (uint32_t m = lanes; m != 0; m &= m - 1) {
        if (ReportPending(warp, in, std::countr_zero(m), access, false, "reads")) return;
      }
    }
    if (of_several && warp.grid->config->unwritten_shared) return;
    if (access.pattern == Pattern::kContiguous &&
        BitsAreSet(warp.block->shared_written.data(), access.address[0], uint64_t{access.bytes} * kLanes))
      return;
    for (uint32_t m = lanes; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (SharedWritten(*warp.block, access.address[l], access.bytes)) continue;
      const std::string where = DescribeShared(*warp.grid, access.address[l], access.bytes);
      std::vector<Finding>& findings = warp.grid->result->findings;
      const size_t known = findings.size();
      Report(warp, in.index, l, FindingCode::kUninitialised, false, access.address[l], where,
             "reads " + ByteCount(access.bytes) + " that no thread of the block has written yet, " + where);
      if (findings.size() > known) findings.back().may_be_unused = of_several;
      return;
    }
  } else if (access.space == Space::kLocal) {
    // Only what is unwritten as a whole: structures are copied with the gaps between their members.
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const uint64_t offset = LocalOffset(warp, l, access);
      if ((warp.block->local_written[offset / 64] & BitsOf(offset, access.bytes)) != 0) continue;
      Report(warp, in.index, l, FindingCode::kUninitialised, false, access.address[l], "local arrays",
             "reads " + ByteCount(access.bytes) + " that the thread has not written, " +
                 DescribeLocal(*warp.grid, access.address[l]));
      return;
    }
  }
}

void MarkWritten(Warp& warp, uint32_t mask, const Access& access) {
  if (access.space == Space::kGlobal) {
    if (access.pattern == Pattern::kContiguous) {
      access.allocation->MarkInitialised(access.address[0] - access.allocation->address(),
                                         uint64_t{access.bytes} * kLanes);
      return;
    }
    if (access.pattern == Pattern::kUniform) mask = 1u;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      Allocation* allocation =
          access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[l]);
      allocation->MarkInitialised(access.address[l] - allocation->address(), access.bytes);
    }
  } else if (access.space == Space::kShared && warp.grid->checked) {
    std::vector<uint64_t>& written = warp.block->shared_written;
    if (access.pattern == Pattern::kContiguous)
      return SetBits(written.data(), access.address[0], uint64_t{access.bytes} * kLanes);
    if (access.pattern == Pattern::kUniform) mask = 1u;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const uint64_t offset = access.address[std::countr_zero(m)];
      written[offset / 64] |= BitsOf(offset, access.bytes);
    }
  } else if (access.space == Space::kLocal && warp.grid->checked) {
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const uint64_t offset = LocalOffset(warp, std::countr_zero(m), access);
      warp.block->local_written[offset / 64] |= BitsOf(offset, access.bytes);
    }
  }
}

void MarkUnwritten(Warp& warp, uint32_t mask, const Access& access) {
  if (access.space != Space::kShared && access.space != Space::kLocal) return;
  const bool shared = access.space == Space::kShared;
  std::vector<uint64_t>& written = shared ? warp.block->shared_written : warp.block->local_written;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t offset = shared ? access.address[l] : LocalOffset(warp, l, access);
    written[offset / 64] &= ~BitsOf(offset, access.bytes);
  }
}

}  // namespace kgrpo::simt
