// Handlers of arithmetic, logic, comparison and conversion instructions, 32 lanes at a time. Included by alu_avx2.cc
// and alu_generic.cc, each compiled for its instruction set; everything here has internal linkage for that reason.
//
// A handler is `Map<&F>::Run`, where F is the operation on one lane. The lane loops are written so that compilers
// vectorise them: no branches, no calls, full warps without a mask. A partial warp is computed whole, then blended.
#ifndef KGRPO_EVALUATOR_SIM_SIMT_ALU_OPS_H_
#define KGRPO_EVALUATOR_SIM_SIMT_ALU_OPS_H_

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "evaluator_sim/simt/approximate.h"
#include "evaluator_sim/simt/half_float.h"
#include "evaluator_sim/simt/machine.h"
#include "evaluator_sim/simt/opcode.h"

namespace kgrpo::simt {
namespace {

// ---- lanes ----

// How a lane of type T is stored: 8-byte types as they are, all others in 4 bytes.
template <typename T>
using Slot = std::conditional_t<sizeof(T) == 8 || std::is_same_v<T, float>, T, uint32_t>;

template <typename T>
inline T FromSlot(Slot<T> slot) {
  return static_cast<T>(slot);
}
template <typename T>
inline Slot<T> ToSlot(T value) {
  if constexpr (sizeof(T) == 8 || std::is_same_v<T, float>) {
    return value;
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<uint32_t>(value);
  } else {  // 8 and 16 bits: extended, for the instructions whose register is wider than their type
    return static_cast<uint32_t>(static_cast<int32_t>(value));
  }
}

template <typename S>
inline void Blend(S* target, const S* value, uint32_t mask) {
  for (int l = 0; l < kLanes; ++l) target[l] = ((mask >> l) & 1u) != 0 ? value[l] : target[l];
}

// The bits of a comparison's lanes.
inline uint32_t Pack(const uint32_t* flags) {
  uint32_t mask = 0;
  for (int l = 0; l < kLanes; ++l) mask |= flags[l] << l;
  return mask;
}

template <auto F>
struct Map;

template <typename R, typename A, R (*F)(A)>
struct Map<F> {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const Slot<A>* a = SourceAs<Slot<A>>(warp, in.a);
    Slot<R>* d = TargetAs<Slot<R>>(warp, in.d);
    alignas(64) Slot<R> partial[kLanes];
    Slot<R>* out = mask == kAllLanes ? d : partial;
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) out[l] = ToSlot<R>(F(FromSlot<A>(a[l])));
    if (mask != kAllLanes) Blend(d, partial, mask);
  }
};

template <typename R, typename A, typename B, R (*F)(A, B)>
struct Map<F> {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const Slot<A>* a = SourceAs<Slot<A>>(warp, in.a);
    const Slot<B>* b = SourceAs<Slot<B>>(warp, in.b);
    Slot<R>* d = TargetAs<Slot<R>>(warp, in.d);
    alignas(64) Slot<R> partial[kLanes];
    Slot<R>* out = mask == kAllLanes ? d : partial;
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) out[l] = ToSlot<R>(F(FromSlot<A>(a[l]), FromSlot<B>(b[l])));
    if (mask != kAllLanes) Blend(d, partial, mask);
  }
};

template <typename R, typename A, typename B, typename C, R (*F)(A, B, C)>
struct Map<F> {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const Slot<A>* a = SourceAs<Slot<A>>(warp, in.a);
    const Slot<B>* b = SourceAs<Slot<B>>(warp, in.b);
    const Slot<C>* c = SourceAs<Slot<C>>(warp, in.c);
    Slot<R>* d = TargetAs<Slot<R>>(warp, in.d);
    alignas(64) Slot<R> partial[kLanes];
    Slot<R>* out = mask == kAllLanes ? d : partial;
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) {
      out[l] = ToSlot<R>(F(FromSlot<A>(a[l]), FromSlot<B>(b[l]), FromSlot<C>(c[l])));
    }
    if (mask != kAllLanes) Blend(d, partial, mask);
  }
};

// The same with Instruction::offset as a last, uniform argument (lop3's table, shift modes).
template <auto F>
struct MapImmediate;

template <typename R, typename A, typename B, typename C, R (*F)(A, B, C, int64_t)>
struct MapImmediate<F> {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const Slot<A>* a = SourceAs<Slot<A>>(warp, in.a);
    const Slot<B>* b = SourceAs<Slot<B>>(warp, in.b);
    const Slot<C>* c = SourceAs<Slot<C>>(warp, in.c);
    Slot<R>* d = TargetAs<Slot<R>>(warp, in.d);
    alignas(64) Slot<R> result[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      result[l] = ToSlot<R>(F(FromSlot<A>(a[l]), FromSlot<B>(b[l]), FromSlot<C>(c[l]), in.offset));
    }
    Blend(d, result, mask);
  }
};

