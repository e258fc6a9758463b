#include "judge/verdict/conditioning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "judge/problem/random.h"

namespace kgrpo::evaluator {
namespace {

constexpr size_t kSamples = 64;  // changes of elements that an estimate needs: one draw of the inputs, or several
constexpr size_t kMostDraws = 6;
constexpr size_t kJumps = 64;  // one in so many elements may jump

// The relative change of an input: large enough to be no rounding of the float64 oracle, and two or more units in the
// last place, small enough that outputs change in proportion.
double RelativeMove(DType dtype) { return dtype == DType::kFloat64 ? 0x1p-32 : 4 * Info(dtype).unit_roundoff; }

// Moves every element of the floating inputs up or down at random, and returns the largest relative change of a dtype.
double Move(const Problem& problem, uint64_t key, std::vector<Argument>* arguments) {
  double move = 0;
  for (size_t p = 0; p < arguments->size(); ++p) {
    const Parameter& parameter = problem.parameters[p];
    const bool drawn = parameter.role == Role::kInput || parameter.role == Role::kInout;
    if (!drawn || !Info(parameter.dtype).is_floating) continue;
    const double relative = RelativeMove(parameter.dtype);
    move = std::max(move, relative);
    std::vector<uint8_t>& bytes = (*arguments)[p].bytes;
    const size_t size = Info(parameter.dtype).size;
    const uint64_t own_key = SubKey(key, p);
    for (size_t at = 0, i = 0; at < bytes.size(); at += size, ++i) {
      const double value = LoadDouble(parameter.dtype, &bytes[at]);
      if (value == 0 || !std::isfinite(value)) continue;
      const bool up = RandomBits(own_key, i) >> 63 != 0;
      StoreDouble(parameter.dtype, value * (up ? 1 + relative : 1 - relative), &bytes[at]);
    }
  }
  return move;
}

bool NeedsScale(const Problem& problem, const Parameter& parameter) {
  return parameter.IsWritten() && Info(parameter.dtype).is_floating && !problem.tolerance.absolute;
}

}  // namespace

std::vector<double> Conditioning(const Problem& problem, const std::vector<Argument>& arguments,
                                 const std::vector<Expected>& expected, uint64_t key, const Compute& compute) {
  size_t fewest = kSamples;
  bool needed = false;
  for (size_t p = 0; p < problem.parameters.size(); ++p) {
    if (!NeedsScale(problem, problem.parameters[p])) continue;
    needed = true;
    fewest = std::min(fewest, std::max<size_t>(1, expected[p].reals.size()));
  }
  if (!needed) return {};
  const size_t draws = std::min(kMostDraws, (kSamples + fewest - 1) / fewest);
  std::vector<std::vector<double>> changes(problem.parameters.size());
  for (size_t draw = 0; draw < draws; ++draw) {
    std::vector<Argument> moved = arguments;
    const double relative = Move(problem, SubKey(key, draw), &moved);
    if (relative == 0) return {};
    const std::vector<Expected> outputs = compute(moved);
    for (size_t p = 0; p < changes.size(); ++p) {
      if (!NeedsScale(problem, problem.parameters[p])) continue;
      for (size_t i = 0; i < outputs[p].reals.size(); ++i) {
        const double change = std::fabs(outputs[p].reals[i] - expected[p].reals[i]) / relative;
        if (std::isfinite(change)) changes[p].push_back(change);
      }
    }
  }
  std::vector<double> scales(changes.size());
  for (size_t p = 0; p < changes.size(); ++p) {
    std::vector<double>& all = changes[p];
    const size_t count = all.size() - all.size() / kJumps;
    if (count == 0) continue;
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count - 1), all.end());
    double squares = 0;
    for (size_t i = 0; i < count; ++i) squares += all[i] * all[i];
    scales[p] = std::sqrt(squares / static_cast<double>(count));
  }
  return scales;
}

std::vector<ErrorBound> BoundsBesideReference(const Problem& problem, const CorrectnessCase* largest,
                                              const std::vector<Argument>& arguments,
                                              const std::vector<Expected>& expected, const Compute& oracle) {
  Problem by_model = problem;  // without the author's tolerance
  by_model.tolerance.relative.reset();
  by_model.tolerance.absolute.reset();
  const double accumulations = problem.accumulations.Evaluate(problem.timing);
  std::vector<double> scales;
  if (largest != nullptr && oracle)
    scales = Conditioning(by_model, arguments, expected, SubKey(largest->key, kMoveStream), oracle);
  std::vector<ErrorBound> bounds;
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (!parameter.IsWritten()) continue;
    ErrorBound bound = BoundFor(problem, parameter, accumulations, expected.empty() ? Expected() : expected[i],
                                largest != nullptr && largest->DrawsExtremes(problem));
    if (i < scales.size()) {
      for (const Problem* rules : {&problem, &std::as_const(by_model)})
        bound.absolute = std::max(bound.absolute, ScaledBound(*rules, parameter, accumulations, scales[i]).absolute);
    }
    bounds.push_back(OfRounded(parameter, bound));
  }
  return bounds;
}

}  // namespace kgrpo::evaluator
