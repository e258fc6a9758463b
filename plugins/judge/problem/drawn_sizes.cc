#include "judge/problem/drawn_sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "judge/problem/random.h"

namespace kgrpo::evaluator {
namespace {

// Limits on a size above the timing size, so that it costs little beside the call that is timed: elements of all
// tensors together, and operations as `needs` counts them.
constexpr int64_t kElements = 200'000, kThoroughElements = 1'000'000;
constexpr double kOperations = 4e6, kThoroughOperations = 20e6;
constexpr int kTries = 8;  // of a draw that does not have what the listed sizes have in common

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

class SizeDraw {
 public:
  SizeDraw(const Problem& problem, uint64_t key) : problem_(problem), key_(key) {
    listed_ = problem.visible;
    listed_.insert(listed_.end(), problem.hidden.begin(), problem.hidden.end());
    small_ = listed_;
    listed_.push_back(problem.timing);
    for (const auto& [symbol, value] : problem.timing) {
      Span span;
      span.low = span.high = small_[0].at(symbol);
      span.powers = true;
      for (const Bindings& size : small_) {
        span.low = std::min(span.low, size.at(symbol));
        span.high = std::max(span.high, size.at(symbol));
      }
      for (const Bindings& size : listed_) {
        span.divisor = std::gcd(span.divisor, size.at(symbol));
        span.powers = span.powers && IsPowerOfTwo(size.at(symbol));
        span.remainders[static_cast<size_t>(size.at(symbol) & 3)] = true;
      }
      span.varies = span.low != span.high || value != span.low;
      if (const auto range = problem.ranges.find(symbol); range != problem.ranges.end()) {
        span.low = range->second.first;
        span.high = std::min(range->second.second, std::max(span.high, span.low));
        span.most = range->second.second;
        span.varies = span.low != range->second.second;
      }
      spans_[symbol] = span;
    }
  }

  std::optional<Bindings> Between() {
    return Draw([&](const std::string&, const Span& span) { return Value(span, span.low, span.high); });
  }

  std::optional<Bindings> Smallest() {
    return Draw([](const std::string&, const Span& span) { return span.low; });
  }

  // One size for each symbol that may exceed its timing value.
  std::vector<Bindings> AboveTiming(bool thorough) {
    std::vector<Bindings> sizes;
    for (const auto& [above, of_above] : spans_) {
      const int64_t timing = problem_.timing.at(above);
      if (!of_above.varies || of_above.high > timing || of_above.most <= timing) continue;
      const std::optional<Bindings> size = Draw([&, &above = above](const std::string& symbol, const Span& span) {
        if (symbol != above) return Value(span, span.low, std::max(span.low, span.high / 8));
        if (span.powers) return 2 * timing;
        return Value(span, timing + 1, timing + std::max<int64_t>(timing / 8, 2 * span.divisor));
      });
      if (size && IsCheap(*size, thorough)) sizes.push_back(*size);
    }
    return sizes;
  }

 private:
  // What the listed values of a symbol have in common.
  struct Span {
    int64_t low = 0, high = 0, divisor = 0, most = INT64_MAX;
    bool varies = false, powers = false;
    std::array<bool, 4> remainders = {};  // which remainders by 4 some listed value has
  };

  uint64_t Bits() { return RandomBits(key_, next_++); }

  // A value in [low, high], each magnitude with equal probability.
  int64_t Value(const Span& span, int64_t low, int64_t high) {
    const double from = std::log(static_cast<double>(low)), to = std::log(static_cast<double>(high) + 1);
    auto value = static_cast<int64_t>(std::exp(from + (to - from) * UniformReal(Bits())));
    value = std::clamp(value, low, high);
    if (span.powers) {
      int64_t power = 1;
      while (2 * power <= value) power *= 2;
      return std::max(power, low);
    }
    if (span.divisor > 1) return std::max((value + span.divisor - 1) / span.divisor, int64_t{1}) * span.divisor;
    // A remainder by 4 that no listed value has, since loads of 2 and 4 elements fail by it; else an odd value.
    for (int64_t up = 0; up < 4 && value + up <= high; ++up) {
      if (!span.remainders[static_cast<size_t>((value + up) & 3)]) return value + up;
    }
    return value % 2 == 0 && value < high ? value + 1 : value;
  }