// setp: d (and its complement e) = compare(a, b) [combined with predicate c]. Instruction::size says how: 0 alone, 1
// and, 2 or, 3 xor.
inline void SetPredicates(Warp& warp, const Instruction& in, uint32_t mask, uint32_t compared) {
  uint32_t p = compared, q = ~compared;
  if (in.size != 0) {
    const uint32_t c = PredicateOf(warp, in.c) ^ ((in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u);
    p = in.size == 1 ? p & c : in.size == 2 ? p | c : p ^ c;
    q = in.size == 1 ? q & c : in.size == 2 ? q | c : q ^ c;
  }
  if (in.d != kNoOperand) SetPredicate(warp, in.d, mask, p);
  if (in.e != kNoOperand) SetPredicate(warp, in.e, mask, q);
}

template <typename T, bool (*F)(T, T)>
struct Compare {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const Slot<T>* a = SourceAs<Slot<T>>(warp, in.a);
    const Slot<T>* b = SourceAs<Slot<T>>(warp, in.b);
    alignas(64) uint32_t flags[kLanes];
    for (int l = 0; l < kLanes; ++l) flags[l] = F(FromSlot<T>(a[l]), FromSlot<T>(b[l])) ? 1u : 0u;
    SetPredicates(warp, in, mask, Pack(flags));
  }
};

// set: a whole register of ones (or 1.0 where Instruction::offset says so).
template <typename T, bool (*F)(T, T)>
struct CompareToValue {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const Slot<T>* a = SourceAs<Slot<T>>(warp, in.a);
    const Slot<T>* b = SourceAs<Slot<T>>(warp, in.b);
    uint32_t* d = TargetAs<uint32_t>(warp, in.d);
    const uint32_t one = static_cast<uint32_t>(in.offset);
    alignas(64) uint32_t result[kLanes];
    for (int l = 0; l < kLanes; ++l) result[l] = F(FromSlot<T>(a[l]), FromSlot<T>(b[l])) ? one : 0u;
    Blend(d, result, mask);
  }
};

template <typename T>
struct Select {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const T* a = SourceAs<T>(warp, in.a);
    const T* b = SourceAs<T>(warp, in.b);
    const uint32_t p = PredicateOf(warp, in.c) ^ ((in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u);
    T* d = TargetAs<T>(warp, in.d);
    alignas(64) T result[kLanes];
    for (int l = 0; l < kLanes; ++l) result[l] = ((p >> l) & 1u) != 0 ? a[l] : b[l];
    Blend(d, result, mask);
  }
};

// ---- integers ----

