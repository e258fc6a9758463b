// Arithmetic that kernels use rarely, a lane at a time: conversions to and from tf32, fp8 and packed integers,
// saturating conversions to 16 bits, pairs of 16-bit integers, bit fields, dot products of halves. What is frequent is
// in the alu_*.inc, which compilers vectorise. Lowering (lowering_lanes.cc) comes here where those have nothing.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "simt/alu/half_float.h"
#include "simt/alu/matrix.h"
#include "simt/ops/lane_video.h"
#include "simt/state/handlers.h"
#include "simt/state/machine.h"

namespace kgrpo::simt {
namespace {

// One lane: three sources (those that an instruction lacks repeat its first) and Instruction::offset.
using LaneFunction = uint32_t (*)(uint32_t a, uint32_t b, uint32_t c, int64_t mode);

template <LaneFunction F>
void Lanes(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
  const uint32_t* b = in.b == kNoOperand ? a : SourceAs<uint32_t>(warp, in.b);
  const uint32_t* c = in.c == kNoOperand ? a : SourceAs<uint32_t>(warp, in.c);
  uint32_t* d = TargetAs<uint32_t>(warp, in.d);
  for (const int l : EachBit(mask)) {
    d[l] = F(a[l], b[l], c[l], in.offset);
  }
}

// ---- bits ----

// The n-th set bit of a mask at or after (before, where n is negative) a position.
uint32_t FindNthSet(uint32_t bits, uint32_t base, uint32_t n, int64_t) {
  const auto offset = static_cast<int32_t>(n);
  if (offset == 0) return base < 32 && (bits >> base & 1u) != 0 ? base : UINT32_MAX;
  int64_t left = offset < 0 ? -int64_t{offset} : offset;
  for (int64_t at = base; at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
    if ((bits >> at & 1u) != 0 && --left == 0) return static_cast<uint32_t>(at);
  }
  return UINT32_MAX;
}

constexpr int64_t kWrap = 1, kSigned = 2;

uint32_t BitMask(uint32_t from, uint32_t count, uint32_t, int64_t mode) {
  if ((mode & kWrap) != 0) {
    from &= 31u;
    count &= 31u;
  }
  if (from >= 32) return 0;
  const uint64_t ones = count >= 32 ? 0xFFFFFFFFull : (uint64_t{1} << count) - 1;
  return static_cast<uint32_t>(ones << from);
}

uint32_t ExtendField(uint32_t value, uint32_t bits, uint32_t, int64_t mode) {
  if ((mode & kWrap) != 0) bits &= 31u;
  if (bits == 0) return 0;
  if (bits >= 32) return value;
  const uint32_t up = value << (32 - bits);
  return (mode & kSigned) != 0 ? static_cast<uint32_t>(static_cast<int32_t>(up) >> (32 - bits)) : up >> (32 - bits);
}

uint32_t Product24High(uint32_t a, uint32_t b, uint32_t, int64_t mode) {
  if ((mode & kSigned) != 0) {
    const int64_t x = static_cast<int32_t>(a << 8) >> 8, y = static_cast<int32_t>(b << 8) >> 8;
    return static_cast<uint32_t>(x * y >> 16);
  }
  return static_cast<uint32_t>(uint64_t{a & 0xFFFFFFu} * (b & 0xFFFFFFu) >> 16);
}
uint32_t Product24HighPlus(uint32_t a, uint32_t b, uint32_t c, int64_t mode) {
  return Product24High(a, b, 0, mode) + c;
}

constexpr int64_t kSignedB = 4, kHighBytes = 8;

uint32_t DotOfHalves(uint32_t a, uint32_t b, uint32_t c, int64_t mode) {
  const uint32_t bytes = (mode & kHighBytes) != 0 ? b >> 16 : b;
  for (uint32_t i = 0; i < 2; ++i) {
    const auto x = static_cast<uint16_t>(a >> (16 * i));
    const auto y = static_cast<uint8_t>(bytes >> (8 * i));
    const int64_t left = (mode & kSigned) != 0 ? int64_t{static_cast<int16_t>(x)} : int64_t{x};
    const int64_t right = (mode & kSignedB) != 0 ? int64_t{static_cast<int8_t>(y)} : int64_t{y};
    c += static_cast<uint32_t>(left * right);
  }
  return c;
}

// ---- pairs of 16-bit integers ----

constexpr int64_t kMinimum = 0, kMaximum = 1, kSum = 8, kRelu = 4;  // and kSigned

uint32_t IntegerPair(uint32_t a, uint32_t b, uint32_t, int64_t mode) {
  uint32_t result = 0;
  for (uint32_t shift = 0; shift < 32; shift += 16) {
    const auto x = static_cast<uint16_t>(a >> shift), y = static_cast<uint16_t>(b >> shift);
    const bool less = (mode & kSigned) != 0 ? static_cast<int16_t>(x) < static_cast<int16_t>(y) : x < y;
    uint16_t r = less == ((mode & kMaximum) != 0) ? y : x;
    if ((mode & kSum) != 0) r = static_cast<uint16_t>(x + y);
    if ((mode & kRelu) != 0 && static_cast<int16_t>(r) < 0) r = 0;
    result |= uint32_t{r} << shift;
  }
  return result;
}

// ---- minimum and maximum of magnitudes, with the sign of the product ----

constexpr int64_t kNanWins = 2, kPair = 4, kFormatShift = 4;  // and kMaximum; the format: 0 f32, 1 f16, 2 bf16

uint32_t MagnitudeOf(uint32_t a, uint32_t b, int64_t mode, uint32_t sign_bit, uint32_t infinity, uint32_t nan) {
  const uint32_t x = a & (sign_bit - 1), y = b & (sign_bit - 1), sign = (a ^ b) & sign_bit;
  const bool x_nan = x > infinity, y_nan = y > infinity;
  if ((x_nan && y_nan) || ((x_nan || y_nan) && (mode & kNanWins) != 0)) return nan;
  uint32_t result = ((mode & kMaximum) != 0) == (x > y) ? x : y;  // magnitudes compare as integers
  if (x_nan) result = y;
  if (y_nan) result = x;
  return result | sign;
}
uint32_t XorSign(uint32_t a, uint32_t b, uint32_t, int64_t mode) {
  const int64_t format = mode >> kFormatShift;
  if (format == 0) return MagnitudeOf(a, b, mode, 0x80000000u, 0x7F800000u, 0x7FFFFFFFu);
  const uint32_t infinity = format == 1 ? 0x7C00u : 0x7F80u;
  const uint32_t low = MagnitudeOf(a & 0xFFFFu, b & 0xFFFFu, mode, 0x8000u, infinity, 0x7FFFu);
  if ((mode & kPair) == 0) return low;
  return low | MagnitudeOf(a >> 16, b >> 16, mode, 0x8000u, infinity, 0x7FFFu) << 16;
}

// ---- conversions ----

constexpr int64_t kTowardZero = 1, kFinite = 2, kAwayFromZero = 8, kBf16 = 16;  // and kRelu, kPair as 32
constexpr int64_t kPacked = 32;

uint32_t NarrowToHalf(float value, int64_t mode) {
  const bool bf16 = (mode & kBf16) != 0;
  if (std::isnan(value)) return 0x7FFFu;
  if ((mode & kRelu) != 0 && !(value > 0.0f)) return 0;
  uint32_t half = bf16 ? FloatToBf16(value) : FloatToHalf(value);
  if ((mode & kTowardZero) != 0) {
    const float back = bf16 ? Bf16ToFloat(half) : HalfToFloat(half);
    if (std::fabs(back) > std::fabs(value)) --half;
  }
  const uint32_t infinity = bf16 ? 0x7F80u : 0x7C00u;
  if ((mode & kFinite) != 0 && (half & 0x7FFFu) == infinity) --half;
  return half;
}
uint32_t ConvertToHalf(uint32_t a, uint32_t b, uint32_t, int64_t mode) {
  const uint32_t first = NarrowToHalf(std::bit_cast<float>(a), mode);
  if ((mode & kPacked) == 0) return first;
  return first << 16 | NarrowToHalf(std::bit_cast<float>(b), mode);
}

uint32_t ConvertToTf32(uint32_t a, uint32_t, uint32_t, int64_t mode) {
  constexpr uint32_t kDropped = 0x1FFFu, kInfinity = 0x7F800000u;
  const uint32_t sign = a & 0x80000000u, magnitude = a & 0x7FFFFFFFu;
  if (magnitude > kInfinity) return 0x7FFFFFFFu;
  if ((mode & kRelu) != 0 && sign != 0) return 0;
  uint32_t rounded = magnitude;
  if (magnitude != kInfinity && (mode & kTowardZero) == 0) {
    rounded += (mode & kAwayFromZero) != 0 ? 0x1000u : 0xFFFu + (magnitude >> 13 & 1u);
  }
  rounded &= ~kDropped;
  if ((mode & kFinite) != 0 && rounded >= kInfinity) rounded = kInfinity - 0x2000u;
  return rounded | sign;
}

// The 8-bit formats: e4m3 has no infinity, e5m2 is the upper half of f16.
struct TinyFormat {
  int mantissa, bias;
  uint32_t largest, nan;
};
constexpr TinyFormat kE4m3{3, 7, 0x7E, 0x7F}, kE5m2{2, 15, 0x7B, 0x7F};

uint32_t NarrowToTiny(float value, const TinyFormat& format, bool relu) {
  if (std::isnan(value)) return format.nan;
  if (relu && !(value > 0.0f)) return 0;
  const uint32_t sign = std::signbit(value) ? 0x80u : 0u;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  const int exponent = std::isinf(value) ? 128 : std::max(std::ilogb(magnitude), 1 - format.bias);
  if (exponent > 16) return sign | format.largest;
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent)));
  // A subnormal's steps are its code. Each higher exponent adds 2^mantissa codes, so a carry of the rounding moves
  // correctly into the exponent.
  const uint32_t code = steps + (static_cast<uint32_t>(exponent + format.bias - 1) << format.mantissa);
  return sign | std::min(code, format.largest);
}
float WidenTiny(uint32_t code, const TinyFormat& format) {
  const uint32_t magnitude = code & 0x7Fu;
  float value;
  if (magnitude == format.nan || (format.bias == 15 && magnitude > 0x7Cu)) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (format.bias == 15 && magnitude == 0x7Cu) {
    value = std::numeric_limits<float>::infinity();
  } else {
    const auto field = static_cast<int>(magnitude >> format.mantissa);
    const uint32_t steps = magnitude & ((1u << format.mantissa) - 1);
    value = field == 0 ? std::ldexp(static_cast<float>(steps), 1 - format.bias - format.mantissa)
                       : std::ldexp(static_cast<float>(steps + (1u << format.mantissa)),
                                    field - format.bias - format.mantissa);
  }
  return (code & 0x80u) != 0 ? -value : value;
}
constexpr int64_t kIsE5m2 = 1;
const TinyFormat& TinyOf(int64_t mode) { return (mode & kIsE5m2) != 0 ? kE5m2 : kE4m3; }
uint32_t FloatsToTiny(uint32_t a, uint32_t b, uint32_t, int64_t mode) {
  const bool relu = (mode & kRelu) != 0;
  return NarrowToTiny(std::bit_cast<float>(a), TinyOf(mode), relu) << 8 |
         NarrowToTiny(std::bit_cast<float>(b), TinyOf(mode), relu);
}
uint32_t HalvesToTiny(uint32_t a, uint32_t, uint32_t, int64_t mode) {
  const bool relu = (mode & kRelu) != 0;
  return NarrowToTiny(HalfToFloat(a >> 16), TinyOf(mode), relu) << 8 |
         NarrowToTiny(HalfToFloat(a & 0xFFFFu), TinyOf(mode), relu);
}
uint32_t TinyToHalves(uint32_t a, uint32_t, uint32_t, int64_t mode) {
  const int64_t narrow = mode & kRelu;
  return NarrowToHalf(WidenTiny(a >> 8 & 0xFFu, TinyOf(mode)), narrow) << 16 |
         NarrowToHalf(WidenTiny(a & 0xFFu, TinyOf(mode)), narrow);
}

