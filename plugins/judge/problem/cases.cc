#include "judge/problem/cases.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "judge/problem/drawn_sizes.h"
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

// True for a floating input of which whole numbers can be drawn in place of the listed values.
bool HasWholeValues(const Parameter& parameter) {
  using Kind = Distribution::Kind;
  const Kind kind = parameter.distribution.kind;
  return (parameter.role == Role::kInput || parameter.role == Role::kInout) && Info(parameter.dtype).is_floating &&
         (kind == Kind::kNormal || kind == Kind::kUniform || kind == Kind::kLargeOffset || kind == Kind::kSparse);
}

// True for a floating input that problem.yaml draws from a standard normal distribution, so of any magnitude.
bool IsUnbounded(const Parameter& parameter) {
  const Distribution& distribution = parameter.distribution;
  return HasWholeValues(parameter) && distribution.kind == Distribution::Kind::kNormal && !distribution.mean &&
         !distribution.deviation;
}

// The cases of one evaluation, a kind after the other.
class CaseList {
 public:
  CaseList(const Problem& problem, uint64_t key, bool thorough, bool show_hidden)
      : problem_(problem), key_(key), thorough_(thorough), show_hidden_(show_hidden) {
    for (const Bindings& size : problem.visible) places_.push_back({&size, SizeText(size)});
    for (const Bindings& size : problem.hidden)
      places_.push_back({&size, show_hidden ? SizeText(size) + " (hidden)" : kNotShown});
  }

  std::vector<CorrectnessCase> Make(int seeds) {
    for (int variant = 0; variant < seeds; ++variant) {
      for (size_t i = 0; i < places_.size(); ++i) {
        Add(places_[i], SubKey(SubKey(key_, i), static_cast<uint64_t>(variant)), variant);
        if (variant + 1 == seeds && problem_.further_cases) AddWhole(i);
      }
    }
    AddAlternatives(seeds);
    if (problem_.further_cases) {
      AddStress();
      AddDrawnSizes();
    }
    AddAliased();
    return std::move(cases_);
  }

 private:
  static constexpr const char* kNotShown = "a size that is not shown";
  // What the keys of further cases are drawn from, beside 1 and 2 for alternatives and aliased outputs.
  static constexpr uint64_t kWholeKey = 3, kStressKey = 4, kSizesKey = 5;
  static constexpr int kPlain = 1;  // the variant of further cases: run without the first seed's checks

  CorrectnessCase& Add(const Place& place, uint64_t case_key, int variant) {
    CorrectnessCase one;
    one.size = place.size;
    one.where = place.where;
    one.key = case_key;
    one.variant = variant;
    cases_.push_back(std::move(one));
    return cases_.back();
  }

  CorrectnessCase& AddFurther(const Place& place, uint64_t case_key) {
    CorrectnessCase& one = Add(place, case_key, kPlain);
    one.further = true;
    constexpr double kEighths[] = {4, 5, 6, 7};  // exact in products, and in the same order as the listed values
    if (problem_.oracle != OracleKind::kTorchScript)
      one.scalars = kEighths[UniformBelow(RandomBits(case_key, ~uint64_t{1}), 4)] / 8;
    return one;
  }

  bool HasDrawnScalars() const {
    return std::any_of(problem_.parameters.begin(), problem_.parameters.end(),
                       [](const Parameter& parameter) { return parameter.HasSeveralValues(); });
  }

  // Whole numbers and constant rows have ties and lie on the steps of roundings, where correct kernels may differ: they
  // suit results that do not jump.
  bool HasSmoothOutputs() const {
    return problem_.tolerance.differing == 0 &&
           std::all_of(problem_.parameters.begin(), problem_.parameters.end(), [](const Parameter& parameter) {
             return !parameter.IsWritten() || Info(parameter.dtype).is_floating;
           });
  }

  bool TakesWholeNumbers() const {
    return HasSmoothOutputs() && std::any_of(problem_.parameters.begin(), problem_.parameters.end(), HasWholeValues);
  }

  // After the case of the same size that was added last. Whole numbers and other scalars need every size, since a
  // kernel may treat each in another way; other values at the same addresses need one.
  void AddWhole(size_t i) {
    const bool whole = TakesWholeNumbers();
    if (i > 0 && !whole && !HasDrawnScalars()) return;
    CorrectnessCase& one = AddFurther(places_[i], FurtherKey(key_, kWholeKey, i, 0));
    if (whole) one.values = InputValues::kWhole;
    one.same_place = true;
    one.where += whole ? ", with whole numbers" : ", with other values";
  }

