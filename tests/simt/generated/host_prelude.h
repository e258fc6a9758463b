// The functions of generated kernels' expressions for a host compiler without CUDA, with which generated_test.cc
// compares the interpreter. Kernels include it in place of CUDA's headers. Compile with -frounding-math
// -ffp-contract=off -fwrapv.
#ifndef KGRPO_TESTS_SIMT_GENERATED_HOST_PRELUDE_H_
#define KGRPO_TESTS_SIMT_GENERATED_HOST_PRELUDE_H_

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

// One function on each line, as in prelude.cc.
// clang-format off
namespace {

using U32 = unsigned;
using U64 = unsigned long long;
using S64 = long long;
__extension__ typedef __int128 S128;
__extension__ typedef unsigned __int128 U128;

// ---- helpers of the device's prelude ----
template <class T> T QuotientOf(T a, T b) { return b == T(0) || (T(-1) < T(0) && b == T(-1)) ? a : a / b; }
template <class T> T RemainderOf(T a, T b) { return b == T(0) || (T(-1) < T(0) && b == T(-1)) ? b : a % b; }
inline float __uint_as_float(U32 v) { return std::bit_cast<float>(v); }
inline U32 BitsOf(float v) { return v != v ? 0x7fffffffu : std::bit_cast<U32>(v); }
inline U64 BitsOf(double v) { return v != v ? 0x7fffffffffffffffull : std::bit_cast<U64>(v); }
inline double FromBits(U64 v) { return std::bit_cast<double>(v); }
template <class T> T Known(T v) { return v != v ? T(1) : v; }
inline float Bounded(float v) { return std::fabs(v) < 100.0f ? std::fabs(v) : 1.0f; }
inline double Bounded(double v) { return std::fabs(v) < 100.0 ? std::fabs(v) : 1.0; }
inline int Exponent(int v) { return (v & 0x7fe00000) == 0x7fe00000 ? 0x40000000 : v; }
inline U64 Stored(U32 v) { return v; }
inline U64 Stored(int v) { return static_cast<U32>(v); }
inline U64 Stored(U64 v) { return v; }
inline U64 Stored(S64 v) { return static_cast<U64>(v); }
inline U64 Stored(float v) { return std::bit_cast<U32>(v); }
inline U64 Stored(double v) { return std::bit_cast<U64>(v); }

// ---- integers ----
inline U32 __brev(U32 v) {
  U32 r = 0;
  for (int i = 0; i < 32; ++i) r |= (v >> i & 1u) << (31 - i);
  return r;
}
inline U64 __brevll(U64 v) { return U64{__brev(static_cast<U32>(v))} << 32 | __brev(static_cast<U32>(v >> 32)); }
inline int __clz(U32 v) { return std::countl_zero(v); }
inline int __clzll(U64 v) { return std::countl_zero(v); }
inline int __popc(U32 v) { return std::popcount(v); }
inline int __popcll(U64 v) { return std::popcount(v); }
inline int __ffs(U32 v) { return v == 0 ? 0 : std::countr_zero(v) + 1; }
inline int __ffsll(U64 v) { return v == 0 ? 0 : std::countr_zero(v) + 1; }
inline U32 __umulhi(U32 a, U32 b) { return static_cast<U32>(U64{a} * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(S64{a} * b >> 32); }
inline U64 __umul64hi(U64 a, U64 b) { return static_cast<U64>(U128{a} * b >> 64); }
inline S64 __mul64hi(S64 a, S64 b) { return static_cast<S64>(S128{a} * b >> 64); }
inline U32 __umul24(U32 a, U32 b) { return static_cast<U32>(U64{a & 0xffffffu} * (b & 0xffffffu)); }
inline int __mul24(int a, int b) {
  const S64 x = static_cast<int>(static_cast<U32>(a) << 8) / 256, y = static_cast<int>(static_cast<U32>(b) << 8) / 256;
  return static_cast<int>(x * y);
}
inline U32 __uhadd(U32 a, U32 b) { return static_cast<U32>((U64{a} + b) / 2); }
inline U32 __urhadd(U32 a, U32 b) { return static_cast<U32>((U64{a} + b + 1) / 2); }
inline int __hadd(int a, int b) { return static_cast<int>((S64{a} + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((S64{a} + b + 1) >> 1); }
inline U32 __byte_perm(U32 a, U32 b, U32 s) {
  U32 r = 0;
  for (U32 i = 0; i < 4; ++i) {
    const U32 n = s >> (4 * i) & 7u;
    r |= ((n < 4 ? a >> (8 * n) : b >> (8 * (n - 4))) & 0xffu) << (8 * i);
  }
  return r;
}
inline U32 __funnelshift_l(U32 lo, U32 hi, U32 n) { return static_cast<U32>((U64{hi} << 32 | lo) << (n % 32) >> 32); }
inline U32 __funnelshift_r(U32 lo, U32 hi, U32 n) { return static_cast<U32>((U64{hi} << 32 | lo) >> (n % 32)); }
inline U32 __funnelshift_lc(U32 lo, U32 hi, U32 n) { return n >= 32 ? lo : __funnelshift_l(lo, hi, n); }
inline U32 __funnelshift_rc(U32 lo, U32 hi, U32 n) { return n >= 32 ? hi : __funnelshift_r(lo, hi, n); }
inline U32 __usad(U32 a, U32 b, U32 c) { return c + (a > b ? a - b : b - a); }
inline U32 __sad(int a, int b, U32 c) { return c + static_cast<U32>(std::llabs(S64{a} - b)); }
inline U32 __dp4a(U32 a, U32 b, U32 c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255u) * (b >> i & 255u);
  return c;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return c;
}
inline U32 __dp2a_lo(U32 a, U32 b, U32 c) { return c + (a & 65535u) * (b & 255u) + (a >> 16) * (b >> 8 & 255u); }
inline int __dp2a_hi(int a, int b, int c) {
  return c + static_cast<int16_t>(a) * static_cast<int8_t>(b >> 16) +
         static_cast<int16_t>(a >> 16) * static_cast<int8_t>(b >> 24);
}

// Operations on each byte or half.
template <int kBits, bool kSigned, class F>
U32 Parts(U32 a, U32 b, F f) {
  U32 r = 0;
  const U32 ones = kBits == 8 ? 0xffu : 0xffffu;
  for (int i = 0; i < 32; i += kBits) {
    S64 x = a >> i & ones, y = b >> i & ones;
    if (kSigned && (x >> (kBits - 1)) != 0) x -= S64{ones} + 1;
    if (kSigned && (y >> (kBits - 1)) != 0) y -= S64{ones} + 1;
    r |= (static_cast<U32>(f(x, y)) & ones) << i;
  }
  return r;
}
template <int kBits, bool kSigned>
S64 Fit(S64 v) {
  const S64 high = kSigned ? (S64{1} << (kBits - 1)) - 1 : (S64{1} << kBits) - 1, low = kSigned ? -high - 1 : 0;
  return v < low ? low : v > high ? high : v;
}
#define PARTS(name, bits, is_signed, expression) \
  inline U32 name(U32 a, U32 b) { return Parts<bits, is_signed>(a, b, [](S64 x, S64 y) -> S64 { return expression; }); }
#define PARTS1(name, bits, expression) \
  inline U32 name(U32 a) { return Parts<bits, true>(a, a, [](S64 x, S64) -> S64 { return expression; }); }
PARTS(__vadd4, 8, false, x + y)
PARTS(__vsub4, 8, false, x - y)
PARTS(__vadd2, 16, false, x + y)
PARTS(__vsub2, 16, false, x - y)
PARTS(__vabsdiffu4, 8, false, x > y ? x - y : y - x)
PARTS(__vabsdiffs4, 8, true, x > y ? x - y : y - x)
PARTS(__vmaxu4, 8, false, x > y ? x : y)
PARTS(__vmins4, 8, true, x < y ? x : y)
PARTS(__vmaxs2, 16, true, x > y ? x : y)
PARTS(__vminu2, 16, false, x < y ? x : y)
PARTS(__vavgu4, 8, false, (x + y + 1) / 2)
PARTS(__vcmpeq4, 8, false, x == y ? -1 : 0)
PARTS(__vcmpgts2, 16, true, x > y ? -1 : 0)
PARTS(__vcmpltu4, 8, false, x < y ? -1 : 0)
PARTS(__vseteq2, 16, false, x == y ? 1 : 0)
PARTS(__vsetgeu4, 8, false, x >= y ? 1 : 0)
PARTS(__vaddss4, 8, true, (Fit<8, true>(x + y)))
PARTS(__vaddus2, 16, false, (Fit<16, false>(x + y)))
PARTS(__vsubss2, 16, true, (Fit<16, true>(x - y)))
PARTS(__vsubus4, 8, false, (Fit<8, false>(x - y)))
PARTS(__vhaddu4, 8, false, (x + y) / 2)
PARTS1(__vabs4, 8, x < 0 ? -x : x)
PARTS1(__vneg2, 16, -x)
PARTS1(__vabsss2, 16, (Fit<16, true>(x < 0 ? -x : x)))
PARTS1(__vnegss4, 8, (Fit<8, true>(-x)))
#undef PARTS
#undef PARTS1
inline U32 __vsadu4(U32 a, U32 b) {
  U32 sum = 0;
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<U32>(std::abs(static_cast<int>(a >> i & 255u) - static_cast<int>(b >> i & 255u)));
  return sum;
}
inline U32 __vsads2(U32 a, U32 b) {
  U32 sum = 0;
  for (int i = 0; i < 32; i += 16)
    sum += static_cast<U32>(std::abs(static_cast<int16_t>(a >> i) - static_cast<int16_t>(b >> i)));
  return sum;
}

// ---- roundings ----
template <class F>
auto Rounded(int mode, F f) {
  std::fesetround(mode);
  const volatile auto result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}
template <class T>
S64 WholeOf(T v, int mode) {  // within the range of S64
  return Rounded(mode, [&] { return static_cast<S64>(std::llrint(static_cast<volatile T&>(v))); });
}
// Converts to an integer, clamped. NaN gives 0, or 1 << (bits - 1) if either type has 64 bits.
template <class R, class T>
R ToInteger(T v, int mode) {
  if (v != v) return sizeof(R) == 8 || sizeof(T) == 8 ? static_cast<R>(U64{1} << (8 * sizeof(R) - 1)) : R{0};
  const volatile T input = v;
  const T whole = Rounded(mode, [&] { return static_cast<T>(std::nearbyint(input)); });
  const T low = static_cast<T>(std::numeric_limits<R>::min());
  const T beyond = std::ldexp(T(1), std::numeric_limits<R>::digits);
  if (whole < low) return std::numeric_limits<R>::min();
  if (whole >= beyond) return std::numeric_limits<R>::max();
  return static_cast<R>(whole);
}
template <class T, class S>
T FromInteger(S v, int mode) {
  const volatile S input = v;
  return Rounded(mode, [&] {
    if constexpr (static_cast<S>(-1) > S{0} && sizeof(S) == 8) {  // by S64: a large value is halved and doubled again
      const U64 value = input;
      if (value >> 63 == 0) return static_cast<T>(static_cast<S64>(value));
      const S64 half = static_cast<S64>(value >> 1 | (value & 1u));  // a lost bit stays set as the last bit
      return static_cast<T>(2) * static_cast<T>(half);
    } else {
      const S64 wide = input;
      return static_cast<T>(wide);
    }
  });
}
#define BINARY(name, T, mode, expression) \
  inline T name(T a, T b) { const volatile T x = a, y = b; return Rounded(mode, [&] { return expression; }); }
#define FLOATING(T, letter, fused, suffix, mode) \
  BINARY(__##letter##add_##suffix, T, mode, x + y) \
  BINARY(__##letter##sub_##suffix, T, mode, x - y) \
  BINARY(__##letter##mul_##suffix, T, mode, x * y) \
  BINARY(__##letter##div_##suffix, T, mode, x / y) \
  inline T fused##_##suffix(T a, T b, T c) { \
    const volatile T x = a, y = b, z = c; \
    return Rounded(mode, [&] { return std::fma(T(x), T(y), T(z)); }); \
  } \
  inline T __##letter##sqrt_##suffix(T a) { const volatile T x = a; return Rounded(mode, [&] { return std::sqrt(T(x)); }); } \
  inline T __##letter##rcp_##suffix(T a) { return __##letter##div_##suffix(T(1), a); }
#define CONVERTING(T, name, suffix, mode) \
  inline T __float2##name##_##suffix(float v) { return ToInteger<T>(v, mode); } \
  inline T __double2##name##_##suffix(double v) { return ToInteger<T>(v, mode); } \
  inline float __##name##2float_##suffix(T v) { return FromInteger<float>(v, mode); } \
  inline double __##name##2double_##suffix(T v) { return FromInteger<double>(v, mode); }
#define ROUNDED(suffix, mode) \
  FLOATING(float, f, __fmaf, suffix, mode) \
  FLOATING(double, d, __fma, suffix, mode) \
  CONVERTING(int, int, suffix, mode) \
  CONVERTING(U32, uint, suffix, mode) \
  CONVERTING(S64, ll, suffix, mode) \
  CONVERTING(U64, ull, suffix, mode) \
  inline float __double2float_##suffix(double v) { \
    const volatile double x = v; \
    return Rounded(mode, [&] { return static_cast<float>(x); }); \
  }
ROUNDED(rn, FE_TONEAREST)
ROUNDED(rz, FE_TOWARDZERO)
ROUNDED(ru, FE_UPWARD)
ROUNDED(rd, FE_DOWNWARD)
#undef ROUNDED
#undef CONVERTING
#undef FLOATING
#undef BINARY
inline float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(U64{static_cast<U32>(high)} << 32 | static_cast<U32>(low));
}
inline int __double2hiint(double v) { return static_cast<int>(std::bit_cast<U64>(v) >> 32); }
inline int __double2loint(double v) { return static_cast<int>(std::bit_cast<U64>(v)); }
inline U32 __vavgs2(U32 a, U32 b) {
  return Parts<16, true>(a, b, [](S64 x, S64 y) -> S64 { return (x + y + (x + y >= 0 ? 1 : 0)) >> 1; });
}

// A zero of either sign: -0 is the smaller one on a GPU.
template <class T> T MinimumOf(T a, T b) { return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b); }
template <class T> T MaximumOf(T a, T b) { return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b); }
#define fminf MinimumOf<float>
#define fmaxf MaximumOf<float>
#define fmin MinimumOf<double>
#define fmax MaximumOf<double>

}  // namespace
#endif  // KGRPO_TESTS_SIMT_GENERATED_HOST_PRELUDE_H_
