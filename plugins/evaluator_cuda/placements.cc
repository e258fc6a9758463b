#include "evaluator_cuda/placements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>

namespace kgrpo::evaluator_cuda {
namespace {

constexpr double kNotable = 0.02;   // of a call's time
constexpr size_t kFewestPairs = 6;  // for an interval: see Median

}  // namespace

std::vector<uint64_t> OrderByPlacement(const std::vector<uint64_t>& shuffled, uint64_t leading, uint64_t placement) {
  std::array<std::deque<uint64_t>, kPlacements> sets;
  for (const uint64_t set : shuffled) sets[PlacementOf(set)].push_back(set);
  std::vector<uint64_t> order;
  const auto take = [&](uint64_t from) {
    order.push_back(sets[from].front());
    sets[from].pop_front();
  };
  while (order.size() < leading && !sets[placement].empty()) take(placement);
  for (uint64_t next = placement + 1; order.size() < shuffled.size(); ++next) {
    if (!sets[next % kPlacements].empty()) take(next % kPlacements);
  }
  return order;
}

Rests PairRests(const std::vector<RoundRest>& rounds) {
  Rests rests;
  std::optional<RoundRest> waiting;
  for (const RoundRest& round : rounds) {
    if (!waiting || waiting->placement == round.placement) {
      waiting = round;
      continue;
    }
    const RoundRest& zero = round.placement == 0 ? round : *waiting;
    const RoundRest& one = round.placement == 0 ? *waiting : round;
    const auto s = static_cast<double>(zero.leading), t = static_cast<double>(one.leading);
    rests.seconds.push_back((zero.seconds * t + one.seconds * s) / (s + t));
    rests.differences.push_back((zero.seconds - one.seconds) / (s + t));
    waiting.reset();
  }
  return rests;
}

double PlacementSpread(const std::vector<double>& differences, double call_seconds) {
  if (differences.size() < kFewestPairs) return 0;
  const Median difference = MedianOf(differences);
  const bool sure = difference.low > 0 || difference.high < 0;
  return sure && std::abs(difference.value) > kNotable * call_seconds ? std::abs(difference.value) : 0;
}

}  // namespace kgrpo::evaluator_cuda
