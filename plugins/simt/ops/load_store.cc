// Loads and stores.
#include <bit>
#include <cstring>
#include <type_traits>

#include "simt/check/access.h"
#include "simt/check/open_choices.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// Converts a value to a register's lane: signed types are sign-extended.
template <typename S, typename T>
S ToLane(T value) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<S>(static_cast<std::make_signed_t<S>>(value));
  } else {
    return static_cast<S>(value);
  }
}

constexpr uint32_t kMostElements = 8;  // of a vector access

// Element i of lane l is at source[l * kCount + i].
template <typename T, typename S, uint32_t kCount>
void Deal(const T* source, S* const* targets) {
  S* d[kCount];
  for (uint32_t i = 0; i < kCount; ++i) d[i] = targets[i];
#pragma GCC ivdep
  for (int l = 0; l < kLanes; ++l) {
    for (uint32_t i = 0; i < kCount; ++i) d[i][l] = ToLane<S>(source[static_cast<uint32_t>(l) * kCount + i]);
  }
}
template <typename T, typename S, uint32_t kCount>
void Collect(const S* const* sources, T* target) {
  const S* s[kCount];
  for (uint32_t i = 0; i < kCount; ++i) s[i] = sources[i];
#pragma GCC ivdep
  for (int l = 0; l < kLanes; ++l) {
    for (uint32_t i = 0; i < kCount; ++i) target[static_cast<uint32_t>(l) * kCount + i] = static_cast<T>(s[i][l]);
  }
}

// A whole warp's elements from or to one row of memory.
template <typename T, typename S>
void LoadRow(const std::byte* row, uint32_t count, S* const* targets) {
  const T* source = reinterpret_cast<const T*>(row);
  if (count == 1) return Deal<T, S, 1>(source, targets);
  if (count == 2) return Deal<T, S, 2>(source, targets);
  if (count == 4) return Deal<T, S, 4>(source, targets);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t l = 0; l < kLanes; ++l) targets[i][l] = ToLane<S>(source[l * count + i]);
  }
}
template <typename T, typename S>
void StoreRow(std::byte* row, uint32_t count, const S* const* sources) {
  T* target = reinterpret_cast<T*>(row);
  if (count == 1) return Collect<T, S, 1>(sources, target);
  if (count == 2) return Collect<T, S, 2>(sources, target);
  if (count == 4) return Collect<T, S, 4>(sources, target);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t l = 0; l < kLanes; ++l) target[l * count + i] = static_cast<T>(sources[i][l]);
  }
}

// Fills the registers of a load. T: in memory; S: a register's lane. `row`: by ResolveRow.
template <typename T, typename S>
void LoadValues(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, bool row) {
  const Operand* operands = &warp.grid->kernel->operands[in.extra];
  if (row && access.pattern == Pattern::kContiguous && in.count <= kMostElements) {
    S unused[kLanes];
    S* targets[kMostElements];
    for (uint32_t i = 0; i < in.count; ++i)
      targets[i] = operands[i] == kNoOperand ? unused : TargetAs<S>(warp, operands[i]);
    return LoadRow<T, S>(access.At(0), in.count, targets);
  }
  for (uint32_t i = 0; i < in.count; ++i) {
    if (operands[i] == kNoOperand) continue;
    S* d = TargetAs<S>(warp, operands[i]);
    auto value = [&](int l) {
      T v;
      std::memcpy(&v, access.At(l) + i * sizeof(T), sizeof(T));
      return ToLane<S>(v);
    };
    if (row && access.pattern == Pattern::kUniform) {
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
      for (const int l : EachBit(mask)) d[l] = value(l);
    }
  }
}

template <typename T, typename S>
void Load(Warp& warp, const Instruction& in, uint32_t mask) {
  Access access;
  const auto bytes = static_cast<uint32_t>(sizeof(T)) * in.count;
  const bool row = mask == kAllLanes && ResolveRow(warp, in, bytes, AccessKind::kLoad, access);
  if (!row) ResolveLanes(warp, in, mask, bytes, AccessKind::kLoad, access);
  const Grid& grid = *warp.grid;
  if (grid.checked && access.space != Space::kParam) {
    const uint32_t elements = IsWatched(*grid.kernel, in) ? in.count : 0;
    CheckInitialised(warp, in, mask, access, elements);
    if (access.space != Space::kLocal) CheckLoadOrder(warp, in, mask, access, elements);
    if (warp.suspicious) SetSuspects(warp, in, mask);
  }
  if ((in.flags & kFlagVolatile) == 0) return LoadValues<T, S>(warp, in, mask, access, row);
  ++warp.block->polls;
  if (!grid.checked) return LoadValues<T, S>(warp, in, mask, access, row);
  const HiddenWrites hidden(warp, in, mask, access);
  // Also if a write is hidden: the value before it may be a release, too.
  NoteAcquire(warp, in, mask, access);
  LoadValues<T, S>(warp, in, mask, access, row);
}

