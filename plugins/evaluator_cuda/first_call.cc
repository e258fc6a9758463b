#include "evaluator_cuda/first_call.h"

#include "evaluator_cuda/median.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kAllowedSeconds = 15e-6;
constexpr double kAllowedShare = 0.5;  // of a call
constexpr double kBeyondNoise = 2;     // times what is allowed

}  // namespace

FirstCall CompareFirstCalls(const std::vector<double>& rests, const std::vector<double>& reference_rests,
                            double call_seconds) {
  const Median own = MedianOf(rests), reference = MedianOf(reference_rests);
  const double allowed = kAllowedSeconds + kAllowedShare * call_seconds;
  FirstCall first;
  first.seconds = own.value - reference.value;
  first.does_others = own.low - reference.high > allowed || own.value - reference.high > kBeyondNoise * allowed;
  return first;
}

}  // namespace kgrpo::evaluator_cuda
