// Statistics of timing rounds: the median and its interval, when it is precise enough, and first calls that do the work
// of those after them. Used by the timer.
#pragma once

#include <cstddef>
#include <vector>

namespace kgrpo::evaluator_cuda {

struct Median {
  double value = 0;
  // An interval that holds the population's median with a probability of at least 95%, for any distribution: order
  // statistics by the binomial distribution (Conover, Practical Nonparametric Statistics, section 3.2). With fewer than
  // six values there is no such interval, and these are the smallest and the largest value.
  double low = 0, high = 0;

  // Half the interval's width, relative to the median.
  double RelativeError() const { return value > 0 ? (high - low) / 2 / value : 1; }
};

// Of at least one value.
Median MedianOf(std::vector<double> values);

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

struct FirstCall {
  double seconds = 0;        // by which the first call exceeds the others, less the same figure of the reference
  bool does_others = false;  // by more than a first call may, beyond the noise of the rounds
};

// `rests`, `reference_rests`: seconds that a batch takes beside its calls, one value for each pair of rounds, at least
// one of each. `call_seconds`: time of one of the candidate's calls. A first call may take longer by 15 us and half a
// call, since its code is not in the cache yet. does_others is set if the 95% intervals of both medians leave more than
// that between them, or if the candidate's median lies twice as much above the reference's interval: a candidate cannot
// widen its own interval to escape.
FirstCall CompareFirstCalls(const std::vector<double>& rests, const std::vector<double>& reference_rests,
                            double call_seconds);

}  // namespace kgrpo::evaluator_cuda
