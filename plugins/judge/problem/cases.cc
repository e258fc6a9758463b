#include "judge/problem/cases.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "judge/problem/random.h"

namespace kgrpo::evaluator {
namespace {

struct Place {
  const Bindings* size;
  std::string where;
};

// The key of the n-th case of its kind beyond the ordinary ones, which have small numbers.
uint64_t FurtherKey(uint64_t key, uint64_t kind, uint64_t n, int variant) {
  return SubKey(SubKey(SubKey(key, ~kind), n), static_cast<uint64_t>(variant));
}

}  // namespace

uint8_t CorrectnessCase::GapByte(Role role) const {
  const uint64_t bits = RandomBits(key, 7);
  const auto byte = static_cast<uint8_t>(variant == 0 ? 0xff : 0x40 | (bits >> 32 & 0x80) | bits % 63);
  return role == Role::kOutput ? byte ^ 0x15 : byte;
}

bool CorrectnessCase::DrawsExtremes(const Problem& problem) const {
  for (size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const bool otherwise = alternative && alternative->parameter == i;
    const Distribution& distribution = otherwise ? parameter.also[alternative->index] : parameter.distribution;
    if (parameter.IsTensor() && parameter.role != Role::kOutput && distribution.kind == Distribution::Kind::kExtremes)
      return true;
  }
  return false;
}

std::vector<CorrectnessCase> CorrectnessCases(const Problem& problem, uint64_t key, int seeds, bool show_hidden) {
  std::vector<Place> places;
  for (const Bindings& size : problem.visible) places.push_back({&size, SizeText(size)});
  for (const Bindings& size : problem.hidden)
    places.push_back({&size, show_hidden ? SizeText(size) + " (hidden)" : "a size that is not shown"});
  std::vector<CorrectnessCase> cases;
  const auto add = [&](const Place& place, uint64_t case_key, int variant) -> CorrectnessCase& {
    CorrectnessCase one;
    one.size = place.size;
    one.where = place.where;
    one.key = case_key;
    one.variant = variant;
    cases.push_back(std::move(one));
    return cases.back();
  };
  for (int variant = 0; variant < seeds; ++variant) {
    for (size_t i = 0; i < places.size(); ++i)
      add(places[i], SubKey(SubKey(key, i), static_cast<uint64_t>(variant)), variant);
  }
  uint64_t drawn = 0;
  for (size_t p = 0; p < problem.parameters.size(); ++p) {
    const Parameter& parameter = problem.parameters[p];
    for (size_t a = 0; a < parameter.also.size(); ++a, ++drawn) {
      const auto largest = std::max_element(places.begin(), places.end(), [&](const Place& x, const Place& y) {
        return parameter.Elements(*x.size) < parameter.Elements(*y.size);
      });
      for (int variant = 0; variant < seeds; ++variant) {
        const uint64_t case_key = FurtherKey(key, 1, drawn, variant);
        const Place& place =
            variant == 0 ? *largest : places[UniformBelow(RandomBits(case_key, ~uint64_t{0}), places.size())];
        CorrectnessCase& one = add(place, case_key, variant);
        one.alternative = {p, a};
        one.where += ", with " + DistributionName(parameter.also[a]) + " in " + parameter.name;
      }
    }
  }
  std::string pairs;
  for (const Parameter& parameter : problem.parameters) {
    if (!parameter.may_alias) continue;
    pairs += (pairs.empty() ? "" : " and ") + parameter.name + " in the memory of " +
             problem.parameters[*parameter.may_alias].name;
  }
  for (size_t i = 0; i < places.size() && !pairs.empty(); ++i) {
    CorrectnessCase& one = add(places[i], FurtherKey(key, 2, i, 0), 0);
    one.aliased = true;
    one.where += ", with " + pairs;
  }
  return cases;
}

std::string NameTimingSize(const Problem& problem, std::string sentence) {
  constexpr std::string_view kBegin = "At the timing size";
  if (sentence.starts_with(kBegin)) sentence.insert(kBegin.size(), " (" + SizeText(problem.timing) + ")");
  return sentence;
}

}  // namespace kgrpo::evaluator
