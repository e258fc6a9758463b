// When a speedup has been measured precisely enough. Asked by the timer after each round.
#pragma once

#include <cstddef>
#include <vector>

namespace kgrpo::evaluator_cuda {

struct Precision {
  double relative_error = 0.02;  // half the width of the ratio's 95% interval, relative
  // Allowed error as a share of |ln(ratio)|, where that is more: a clear speedup or slowdown need not be known to 2%.
  double clear_share = 0.1;

  double AllowedError(double ratio) const;
};

// True when `ratios` (one a round) has at least `fewest` values and their median is known as precisely as wanted. A
// check after every round sometimes stops early by chance; precision_test bounds how often the result is then further
// from the true median than is allowed.
bool IsPrecise(const std::vector<double>& ratios, const Precision& wanted, size_t fewest);

// A round is flat for a side if its batch of many calls took no longer than its batch of few.
enum class FlatRounds { kFew, kOfCandidate, kOfBoth };

// kFew: at most half of the `rounds` are flat for a side (`either`). Else kOfCandidate, if they are so by the
// candidate, whose time is then not spent in its calls; kOfBoth, if the reference has half as many or more: a busy
// processor holds up the launches of both.
FlatRounds WhoseRoundsAreFlat(size_t candidate, size_t reference, size_t either, size_t rounds);

}  // namespace kgrpo::evaluator_cuda
