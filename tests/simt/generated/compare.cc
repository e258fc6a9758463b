#include <bit>
#include <cmath>
#include <cstdio>

#include "kernel_generator.h"

namespace kgrpo::generated {
namespace {

bool IsNan(ValueType type, uint64_t bits) {
  switch (type) {
    case ValueType::kF32: return (bits & 0x7FFFFFFFu) > 0x7F800000u;
    case ValueType::kF64: return (bits & 0x7FFFFFFFFFFFFFFFull) > 0x7FF0000000000000ull;
    case ValueType::kF16: return (bits & 0x7FFFu) > 0x7C00u;
    case ValueType::kBf16: return (bits & 0x7FFFu) > 0x7F80u;
    default: return false;
  }
}

double ValueOf(ValueType type, uint64_t bits) {
  switch (type) {
    case ValueType::kF32: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case ValueType::kF64: return std::bit_cast<double>(bits);
    case ValueType::kBf16: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
    case ValueType::kF16: {
      const int exponent = static_cast<int>(bits >> 10 & 31u);
      const double fraction = static_cast<double>(bits & 1023u);
      const double size = exponent == 31  ? (fraction == 0 ? HUGE_VAL : NAN)
                          : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(fraction + 1024.0, exponent - 25);
      return (bits & 0x8000u) != 0 ? -size : size;
    }
    default: return static_cast<double>(bits);
  }
}

// The place of a number in the order of its type, so that neighbours are 1 apart.
double Place(ValueType type, uint64_t bits) {
  const int width = type == ValueType::kF64 ? 64 : type == ValueType::kF32 ? 32 : 16;
  const uint64_t sign = uint64_t{1} << (width - 1);
  const uint64_t magnitude = bits & (sign - 1);
  return (bits & sign) != 0 ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

enum class Same { kEqual, kWithin, kDifferent };

Same CompareValue(const Result& result, ValueType type, uint64_t a, uint64_t b) {
  if (a == b || (IsNan(type, a) && IsNan(type, b))) return Same::kEqual;
  if (result.ulps == 0 && result.absolute == 0) return Same::kDifferent;
  if (IsNan(type, a) || IsNan(type, b)) return Same::kDifferent;
  // Doubles' places exceed what a double holds exactly, but not where they are close.
  const double apart = type == ValueType::kF64 && (a >> 63) == (b >> 63)
                           ? std::fabs(static_cast<double>(static_cast<int64_t>(a - b)))
                           : std::fabs(Place(type, a) - Place(type, b));
  if (apart <= result.ulps) return Same::kWithin;
  return std::fabs(ValueOf(type, a) - ValueOf(type, b)) <= result.absolute ? Same::kWithin : Same::kDifferent;
}

Same CompareResult(const Result& result, uint64_t a, uint64_t b) {
  if (result.type != ValueType::kF16x2 && result.type != ValueType::kBf16x2)
    return CompareValue(result, result.type, a, b);
  const ValueType half = result.type == ValueType::kF16x2 ? ValueType::kF16 : ValueType::kBf16;
  const Same low = CompareValue(result, half, a & 0xFFFFu, b & 0xFFFFu);
  const Same high = CompareValue(result, half, a >> 16 & 0xFFFFu, b >> 16 & 0xFFFFu);
  return low > high ? low : high;
}

}  // namespace

Difference Compare(const GeneratedKernel& kernel, const std::vector<uint64_t>& out, const std::vector<uint64_t>& other,
                   const std::vector<uint64_t>& scratch, const std::vector<uint64_t>& other_scratch) {
  Difference difference;
  char text[160];
  const uint32_t threads = kernel.Threads();
  for (size_t r = 0; r < kernel.results.size(); ++r) {
    for (uint32_t t = 0; t < threads; ++t) {
      const size_t at = r * threads + t;
      const Same same = CompareResult(kernel.results[r], out[at], other[at]);
      difference.within |= same == Same::kWithin;
      if (same != Same::kDifferent) continue;
      std::snprintf(text, sizeof text, "thread %u: %llx against %llx in ", t, static_cast<unsigned long long>(out[at]),
                    static_cast<unsigned long long>(other[at]));
      difference.different = true;
      difference.text = text + kernel.results[r].text;
      return difference;
    }
  }
  for (size_t i = 0; i < scratch.size(); ++i) {
    if (scratch[i] == other_scratch[i]) continue;
    std::snprintf(text, sizeof text, "scratch word %zu: %llx against %llx", i,
                  static_cast<unsigned long long>(scratch[i]), static_cast<unsigned long long>(other_scratch[i]));
    difference.different = true;
    difference.text = text;
    return difference;
  }
  return difference;
}

}  // namespace kgrpo::generated
