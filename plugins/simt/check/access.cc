#include "simt/check/access.h"

#include "simt/check/earlier_launches.h"

#include <bit>
#include <cstdio>
#include <cstring>

#include "simt/check/waits.h"
#include "simt/state/vector_clones.h"

namespace kgrpo::simt {
namespace {

const char* Verb(AccessKind kind) {
  return kind == AccessKind::kLoad ? "reads" : kind == AccessKind::kStore ? "writes" : "atomically updates";
}

[[noreturn]] void OutOfBounds(Warp& warp, const Instruction& in, int lane, AccessKind kind, uint32_t bytes,
                              DeviceAddress address, const std::string& where) {
  Report(warp, in.index, lane, FindingCode::kOutOfBounds, true, address, where,
         std::string(Verb(kind)) + " " + ByteCount(bytes) + " out of bounds, " + where);
  throw Fault{};
}

[[noreturn]] void Misaligned(Warp& warp, const Instruction& in, int lane, AccessKind kind, uint32_t bytes,
                             DeviceAddress address, const std::string& where) {
  Report(warp, in.index, lane, FindingCode::kMisaligned, true, address, where,
         std::string(Verb(kind)) + " " + ByteCount(bytes) + " at an address that is not a multiple of " +
             std::to_string(bytes) + ", " + where);
  throw Fault{};
}

// The lowest and highest address of the lanes, and the OR of all addresses.
struct Extent {
  uint64_t low, high, bits;
};
// Of the lanes of `mask`; device addresses are positive as signed numbers, which vector units compare.
KGRPO_VECTOR_CLONES Extent ExtentOfLanes(const uint64_t* address, uint32_t mask) {
  const uint64_t any = address[std::countr_zero(mask)];
  auto low = static_cast<int64_t>(any), high = low;
  uint64_t bits = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t own = ((mask >> l) & 1u) != 0 ? address[l] : any;
    const auto a = static_cast<int64_t>(own);
    low = a < low ? a : low;
    high = a > high ? a : high;
    bits |= own;
  }
  // A negative address is outside of every range.
  return {static_cast<uint64_t>(low), low < 0 ? UINT64_MAX : static_cast<uint64_t>(high), bits};
}

Extent ExtentOf(const Access& access, uint32_t mask) {
  if (access.pattern != Pattern::kGeneral) {
    // Contiguous addresses may wrap around zero: then no range holds them.
    const uint64_t first = access.address[0], last = access.address[kLanes - 1];
    return {first, last < first ? UINT64_MAX : last, first};
  }
  return ExtentOfLanes(access.address, mask);
}

void ResolveGlobal(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  Grid& grid = *warp.grid;
  access.space = Space::kGlobal;
  // Usually all lanes access one allocation: one range check for the warp.
  const Extent extent = ExtentOf(access, mask);
  Allocation* allocation = FindAllocation(grid, extent.low);
  if (allocation != nullptr && extent.high < allocation->end() && allocation->end() - extent.high >= bytes &&
      (extent.bits & (bytes - 1)) == 0 && !(kind != AccessKind::kLoad && allocation->read_only())) {
    access.allocation = allocation;
    access.direct = true;
    access.base = reinterpret_cast<uintptr_t>(allocation->data()) - allocation->address();
    return;
  }
  access.allocation = nullptr;
  access.direct = false;
  access.pattern = Pattern::kGeneral;
  for (const int l : EachBit(mask)) {
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
  access.direct = true;
  access.base = reinterpret_cast<uintptr_t>(warp.block->shared);
  const uint64_t limit = grid.shared_limit;
  const Extent extent = ExtentOf(access, mask);
  const bool fits = extent.high < limit && limit - extent.high >= bytes && (extent.bits & (bytes - 1)) == 0;
  // In checked mode an access must not cross from one array into the next.
  if (fits && (!grid.checked || ArrayAround(grid, extent.low, extent.high + bytes) != nullptr)) return;
  for (const int l : EachBit(mask)) {
    const uint64_t address = access.address[l];
    const bool inside = address < limit && limit - address >= bytes &&
                        (!grid.checked || ArrayAround(grid, address, address + bytes) != nullptr);
    if (!inside) OutOfBounds(warp, in, l, kind, bytes, address, DescribeShared(grid, address, bytes));
    if ((address & (bytes - 1)) != 0)
      Misaligned(warp, in, l, kind, bytes, address, DescribeShared(grid, address, bytes));
  }
}

void ResolveLocal(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  Grid& grid = *warp.grid;
  access.space = Space::kLocal;
  access.allocation = nullptr;
  access.direct = false;
  access.pattern = Pattern::kGeneral;
  const uint64_t frame = grid.kernel->local_bytes;
  std::byte* base = warp.block->local.data() + static_cast<size_t>(warp.id) * kLanes * frame;
  for (const int l : EachBit(mask)) {
    const uint64_t address = access.address[l];
    if (address >= frame || frame - address < bytes) {
      OutOfBounds(warp, in, l, kind, bytes, address, DescribeLocal(grid, address));
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
  access.direct = false;
  access.pattern = Pattern::kGeneral;
  for (const int l : EachBit(mask)) {
    const uint64_t address = access.address[l];
    if (kind != AccessKind::kLoad || address >= grid.parameters.size() || grid.parameters.size() - address < bytes) {
      OutOfBounds(warp, in, l, kind, bytes, address,
                  "at byte " + std::to_string(static_cast<int64_t>(address)) + " of the kernel's parameters");
    }
    access.host[l] = reinterpret_cast<std::byte*>(grid.parameters.data()) + address;
  }
}

// Returns the lanes of `mask`, except those whose address is also that of the next lane or of the lane half a warp
// further.
KGRPO_VECTOR_CLONES uint32_t DistinctLanes(const uint64_t* address, uint32_t mask) {
  uint32_t next = 0, half = 0;
  for (uint32_t l = 0; l + 1 < kLanes; ++l) next |= static_cast<uint32_t>(address[l] == address[l + 1]) << l;
  for (uint32_t l = 0; l < kLanes / 2; ++l) half |= static_cast<uint32_t>(address[l] == address[l + kLanes / 2]) << l;
  return mask & ~((next & (mask >> 1)) | (half & (mask >> (kLanes / 2))));
}

KGRPO_VECTOR_CLONES void AddOffset(const uint64_t* from, uint64_t offset, uint64_t* to) {
  for (int l = 0; l < kLanes; ++l) to[l] = from[l] + offset;
}
KGRPO_VECTOR_CLONES void AddOffset32(const uint32_t* from, uint32_t offset, uint64_t* to) {
  for (int l = 0; l < kLanes; ++l) to[l] = from[l] + offset;
}

// ResolveAddresses for a known pattern.
void ResolveSpace(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Space space,
                  Access& access) {
  access.bytes = bytes;
  access.distinct = mask;
  if (warp.grid->checked)
    access.distinct = access.pattern == Pattern::kUniform      ? 1u << (kLanes - 1)
                      : access.pattern == Pattern::kContiguous ? mask
                                                               : DistinctLanes(access.address, mask);
  if (space == Space::kGeneric) {
    const uint64_t window = access.address[std::countr_zero(mask)] & kGenericWindow;
    for (const int l : EachBit(mask)) {
      if ((access.address[l] & kGenericWindow) == window) continue;
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
      for (int l = 0; l < kLanes; ++l) access.address[l] &= ~kGenericWindow;
    }
  }
  switch (space) {
    case Space::kShared: return ResolveShared(warp, in, mask, bytes, kind, access);
    case Space::kLocal: return ResolveLocal(warp, in, mask, bytes, kind, access);
    case Space::kParam: return ResolveParameter(warp, in, mask, bytes, kind, access);
    default:
      ResolveGlobal(warp, in, mask, bytes, kind, access);
      if (warp.grid->compares_launches) [[unlikely]]
        CheckEarlierLaunches(warp, in, mask, kind, access);
  }
}

}  // namespace

std::string ByteCount(uint32_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

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

const SharedArray* ArrayAround(const Grid& grid, uint64_t low, uint64_t end) {
  for (const SharedArray& array : grid.shared_arrays) {
    if (low >= array.offset && end <= uint64_t{array.offset} + array.bytes) return &array;
  }
  return nullptr;
}

void ResolveAddresses(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Space space,
                      Access& access) {
  access.pattern = mask == kAllLanes ? PatternOf(access.address, bytes) : Pattern::kGeneral;
  ResolveSpace(warp, in, mask, bytes, kind, space, access);
}

namespace {

void FindAddresses(Warp& warp, const Instruction& in, Access& access) {
  const auto offset = static_cast<uint64_t>(in.offset);
  if ((in.flags & kFlagShared32) != 0) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    AddOffset32(a, static_cast<uint32_t>(offset), access.address);
  } else {
    const uint64_t* a = SourceAs<uint64_t>(warp, in.a);
    AddOffset(a, offset, access.address);
  }
}

}  // namespace

void ResolveLanes(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  FindAddresses(warp, in, access);
  access.pattern = Pattern::kGeneral;
  ResolveSpace(warp, in, mask, bytes, kind, static_cast<Space>(in.space), access);
  CountOrFollow(warp, in, mask, access, kind);
}

void Resolve(Warp& warp, const Instruction& in, uint32_t mask, uint32_t bytes, AccessKind kind, Access& access) {
  FindAddresses(warp, in, access);
  ResolveAddresses(warp, in, mask, bytes, kind, static_cast<Space>(in.space), access);
  CountOrFollow(warp, in, mask, access, kind);
}

}  // namespace kgrpo::simt
