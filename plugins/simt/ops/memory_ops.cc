// Asynchronous copies, the packing of registers, and questions about addresses.
#include <bit>
#include <cstring>

#include "simt/check/access.h"
#include "simt/check/access_counter.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

template <typename D>
void Pack(Warp& warp, const Instruction& in, uint32_t mask) {
  D* d = TargetAs<D>(warp, in.d);
  const Operand* sources = &warp.grid->kernel->operands[in.extra];
  D result[kLanes] = {};
  for (uint32_t i = 0; i < in.count; ++i) {
    const uint32_t shift = 8 * i * in.size;
    const D ones = in.size >= sizeof(D) ? ~D{0} : static_cast<D>((D{1} << (8 * in.size)) - 1);
    const uint32_t* s = SourceAs<uint32_t>(warp, sources[i]);
    for (int l = 0; l < kLanes; ++l) result[l] |= (static_cast<D>(s[l]) & ones) << shift;
  }
  for (int l = 0; l < kLanes; ++l) d[l] = ((mask >> l) & 1u) != 0 ? result[l] : d[l];
}

template <typename A>
void Unpack(Warp& warp, const Instruction& in, uint32_t mask) {
  const A* a = SourceAs<A>(warp, in.a);
  const Operand* targets = &warp.grid->kernel->operands[in.extra];
  const A ones = in.size >= sizeof(A) ? ~A{0} : static_cast<A>((A{1} << (8 * in.size)) - 1);
  for (uint32_t i = 0; i < in.count; ++i) {
    if (targets[i] == kNoOperand) continue;
    uint32_t* d = TargetAs<uint32_t>(warp, targets[i]);
    const uint32_t shift = 8 * i * in.size;
    for (int l = 0; l < kLanes; ++l)
      d[l] = ((mask >> l) & 1u) != 0 ? static_cast<uint32_t>((a[l] >> shift) & ones) : d[l];
  }
}

template <Space kSpace>
void IsSpace(Warp& warp, const Instruction& in, uint32_t mask) {
  constexpr uint64_t kWindow = kSpace == Space::kShared  ? kSharedWindow
                               : kSpace == Space::kLocal ? kLocalWindow
                                                         : kGlobalWindow;
  const uint64_t* a = SourceAs<uint64_t>(warp, in.a);
  uint32_t result = 0;
  for (int l = 0; l < kLanes; ++l) result |= static_cast<uint32_t>((a[l] >> 52) == (kWindow >> 52)) << l;
  SetPredicate(warp, in.d, mask, result);
}

}  // namespace

Handler FindPack(uint32_t bytes) { return bytes == 8 ? &Pack<uint64_t> : &Pack<uint32_t>; }
Handler FindUnpack(uint32_t bytes) { return bytes == 8 ? &Unpack<uint64_t> : &Unpack<uint32_t>; }
Handler FindIsSpace(Space space) {
  return space == Space::kShared  ? &IsSpace<Space::kShared>
         : space == Space::kLocal ? &IsSpace<Space::kLocal>
                                  : &IsSpace<Space::kGlobal>;
}

// ---- cp.async ----

// The source is read at once; shared memory changes only when a wait completes the copy, so that a kernel that forgets
// to wait reads what was there before.
void CopyAsync(Warp& warp, const Instruction& in, uint32_t mask) {
  Grid& grid = *warp.grid;
  Access target, source;
  Resolve(warp, in, mask, in.size, AccessKind::kStore, target);
  const uint64_t* b = SourceAs<uint64_t>(warp, in.b);
  const uint64_t offset = in.count == 2 ? SourceAs<uint64_t>(warp, grid.kernel->operands[in.extra])[0] : 0;
  const uint32_t* sizes = in.c == kNoOperand ? nullptr : SourceAs<uint32_t>(warp, in.c);
  uint32_t reading = mask;
  for (int l = 0; l < kLanes; ++l) {
    source.address[l] = b[l] + offset;
    if (sizes != nullptr && sizes[l] == 0) reading &= ~(1u << l);
  }
  if (reading != 0) {
    ResolveAddresses(warp, in, reading, in.size, AccessKind::kLoad, Space::kGlobal, source);
    if (grid.counter != nullptr) grid.counter->CountAccess(warp, in, reading, source, AccessKind::kLoad);
    if (grid.checked) {
      CheckInitialised(warp, in, reading, source);
      CheckLoadOrder(warp, in, reading, source);
    }
  }
  if (warp.copies.empty()) warp.copies.emplace_back();
  for (const int l : EachBit(mask)) {
    PendingCopy copy{};
    copy.lane = static_cast<uint8_t>(l);
    copy.bytes = in.size;
    copy.source_bytes = static_cast<uint8_t>(sizes == nullptr ? in.size : sizes[l] < in.size ? sizes[l] : in.size);
    copy.shared_offset = static_cast<uint32_t>(target.address[l]);
    copy.pc = in.index;
    if (grid.checked) BeginCopy(warp, in, l, target);
    if (copy.source_bytes > 0) std::memcpy(copy.data.data(), source.At(l), copy.source_bytes);
    warp.copies.back().push_back(copy);
  }
}

void CommitCopies(Warp& warp, const Instruction&, uint32_t) {
  if (warp.copies.empty()) warp.copies.emplace_back();
  warp.copies.emplace_back();
}

void WaitCopies(Warp& warp, const Instruction& in, uint32_t) {
  Grid& grid = *warp.grid;
  std::vector<std::vector<PendingCopy>>& groups = warp.copies;
  // The last group is still open: wait_group does not concern it, wait_all does.
  const size_t committed = groups.empty() ? 0 : groups.size() - 1;
  const auto keep = static_cast<size_t>(in.offset);
  size_t complete = in.size == 1 ? groups.size() : committed > keep ? committed - keep : 0;
  for (size_t g = 0; g < complete; ++g) {
    for (const PendingCopy& copy : groups[g]) {
      Access access;
      access.space = Space::kShared;
      access.allocation = nullptr;
      access.bytes = copy.bytes;
      access.address[copy.lane] = copy.shared_offset;
      access.direct = true;
      access.base = reinterpret_cast<uintptr_t>(warp.block->shared);
      access.pattern = Pattern::kGeneral;
      access.distinct = 1u << copy.lane;
      if (grid.checked) EndCopy(warp, grid.kernel->code[copy.pc], copy.lane, access);
      MarkWritten(warp, 1u << copy.lane, access);
      std::memcpy(access.At(copy.lane), copy.data.data(), copy.bytes);
    }
  }
  groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(complete));
}

void Prefetch(Warp&, const Instruction&, uint32_t) {}

}  // namespace kgrpo::simt