  // Another size than the listed ones, with what they have in common.
  template <typename ValueOf>
  std::optional<Bindings> Draw(ValueOf value_of) {
    for (int attempt = 0; attempt < kTries; ++attempt) {
      Bindings size;
      for (const auto& [symbol, span] : spans_)
        size[symbol] = span.varies ? std::min(value_of(symbol, span), span.most) : span.low;
      const bool is_new = std::find(listed_.begin(), listed_.end(), size) == listed_.end();
      if (is_new && RelatesAsListed(size) && IsPossible(problem_, size)) return size;
    }
    return std::nullopt;
  }

  bool RelatesAsListed(const Bindings& size) const {
    for (const auto& [a, of_a] : size) {
      for (const auto& [b, of_b] : size) {
        if (a == b) continue;
        const auto all = [&, &a = a, &b = b](auto relation) {
          return std::all_of(listed_.begin(), listed_.end(),
                             [&](const Bindings& one) { return relation(one.at(a), one.at(b)); });
        };
        const auto at_most = [](int64_t x, int64_t y) { return x <= y; };
        const auto divides = [](int64_t x, int64_t y) { return y % x == 0; };
        if (all(at_most) && !at_most(of_a, of_b)) return false;
        if (all(divides) && !divides(of_a, of_b)) return false;
      }
    }
    return true;
  }

  bool IsCheap(const Bindings& size, bool thorough) const {
    int64_t elements = 0;
    double sums = 0;
    for (const Parameter& parameter : problem_.parameters) {
      if (!parameter.IsTensor()) continue;
      elements += parameter.RowsAt(size).MemoryElements();
      if (parameter.IsWritten()) sums += static_cast<double>(parameter.Elements(size));
    }
    // A drafted problem may not say how many operations it needs.
    const double operations = std::max(
        problem_.needed_flops.Evaluate(size),
        problem_.needed_flops.Evaluate(problem_.timing) > 0 ? 0 : sums * problem_.accumulations.Evaluate(size));
    return elements <= (thorough ? kThoroughElements : kElements) &&
           operations <= (thorough ? kThoroughOperations : kOperations);
  }

  const Problem& problem_;
  const uint64_t key_;
  uint64_t next_ = 0;
  std::vector<Bindings> small_, listed_;  // without and with the timing size
  std::map<std::string, Span> spans_;
};

}  // namespace

bool IsPossible(const Problem& problem, const Bindings& size) {
  try {
    for (const Parameter& parameter : problem.parameters) {
      if (!parameter.IsTensor()) {
        const double value = parameter.value.Evaluate(size);
        if (!(value >= Info(parameter.dtype).lowest && value <= Info(parameter.dtype).highest)) return false;
        continue;
      }
      for (const int64_t extent : parameter.ShapeAt(size)) {
        if (extent < 1) return false;
      }
      const Rows rows = parameter.RowsAt(size);
      if (rows.pitch < rows.elements) return false;
      if (parameter.may_alias && problem.parameters[*parameter.may_alias].RowsAt(size) != rows) return false;
      const Distribution& distribution = parameter.distribution;
      if (distribution.low && distribution.high && distribution.low->Evaluate(size) > distribution.high->Evaluate(size))
        return false;
      if (distribution.kind == Distribution::Kind::kOffsets && distribution.high->Evaluate(size) < 0) return false;
    }
    return problem.accumulations.Evaluate(size) >= 1;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::vector<Bindings> DrawSizes(const Problem& problem, uint64_t key, bool thorough) {
  if (problem.oracle == OracleKind::kTorchScript) return {};
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.IsTensor() && parameter.distribution.kind == Distribution::Kind::kTorchScript) return {};
  }
  SizeDraw draw(problem, key);
  std::vector<Bindings> sizes;
  for (const std::optional<Bindings>& size : {draw.Between(), draw.Smallest()}) {
    if (size && std::find(sizes.begin(), sizes.end(), *size) == sizes.end()) sizes.push_back(*size);
  }
  for (Bindings& size : draw.AboveTiming(thorough)) sizes.push_back(std::move(size));
  return sizes;
}

}  // namespace kgrpo::evaluator
