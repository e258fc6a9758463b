// Which bytes have been written: reads of others are findings of checked launches.
#include <algorithm>
#include <bit>
#include <string>

#include "simt/check/access.h"
#include "simt/check/open_choices.h"

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

// The offset in the block's local memory that `lane` accesses.
uint64_t LocalOffset(const Warp& warp, int lane, const Access& access) {
  return static_cast<uint64_t>(access.host[lane] - warp.block->local.data());
}

// True if the bytes of `lane` from `from` on were not written; in local memory (or of one of several elements) if none
// was, since structures are copied with the gaps between their members.
bool Unwritten(const Warp& warp, int lane, const Access& access, uint32_t from, uint32_t bytes) {
  const bool part = bytes != access.bytes;
  if (access.space == Space::kGlobal) {
    const uint64_t address = access.address[lane] + from;
    const Allocation* allocation =
        access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[lane]);
    return !allocation->Initialised(address - allocation->address(), bytes);
  }
  if (access.space == Space::kShared) {
    const uint64_t offset = access.address[lane] + from, need = BitsOf(offset, bytes);
    const uint64_t written = warp.block->shared_written[offset / 64] & need;
    return part ? written == 0 : written != need;
  }
  const uint64_t offset = LocalOffset(warp, lane, access) + from;
  return (warp.block->local_written[offset / 64] & BitsOf(offset, bytes)) == 0;
}

// Unwritten because a suspect was stored there: that one is the cause.
Suspect CauseOf(const Warp& warp, int lane, const Access& access, uint32_t from, uint32_t bytes) {
  if (access.space != Space::kGlobal) {
    const uint64_t offset = (access.space == Space::kShared ? access.address[lane] : LocalOffset(warp, lane, access));
    const auto found = warp.block->stored_suspects.find(StoredKey(access.space, offset + from));
    if (found != warp.block->stored_suspects.end()) return found->second;
  }
  return {.address = access.address[lane] + from, .bytes = bytes};
}

}  // namespace

std::string UnwrittenText(const Grid& grid, Space space, uint64_t address, uint32_t bytes) {
  if (space == Space::kGeneric)
    return "reads lane " + std::to_string(address) +
           " by a shuffle in which that lane takes no part: it is not in the mask, or has exited";
  const std::string read = "reads " + ByteCount(bytes);
  if (space == Space::kGlobal) return read + " that nothing has written, " + grid.memory->Describe(address);
  if (space == Space::kLocal) return read + " that the thread has not written, " + DescribeLocal(grid, address);
  return read + " that no thread of the block has written yet, " + DescribeShared(grid, address, bytes);
}

void CheckInitialised(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, uint32_t elements,
                      bool of_matrix) {
  const uint32_t lanes = access.space == Space::kLocal ? mask : access.distinct & mask;
  const bool row = access.pattern == Pattern::kContiguous;
  if (access.space == Space::kGlobal) {
    if (access.allocation != nullptr && access.allocation->WrittenBytes() == access.allocation->bytes()) return;
    if (row && access.allocation->Initialised(access.address[0] - access.allocation->address(),
                                              uint64_t{access.bytes} * kLanes))
      return;
  } else if (access.space == Space::kShared) {
    if (TouchesCopies(warp, lanes, access, false)) [[unlikely]] {
      for (const int lane : EachBit(lanes)) {
        if (ReportPending(warp, in, lane, access, false, "reads")) return;
      }
    }
    if (of_matrix && warp.grid->config->unwritten_shared) return;
    if (row && BitsAreSet(warp.block->shared_written.data(), access.address[0], uint64_t{access.bytes} * kLanes))
      return;
  } else if (access.space != Space::kLocal) {
    return;
  }
  const uint32_t bytes = elements == 0 ? access.bytes : access.bytes / elements;
  for (const int l : EachBit(lanes)) {
    if (!Unwritten(warp, l, access, 0, access.bytes) && (elements <= 1 || access.space != Space::kLocal)) continue;
    for (uint32_t e = 0; e < elements; ++e) {
      if (Unwritten(warp, l, access, e * bytes, bytes))
        AddSuspect(warp, in, mask, access, l, 1u << e, CauseOf(warp, l, access, e * bytes, bytes));
    }
    if (elements != 0) continue;
    std::vector<Finding>& findings = warp.grid->result->findings;
    const size_t known = findings.size();
    Report(warp, in.index, l, FindingCode::kUninitialised, false, access.address[l], "",
           UnwrittenText(*warp.grid, access.space, access.address[l], access.bytes));
    if (findings.size() > known) findings.back().may_be_unused = of_matrix && access.space == Space::kShared;
    return;
  }
}

void MarkWritten(Warp& warp, uint32_t mask, const Access& access) {
  if (warp.grid->hides_writes) KeepBytesBefore(warp, access.distinct & mask, access);
  if (access.space == Space::kGlobal) {
    if (access.pattern == Pattern::kContiguous) {
      access.allocation->MarkInitialised(access.address[0] - access.allocation->address(),
                                         uint64_t{access.bytes} * kLanes);
      return;
    }
    if (access.pattern == Pattern::kUniform) mask = 1u;
    for (const int l : EachBit(mask)) {
      Allocation* allocation =
          access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[l]);
      allocation->MarkInitialised(access.address[l] - allocation->address(), access.bytes);
    }
  } else if (access.space == Space::kShared && warp.grid->checked) {
    std::vector<uint64_t>& written = warp.block->shared_written;
    if (access.pattern == Pattern::kContiguous)
      return SetBits(written.data(), access.address[0], uint64_t{access.bytes} * kLanes);
    if (access.pattern == Pattern::kUniform) mask = 1u;
    for (const int lane : EachBit(mask)) {
      const uint64_t offset = access.address[lane];
      written[offset / 64] |= BitsOf(offset, access.bytes);
    }
  } else if (access.space == Space::kLocal && warp.grid->checked) {
    for (const int lane : EachBit(mask)) {
      const uint64_t offset = LocalOffset(warp, lane, access);
      warp.block->local_written[offset / 64] |= BitsOf(offset, access.bytes);
    }
  }
}

void MarkUnwritten(Warp& warp, uint32_t mask, const Access& access) {
  if (access.space != Space::kShared && access.space != Space::kLocal) return;
  const bool shared = access.space == Space::kShared;
  std::vector<uint64_t>& written = shared ? warp.block->shared_written : warp.block->local_written;
  for (const int l : EachBit(mask)) {
    const uint64_t offset = shared ? access.address[l] : LocalOffset(warp, l, access);
    written[offset / 64] &= ~BitsOf(offset, access.bytes);
  }
}

}  // namespace kgrpo::simt
