// The mathematics that CUDA's headers bring into host code, without <cmath>, which takes longer to parse than all of a
// candidate. With KGRPO_STANDARD_HEADERS, the second attempt at a candidate, it is the standard's own.
#ifndef KGRPO_HOST_MATH_H
#define KGRPO_HOST_MATH_H

#ifdef KGRPO_STANDARD_HEADERS
#include <algorithm>
#include <cmath>
#include <cstdlib>
#else
#define KGRPO_MATH_1(name)                        \
  extern "C" double name(double) noexcept(true);  \
  extern "C" float name##f(float) noexcept(true); \
  static inline float name(float x) { return name##f(x); }
KGRPO_MATH_1(ceil)
KGRPO_MATH_1(floor)
KGRPO_MATH_1(sqrt)
KGRPO_MATH_1(exp)
KGRPO_MATH_1(log)
KGRPO_MATH_1(log2)
KGRPO_MATH_1(sin)
KGRPO_MATH_1(cos)
KGRPO_MATH_1(tanh)
KGRPO_MATH_1(fabs)
#undef KGRPO_MATH_1
extern "C" double pow(double, double) noexcept(true);
extern "C" float powf(float, float) noexcept(true);
#ifndef INFINITY
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#endif
namespace std {
using ::ceil;
using ::exp;
using ::fabs;
using ::floor;
using ::log;
using ::pow;
using ::sqrt;
template <typename T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <typename T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
using ::size_t;
}  // namespace std
#endif

#endif
