#include "judge/verdict/comparison.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

namespace kgrpo::evaluator {
namespace {

bool IsConstant(const Expected& expected) {
  for (double value : expected.reals) {
    if (value != expected.reals[0]) return false;
  }
  for (int64_t value : expected.wholes) {
    if (value != expected.wholes[0]) return false;
  }
  return true;
}

// Root mean square of the finite values; 0 where there are none. If the sum of squares overflows or underflows, it is
// computed of values over the largest one.
double RootMeanSquare(const std::vector<double>& values) {
  const auto squares_over = [&](double unit, double* finite) {
    double squares = 0;
    *finite = 0;
    for (double value : values) {
      if (!std::isfinite(value)) continue;
      squares += (value / unit) * (value / unit);
      ++*finite;
    }
    return squares;
  };
  double finite = 0, unit = 1, squares = squares_over(unit, &finite);
  if (finite == 0) return 0;
  if (std::isinf(squares) || squares < std::numeric_limits<double>::min()) {
    unit = 0;
    for (double value : values) {
      if (std::isfinite(value)) unit = std::max(unit, std::fabs(value));
    }
    if (unit == 0) return 0;
    squares = squares_over(unit, &finite);
  }
  return unit * std::sqrt(squares / finite);
}

// Median magnitude of the finite values that are not zero; 0 where there are none.
double MedianMagnitude(const std::vector<double>& values) {
  std::vector<double> magnitudes;
  for (double value : values) {
    if (std::isfinite(value) && value != 0) magnitudes.push_back(std::fabs(value));
  }
  if (magnitudes.empty()) return 0;
  const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  return *middle;
}

// The error of `got` in units of the bound; 0 for equality, infinite for a NaN or infinity on one side only.
double ErrorInBounds(double got, double expected, double highest, ErrorBound bound) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isnan(got)) return INFINITY;
  if (got == expected) return 0;
  if (std::isinf(got)) {  // correct where the expected value is beyond the format's range
    const bool overflows =
        std::fabs(expected) * (1 + bound.relative) >= highest && std::signbit(got) == std::signbit(expected);
    return overflows ? 0 : INFINITY;
  }
  if (std::isinf(expected)) return INFINITY;
  const double allowed = bound.absolute + bound.relative * std::fabs(expected);
  const double error = std::fabs(got - expected);
  return allowed > 0 ? error / allowed : INFINITY;
}

// ": relative error 0.01, 1.1 times the tolerance (relative 0.005 + absolute 0.016)"
std::string ErrorText(const Parameter& output, double got, double wanted, double times, ErrorBound bound) {
  std::ostringstream text;
  text.precision(3);
  const double error = std::fabs(got - wanted);
  if (std::isfinite(times)) {
    text << (wanted != 0 ? ": relative error " : ": error ") << (wanted != 0 ? error / std::fabs(wanted) : error)
         << ", " << times << " times the tolerance";
  } else {
    text << "; tolerance";
  }
  text << " (relative " << bound.relative << " + absolute " << bound.absolute << ")";
  if (times <= bound.low_sums) text << ", within what " << Info(LowPrecision(output)).name << " accumulation explains";
  return text.str();
}

bool HasLowPrecision(const Problem& problem) {
  return std::any_of(problem.parameters.begin(), problem.parameters.end(), [](const Parameter& parameter) {
    return parameter.IsTensor() && (parameter.dtype == DType::kFloat16 || parameter.dtype == DType::kBfloat16);
  });
}

}  // namespace

DType LowPrecision(const Parameter& output) {
  return output.dtype == DType::kBfloat16 ? DType::kBfloat16 : DType::kFloat16;
}

ErrorBound OfRounded(const Parameter& output, ErrorBound bound) {
  const DTypeInfo& info = Info(output.dtype);
  bound.relative += info.unit_roundoff;
  bound.absolute += info.SmallestSubnormal() / 2;
  return bound;
}

double ElementError(const Parameter& output, const uint8_t* got, const uint8_t* expected, DType of_expected,
                    ErrorBound bound) {
  const DTypeInfo& info = Info(output.dtype);
  if (!info.is_floating && LoadInteger(output.dtype, got) == LoadInteger(of_expected, expected)) return 0;
  return ErrorInBounds(LoadDouble(output.dtype, got), LoadDouble(of_expected, expected), info.highest, bound);
}