template <typename T>
T Add(T a, T b) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}
template <typename T>
T Sub(T a, T b) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) - static_cast<std::make_unsigned_t<T>>(b));
}
template <typename T>
using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
template <typename T>
T MulLo(T a, T b) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return static_cast<T>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;
template <typename T>
T MulHi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using W = std::conditional_t<std::is_signed_v<T>, Int128, Uint128>;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> 64);
  } else {
    return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
  }
}
template <typename T>
using Double = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>, Wide<T>>;
template <typename T>
Double<T> MulWide(T a, T b) {
  return static_cast<Double<T>>(static_cast<Double<T>>(a) * static_cast<Double<T>>(b));
}
template <typename T>
T MadLo(T a, T b, T c) {
  return Add<T>(MulLo<T>(a, b), c);
}
template <typename T>
T MadHi(T a, T b, T c) {
  return Add<T>(MulHi<T>(a, b), c);
}
template <typename T>
Double<T> MadWide(T a, T b, Double<T> c) {
  return Add<Double<T>>(MulWide<T>(a, b), c);
}
template <typename T>
T Clamp(int64_t v) {
  return v < std::numeric_limits<T>::min()   ? std::numeric_limits<T>::min()
         : v > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max()
                                             : static_cast<T>(v);
}
inline int32_t AddSat(int32_t a, int32_t b) {
  return Clamp<int32_t>(int64_t{a} + b);
}
inline int32_t SubSat(int32_t a, int32_t b) {
  return Clamp<int32_t>(int64_t{a} - b);
}
// Division by zero yields all ones, as on the GPU.
template <typename T>
T Div(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return Sub<T>(0, a);
  }
  return static_cast<T>(a / b);
}
template <typename T>
T Rem(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return 0;
  }
  return static_cast<T>(a % b);
}
template <typename T>
T Neg(T a) {
  return Sub<T>(0, a);
}
template <typename T>
T Abs(T a) {
  return a < 0 ? Neg<T>(a) : a;
}
template <typename T>
T Min(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T Max(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
T MaxRelu(T a, T b) {
  return Max<T>(Max<T>(a, b), 0);
}
template <typename T>
T MinRelu(T a, T b) {
  return Max<T>(Min<T>(a, b), 0);
}
template <typename T>
T And(T a, T b) {
  return a & b;
}
template <typename T>
T Or(T a, T b) {
  return a | b;
}
template <typename T>
T Xor(T a, T b) {
  return a ^ b;
}
template <typename T>
T Not(T a) {
  return static_cast<T>(~a);
}
template <typename T>
T Cnot(T a) {
  return a == 0 ? 1 : 0;
}
template <typename T>
T Shl(T a, uint32_t n) {
  return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << (n & (8 * sizeof(T) - 1)));
}
template <typename T>
T Shr(T a, uint32_t n) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> (n >= kBits ? kBits - 1 : n));
  else
    return n >= kBits ? T{0} : static_cast<T>(a >> (n & (kBits - 1)));
}
template <typename T>
uint32_t Popc(T a) {
  return static_cast<uint32_t>(std::popcount(a));
}
template <typename T>
uint32_t Clz(T a) {
  return static_cast<uint32_t>(std::countl_zero(a));
}
template <typename T>
T Brev(T a) {
  T r = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) r = static_cast<T>(r << 1) | static_cast<T>((a >> i) & 1u);
  return r;
}
template <typename T>
uint32_t Bfind(T a) {
  using U = std::make_unsigned_t<T>;
  U v = static_cast<U>(a);
  if (std::is_signed_v<T> && a < 0) v = static_cast<U>(~v);
  return v == 0 ? 0xFFFFFFFFu : static_cast<uint32_t>(8 * sizeof(T) - 1) - static_cast<uint32_t>(std::countl_zero(v));
}
template <typename T>
uint32_t BfindShift(T a) {
  const uint32_t at = Bfind<T>(a);
  return at == 0xFFFFFFFFu ? at : static_cast<uint32_t>(8 * sizeof(T) - 1) - at;
}
template <typename T>
T Bfe(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 0xFF;
  length &= 0xFF;
  if (length == 0) return 0;
  const uint32_t last = position + length - 1 < kBits - 1 ? position + length - 1 : kBits - 1;
  const U sign = std::is_signed_v<T> ? (static_cast<U>(a) >> last) & 1u : U{0};
  const U shifted = position >= kBits ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
  const uint32_t kept = position >= kBits ? 0 : (length < kBits - position ? length : kBits - position);
  const U mask = kept >= kBits ? ~U{0} : (U{1} << kept) - 1;
  const U result = (shifted & mask) | (sign != 0 ? static_cast<U>(~mask) : U{0});
  return static_cast<T>(result);
}
template <typename T>
T Bfi(T a, T b, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 0xFF;
  length &= 0xFF;
  if (position >= kBits || length == 0) return b;
  const T ones = length >= kBits ? ~T{0} : static_cast<T>((T{1} << length) - 1);
  const T mask = static_cast<T>(ones << position);
  return static_cast<T>((b & ~mask) | ((a << position) & mask));
}
template <typename T>
struct BfiRun {
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const T* a = SourceAs<T>(warp, in.a);
    const T* b = SourceAs<T>(warp, in.b);
    const uint32_t* c = SourceAs<uint32_t>(warp, in.c);
    const uint32_t* e = SourceAs<uint32_t>(warp, in.e);
    alignas(64) T result[kLanes];
    for (int l = 0; l < kLanes; ++l) result[l] = Bfi<T>(a[l], b[l], c[l], e[l]);
    Blend(TargetAs<T>(warp, in.d), result, mask);
  }
};
inline uint32_t ShfLeftWrap(uint32_t a, uint32_t b, uint32_t c) {
  return static_cast<uint32_t>((((uint64_t{b} << 32) | a) << (c & 31u)) >> 32);
}
inline uint32_t ShfRightWrap(uint32_t a, uint32_t b, uint32_t c) {
  return static_cast<uint32_t>(((uint64_t{b} << 32) | a) >> (c & 31u));
}
inline uint32_t ShfLeftClamp(uint32_t a, uint32_t b, uint32_t c) {
  return static_cast<uint32_t>((((uint64_t{b} << 32) | a) << (c > 32 ? 32u : c)) >> 32);
}
inline uint32_t ShfRightClamp(uint32_t a, uint32_t b, uint32_t c) {
  return static_cast<uint32_t>(((uint64_t{b} << 32) | a) >> (c > 32 ? 32u : c));
}
template <typename T>
T Lop3(T a, T b, T c, int64_t table) {
  const auto t = static_cast<uint32_t>(table);
  T r = 0;
  r |= (t & 0x01) != 0 ? static_cast<T>(~a & ~b & ~c) : T{0};
  r |= (t & 0x02) != 0 ? static_cast<T>(~a & ~b & c) : T{0};
  r |= (t & 0x04) != 0 ? static_cast<T>(~a & b & ~c) : T{0};
  r |= (t & 0x08) != 0 ? static_cast<T>(~a & b & c) : T{0};
  r |= (t & 0x10) != 0 ? static_cast<T>(a & ~b & ~c) : T{0};
  r |= (t & 0x20) != 0 ? static_cast<T>(a & ~b & c) : T{0};
  r |= (t & 0x40) != 0 ? static_cast<T>(a & b & ~c) : T{0};
  r |= (t & 0x80) != 0 ? static_cast<T>(a & b & c) : T{0};
  return r;
}
inline uint32_t Prmt(uint32_t a, uint32_t b, uint32_t c, int64_t mode) {
  const uint64_t both = (uint64_t{b} << 32) | a;
  uint32_t selector = c;
  const uint32_t n = c & 3u;
  switch (mode) {
    case 1:
      selector = 0x3210u + n * 0x1111u;
      break;  // f4e
    case 2:
      selector = 0;
      for (uint32_t i = 0; i < 4; ++i) selector |= ((n + 8u - i) & 7u) << (4 * i);
      break;  // b4e
    case 3:
      selector = n * 0x1111u;
      break;  // rc8
    case 4:
      selector = 0;
      for (uint32_t i = 0; i < 4; ++i) selector |= (i > n ? i : n) << (4 * i);
      break;  // ecl
    case 5:
      selector = 0;
      for (uint32_t i = 0; i < 4; ++i) selector |= (i < n ? i : n) << (4 * i);
      break;  // ecr
    case 6:
      selector = (n & 1u) != 0 ? 0x3232u : 0x1010u;
      break;  // rc16
    default:
      break;
  }
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t s = (selector >> (4 * i)) & 15u;
    uint32_t byte = static_cast<uint32_t>(both >> (8 * (s & 7u))) & 0xFFu;
    if (mode == 0 && (s & 8u) != 0) byte = (byte & 0x80u) != 0 ? 0xFFu : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
template <bool kSignedA, bool kSignedB>
uint32_t Dp4a(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i) {
    const int32_t x =
        kSignedA ? static_cast<int8_t>(a >> (8 * i)) : static_cast<int32_t>(static_cast<uint8_t>(a >> (8 * i)));
    const int32_t y =
        kSignedB ? static_cast<int8_t>(b >> (8 * i)) : static_cast<int32_t>(static_cast<uint8_t>(b >> (8 * i)));
    c += static_cast<uint32_t>(x * y);
  }
  return c;
}
template <typename T>
T Sad(T a, T b, T c) {
  return Add<T>(c, a < b ? Sub<T>(b, a) : Sub<T>(a, b));
}
inline int32_t Mul24(int32_t a, int32_t b) {
  return MulLo<int32_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8,
                        static_cast<int32_t>(static_cast<uint32_t>(b) << 8) >> 8);
}
inline uint32_t Umul24(uint32_t a, uint32_t b) {
  return (a & 0xFFFFFFu) * (b & 0xFFFFFFu);
}
inline int32_t Mad24(int32_t a, int32_t b, int32_t c) {
  return Add<int32_t>(Mul24(a, b), c);
}
inline uint32_t Umad24(uint32_t a, uint32_t b, uint32_t c) {
  return Umul24(a, b) + c;
}

