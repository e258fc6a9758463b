// The special function unit's operations in plain double arithmetic: rounded to float they are closer to the true value
// than the hardware's, vectorise, and give the same bits on every machine (no libm, no fused operations).
#ifndef KGRPO_EVALUATOR_SIM_SIMT_APPROXIMATE_H_
#define KGRPO_EVALUATOR_SIM_SIMT_APPROXIMATE_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace kgrpo::simt {
namespace {  // internal linkage: this header is compiled for several instruction sets

// Adding and subtracting 1.5 * 2^52 rounds to the nearest integer.
constexpr double kRounder = 6755399441055744.0;

// 2^x for |x| < 1100, relative error below 1e-12.
inline double Exp2(double x) {
  x = x > 1020.0 ? 1020.0 : x;
  x = x < -1020.0 ? -1020.0 : x;
  const double shifted = x + kRounder;
  const double whole = shifted - kRounder;
  const double t = (x - whole) * 0.69314718055994530942;  // |t| <= 0.347
  double p = 1.0 / 479001600.0;
  p = p * t + 1.0 / 39916800.0;
  p = p * t + 1.0 / 3628800.0;
  p = p * t + 1.0 / 362880.0;
  p = p * t + 1.0 / 40320.0;
  p = p * t + 1.0 / 5040.0;
  p = p * t + 1.0 / 720.0;
  p = p * t + 1.0 / 120.0;
  p = p * t + 1.0 / 24.0;
  p = p * t + 1.0 / 6.0;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  // The integer stands in the low bits of `shifted`.
  const uint64_t exponent = (std::bit_cast<uint64_t>(shifted) + 1023u) << 52;
  return p * std::bit_cast<double>(exponent);
}

inline float ApproxExp2(float x) {
  const double result = Exp2(static_cast<double>(x));
  return x != x ? x : static_cast<float>(result);
}

inline float ApproxLog2(float x) {
  const double value = static_cast<double>(x);  // a subnormal float is a normal double
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  // mantissa in [sqrt(1/2), sqrt(2))
  const uint64_t moved = bits - 0x3FE6A09E667F3BCDull;
  const double exponent =
      std::bit_cast<double>((static_cast<uint64_t>(moved >> 52) + ((moved >> 63) != 0 ? ~uint64_t{0xFFF} : 0)) +
                            0x4338000000000000ull) -
      kRounder;
  const double mantissa = std::bit_cast<double>((moved & 0xFFFFFFFFFFFFFull) + 0x3FE6A09E667F3BCDull);
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double z = s * s;
  double p = 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  double result = exponent + 2.0 * s * p * 1.44269504088896340736;
  result = x == 0.0f ? -HUGE_VAL : result;
  result = x == HUGE_VALF ? HUGE_VAL : result;
  result = x < 0.0f || x != x ? std::bit_cast<double>(0x7FF8000000000000ull) : result;
  return static_cast<float>(result);
}

// sin(x + quarter * pi / 2); beyond 2^22 the hardware's result has no meaningful bits either.
inline float ApproxSinCos(float x, double quarter) {
  const double value = static_cast<double>(x);
  const double bounded = std::fabs(value) < 1e9 ? value : 0.0;
  const double turns = (bounded * 0.63661977236758134308 + kRounder) - kRounder;
  const double r = (bounded - turns * 1.57079632679489655800) - turns * 6.12323399573676603587e-17;
  const double z = r * r;
  double s = -1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = s * z * r + r;
  double c = 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = c * z + 1.0;
  const uint64_t quadrant = std::bit_cast<uint64_t>(turns + quarter + kRounder);
  double result = (quadrant & 1u) != 0 ? c : s;
  result = (quadrant & 2u) != 0 ? -result : result;
  const bool invalid = x != x || std::fabs(x) == HUGE_VALF;
  return invalid ? std::bit_cast<float>(0x7FFFFFFFu) : static_cast<float>(result);
}

inline float ApproxTanh(float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  const double e = Exp2(-magnitude * 2.88539008177792681472);  // e^(-2|x|)
  double result = (1.0 - e) / (1.0 + e);
  // For small arguments 1 - e cancels.
  const double z = magnitude * magnitude;
  result = magnitude < 0.02 ? magnitude * (1.0 - z * (1.0 / 3.0 - z * (2.0 / 15.0))) : result;
  result = x < 0 ? -result : result;
  return x != x ? x : x == 0.0f ? x : static_cast<float>(result);
}

}  // namespace
}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_APPROXIMATE_H_
