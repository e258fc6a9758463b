// The values of `normal`, `denormals` and `extremes` inputs. Here, and not in inputs.cc, since the GPU evaluator draws
// on the device by the same code.
#pragma once

#include <cmath>
#include <cstdint>

#include "judge/problem/random.h"

namespace kgrpo::evaluator {

// Close to a standard normal: the sum of four uniform 16-bit numbers (Irwin-Hall), cut at 3.46 deviations. Whole-number
// arithmetic up to one rounding, so every machine draws the same; one multiplication a value, so that large timing
// inputs cost little.
KGRPO_HOST_DEVICE inline double BellCurve(uint64_t bits) {
  const auto sum =
      static_cast<int64_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
  constexpr double kInverseDeviation = 1.0 / 37837.22946584478;  // sqrt(4 * (65536^2 - 1) / 12)
  return static_cast<double>(sum - 2 * 65535) * kInverseDeviation;
}

// Properties of a floating format that its special values depend on.
struct FloatFormat {
  int digits = 24;            // of the significand
  int least_exponent = -126;  // the smallest normal number is 2^least_exponent; the largest finite one is just below
                              // 2^(2 - least_exponent)
};

// A value near zero, exact in the format. Three of four are subnormal, of any magnitude, zeros among them. The others
// are up to 16 times the smallest normal number.
KGRPO_HOST_DEVICE inline double TinyValue(uint64_t bits, FloatFormat format) {
  const double sign = (bits & 1) != 0 ? -1.0 : 1.0;
  const uint64_t choice = (bits >> 1) & 0xff, mantissa = bits >> (64 - (format.digits - 1));
  if (choice % 4 == 3) {
    const double fraction = ldexp(static_cast<double>(mantissa), 1 - format.digits);
    return sign * ldexp(1.0 + fraction, format.least_exponent + static_cast<int>(choice / 4 % 4));
  }
  const int dropped = static_cast<int>(choice / 4) % format.digits;  // leading bits: down to zero
  return sign * ldexp(static_cast<double>(mantissa >> dropped), format.least_exponent - format.digits + 1);
}

// A quarter each: within a factor of 8 of the largest finite number, or that number itself; near zero; a power of two
// of any magnitude; ordinary. With `infinities`, one value in 16 is an infinity; with `nans`, one in 16 is a NaN.
KGRPO_HOST_DEVICE inline double ExtremeValue(uint64_t bits, FloatFormat format, bool infinities, bool nans) {
  const uint64_t inner = Mix(bits);
  const double sign = (inner & 1) != 0 ? -1.0 : 1.0;
  const int greatest_exponent = 1 - format.least_exponent;
  const auto special = static_cast<int>((bits >> 2) & 15);
  if (infinities && special == 0) return sign * HUGE_VAL;
  if (nans && special == 1) return NAN;
  switch (bits & 3) {
    case 0: {
      uint64_t mantissa = inner >> (64 - (format.digits - 1));
      if ((bits >> 6 & 7) == 0) mantissa = (uint64_t{1} << (format.digits - 1)) - 1;
      const double fraction = ldexp(static_cast<double>(mantissa), 1 - format.digits);
      return sign * ldexp(1.0 + fraction,
                          greatest_exponent - ((bits >> 6 & 7) == 0 ? 0 : static_cast<int>(bits >> 9 & 0xff) % 3));
    }
    case 1: return TinyValue(inner, format);
    case 2: {
      const auto exponents = static_cast<unsigned>(greatest_exponent - format.least_exponent + 1);
      return sign * ldexp(1.0, format.least_exponent + static_cast<int>((bits >> 6) % exponents));
    }
    default: return BellCurve(inner);
  }
}

}  // namespace kgrpo::evaluator