// Arithmetic with the condition code: Instruction::size bit 0 reads the carry, bit 1 writes it.
template <typename T, int kOperation>  // 0 add, 1 sub, 2 mad.lo, 3 mad.hi
void Extended(Warp& warp, const Instruction& in, uint32_t mask) {
  const T* a = SourceAs<T>(warp, in.a);
  const T* b = SourceAs<T>(warp, in.b);
  const T* c = kOperation >= 2 ? SourceAs<T>(warp, in.c) : nullptr;
  T* d = TargetAs<T>(warp, in.d);
  uint32_t carry_out = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (((mask >> l) & 1u) == 0) continue;
    const T in_carry = (in.size & 1u) != 0 ? static_cast<T>((warp.carry >> l) & 1u) : T{0};
    T x = a[l], y = b[l];
    if constexpr (kOperation == 2) x = MulLo<T>(a[l], b[l]);
    if constexpr (kOperation == 3) x = MulHi<T>(a[l], b[l]);
    if constexpr (kOperation >= 2) y = c[l];
    T result;
    bool carry;
    if constexpr (kOperation == 1) {
      result = static_cast<T>(x - y - in_carry);
      carry = x < y || (x == y && in_carry != 0);
    } else {
      result = static_cast<T>(x + y + in_carry);
      carry = result < x || (result == x && in_carry != 0);
    }
    d[l] = result;
    carry_out |= static_cast<uint32_t>(carry) << l;
  }
  if ((in.size & 2u) != 0) warp.carry = (warp.carry & ~mask) | carry_out;
}

// ---- float and double ----

