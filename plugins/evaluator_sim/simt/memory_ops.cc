// Loads, stores, asynchronous copies, and the packing of registers.
#include <bit>
#include <cstring>
#include <type_traits>

#include "evaluator_sim/simt/access.h"
#include "evaluator_sim/simt/counter.h"
#include "evaluator_sim/simt/handlers.h"

namespace kgrpo::simt {
namespace {

// A value as a lane holds it: extended by its sign where it has one.
template <typename S, typename T>
S ToLane(T value) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<S>(static_cast<std::make_signed_t<S>>(value));
  } else {
    return static_cast<S>(value);
  }
}

// T: in memory; S: a register's lane.
template <typename T, typename S>
void Load(Warp& warp, const Instruction& in, uint32_t mask) {
  Access access;
  Resolve(warp, in, mask, static_cast<uint32_t>(sizeof(T)) * in.count, AccessKind::kLoad, access);
  Grid& grid = *warp.grid;
  if (grid.checked && access.space != Space::kLocal && access.space != Space::kParam) {
    CheckInitialised(warp, in, mask, access);
    CheckLoadOrder(warp, in, mask, access);
  }
  if ((in.flags & kFlagVolatile) != 0) {
    if (access.space == Space::kGlobal) NoteAcquire(warp);
    ++warp.block->polls;
  }
  const Operand* targets = &grid.kernel->operands[in.extra];
  for (uint32_t i = 0; i < in.count; ++i) {
    if (targets[i] == kNoOperand) continue;
    S* d = TargetAs<S>(warp, targets[i]);
    auto value = [&](int l) {
      T v;
      std::memcpy(&v, access.At(l) + i * sizeof(T), sizeof(T));
      return ToLane<S>(v);
    };
    if (access.pattern == Pattern::kContiguous && in.count == 1 && sizeof(T) == sizeof(S)) {
      std::memcpy(d, access.At(0), kLanes * sizeof(T));
    } else if (access.pattern == Pattern::kUniform) {
      const S all = value(0);
      for (int l = 0; l < kLanes; ++l) d[l] = all;
    } else if (mask == kAllLanes && access.direct) {
      const uint64_t base = access.base + i * sizeof(T);
      for (int l = 0; l < kLanes; ++l) {
        T v;
        std::memcpy(&v, reinterpret_cast<const std::byte*>(base + access.address[l]), sizeof(T));
        d[l] = ToLane<S>(v);
      }
    } else {
      for (uint32_t m = mask; m != 0; m &= m - 1) d[std::countr_zero(m)] = value(std::countr_zero(m));
    }
  }
}

template <typename T, typename S>
void StoreChecked(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  const Operand* sources = &warp.grid->kernel->operands[in.extra];
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    bool changes = false;
    for (uint32_t i = 0; i < in.count; ++i) {
      const T value = static_cast<T>(SourceAs<S>(warp, sources[i])[l]);
      changes |= std::memcmp(access.At(l) + i * sizeof(T), &value, sizeof(T)) != 0;
    }
    CheckStoreOrder(warp, in, l, access, AccessKind::kStore, changes);
    for (uint32_t i = 0; i < in.count; ++i) {
      const T value = static_cast<T>(SourceAs<S>(warp, sources[i])[l]);
      std::memcpy(access.At(l) + i * sizeof(T), &value, sizeof(T));
    }
  }
}

