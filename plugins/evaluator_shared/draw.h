// The curve that `normal` inputs are drawn from. Here, and not in inputs.cc, since the GPU judge draws on the device by
// the same code.
#ifndef KGRPO_EVALUATOR_SHARED_DRAW_H
#define KGRPO_EVALUATOR_SHARED_DRAW_H

#include <cstdint>

#include "evaluator_shared/random.h"

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

}  // namespace kgrpo::evaluator

#endif
