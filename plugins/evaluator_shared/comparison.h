// Compares an output with the float64 oracle. The tolerance comes from the problem, or from an error model of its dtype
// and its number of accumulations (docs/judging.md). Called by the evaluator for each output of each call.
#ifndef KGRPO_EVALUATOR_SHARED_COMPARISON_H
#define KGRPO_EVALUATOR_SHARED_COMPARISON_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "evaluator_shared/problem.h"  // Parameter, Tolerance

namespace kgrpo::evaluator {

// An element passes when |got - expected| <= absolute + relative * |expected|.
struct ErrorBound {
  double relative = 0;
  double absolute = 0;
};

// The oracle's values of one output: doubles for floating dtypes, whole numbers for the others.
struct Expected {
  std::vector<double> reals;
  std::vector<int64_t> wholes;
};

// An output's bytes as what another one is to be compared with.
Expected ExpectedFrom(const Parameter& output, const std::vector<uint8_t>& bytes);

// The bound for one output. `accumulations` is how many terms a result sums at this size. For floating outputs,
// relative defaults to 2 u(output) + (16 + 8 sqrt(accumulations)) u(arithmetic), where arithmetic is done in float32
// (in float64 for float64 outputs), and absolute to relative times the root mean square of what is expected, and at
// least to what as many roundings in the subnormal range may be off. For integer outputs both default to 0: equality.
// `extremes`: inputs span all magnitudes, so the median takes the root mean square's place, which knows but the
// largest.
ErrorBound BoundFor(const Problem& problem, const Parameter& output, double accumulations, const Expected& expected,
                    bool extremes = false);

// How far one element is off, in units of what is allowed: at most 1 is correct. Both in `output`'s dtype.
double ElementError(const Parameter& output, const uint8_t* got, const uint8_t* expected, ErrorBound bound);

// "out[3][17]"
std::string ElementName(const Parameter& output, const std::vector<int64_t>& shape, int64_t index);

struct Comparison {
  bool matches = true;
  int64_t mismatches = 0;
  int64_t unwritten = 0;     // elements that still hold the poison, counted among the mismatches
  double largest_error = 0;  // max of |got - expected| / bound over all elements
  std::string sentence;      // says what differs, where and by how much; empty when it matches
};

// Compares `got` (bytes of `output`'s dtype) with `expected`; `poison` is the byte that filled the output before the
// call. So many elements as `differing` may be off by more than `bound`, if they were written. The sentence names the
// element by its indices in `shape`.
Comparison Compare(const Parameter& output, const std::vector<int64_t>& shape, const std::vector<uint8_t>& got,
                   const Expected& expected, uint8_t poison, ErrorBound bound, int64_t differing = 0);

// How near to its tolerance a correct kernel comes: of each floating output the largest error of all comparisons.
class WorstErrors {
 public:
  // `error` is in units of what is allowed there.
  void Add(size_t parameter, double error);
  // Adds the metrics worst_error/OUTPUT.
  void Tell(const Problem& problem, std::vector<std::pair<std::string, double>>* metrics) const;

 private:
  std::map<size_t, double> largest_;  // by parameter
};

}  // namespace kgrpo::evaluator

#endif