constexpr int64_t kTo8 = 1, kFromUnsigned = 4, kWithC = 8;  // and kSigned, of the result

uint32_t PackIntegers(uint32_t a, uint32_t b, uint32_t c, int64_t mode) {
  const uint32_t bits = (mode & kTo8) != 0 ? 8 : 16;
  const int64_t high = (mode & kSigned) != 0 ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  const int64_t low = (mode & kSigned) != 0 ? -high - 1 : 0;
  auto saturated = [&](uint32_t v) {
    const int64_t value = (mode & kFromUnsigned) != 0 ? int64_t{v} : int64_t{static_cast<int32_t>(v)};
    return static_cast<uint32_t>(value < low ? low : value > high ? high : value) & ((1u << bits) - 1);
  };
  const uint32_t packed = saturated(a) << bits | saturated(b);
  return (mode & kWithC) != 0 ? c << 16 | packed : packed;
}

Handler FindConversion(const Opcode& op, int64_t& mode) {
  if (op.Has("relu")) mode |= kRelu;
  const Type to = op.types[0];
  if (op.Has("e4m3x2") || op.Has("e5m2x2")) {
    if (op.Has("e5m2x2")) mode |= kIsE5m2;
    if (to == Type::kF32 && op.Has("satfinite")) return &Lanes<&FloatsToTiny>;
    if (to != Type::kF16x2) return nullptr;
    return op.Has("satfinite") ? &Lanes<&HalvesToTiny> : &Lanes<&TinyToHalves>;
  }
  if (op.Has("satfinite")) mode |= kFinite;
  if (op.Has("rz")) mode |= kTowardZero;
  if (op.Has("tf32")) {
    if (op.Has("rna")) mode |= kAwayFromZero;
    return to == Type::kF32 && op.type_count == 1 ? &Lanes<&ConvertToTf32> : nullptr;
  }
  if (op.Has("pack")) {
    mode = op.types[1] == Type::kU32 ? kFromUnsigned : 0;
    if (to == Type::kS16 || to == Type::kS8) mode |= kSigned;
    if (to == Type::kS8 || to == Type::kU8) mode |= kTo8 | kWithC;
    const bool known = to == Type::kS16 || to == Type::kU16 || ((mode & kTo8) != 0 && op.type_count == 3);
    return known ? &Lanes<&PackIntegers> : nullptr;
  }
  if (op.types[1] != Type::kF32 || op.Has("rm") || op.Has("rp") || op.Has("rs")) return nullptr;
  if (to == Type::kBf16 || to == Type::kBf16x2) mode |= kBf16;
  if (to == Type::kF16x2 || to == Type::kBf16x2) mode |= kPacked;
  const bool half = to == Type::kF16 || to == Type::kBf16 || (mode & kPacked) != 0;
  return half ? &Lanes<&ConvertToHalf> : nullptr;
}