double LargestRelativeError(const Expected& got, const Expected& expected) {
  double largest = 0;
  for (size_t i = 0; i < got.reals.size(); ++i) {
    const double wanted = expected.reals[i], error = std::fabs(got.reals[i] - wanted);
    if (error != 0) largest = std::max(largest, error / std::fabs(wanted));
  }
  return largest;
}

std::string ElementName(const Parameter& output, const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> indices(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    indices[d] = index % shape[d];
    index /= shape[d];
  }
  std::string text = output.name;
  for (int64_t i : indices) text += "[" + std::to_string(i) + "]";
  return text;
}

Expected ExpectedFrom(const Parameter& output, const std::vector<uint8_t>& bytes) {
  const DTypeInfo& info = Info(output.dtype);
  Expected expected;
  for (size_t at = 0; at < bytes.size(); at += info.size) {
    if (info.is_floating) {
      expected.reals.push_back(LoadDouble(output.dtype, bytes.data() + at));
    } else {
      expected.wholes.push_back(LoadInteger(output.dtype, bytes.data() + at));
    }
  }
  return expected;
}

std::vector<uint8_t> BytesFrom(const Parameter& output, const Expected& expected) {
  const size_t size = Info(output.dtype).size, count = std::max(expected.reals.size(), expected.wholes.size());
  std::vector<uint8_t> bytes(count * size);
  for (size_t i = 0; i < count; ++i) {
    if (expected.reals.empty()) {
      StoreInteger(output.dtype, expected.wholes[i], &bytes[i * size]);
    } else {
      StoreDouble(output.dtype, expected.reals[i], &bytes[i * size]);
    }
  }
  return bytes;
}

ErrorBound BoundFor(const Problem& problem, const Parameter& output, double accumulations, const Expected& expected,
                    bool extremes) {
  const bool scaled = Info(output.dtype).is_floating && !problem.tolerance.absolute;
  const double scale = !scaled ? 0 : extremes ? MedianMagnitude(expected.reals) : RootMeanSquare(expected.reals);
  return ScaledBound(problem, output, accumulations, scale);
}

ErrorBound ScaledBound(const Problem& problem, const Parameter& output, double accumulations, double scale) {
  const DTypeInfo& info = Info(output.dtype);
  const Tolerance& given = problem.tolerance;
  if (!info.is_floating) return {given.relative.value_or(0), given.absolute.value_or(0)};
  const bool wide = output.dtype == DType::kFloat64;
  const DTypeInfo& arithmetic = Info(given.accumulation.value_or(wide ? DType::kFloat64 : DType::kFloat32));
  const double roundings = 16 + 8 * std::sqrt(std::max(1.0, accumulations));
  const auto model = [&](const DTypeInfo& sums) {
    return std::min(2 * info.unit_roundoff + roundings * sums.unit_roundoff, 0.05);
  };
  ErrorBound bound;
  bound.relative = given.relative.value_or(model(arithmetic));
  if (HasLowPrecision(problem)) bound.low_sums = model(Info(LowPrecision(output))) / bound.relative;
  if (given.absolute) {
    bound.absolute = *given.absolute;
    return bound;
  }
  // Below the smallest normal number a rounding is off by half the distance of two subnormal ones, whatever the value.
  const double subnormal = info.SmallestSubnormal() + roundings / 2 * arithmetic.SmallestSubnormal();
  bound.absolute = std::max(bound.relative * scale, subnormal);
  return bound;
}

bool IsExact(const Problem& problem, const Parameter& output, const Expected& expected) {
  constexpr int kBits = 22;        // of 24, so that float32 has room for what is added on the way
  constexpr int kLeastZeros = 16;  // by chance once in 65,536 outputs
  if (!Info(output.dtype).is_floating) return false;
  if (problem.tolerance.accumulation && Info(*problem.tolerance.accumulation).digits < 24) return false;
  int highest = INT_MIN, lowest = INT_MAX;
  double zeros = 0;
  for (const double value : expected.reals) {
    if (value == 0) continue;
    if (!std::isfinite(value)) return false;
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    const auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
    const int trailing = __builtin_ctzll(static_cast<uint64_t>(std::llabs(mantissa)));
    highest = std::max(highest, exponent);
    lowest = std::min(lowest, exponent - 53 + trailing);
    zeros += std::max(0, trailing - 29);  // of the 24 bits of float32
  }
  return highest - lowest <= kBits && zeros >= kLeastZeros;
}

