// Atomic operations and fences.
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "simt/alu/half_float.h"
#include "simt/check/waits.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// Additions of floats in global memory always flush subnormal numbers, whatever the compiler options; in shared memory
// they do not (PTX manual).
template <typename T>
T WithoutSubnormal(T value, const Access& access) {
  if constexpr (std::is_same_v<T, float>) {
    if (access.space == Space::kGlobal && std::fabs(value) < 0x1p-126f) return std::copysign(0.0f, value);
  }
  return value;
}

template <typename T, typename S, T (*F)(T, T, T)>
void Atomic(Warp& warp, const Instruction& in, uint32_t mask) {
  Grid& grid = *warp.grid;
  Access access;
  Resolve(warp, in, mask, sizeof(T), AccessKind::kAtomic, access);
  if (grid.checked) {
    if ((in.flags & kFlagNoReturn) == 0) NoteAcquire(warp, in, mask, access);
    NoteRelease(warp, in, mask, access, true);
  }
  if ((in.flags & kFlagNoReturn) == 0) ++warp.block->polls;
  if (grid.checked) CheckInitialised(warp, in, mask, access);
  MarkWritten(warp, mask, access);
  const S* b = SourceAs<S>(warp, in.b);
  const S* c = in.c == kNoOperand ? b : SourceAs<S>(warp, in.c);
  S* d = (in.flags & kFlagNoReturn) != 0 ? nullptr : TargetAs<S>(warp, in.d);
  for (const int l : EachBit(mask)) {
    if (grid.checked) CheckStoreOrder(warp, in, l, access, AccessKind::kAtomic, true);
    T old;
    std::memcpy(&old, access.At(l), sizeof old);
    const T first = std::bit_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, uint16_t, S>>(b[l]));
    const T second = std::bit_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, uint16_t, S>>(c[l]));
    const T value = WithoutSubnormal(F(WithoutSubnormal(old, access), WithoutSubnormal(first, access), second), access);
    std::memcpy(access.At(l), &value, sizeof value);
    if (d != nullptr) d[l] = std::bit_cast<std::conditional_t<sizeof(T) == 2, uint16_t, S>>(old);
  }
}

template <typename T>
T Plus(T old, T b, T) {
  if constexpr (std::is_floating_point_v<T>)
    return old + b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
}
template <typename T>
T Smaller(T old, T b, T) {
  return b < old ? b : old;
}
template <typename T>
T Larger(T old, T b, T) {
  return b > old ? b : old;
}
template <typename T>
T BitAnd(T old, T b, T) {
  return static_cast<T>(old & b);
}
template <typename T>
T BitOr(T old, T b, T) {
  return static_cast<T>(old | b);
}
template <typename T>
T BitXor(T old, T b, T) {
  return static_cast<T>(old ^ b);
}
template <typename T>
T Exchange(T, T b, T) {
  return b;
}
template <typename T>
T CompareAndSwap(T old, T b, T c) {
  return old == b ? c : old;
}
inline uint32_t Increment(uint32_t old, uint32_t b, uint32_t) { return old >= b ? 0 : old + 1; }
inline uint32_t Decrement(uint32_t old, uint32_t b, uint32_t) { return old == 0 || old > b ? b : old - 1; }
inline uint16_t PlusHalf(uint16_t old, uint16_t b, uint16_t) {
  return static_cast<uint16_t>(
      DoubleToHalf(static_cast<double>(HalfToFloat(old)) + static_cast<double>(HalfToFloat(b))));
}
inline uint16_t PlusBf16(uint16_t old, uint16_t b, uint16_t) {
  return static_cast<uint16_t>(
      DoubleToBf16(static_cast<double>(Bf16ToFloat(old)) + static_cast<double>(Bf16ToFloat(b))));
}
inline uint32_t PlusHalf2(uint32_t old, uint32_t b, uint32_t) {
  auto add = [](uint32_t x, uint32_t y) {
    return uint32_t{PlusHalf(static_cast<uint16_t>(x), static_cast<uint16_t>(y), 0)};
  };
  return add(old & 0xFFFFu, b & 0xFFFFu) | (add(old >> 16, b >> 16) << 16);
}
inline uint32_t PlusBf162(uint32_t old, uint32_t b, uint32_t) {
  auto add = [](uint32_t x, uint32_t y) {
    return uint32_t{PlusBf16(static_cast<uint16_t>(x), static_cast<uint16_t>(y), 0)};
  };
  return add(old & 0xFFFFu, b & 0xFFFFu) | (add(old >> 16, b >> 16) << 16);
}