template <typename T, typename S>
void StoreChecked(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  const Operand* sources = &warp.grid->kernel->operands[in.extra];
  const auto differ = [&](int l, int k) {
    bool different = false;
    for (uint32_t i = 0; i < in.count; ++i) {
      const S* s = SourceAs<S>(warp, sources[i]);
      different |= static_cast<T>(s[l]) != static_cast<T>(s[k]);
    }
    return different;
  };
  for (const int l : EachBit(ChooseStores(warp, in, mask, access, differ))) {
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
  const auto bytes = static_cast<uint32_t>(sizeof(T)) * in.count;
  const bool row = mask == kAllLanes && ResolveRow(warp, in, bytes, AccessKind::kStore, access);
  if (!row) ResolveLanes(warp, in, mask, bytes, AccessKind::kStore, access);
  Grid& grid = *warp.grid;
  MarkWritten(warp, mask, access);
  if ((in.flags & (kFlagVolatile | kFlagRelease)) != 0 && grid.checked) NoteRelease(warp, in, mask, access, false);
  if (grid.checked && access.space != Space::kLocal && !NoteStores(warp, in, mask, access))
    return StoreChecked<T, S>(warp, in, mask, access);
  const Operand* operands = &grid.kernel->operands[in.extra];
  if (row && access.pattern == Pattern::kContiguous && in.count <= kMostElements) {
    const S* sources[kMostElements];
    for (uint32_t i = 0; i < in.count; ++i) sources[i] = SourceAs<S>(warp, operands[i]);
    return StoreRow<T, S>(access.At(0), in.count, sources);
  }
  const bool first_stays = grid.config->other_choices;  // where lanes store to one place; else the last
  if (row) {
    for (uint32_t i = 0; i < in.count; ++i) {
      const T value = static_cast<T>(SourceAs<S>(warp, operands[i])[first_stays ? 0 : kLanes - 1]);
      std::memcpy(access.At(0) + i * sizeof(T), &value, sizeof(T));
    }
    return;
  }
  for (uint32_t i = 0; i < in.count; ++i) {
    const S* s = SourceAs<S>(warp, operands[i]);
    for (uint32_t m = mask; m != 0;) {
      const int l = first_stays ? kLanes - 1 - std::countl_zero(m) : std::countr_zero(m);
      m &= ~(1u << l);
      const T value = static_cast<T>(s[l]);
      std::memcpy(access.At(l) + i * sizeof(T), &value, sizeof(T));
    }
  }
}

}  // namespace

Handler FindLoad(Type type, uint32_t slot_bytes) {
  const bool floating = type >= Type::kF16 && type <= Type::kF32, wide = slot_bytes == 8, sign = TypeIsSigned(type);
  if (type == Type::kPred || (wide && floating)) return nullptr;
  switch (TypeBytes(type)) {
    case 8: return wide ? &Load<uint64_t, uint64_t> : nullptr;
    case 4:
      if (!wide) return &Load<uint32_t, uint32_t>;
      return sign ? &Load<int32_t, uint64_t> : &Load<uint32_t, uint64_t>;
    case 2:
      if (wide) return sign ? &Load<int16_t, uint64_t> : &Load<uint16_t, uint64_t>;
      return sign ? &Load<int16_t, uint32_t> : &Load<uint16_t, uint32_t>;
    case 1:
      if (wide) return sign ? &Load<int8_t, uint64_t> : &Load<uint8_t, uint64_t>;
      return sign ? &Load<int8_t, uint32_t> : &Load<uint8_t, uint32_t>;
    default: return nullptr;
  }
}

Handler FindStore(Type type, uint32_t slot_bytes) {
  switch (TypeBytes(type)) {
    case 8: return slot_bytes == 8 ? &Store<uint64_t, uint64_t> : nullptr;
    case 4: return slot_bytes == 8 ? &Store<uint32_t, uint64_t> : &Store<uint32_t, uint32_t>;
    case 2: return slot_bytes == 8 ? &Store<uint16_t, uint64_t> : &Store<uint16_t, uint32_t>;
    case 1:
      return type == Type::kPred ? nullptr : slot_bytes == 8 ? &Store<uint8_t, uint64_t> : &Store<uint8_t, uint32_t>;
    default: return nullptr;
  }
}

}  // namespace kgrpo::simt