ErrorBound ExactBound(const Parameter& output, ErrorBound usual, double relative) {
  usual.relative = std::min(usual.relative, std::max(16 * Info(output.dtype).unit_roundoff, relative));
  usual.absolute = 0;
  return usual;
}

std::string WorstText(const Parameter& output, const std::string& name, double got, double expected, double error,
                      ErrorBound bound, int64_t differing) {
  std::ostringstream text;
  text.precision(6);
  text << "the worst is " << name << " = " << got << ", expected " << expected;
  if (differing > 0) text << " (" << differing << " may differ)";
  if (Info(output.dtype).is_floating) text << ErrorText(output, got, expected, error, bound);
  return text.str();
}

Comparison Compare(const Parameter& output, const std::vector<int64_t>& shape, const std::vector<uint8_t>& got,
                   const Expected& expected, const std::vector<bool>& unwritten, ErrorBound bound, int64_t differing) {
  const DTypeInfo& info = Info(output.dtype);
  const auto elements = static_cast<int64_t>(got.size() / info.size);
  Comparison result;
  int64_t worst = -1, first_unwritten = -1;
  bool got_is_constant = true;
  for (int64_t i = 0; i < elements; ++i) {
    const auto at = static_cast<size_t>(i) * info.size;
    const auto index = static_cast<size_t>(i);
    double error = 0;
    if (info.is_floating) {
      error = ErrorInBounds(LoadDouble(output.dtype, got.data() + at), expected.reals[index], info.highest, bound);
    } else {
      const int64_t value = LoadInteger(output.dtype, got.data() + at);
      if (value != expected.wholes[index]) {
        error =
            ErrorInBounds(static_cast<double>(value), static_cast<double>(expected.wholes[index]), info.highest, bound);
      }
    }
    got_is_constant = got_is_constant && std::memcmp(got.data(), got.data() + at, info.size) == 0;
    if (!unwritten.empty() && unwritten[index]) {
      error = INFINITY;
      ++result.unwritten;
      if (first_unwritten < 0) first_unwritten = i;
    }
    if (error > 1) ++result.mismatches;
    if (worst < 0 || error > result.largest_error) worst = i, result.largest_error = error;
  }
  result.matches = result.unwritten == 0 && result.mismatches <= differing;
  if (result.matches) return result;

  std::ostringstream text;
  text.precision(6);
  if (result.unwritten == elements) {
    text << output.name << " was never written";
  } else if (result.unwritten > 0) {
    text << result.unwritten << " of " << elements << " elements of " << output.name
         << " were never written, the first is " << ElementName(output, shape, first_unwritten);
  } else {
    const auto at = static_cast<size_t>(worst);
    const double value = LoadDouble(output.dtype, got.data() + at * info.size);
    const double wanted = info.is_floating ? expected.reals[at] : static_cast<double>(expected.wholes[at]);
    if (info.is_floating) result.wrong = {output.name, result.largest_error};
    text << result.mismatches << " of " << elements << " elements of " << output.name << " are wrong; "
         << WorstText(output, ElementName(output, shape, worst), value, wanted, result.largest_error, bound, differing);
    if (got_is_constant && elements > 1 && !IsConstant(expected))
      text << "; the output is constant where the correct one is not";
  }
  result.sentence = text.str();
  return result;
}

void WorstErrors::Add(size_t parameter, double error) {
  double& largest = largest_[parameter];
  largest = std::max(largest, error);
}

void WorstErrors::Tell(const Problem& problem, std::vector<std::pair<std::string, double>>* metrics) const {
  for (const auto& [parameter, error] : largest_) {
    if (Info(problem.parameters[parameter].dtype).is_floating)
      metrics->emplace_back("worst_error/" + problem.parameters[parameter].name, error);
  }
}

}  // namespace kgrpo::evaluator
