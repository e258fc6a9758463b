// Compares an output with the float64 oracle. The tolerance comes from the problem, or from an error model of its dtype
// and its number of accumulations (docs/judging.md). Called by the evaluator for each output of each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "judge/problem/problem.h"            // Parameter, Tolerance
#include "judge/verdict/kernel_evaluation.h"  // WrongOutput

namespace kgrpo::evaluator {

// An element passes when |got - expected| <= absolute + relative * |expected|.
struct ErrorBound {
  double relative = 0;
  double absolute = 0;
  double low_sums =
      0;  // an error of up to this many bounds is what sums in LowPrecision() explain; 0: none is possible
};

// The oracle's values of one output: doubles for floating dtypes, whole numbers for the others.
struct Expected {
  std::vector<double> reals;
  std::vector<int64_t> wholes;
};

// Returns an output's bytes as the expected values for another output.
Expected ExpectedFrom(const Parameter& output, const std::vector<uint8_t>& bytes);

// The 16-bit dtype that kernels may sum this output in: bfloat16 for bfloat16 outputs, else float16.
DType LowPrecision(const Parameter& output);

// The reverse: the bytes of expected values.
std::vector<uint8_t> BytesFrom(const Parameter& output, const Expected& expected);

// Returns the bound for one output. `accumulations`: how many terms a result sums at this size. For floating outputs,
// relative defaults to 2 u(output) + (16 + 8 sqrt(accumulations)) u(arithmetic), but at most 0.05, where arithmetic is
// done in Tolerance::accumulation, else in float32 (in float64 for float64 outputs). absolute defaults to relative
// times the root mean square of what is expected, and at least to the error of as many roundings in the subnormal
// range. For integer outputs both default to 0: equality. `extremes`: inputs span all magnitudes, so the median
// replaces the root mean square, which the largest values alone would decide. low_sums is known if the problem has a
// tensor of 16 bits.
ErrorBound BoundFor(const Problem& problem, const Parameter& output, double accumulations, const Expected& expected,
                    bool extremes = false);
// Likewise, with a scale such as the output's own conditioning (conditioning.h) in place of the root mean square.
ErrorBound ScaledBound(const Problem& problem, const Parameter& output, double accumulations, double scale);

// True if the expected values are whole multiples of a power of two, few enough bits long that float32 computes sums
// and products of them exactly in any order, and if there are so many such bits that it cannot be chance. Never for
// sums in low precision.
bool IsExact(const Problem& problem, const Parameter& output, const Expected& expected);

inline constexpr double kOfReference = 8;  // a kernel may err by this many times the reference's own error
// The bound of an exact output: 16 u, or `relative` if that is more, with no absolute part; at most the usual relative
// part.
ErrorBound ExactBound(const Parameter& output, ErrorBound usual, double relative);

// `bound` for expected values that are themselves rounded to the output's dtype, such as another kernel's outputs: one
// more rounding.
ErrorBound OfRounded(const Parameter& output, ErrorBound bound);

// Returns the error of one element in units of the allowed error: at most 1 is correct. `got` is in `output`'s dtype.
double ElementError(const Parameter& output, const uint8_t* got, const uint8_t* expected, DType of_expected,
                    ErrorBound bound);

// The largest |got - expected| / |expected| of a floating output; infinite for another value than an expected 0.
double LargestRelativeError(const Expected& got, const Expected& expected);

// "out[3][17]"
std::string ElementName(const Parameter& output, const std::vector<int64_t>& shape, int64_t index);

// "the worst is out[3] = 1.5, expected 1.25: relative error 0.2, 12 times the tolerance (...)". `error`: in bounds;
// `differing`: so many elements may differ.
std::string WorstText(const Parameter& output, const std::string& name, double got, double expected, double error,
                      ErrorBound bound, int64_t differing);

struct Comparison {
  bool matches = true;
  int64_t mismatches = 0;
  int64_t unwritten = 0;     // elements that were never written, counted among the mismatches
  double largest_error = 0;  // max of |got - expected| / bound over all elements
  std::string sentence;      // says what differs, where and by how much; empty when it matches
  WrongOutput wrong;         // if it does not match, is floating and was written
};

// Compares `got` (bytes of `output`'s dtype) with `expected`. `unwritten`: for each element whether it was never
// written; empty where all were. Up to `differing` elements may be off by more than `bound`, if they were written. The
// sentence names the element by its indices in `shape`.
Comparison Compare(const Parameter& output, const std::vector<int64_t>& shape, const std::vector<uint8_t>& got,
                   const Expected& expected, const std::vector<bool>& unwritten, ErrorBound bound,
                   int64_t differing = 0);

// The largest error of each floating output in all comparisons: how near a correct kernel comes to its tolerance.
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