inline float Flush(float v) {
  return std::fabs(v) < 1.17549435e-38f ? std::copysign(0.0f, v) : v;
}
template <bool kFtz>
float In(float v) {
  if constexpr (kFtz)
    return Flush(v);
  else
    return v;
}
inline float Saturate(float v) {
  const float low = v > 0.0f ? v : 0.0f;
  return low < 1.0f ? low : 1.0f;
}
inline double SaturateDouble(double v) {
  const double low = v > 0.0 ? v : 0.0;
  return low < 1.0 ? low : 1.0;
}
template <bool kFtz, bool kSat>
float Out(float v) {
  if constexpr (kFtz) v = Flush(v);
  if constexpr (kSat) v = Saturate(v);
  return v;
}
template <bool kFtz, bool kSat>
float Fadd(float a, float b) {
  return Out<kFtz, kSat>(In<kFtz>(a) + In<kFtz>(b));
}
template <bool kFtz, bool kSat>
float Fsub(float a, float b) {
  return Out<kFtz, kSat>(In<kFtz>(a) - In<kFtz>(b));
}
template <bool kFtz, bool kSat>
float Fmul(float a, float b) {
  return Out<kFtz, kSat>(In<kFtz>(a) * In<kFtz>(b));
}
template <bool kFtz, bool kSat>
float Ffma(float a, float b, float c) {
  return Out<kFtz, kSat>(__builtin_fmaf(In<kFtz>(a), In<kFtz>(b), In<kFtz>(c)));
}
inline double Dadd(double a, double b) {
  return a + b;
}
inline double Dsub(double a, double b) {
  return a - b;
}
inline double Dmul(double a, double b) {
  return a * b;
}
inline double Dfma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
inline double Ddiv(double a, double b) {
  return a / b;
}
template <bool kFtz>
float Fdiv(float a, float b) {
  return Out<kFtz, false>(In<kFtz>(a) / In<kFtz>(b));
}
template <bool kFtz>
float Fneg(float a) {
  return -In<kFtz>(a);
}
template <bool kFtz>
float Fabs(float a) {
  return std::fabs(In<kFtz>(a));
}
inline double Dneg(double a) {
  return -a;
}
inline double Dabs(double a) {
  return std::fabs(a);
}
// The number where one operand is NaN; -0 is below +0.
template <typename T>
T FloatMin(T a, T b) {
  T r = a < b ? a : b;
  r = a == b ? (std::signbit(a) ? a : b) : r;
  r = a != a ? b : r;
  return b != b ? a : r;
}
template <typename T>
T FloatMax(T a, T b) {
  T r = a > b ? a : b;
  r = a == b ? (std::signbit(a) ? b : a) : r;
  r = a != a ? b : r;
  return b != b ? a : r;
}
template <bool kFtz>
float Fmin(float a, float b) {
  return FloatMin(In<kFtz>(a), In<kFtz>(b));
}
template <bool kFtz>
float Fmax(float a, float b) {
  return FloatMax(In<kFtz>(a), In<kFtz>(b));
}
inline float FminNan(float a, float b) {
  return a != a || b != b ? std::bit_cast<float>(0x7FFFFFFFu) : FloatMin(a, b);
}
inline float FmaxNan(float a, float b) {
  return a != a || b != b ? std::bit_cast<float>(0x7FFFFFFFu) : FloatMax(a, b);
}
template <bool kFtz>
float Frcp(float a) {
  return Out<kFtz, false>(1.0f / In<kFtz>(a));
}
inline double Drcp(double a) {
  return 1.0 / a;
}
// rcp.approx.ftz.f64 and rsqrt.approx.f64 keep the upper 32 bits (20 of the mantissa).
inline double UpperHalf(double a) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(a) & 0xFFFFFFFF00000000ull);
}
inline double DrcpApprox(double a) {
  return UpperHalf(1.0 / a);
}
inline double DrsqrtApprox(double a) {
  return UpperHalf(1.0 / __builtin_sqrt(a));
}
template <bool kFtz>
float Fsqrt(float a) {
  return Out<kFtz, false>(__builtin_sqrtf(In<kFtz>(a)));
}
inline double Dsqrt(double a) {
  return __builtin_sqrt(a);
}
template <bool kFtz>
float Frsqrt(float a) {
  return Out<kFtz, false>(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(In<kFtz>(a)))));
}
template <bool kFtz>
float Fex2(float a) {
  return Out<kFtz, false>(ApproxExp2(In<kFtz>(a)));
}
template <bool kFtz>
float Flg2(float a) {
  return Out<kFtz, false>(ApproxLog2(In<kFtz>(a)));
}
template <bool kFtz>
float Fsin(float a) {
  return Out<kFtz, false>(ApproxSinCos(In<kFtz>(a), 0.0));
}
template <bool kFtz>
float Fcos(float a) {
  return Out<kFtz, false>(ApproxSinCos(In<kFtz>(a), 1.0));
}
inline float Ftanh(float a) {
  return ApproxTanh(a);
}
inline float Fcopysign(float a, float b) {
  return std::copysign(b, a);
}
inline double Dcopysign(double a, double b) {
  return std::copysign(b, a);
}

