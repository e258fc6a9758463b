#include "evaluator_sim/simt/access.h"

#include <bit>
#include <cstdio>
#include <cstring>

#include "evaluator_sim/simt/counter.h"

namespace kgrpo::simt {
namespace {

const char* Verb(AccessKind kind) {
  return kind == AccessKind::kLoad ? "reads" : kind == AccessKind::kStore ? "writes" : "atomically updates";
}

std::string Bytes(uint32_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

[[noreturn]] void OutOfBounds(Warp& warp, const Instruction& in, int lane, AccessKind kind, uint32_t bytes,
                              DeviceAddress address, const std::string& where) {
  Report(warp, in.index, lane, FindingCode::kOutOfBounds, true, address, where,
         std::string(Verb(kind)) + " " + Bytes(bytes) + " out of bounds, " + where);
  throw Fault{};
}

[[noreturn]] void Misaligned(Warp& warp, const Instruction& in, int lane, AccessKind kind, uint32_t bytes,
                             DeviceAddress address, const std::string& where) {
  Report(warp, in.index, lane, FindingCode::kMisaligned, true, address, where,
         std::string(Verb(kind)) + " " + Bytes(bytes) + " at an address that is not a multiple of " +
             std::to_string(bytes) + ", " + where);
  throw Fault{};
}

// The allocation that holds `address`, by way of those found last.
Allocation* FindAllocation(Grid& grid, DeviceAddress address) {
  for (Allocation* recent : grid.recent) {
    if (recent != nullptr && address >= recent->address() && address < recent->end()) return recent;
  }
  Allocation* found = grid.memory->Find(address);
  if (found != nullptr) {
    for (size_t i = grid.recent.size() - 1; i > 0; --i) grid.recent[i] = grid.recent[i - 1];
    grid.recent[0] = found;
  }
  return found;
}

void ResolveGlobal(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  Grid& grid = *warp.grid;
  access.space = Space::kGlobal;
  const int first = std::countr_zero(mask);
  Allocation* allocation = FindAllocation(grid, access.address[first]);
  if (allocation != nullptr) {
    // All lanes in one allocation is the rule: one range check for the warp.
    uint64_t low = access.address[first], high = low, low_bits = 0;
    if (mask == kAllLanes) {
      for (int l = 0; l < kLanes; ++l) {
        low = access.address[l] < low ? access.address[l] : low;
        high = access.address[l] > high ? access.address[l] : high;
        low_bits |= access.address[l];
      }
    } else {
      for (uint32_t m = mask; m != 0; m &= m - 1) {
        const uint64_t address = access.address[std::countr_zero(m)];
        low = address < low ? address : low;
        high = address > high ? address : high;
        low_bits |= address;
      }
    }
    if (low >= allocation->address() && high < allocation->end() && allocation->end() - high >= bytes &&
        (low_bits & (bytes - 1)) == 0 && !(kind != AccessKind::kLoad && allocation->read_only())) {
      access.allocation = allocation;
      std::byte* base = allocation->data() - allocation->address();
      for (int l = 0; l < kLanes; ++l) access.host[l] = base + access.address[l];
      return;
    }
  }
  access.allocation = nullptr;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t address = access.address[l];
    Allocation* own = FindAllocation(grid, address);
    if (own == nullptr || own->end() - address < bytes)
      OutOfBounds(warp, in, l, kind, bytes, address, grid.memory->Describe(address));
    if ((address & (bytes - 1)) != 0) Misaligned(warp, in, l, kind, bytes, address, grid.memory->Describe(address));
    if (kind != AccessKind::kLoad && own->read_only()) {
      Report(warp, in.index, l, FindingCode::kTrap, true, address, own->name(),
             "writes to constant memory, " + grid.memory->Describe(address));
      throw Fault{};
    }
    access.host[l] = own->data() + (address - own->address());
  }
}

void ResolveShared(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  Grid& grid = *warp.grid;
  access.space = Space::kShared;
  access.allocation = nullptr;
  std::byte* base = warp.block->shared;
  const uint64_t limit = grid.shared_limit;
  uint64_t high = 0, low_bits = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t address = access.address[l];
    high = address > high ? address : high;
    low_bits |= address;
    access.host[l] = base + address;
  }
  const bool fits = high < limit && limit - high >= bytes;
  if (fits && (low_bits & (bytes - 1)) == 0) {
    if (!grid.checked) return;
    // No array may be left on the way into the next one.
    const std::vector<SharedArray>& arrays = grid.shared_arrays;
    size_t at = 0;
    bool inside = true;
    for (uint32_t m = mask; m != 0 && inside; m &= m - 1) {
      const uint64_t address = access.address[std::countr_zero(m)];
      if (at < arrays.size() && address >= arrays[at].offset &&
          address + bytes <= uint64_t{arrays[at].offset} + arrays[at].bytes)
        continue;
      for (at = 0; at < arrays.size(); ++at) {
        if (address >= arrays[at].offset && address + bytes <= uint64_t{arrays[at].offset} + arrays[at].bytes) break;
      }
      inside = at < arrays.size();
    }
    if (inside) return;
  }
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t address = access.address[l];
    bool inside = address < limit && limit - address >= bytes;
    if (inside && grid.checked) {
      inside = false;
      for (const SharedArray& array : grid.shared_arrays)
        inside |= address >= array.offset && address + bytes <= uint64_t{array.offset} + array.bytes;
    }
    if (!inside) OutOfBounds(warp, in, l, kind, bytes, address, DescribeShared(grid, address, bytes));
    if ((address & (bytes - 1)) != 0)
      Misaligned(warp, in, l, kind, bytes, address, DescribeShared(grid, address, bytes));
  }
}