template <typename T, typename S>
void Store(Warp& warp, const Instruction& in, uint32_t mask) {
  Access access;
  Resolve(warp, in, mask, static_cast<uint32_t>(sizeof(T)) * in.count, AccessKind::kStore, access);
  Grid& grid = *warp.grid;
  MarkWritten(warp, mask, access);
  if ((in.flags & (kFlagVolatile | kFlagRelease)) != 0 && access.space == Space::kGlobal) {
    if (warp.block->fence_pending || (in.flags & kFlagRelease) != 0) NoteRelease(warp);
  }
  if (grid.checked && access.space != Space::kLocal) return StoreChecked<T, S>(warp, in, mask, access);
  const Operand* sources = &grid.kernel->operands[in.extra];
  for (uint32_t i = 0; i < in.count; ++i) {
    const S* s = SourceAs<S>(warp, sources[i]);
    if (in.count == 1 && sizeof(T) == sizeof(S) && access.pattern == Pattern::kContiguous) {
      std::memcpy(access.At(0), s, kLanes * sizeof(T));
      continue;
    }
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const T value = static_cast<T>(s[l]);
      std::memcpy(access.At(l) + i * sizeof(T), &value, sizeof(T));
    }
  }
}

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

Handler FindLoad(Type type, uint32_t slot_bytes) {
  if (slot_bytes == 8) {
    switch (type) {
      case Type::kB64:
      case Type::kU64:
      case Type::kS64:
      case Type::kF64:
        return &Load<uint64_t, uint64_t>;
      case Type::kB32:
      case Type::kU32:
        return &Load<uint32_t, uint64_t>;
      case Type::kS32:
        return &Load<int32_t, uint64_t>;
      case Type::kB16:
      case Type::kU16:
        return &Load<uint16_t, uint64_t>;
      case Type::kS16:
        return &Load<int16_t, uint64_t>;
      case Type::kB8:
      case Type::kU8:
        return &Load<uint8_t, uint64_t>;
      case Type::kS8:
        return &Load<int8_t, uint64_t>;
      default:
        return nullptr;
    }
  }
  switch (type) {
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBf16x2:
      return &Load<uint32_t, uint32_t>;
    case Type::kB16:
    case Type::kU16:
    case Type::kF16:
    case Type::kBf16:
      return &Load<uint16_t, uint32_t>;
    case Type::kS16:
      return &Load<int16_t, uint32_t>;
    case Type::kB8:
    case Type::kU8:
      return &Load<uint8_t, uint32_t>;
    case Type::kS8:
      return &Load<int8_t, uint32_t>;
    default:
      return nullptr;
  }
}

Handler FindStore(Type type, uint32_t slot_bytes) {
  switch (TypeBytes(type)) {
    case 8:
      return slot_bytes == 8 ? &Store<uint64_t, uint64_t> : nullptr;
    case 4:
      return slot_bytes == 8 ? &Store<uint32_t, uint64_t> : &Store<uint32_t, uint32_t>;
    case 2:
      return slot_bytes == 8 ? &Store<uint16_t, uint64_t> : &Store<uint16_t, uint32_t>;
    case 1:
      return type == Type::kPred ? nullptr : slot_bytes == 8 ? &Store<uint8_t, uint64_t> : &Store<uint8_t, uint32_t>;
    default:
      return nullptr;
  }
}

Handler FindPack(uint32_t bytes) {
  return bytes == 8 ? &Pack<uint64_t> : &Pack<uint32_t>;
}
Handler FindUnpack(uint32_t bytes) {
  return bytes == 8 ? &Unpack<uint64_t> : &Unpack<uint32_t>;
}
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
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    PendingCopy copy{};
    copy.lane = static_cast<uint8_t>(l);
    copy.bytes = in.size;
    copy.source_bytes = static_cast<uint8_t>(sizes == nullptr ? in.size : sizes[l] < in.size ? sizes[l] : in.size);
    copy.shared_offset = static_cast<uint32_t>(target.address[l]);
    copy.pc = in.index;
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
      if (grid.checked) CheckStoreOrder(warp, grid.kernel->code[copy.pc], copy.lane, access, AccessKind::kStore, true);
      MarkWritten(warp, 1u << copy.lane, access);
      std::memcpy(access.At(copy.lane), copy.data.data(), copy.bytes);
    }
  }
  groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(complete));
}

void Prefetch(Warp&, const Instruction&, uint32_t) {}

}  // namespace kgrpo::simt