// Comparisons. The "u" forms are true where an operand is NaN.
template <typename T>
bool Eq(T a, T b) {
  return a == b;
}
template <typename T>
bool Lt(T a, T b) {
  return a < b;
}
template <typename T>
bool Le(T a, T b) {
  return a <= b;
}
template <typename T>
bool Gt(T a, T b) {
  return a > b;
}
template <typename T>
bool Ge(T a, T b) {
  return a >= b;
}
template <typename T>
bool Ne(T a, T b) {
  return a != b;
}
template <typename T>
bool NeOrdered(T a, T b) {
  return a < b || a > b;
}
template <typename T>
bool Equ(T a, T b) {
  return !(a < b || a > b);
}
template <typename T>
bool Ltu(T a, T b) {
  return !(a >= b);
}
template <typename T>
bool Leu(T a, T b) {
  return !(a > b);
}
template <typename T>
bool Gtu(T a, T b) {
  return !(a <= b);
}
template <typename T>
bool Geu(T a, T b) {
  return !(a < b);
}
template <typename T>
bool Num(T a, T b) {
  return a == a && b == b;
}
template <typename T>
bool Nan(T a, T b) {
  return a != a || b != b;
}

// ---- half and bfloat16 ----

struct HalfFormat {
  static float Widen(uint32_t v) { return HalfToFloat(v & 0xFFFFu); }
  static uint32_t Narrow(float v) { return FloatToHalf(v); }
  static uint32_t NarrowDouble(double v) { return DoubleToHalf(v); }
};
struct Bf16Format {
  static float Widen(uint32_t v) { return Bf16ToFloat(v & 0xFFFFu); }
  static uint32_t Narrow(float v) { return FloatToBf16(v); }
  static uint32_t NarrowDouble(double v) { return DoubleToBf16(v); }
};
template <typename H>
uint32_t Hadd(uint32_t a, uint32_t b) {
  return H::NarrowDouble(static_cast<double>(H::Widen(a)) + static_cast<double>(H::Widen(b)));
}
template <typename H>
uint32_t Hsub(uint32_t a, uint32_t b) {
  return H::NarrowDouble(static_cast<double>(H::Widen(a)) - static_cast<double>(H::Widen(b)));
}
template <typename H>
uint32_t Hmul(uint32_t a, uint32_t b) {
  return H::Narrow(H::Widen(a) * H::Widen(b));
}
template <typename H>
uint32_t Hfma(uint32_t a, uint32_t b, uint32_t c) {
  // The product of two 11-bit (8-bit) significands is exact in double; the sum is rounded to odd by its own error.
  const double p = static_cast<double>(H::Widen(a)) * static_cast<double>(H::Widen(b));
  const double q = static_cast<double>(H::Widen(c));
  const double s = p + q;
  const double t = s - p;
  const double error = (p - (s - t)) + (q - t);
  const uint64_t bits = std::bit_cast<uint64_t>(s);
  const bool inexact = error != 0.0 && error == error && (bits & 1u) == 0;
  const uint64_t odd = (error > 0.0) == (s > 0.0) ? bits + 1 : bits - 1;
  return H::NarrowDouble(std::bit_cast<double>(inexact ? odd : bits));
}
template <typename H>
uint32_t HfmaRelu(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t r = Hfma<H>(a, b, c);
  return (r & 0x8000u) != 0 || H::Widen(r) != H::Widen(r) ? ((r & 0x7FFFu) == 0x7FFFu ? r : 0u) : r;
}
template <typename H>
uint32_t HaddSat(uint32_t a, uint32_t b) {
  return H::Narrow(Saturate(H::Widen(Hadd<H>(a, b))));
}
template <typename H>
uint32_t HsubSat(uint32_t a, uint32_t b) {
  return H::Narrow(Saturate(H::Widen(Hsub<H>(a, b))));
}
template <typename H>
uint32_t HmulSat(uint32_t a, uint32_t b) {
  return H::Narrow(Saturate(H::Widen(Hmul<H>(a, b))));
}
template <typename H>
uint32_t HfmaSat(uint32_t a, uint32_t b, uint32_t c) {
  return H::Narrow(Saturate(H::Widen(Hfma<H>(a, b, c))));
}
template <typename H>
uint32_t Hneg(uint32_t a) {
  return (a ^ 0x8000u) & 0xFFFFu;
}
template <typename H>
uint32_t Habs(uint32_t a) {
  return a & 0x7FFFu;
}
template <typename H>
uint32_t Hmin(uint32_t a, uint32_t b) {
  return H::Narrow(FloatMin(H::Widen(a), H::Widen(b)));
}
template <typename H>
uint32_t Hmax(uint32_t a, uint32_t b) {
  return H::Narrow(FloatMax(H::Widen(a), H::Widen(b)));
}
template <typename H>
uint32_t HminNan(uint32_t a, uint32_t b) {
  return H::Narrow(FminNan(H::Widen(a), H::Widen(b)));
}
template <typename H>
uint32_t HmaxNan(uint32_t a, uint32_t b) {
  return H::Narrow(FmaxNan(H::Widen(a), H::Widen(b)));
}
template <typename H>
uint32_t Hex2(uint32_t a) {
  return H::Narrow(ApproxExp2(H::Widen(a)));
}
template <typename H>
uint32_t Htanh(uint32_t a) {
  return H::Narrow(ApproxTanh(H::Widen(a)));
}
// Both halves of a register.
template <auto F>
uint32_t Pair1(uint32_t a) {
  return F(a & 0xFFFFu) | (F(a >> 16) << 16);
}
template <auto F>
uint32_t Pair2(uint32_t a, uint32_t b) {
  return F(a & 0xFFFFu, b & 0xFFFFu) | (F(a >> 16, b >> 16) << 16);
}
template <auto F>
uint32_t Pair3(uint32_t a, uint32_t b, uint32_t c) {
  return F(a & 0xFFFFu, b & 0xFFFFu, c & 0xFFFFu) | (F(a >> 16, b >> 16, c >> 16) << 16);
}