// The smaller or larger of two 16-bit floats: a number before a NaN, and -0 before +0.
template <bool kLarger, float (*kWiden)(uint32_t)>
uint32_t Extreme(uint32_t old, uint32_t b) {
  const float x = kWiden(old), y = kWiden(b);
  if (x != x) return y != y ? 0x7FFFu : b;
  if (y != y) return old;
  if (x == y) return kLarger ? old & b : old | b;
  return (y > x) == kLarger ? b : old;
}
template <bool kLarger, float (*kWiden)(uint32_t)>
uint16_t ExtremeOne(uint16_t old, uint16_t b, uint16_t) {
  return static_cast<uint16_t>(Extreme<kLarger, kWiden>(old, b));
}
template <bool kLarger, float (*kWiden)(uint32_t)>
uint32_t ExtremeTwo(uint32_t old, uint32_t b, uint32_t) {
  return Extreme<kLarger, kWiden>(old & 0xFFFFu, b & 0xFFFFu) | Extreme<kLarger, kWiden>(old >> 16, b >> 16) << 16;
}

// Finds `add`, or another operation on vectors of 16-bit floats.
template <typename T, T (*kPlus)(T, T, T), T (*kSmaller)(T, T, T), T (*kLarger)(T, T, T)>
Handler FindHalf(const Opcode& op) {
  if (op.Has("add")) return &Atomic<T, uint32_t, kPlus>;
  if (op.Has("min")) return &Atomic<T, uint32_t, kSmaller>;
  return op.Has("max") ? &Atomic<T, uint32_t, kLarger> : nullptr;
}

template <typename T>
Handler FindFor(const Opcode& op) {
  using S = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if (op.Has("add")) return &Atomic<T, S, &Plus<T>>;
  if (op.Has("min")) return &Atomic<T, S, &Smaller<T>>;
  if (op.Has("max")) return &Atomic<T, S, &Larger<T>>;
  if constexpr (std::is_integral_v<T>) {
    if (op.Has("and")) return &Atomic<T, S, &BitAnd<T>>;
    if (op.Has("or")) return &Atomic<T, S, &BitOr<T>>;
    if (op.Has("xor")) return &Atomic<T, S, &BitXor<T>>;
    if (op.Has("exch")) return &Atomic<T, S, &Exchange<T>>;
    if (op.Has("cas")) return &Atomic<T, S, &CompareAndSwap<T>>;
  }
  return nullptr;
}

}  // namespace

Handler FindAtomic(const Opcode& op) {
  if (op.Has("cas") || op.Has("exch")) {
    if (TypeBytes(op.type()) == 2)
      return op.Has("cas") ? &Atomic<uint16_t, uint32_t, &CompareAndSwap<uint16_t>> : nullptr;
  }
  switch (op.type()) {
    case Type::kU32:
    case Type::kB32:
      if (op.Has("inc")) return &Atomic<uint32_t, uint32_t, &Increment>;
      if (op.Has("dec")) return &Atomic<uint32_t, uint32_t, &Decrement>;
      return FindFor<uint32_t>(op);
    case Type::kS32: return FindFor<int32_t>(op);
    case Type::kU64:
    case Type::kB64: return FindFor<uint64_t>(op);
    case Type::kS64: return FindFor<int64_t>(op);
    case Type::kF32: return op.Has("add") ? FindFor<float>(op) : nullptr;
    case Type::kF64: return op.Has("add") ? FindFor<double>(op) : nullptr;
    case Type::kF16:
      return FindHalf<uint16_t, &PlusHalf, &ExtremeOne<false, &HalfToFloat>, &ExtremeOne<true, &HalfToFloat>>(op);
    case Type::kBf16:
      return FindHalf<uint16_t, &PlusBf16, &ExtremeOne<false, &Bf16ToFloat>, &ExtremeOne<true, &Bf16ToFloat>>(op);
    case Type::kF16x2:
      return FindHalf<uint32_t, &PlusHalf2, &ExtremeTwo<false, &HalfToFloat>, &ExtremeTwo<true, &HalfToFloat>>(op);
    case Type::kBf16x2:
      return FindHalf<uint32_t, &PlusBf162, &ExtremeTwo<false, &Bf16ToFloat>, &ExtremeTwo<true, &Bf16ToFloat>>(op);
    default: return nullptr;
  }
}

void FenceAsyncProxy(Warp& warp, const Instruction&, uint32_t) {
  if (warp.grid->checked && warp.grid->kernel->bulk_copies) NoteProxyFence(warp);
}

void Fence(Warp& warp, const Instruction& in, uint32_t) {
  if (warp.grid->checked) NoteFence(warp, (in.flags & kFlagBlockScope) != 0);
  if (warp.grid->waits != nullptr) warp.grid->waits->Fence(warp, in);
}

}  // namespace kgrpo::simt