Handler FindMinimum(const Opcode& op, int64_t& mode) {
  if (op.base == "max") mode |= kMaximum;
  if (op.Has("s16x2") || op.Has("u16x2")) {
    if (op.Has("s16x2")) mode |= kSigned;
    if (op.Has("relu")) mode |= kRelu;
    return &Lanes<&IntegerPair>;
  }
  if (!op.Has("xorsign") || op.Has("ftz")) return nullptr;
  if (op.Has("NaN")) mode |= kNanWins;
  const Type type = op.type();
  if (type == Type::kF16x2 || type == Type::kBf16x2) mode |= kPair;
  if (type == Type::kF16 || type == Type::kF16x2) mode |= 1 << kFormatShift;
  if (type == Type::kBf16 || type == Type::kBf16x2) mode |= 2 << kFormatShift;
  return type == Type::kF32 || (mode >> kFormatShift) != 0 ? &Lanes<&XorSign> : nullptr;
}

}  // namespace

float WidenTinyFloat(uint32_t code, bool is_e5m2) { return WidenTiny(code, is_e5m2 ? kE5m2 : kE4m3); }

Handler FindLaneOperation(const Opcode& op, Instruction& in) {
  const std::string_view base = op.base;
  int64_t& mode = in.offset;
  const bool is_signed = op.type() == Type::kS32;
  if (base == "cvt") return FindConversion(op, mode);
  if (base == "min" || base == "max") return FindMinimum(op, mode);
  if (base == "add" && (op.Has("s16x2") || op.Has("u16x2"))) {
    mode = kSum;
    return &Lanes<&IntegerPair>;
  }
  if (base == "fns") return &Lanes<&FindNthSet>;
  if (base == "bmsk" || base == "szext") {
    mode = (op.Has("wrap") ? kWrap : 0) | (is_signed ? kSigned : 0);
    return base == "bmsk" ? &Lanes<&BitMask> : &Lanes<&ExtendField>;
  }
  if ((base == "mul24" || base == "mad24") && op.Has("hi") && !op.Has("sat")) {
    mode = is_signed ? kSigned : 0;
    return base == "mul24" ? &Lanes<&Product24High> : &Lanes<&Product24HighPlus>;
  }
  if (base == "dp2a") {
    mode = (is_signed ? kSigned : 0) | (op.types[1] == Type::kS32 ? kSignedB : 0) | (op.Has("hi") ? kHighBytes : 0);
    return &Lanes<&DotOfHalves>;
  }
  if (ReadVideo(op, mode)) return &Lanes<&VideoLane>;
  return nullptr;
}

void Lop3Predicate(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t* a = SourceAs<uint32_t>(warp, in.a);
  const uint32_t* b = SourceAs<uint32_t>(warp, in.b);
  const uint32_t* c = SourceAs<uint32_t>(warp, in.c);
  const uint32_t other =
      PredicateOf(warp, warp.grid->kernel->operands[in.extra]) ^ ((in.flags & kFlagNegateC) != 0 ? kAllLanes : 0u);
  uint32_t nonzero = 0;
  for (const int l : EachBit(mask)) {
    uint32_t result = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      if ((in.offset >> row & 1) == 0) continue;
      result |= ((row & 4u) != 0 ? a[l] : ~a[l]) & ((row & 2u) != 0 ? b[l] : ~b[l]) & ((row & 1u) != 0 ? c[l] : ~c[l]);
    }
    nonzero |= static_cast<uint32_t>(result != 0) << l;
    if (in.d != kNoOperand) TargetAs<uint32_t>(warp, in.d)[l] = result;
  }
  if (in.e != kNoOperand) SetPredicate(warp, in.e, mask, in.size == 1 ? nonzero | other : nonzero & other);
}

}  // namespace kgrpo::simt