  void AddAlternatives(int seeds) {
    uint64_t drawn = 0;
    for (size_t p = 0; p < problem_.parameters.size(); ++p) {
      const Parameter& parameter = problem_.parameters[p];
      for (size_t a = 0; a < parameter.also.size(); ++a, ++drawn) {
        const auto largest = std::max_element(places_.begin(), places_.end(), [&](const Place& x, const Place& y) {
          return parameter.Elements(*x.size) < parameter.Elements(*y.size);
        });
        for (int variant = 0; variant < seeds; ++variant) {
          const uint64_t case_key = FurtherKey(key_, 1, drawn, variant);
          const Place& place =
              variant == 0 ? *largest : places_[UniformBelow(RandomBits(case_key, ~uint64_t{0}), places_.size())];
          CorrectnessCase& one = Add(place, case_key, variant);
          one.alternative = {p, a};
          one.where += ", with " + DistributionName(parameter.also[a]) + " in " + parameter.name;
        }
      }
    }
  }

  // One case of each kind, at one of the larger half of the sizes: small ones have no rows to speak of.
  void AddStress() {
    std::vector<size_t> open;  // inputs whose values problem.yaml does not bound
    for (size_t p = 0; p < problem_.parameters.size(); ++p) {
      if (IsUnbounded(problem_.parameters[p])) open.push_back(p);
    }
    std::vector<Place> larger = places_;
    const auto elements = [&](const Place& place) {
      int64_t count = 0;
      for (const Parameter& parameter : problem_.parameters) count += parameter.Elements(*place.size);
      return count;
    };
    std::stable_sort(larger.begin(), larger.end(),
                     [&](const Place& x, const Place& y) { return elements(x) > elements(y); });
    larger.resize((larger.size() + 1) / 2);
    const auto add = [&](InputValues values, const std::string& what) {
      const uint64_t case_key = FurtherKey(key_, kStressKey, static_cast<uint64_t>(values), 0);
      CorrectnessCase& one =
          AddFurther(larger[UniformBelow(RandomBits(case_key, ~uint64_t{0}), larger.size())], case_key);
      one.values = values;
      if (values != InputValues::kConstantRows)
        one.parameter = open[UniformBelow(RandomBits(case_key, ~uint64_t{2}), open.size())];
      one.where += ", with " + what;
      if (values != InputValues::kConstantRows) one.where += " in " + problem_.parameters[one.parameter].name;
    };
    if (TakesWholeNumbers()) add(InputValues::kConstantRows, "constant rows");
    if (open.empty()) return;
    add(InputValues::kLargeOffset, "a large offset");
    add(InputValues::kWideSpread, "a wide spread");
  }

  void AddDrawnSizes() {
    uint64_t n = 0;
    for (Bindings& size : DrawSizes(problem_, FurtherKey(key_, kSizesKey, 0, 0), thorough_)) {
      const auto drawn = std::make_shared<const Bindings>(std::move(size));
      const Place place = {drawn.get(), show_hidden_ ? SizeText(*drawn) + " (drawn)" : kNotShown};
      CorrectnessCase& one = AddFurther(place, FurtherKey(key_, kSizesKey, ++n, 0));
      one.drawn = drawn;
    }
  }

  void AddAliased() {
    std::string pairs;
    for (const Parameter& parameter : problem_.parameters) {
      if (!parameter.may_alias) continue;
      pairs += (pairs.empty() ? "" : " and ") + parameter.name + " in the memory of " +
               problem_.parameters[*parameter.may_alias].name;
    }
    for (size_t i = 0; i < places_.size() && !pairs.empty(); ++i) {
      CorrectnessCase& one = Add(places_[i], FurtherKey(key_, 2, i, 0), 0);
      one.aliased = true;
      one.where += ", with " + pairs;
    }
  }

  const Problem& problem_;
  const uint64_t key_;
  const bool thorough_, show_hidden_;
  std::vector<Place> places_;
  std::vector<CorrectnessCase> cases_;
};

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

std::vector<CorrectnessCase> CorrectnessCases(const Problem& problem, uint64_t key, int seeds, bool thorough,
                                              bool show_hidden) {
  return CaseList(problem, key, thorough, show_hidden).Make(seeds);
}

std::string NameTimingSize(const Problem& problem, std::string sentence) {
  constexpr std::string_view kBegin = "At the timing size";
  if (sentence.starts_with(kBegin)) sentence.insert(kBegin.size(), " (" + SizeText(problem.timing) + ")");
  return sentence;
}

}  // namespace kgrpo::evaluator