template <typename H, bool (*F)(float, float)>
struct HalfCompare {  // setp.f16 and setp.f16x2 (p for the lower, q for the upper half)
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    const uint32_t* b = SourceAs<uint32_t>(warp, in.b);
    uint32_t low = 0, high = 0;
    for (int l = 0; l < kLanes; ++l) {
      low |= static_cast<uint32_t>(F(H::Widen(a[l]), H::Widen(b[l]))) << l;
      high |= static_cast<uint32_t>(F(H::Widen(a[l] >> 16), H::Widen(b[l] >> 16))) << l;
    }
    if (in.offset == 0) {
      SetPredicates(warp, in, mask, low);
    } else {
      SetPredicate(warp, in.d, mask, low);
      if (in.e != kNoOperand) SetPredicate(warp, in.e, mask, high);
    }
  }
};
template <typename H, bool (*F)(float, float)>
struct HalfCompareToValue {  // set.f16x2.f16x2 and .u32/.f16 forms: offset = the bits of "true", one half each
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
    const uint32_t* b = SourceAs<uint32_t>(warp, in.b);
    const auto low = static_cast<uint32_t>(in.offset);
    const auto high = static_cast<uint32_t>(static_cast<uint64_t>(in.offset) >> 32);
    alignas(64) uint32_t result[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      result[l] =
          (F(H::Widen(a[l]), H::Widen(b[l])) ? low : 0u) | (F(H::Widen(a[l] >> 16), H::Widen(b[l] >> 16)) ? high : 0u);
    }
    Blend(TargetAs<uint32_t>(warp, in.d), result, mask);
  }
};

// ---- conversions ----

