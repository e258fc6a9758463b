// Resolves and checks accesses of a whole warp to one address or one contiguous row, which are the most frequent. Used
// by load_store.cc, which falls back to access.cc for all others.
#include <bit>

#include "simt/check/access.h"
#include "simt/check/earlier_launches.h"
#include "simt/check/waits.h"
#include "simt/state/vector_clones.h"

namespace kgrpo::simt {
namespace {

template <typename Address>
[[gnu::always_inline]] inline Pattern PatternOfLanes(const Address* address, uint32_t bytes) {
  const int shift = std::countr_zero(bytes);
  const Address first = address[0];
  Address uniform = 0, contiguous = 0;
  for (Address l = 0; l < kLanes; ++l) {
    const Address distance = address[l] - first;
    uniform |= distance;
    contiguous |= distance ^ (l << shift);
  }
  return uniform == 0 ? Pattern::kUniform : contiguous == 0 ? Pattern::kContiguous : Pattern::kGeneral;
}

// Functions of their own, since templates have no clones.
KGRPO_VECTOR_CLONES Pattern PatternOf32(const uint32_t* address, uint32_t bytes) {
  return PatternOfLanes(address, bytes);
}

KGRPO_VECTOR_CLONES Pattern PatternOf64(const uint64_t* address, uint32_t bytes) {
  return PatternOfLanes(address, bytes);
}

}  // namespace

Pattern PatternOf(const uint64_t* address, uint32_t bytes) { return PatternOf64(address, bytes); }

bool ResolveRow(Warp& warp, const Instruction& in, uint32_t bytes, AccessKind kind, Access& access) {
  Grid& grid = *warp.grid;
  uint64_t first;
  if ((in.flags & kFlagShared32) != 0) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    access.pattern = PatternOf32(a, bytes);
    first = a[0] + static_cast<uint32_t>(in.offset);
  } else {
    const uint64_t* a = SourceAs<uint64_t>(warp, in.a);
    access.pattern = PatternOf64(a, bytes);
    first = a[0] + static_cast<uint64_t>(in.offset);
  }
  if (access.pattern == Pattern::kGeneral || (first & (bytes - 1)) != 0) return false;
  auto space = static_cast<Space>(in.space);
  if (space == Space::kGeneric) {
    const uint64_t window = first & kGenericWindow;
    if (window == kLocalWindow || window == kParamWindow) return false;
    space = window == kSharedWindow ? Space::kShared : Space::kGlobal;
    if (space == Space::kShared) first &= ~kGenericWindow;
  }
  const uint64_t span = access.pattern == Pattern::kUniform ? bytes : uint64_t{bytes} * kLanes;
  if (space == Space::kShared) {
    if (first >= grid.shared_limit || grid.shared_limit - first < span) return false;
    if (grid.checked && ArrayAround(grid, first, first + span) == nullptr) return false;
    access.allocation = nullptr;
    access.base = reinterpret_cast<uintptr_t>(warp.block->shared);
  } else if (space == Space::kGlobal || space == Space::kConst) {
    Allocation* allocation = FindAllocation(grid, first);
    if (allocation == nullptr || allocation->end() - first < span) return false;
    if (kind != AccessKind::kLoad && allocation->read_only()) return false;
    access.allocation = allocation;
    access.base = reinterpret_cast<uintptr_t>(allocation->data()) - allocation->address();
    space = Space::kGlobal;
  } else {
    return false;
  }
  access.space = space;
  access.bytes = bytes;
  access.direct = true;
  access.distinct = access.pattern == Pattern::kUniform ? 1u << (kLanes - 1) : kAllLanes;
  access.address[0] = first;
  if (grid.checked || grid.counter != nullptr || grid.waits != nullptr) {
    const uint64_t step = access.pattern == Pattern::kUniform ? 0 : bytes;
    for (uint64_t l = 1; l < kLanes; ++l) access.address[l] = first + l * step;
    CountOrFollow(warp, in, kAllLanes, access, kind);
    if (grid.compares_launches && space == Space::kGlobal) [[unlikely]]
      CheckEarlierLaunches(warp, in, kAllLanes, kind, access);
  }
  return true;
}

}  // namespace kgrpo::simt
