#include "judge/problem/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kgrpo::evaluator {
namespace {

constexpr DTypeInfo kInfos[] = {
    {DType::kFloat32, "float32", "float", 4, true, 0x1p-24, -3.4028234663852886e38, 3.4028234663852886e38, 24, -126},
    {DType::kFloat64, "float64", "double", 8, true, 0x1p-53, -1.7976931348623157e308, 1.7976931348623157e308, 53,
     -1022},
    {DType::kFloat16, "float16", "__half", 2, true, 0x1p-11, -65504.0, 65504.0, 11, -14},
    {DType::kBfloat16, "bfloat16", "__nv_bfloat16", 2, true, 0x1p-8, -3.3895313892515355e38, 3.3895313892515355e38, 8,
     -126},
    {DType::kInt32, "int32", "int", 4, false, 0, -2147483648.0, 2147483647.0, 0, 0},
    {DType::kInt64, "int64", "long long", 8, false, 0, -9223372036854775808.0, 9223372036854775807.0, 0, 0},
    {DType::kUint8, "uint8", "unsigned char", 1, false, 0, 0.0, 255.0, 0, 0},
    {DType::kUint32, "uint32", "unsigned int", 4, false, 0, 0.0, 4294967295.0, 0, 0},
    {DType::kInt8, "int8", "signed char", 1, false, 0, -128.0, 127.0, 0, 0},
    {DType::kBool, "bool", "bool", 1, false, 0, 0.0, 1.0, 0, 0},
    {DType::kInt16, "int16", "short", 2, false, 0, -32768.0, 32767.0, 0, 0},
    {DType::kUint16, "uint16", "unsigned short", 2, false, 0, 0.0, 65535.0, 0, 0},
};

// Rounds a double straight into IEEE binary16 (going through float first would round twice).
uint16_t HalfFromDouble(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 48) & 0x8000);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14) {  // subnormal: a multiple of 2^-24; nearbyint rounds to even
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24)));
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);                    // in [0.5, 1)
  const auto scaled = static_cast<uint32_t>(std::nearbyint(fraction * 2048));  // in [1024, 2048]
  // A carry to 2048 flows into the exponent by the addition.
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + (scaled - 1024)));
}

double DoubleFromHalf(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 31) return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

uint16_t Bfloat16FromDouble(double value) {
  if (std::isnan(value)) return 0x7fc0;
  // Round to odd into float keeps the sticky bit, so that the second rounding is correct.
  float narrowed = static_cast<float>(value);
  uint32_t bits = std::bit_cast<uint32_t>(narrowed);
  if (std::isfinite(narrowed) && static_cast<double>(narrowed) != value && (bits & 1) == 0) {
    const bool too_big = std::fabs(static_cast<double>(narrowed)) > std::fabs(value);
    bits = too_big ? bits - 1 : bits + 1;
  }
  if ((bits & 0x7f800000) == 0x7f800000) return static_cast<uint16_t>(bits >> 16);
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

template <typename T>
T Saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(std::nearbyint(value));
}

template <typename T>
void Store(void* element, T value) {
  std::memcpy(element, &value, sizeof value);
}

template <typename T>
T Get(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

// Calls f with a zero of the C type that holds an integer dtype.
template <typename Function>
auto OfInteger(DType dtype, Function f) {
  switch (dtype) {
    case DType::kInt32: return f(int32_t{});
    case DType::kInt64: return f(int64_t{});
    case DType::kUint32: return f(uint32_t{});
    case DType::kInt8: return f(int8_t{});
    case DType::kInt16: return f(int16_t{});
    case DType::kUint16: return f(uint16_t{});
    default: return f(uint8_t{});
  }
}

}  // namespace

double DTypeInfo::SmallestSubnormal() const { return is_floating ? std::ldexp(1.0, least_exponent - digits + 1) : 0.0; }

const DTypeInfo& Info(DType dtype) { return kInfos[static_cast<size_t>(dtype)]; }

std::optional<DType> DTypeFromName(const std::string& name) {
  for (const DTypeInfo& info : kInfos) {
    if (name == info.name) return info.dtype;
  }
  return std::nullopt;
}

std::vector<std::string> DTypeNames() {
  std::vector<std::string> names;
  for (const DTypeInfo& info : kInfos) names.emplace_back(info.name);
  return names;
}

void StoreDouble(DType dtype, double value, void* element) {
  switch (dtype) {
    case DType::kFloat32: return Store(element, static_cast<float>(value));
    case DType::kFloat64: return Store(element, value);
    case DType::kFloat16: return Store(element, HalfFromDouble(value));
    case DType::kBfloat16: return Store(element, Bfloat16FromDouble(value));
    case DType::kBool: return Store(element, static_cast<uint8_t>(value != 0));
    default: OfInteger(dtype, [&](auto zero) { Store(element, Saturate<decltype(zero)>(value)); });
  }
}

void StoreInteger(DType dtype, int64_t value, void* element) {
  if (Info(dtype).is_floating) return StoreDouble(dtype, static_cast<double>(value), element);
  if (dtype == DType::kBool) value = value != 0 ? 1 : 0;
  OfInteger(dtype, [&](auto zero) { Store(element, static_cast<decltype(zero)>(value)); });
}

double LoadDouble(DType dtype, const void* element) {
  switch (dtype) {
    case DType::kFloat32: return Get<float>(element);
    case DType::kFloat64: return Get<double>(element);
    case DType::kFloat16: return DoubleFromHalf(Get<uint16_t>(element));
    case DType::kBfloat16: return std::bit_cast<float>(static_cast<uint32_t>(Get<uint16_t>(element)) << 16);
    default: return static_cast<double>(LoadInteger(dtype, element));
  }
}

int64_t LoadInteger(DType dtype, const void* element) {
  if (Info(dtype).is_floating) return static_cast<int64_t>(LoadDouble(dtype, element));
  return OfInteger(dtype, [&](auto zero) { return static_cast<int64_t>(Get<decltype(zero)>(element)); });
}

}  // namespace kgrpo::evaluator