template <typename D, typename S>
D Integer(S a) {
  return static_cast<D>(a);
}
template <typename D, typename S>
D IntegerSaturated(S a) {
  if constexpr (sizeof(S) == 8 && !std::is_signed_v<S>) {
    return a > static_cast<uint64_t>(std::numeric_limits<D>::max()) ? std::numeric_limits<D>::max() : static_cast<D>(a);
  } else if constexpr (sizeof(D) == 8) {
    return !std::is_signed_v<D> && a < 0 ? D{0} : static_cast<D>(a);
  } else {
    return Clamp<D>(static_cast<int64_t>(a));
  }
}
template <typename D, typename S>
D FromInteger(S a) {
  return static_cast<D>(a);
}
// double to integer: rounded before, clamped here; NaN becomes 0.
template <typename D>
D ToInteger(double v) {
  if (v != v) return 0;
  constexpr double kHigh = sizeof(D) == 8 ? (std::is_signed_v<D> ? 9223372036854775808.0 : 18446744073709551616.0)
                                          : static_cast<double>(std::numeric_limits<D>::max()) + 1.0;
  constexpr double kLow = static_cast<double>(std::numeric_limits<D>::min());
  if (v >= kHigh) return std::numeric_limits<D>::max();
  if (v <= kLow) return std::numeric_limits<D>::min();
  return static_cast<D>(v);
}
template <int kRound>
double ToWhole(double v) {
  if constexpr (kRound == 0) return __builtin_rint(v);
  if constexpr (kRound == 1) return __builtin_trunc(v);
  if constexpr (kRound == 2) return __builtin_floor(v);
  return __builtin_ceil(v);
}
template <typename D, typename S, int kRound>
D FloatToInteger(S v) {
  return ToInteger<D>(ToWhole<kRound>(static_cast<double>(v)));
}
template <typename D, typename H, int kRound>
D HalfToInteger(uint32_t v) {
  return ToInteger<D>(ToWhole<kRound>(static_cast<double>(H::Widen(v))));
}
template <typename S, int kRound>
S FloatWhole(S v) {
  return static_cast<S>(ToWhole<kRound>(static_cast<double>(v)));
}
inline float NarrowDouble(double v) {
  return static_cast<float>(v);
}
inline double WidenFloat(float v) {
  return static_cast<double>(v);
}
template <bool kFtz, bool kSat>
float FloatCopy(float v) {
  return Out<kFtz, kSat>(In<kFtz>(v));
}
inline double DoubleCopySat(double v) {
  return SaturateDouble(v);
}
inline double DoubleCopy(double v) {
  return v;
}
template <typename H>
float HalfWiden(uint32_t v) {
  return H::Widen(v);
}
template <typename H>
double HalfWidenDouble(uint32_t v) {
  return static_cast<double>(H::Widen(v));
}
template <typename H>
uint32_t HalfNarrow(float v) {
  return H::Narrow(v);
}
template <typename H>
uint32_t HalfNarrowSat(float v) {
  return H::Narrow(Saturate(v));
}
template <typename H>
uint32_t HalfNarrowRelu(float v) {
  return H::Narrow(v > 0.0f ? v : v != v ? v : 0.0f);
}
template <typename H>
uint32_t HalfNarrowDouble(double v) {
  return H::NarrowDouble(v);
}
template <typename H, typename S>
uint32_t HalfFromInteger(S v) {
  // 64-bit integers beyond 2^53 exceed both formats' exactness only where they round to infinity or to a multiple
  // anyway.
  return H::NarrowDouble(static_cast<double>(v));
}
template <typename H, int kRound>
uint32_t HalfWhole(uint32_t v) {
  return H::Narrow(static_cast<float>(ToWhole<kRound>(static_cast<double>(H::Widen(v)))));
}
// Directed roundings to 16 bits: kRound 1 toward zero, 2 down, 3 up.
template <typename H, int kRound>
uint32_t HalfNarrowDirected(float v) {
  uint32_t nearest = H::Narrow(v);
  const float back = H::Widen(nearest);
  if (v != v || back == v) return nearest;
  const bool negative = std::signbit(v);
  const bool too_large = std::fabs(back) > std::fabs(v);  // nearest went away from zero
  const bool away = (kRound == 2 && negative) || (kRound == 3 && !negative);
  if (too_large && !away) return nearest - 1;
  if (!too_large && away) return nearest + 1;
  return nearest;
}
template <typename H>
uint32_t PackPair(float high, float low) {
  return (H::Narrow(high) << 16) | H::Narrow(low);
}
template <typename H>
uint32_t PackPairRelu(float high, float low) {
  return (HalfNarrowRelu<H>(high) << 16) | HalfNarrowRelu<H>(low);
}

// ---- moves and predicates ----

template <typename T>
T Copy(T v) {
  return v;
}

enum class PredicateOperation { kMove, kNot, kAnd, kOr, kXor };
template <PredicateOperation kOperation>
void PredicateLogic(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t a = PredicateOf(warp, in.a);
  uint32_t result = a;
  if constexpr (kOperation == PredicateOperation::kNot) result = ~a;
  if constexpr (kOperation == PredicateOperation::kAnd) result = a & PredicateOf(warp, in.b);
  if constexpr (kOperation == PredicateOperation::kOr) result = a | PredicateOf(warp, in.b);
  if constexpr (kOperation == PredicateOperation::kXor) result = a ^ PredicateOf(warp, in.b);
  SetPredicate(warp, in.d, mask, result);
}

enum class Class { kNormal, kSubnormal, kFinite, kInfinite, kNumber, kNotANumber };
template <typename T, Class kClass>
void TestClass(Warp& warp, const Instruction& in, uint32_t mask) {
  const T* a = SourceAs<T>(warp, in.a);
  uint32_t result = 0;
  for (int l = 0; l < kLanes; ++l) {
    bool is = false;
    if constexpr (kClass == Class::kNormal) is = std::isnormal(a[l]);
    if constexpr (kClass == Class::kSubnormal) is = std::fpclassify(a[l]) == FP_SUBNORMAL;
    if constexpr (kClass == Class::kFinite) is = std::isfinite(a[l]);
    if constexpr (kClass == Class::kInfinite) is = std::isinf(a[l]);
    if constexpr (kClass == Class::kNumber) is = !std::isnan(a[l]);
    if constexpr (kClass == Class::kNotANumber) is = std::isnan(a[l]);
    result |= static_cast<uint32_t>(is) << l;
  }
  SetPredicate(warp, in.d, mask, result);
}

// slct: c >= 0 ? a : b
template <typename T>
T SelectBySign(T a, T b, int32_t c) {
  return c >= 0 ? a : b;
}
template <typename T>
T SelectByFloat(T a, T b, float c) {
  return c >= 0.0f ? a : b;
}

}  // namespace
}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_ALU_OPS_H_