void ResolveLocal(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  Grid& grid = *warp.grid;
  access.space = Space::kLocal;
  access.allocation = nullptr;
  const uint64_t frame = grid.kernel->local_bytes;
  std::byte* base = warp.block->local.data() + static_cast<size_t>(warp.id) * kLanes * frame;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t address = access.address[l];
    if (address >= frame || frame - address < bytes) {
      OutOfBounds(warp, in, l, kind, bytes, address,
                  "at byte " + std::to_string(static_cast<int64_t>(address)) + " of the thread's local arrays (" +
                      std::to_string(frame) + " bytes)");
    }
    if ((address & (bytes - 1)) != 0) Misaligned(warp, in, l, kind, bytes, address, "in the thread's local arrays");
    access.host[l] = base + static_cast<uint64_t>(l) * frame + address;
  }
}

void ResolveParameter(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind,
                      Access& access) {
  Grid& grid = *warp.grid;
  access.space = Space::kParam;
  access.allocation = nullptr;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint64_t address = access.address[l];
    if (kind != AccessKind::kLoad || address >= grid.parameters.size() || grid.parameters.size() - address < bytes) {
      OutOfBounds(warp, in, l, kind, bytes, address,
                  "at byte " + std::to_string(static_cast<int64_t>(address)) + " of the kernel's parameters");
    }
    access.host[l] = reinterpret_cast<std::byte*>(grid.parameters.data()) + address;
  }
}

constexpr uint64_t kWindowMask = 0xFFF0'0000'0000'0000;

}  // namespace

void ResolveAddresses(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Space space,
                      Access& access) {
  access.bytes = bytes;
  if (space == Space::kGeneric) {
    const uint64_t window = access.address[std::countr_zero(mask)] & kWindowMask;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if ((access.address[l] & kWindowMask) == window) continue;
      // A warp whose generic pointers point into different memories: refused, since the rest of an access assumes one.
      Report(warp, in.index, l, FindingCode::kTrap, true, access.address[l], "",
             "uses one instruction on different kinds of memory at once, which the interpreter does not support");
      throw Fault{};
    }
    space = window == kSharedWindow  ? Space::kShared
            : window == kLocalWindow ? Space::kLocal
            : window == kParamWindow ? Space::kParam
                                     : Space::kGlobal;
    if (space != Space::kGlobal) {
      for (int l = 0; l < kLanes; ++l) access.address[l] &= ~kWindowMask;
    }
  }
  switch (space) {
    case Space::kShared:
      return ResolveShared(warp, in, mask, bytes, kind, access);
    case Space::kLocal:
      return ResolveLocal(warp, in, mask, bytes, kind, access);
    case Space::kParam:
      return ResolveParameter(warp, in, mask, bytes, kind, access);
    default:
      return ResolveGlobal(warp, in, mask, bytes, kind, access);
  }
}

void Resolve(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  const auto offset = static_cast<uint64_t>(in.offset);
  if ((in.flags & kFlagShared32) != 0) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    for (int l = 0; l < kLanes; ++l) access.address[l] = static_cast<uint32_t>(a[l] + static_cast<uint32_t>(offset));
  } else {
    const uint64_t* a = SourceAs<uint64_t>(warp, in.a);
    for (int l = 0; l < kLanes; ++l) access.address[l] = a[l] + offset;
  }
  ResolveAddresses(warp, in, mask, bytes, kind, static_cast<Space>(in.space), access);
  if (warp.grid->counter != nullptr) warp.grid->counter->CountAccess(warp, in, mask, access, kind);
}

void CheckInitialised(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  if (access.space == Space::kGlobal) {
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const Allocation* allocation =
          access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[l]);
      if (allocation->Initialised(access.address[l] - allocation->address(), access.bytes)) continue;
      const std::string where = warp.grid->memory->Describe(access.address[l]);
      Report(warp, in.index, l, FindingCode::kUninitialised, false, access.address[l], allocation->name(),
             "reads " + Bytes(access.bytes) + " that nothing has written, " + where);
      return;
    }
  } else if (access.space == Space::kShared) {
    const std::vector<uint64_t>& written = warp.block->shared_written;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const uint64_t offset = access.address[l];  // aligned, so within one word
      const uint64_t need = ((uint64_t{1} << access.bytes) - 1) << (offset % 64);
      if ((written[offset / 64] & need) == need) continue;
      const std::string where = DescribeShared(*warp.grid, offset, access.bytes);
      Report(warp, in.index, l, FindingCode::kUninitialised, false, offset, where,
             "reads " + Bytes(access.bytes) + " that no thread of the block has written, " + where);
      return;
    }
  }
}

void MarkWritten(Warp& warp, uint32_t mask, const Access& access) {
  if (access.space == Space::kGlobal) {
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      Allocation* allocation =
          access.allocation != nullptr ? access.allocation : FindAllocation(*warp.grid, access.address[l]);
      allocation->MarkInitialised(access.address[l] - allocation->address(), access.bytes);
    }
  } else if (access.space == Space::kShared && warp.grid->checked) {
    std::vector<uint64_t>& written = warp.block->shared_written;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const uint64_t offset = access.address[std::countr_zero(m)];
      written[offset / 64] |= ((uint64_t{1} << access.bytes) - 1) << (offset % 64);
    }
  }
}

void NoteRelease(Warp& warp) {
  Block& block = *warp.block;
  block.release_times.push_back(++warp.grid->time);
  block.fence_pending = false;
}

void NoteAcquire(Warp& warp) {
  warp.block->acquire_time = ++warp.grid->time;
}

}  // namespace kgrpo::simt
