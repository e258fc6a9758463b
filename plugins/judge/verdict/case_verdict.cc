#include "judge/verdict/case_verdict.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "judge/problem/random.h"

namespace kgrpo::evaluator {
namespace {

// A reference that is off by more than the tolerance excuses a kernel only below this many times the tolerance.
constexpr double kOfRounding = 10;
// Unusual values of inputs are to show NaNs and nonsense, not another way to round.
constexpr double kStressSlack = 64;

bool IsFinite(const std::vector<Expected>& expected) {
  return std::all_of(expected.begin(), expected.end(), [](const Expected& one) {
    return std::all_of(one.reals.begin(), one.reals.end(), [](double value) { return std::isfinite(value); });
  });
}

class CaseJudge {
 public:
  explicit CaseJudge(const CaseRule& rule)
      : rule_(rule), problem_(rule.problem), accumulations_(problem_.accumulations.Evaluate(*rule.one.size)) {
    strict_ = rule.oracle && (rule.one.IsStress() || AllExact());
    if (rule.oracle && !strict_) scales_ = ScalesBy(rule.oracle);
  }

  CaseVerdict Judge(const std::vector<std::vector<uint8_t>>& outputs, const std::vector<std::vector<bool>>& unwritten) {
    if (rule_.one.further && !IsFinite(rule_.expected)) return Undecided("the expected values are not finite");
    Round first = Compare(outputs, unwritten);
    if (!first.trouble) return Right(first);
    if (strict_) {
      strict_ = false;
      scales_ = ScalesBy(rule_.oracle);
      first = Compare(outputs, unwritten);
      if (!first.trouble) return Right(first);
    }
    const bool exact = first.exact;
    if (!rule_.reference || (!rule_.one.further && !(first.worst < kOfRounding))) return {first.trouble};
    std::optional<std::vector<Expected>> reference = OfReference();
    if (!reference) return rule_.one.further ? Undecided("the reference kernel fails") : CaseVerdict{first.trouble};
    if (!rule_.oracle) return ByMovedReference(first, outputs, unwritten);
    if (exact) {
      // The result is a whole number, but the way to it is not: a power by a logarithm, a product in low precision.
      for (size_t p = 0; p < reference->size(); ++p)
        reference_errors_.push_back(LargestRelativeError((*reference)[p], rule_.expected[p]));
      first = Compare(outputs, unwritten);
      if (!first.trouble) return Right(first);
    }
    const Round own = Compare(BytesOf(*reference), {});
    if (!own.trouble || !(first.worst < kOfRounding || rule_.one.further)) return {first.trouble};
    if (!rule_.one.further && rule_.is_reference) {
      first.trouble.sentence += " The tolerance is narrower than the rounding of the reference kernel itself";
      return {first.trouble};
    }
    return Undecided("the reference kernel is off by " + Times(own.worst) + " the tolerance, too");
  }

 private:
  // One comparison of all outputs.
  struct Round {
    Trouble trouble;
    double worst = 0;    // of the outputs that are wrong; infinite if elements were not written
    bool exact = false;  // a wrong output had to be exact
    std::vector<double> errors;
  };

  static std::string Times(double error) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g times", error);
    return text;
  }

  CaseVerdict Right(const Round& round) const { return {{}, true, "", round.errors}; }

  static CaseVerdict Undecided(const std::string& why) { return {{}, false, why, {}}; }

  std::vector<double> ScalesBy(const Compute& compute) const {
    const auto scales = [&] {
      return Conditioning(problem_, rule_.arguments, rule_.expected, SubKey(rule_.one.key, kMoveStream), compute);
    };
    return rule_.known == nullptr ? scales() : rule_.known->Scales(rule_.one, scales);
  }

  std::optional<std::vector<Expected>> OfReference() const {
    try {
      return rule_.reference(rule_.arguments);
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;
      return std::nullopt;
    }
  }

  // Without an oracle the expected values are the reference's. How far these move with the inputs shows which errors
  // rounding explains.
  CaseVerdict ByMovedReference(const Round& first, const std::vector<std::vector<uint8_t>>& outputs,
                               const std::vector<std::vector<bool>>& unwritten) {
    try {
      scales_ = ScalesBy(rule_.reference);
    } catch (const Error& error) {
      if (error.code() == KGRPO_ERROR_CANCELLED) throw;
      return {first.trouble};
    }
    Round again = Compare(outputs, unwritten);
    return again.trouble ? CaseVerdict{again.trouble} : Right(again);
  }

  bool MustBeExact(size_t p) const {
    return rule_.one.values == InputValues::kWhole && IsExact(problem_, problem_.parameters[p], rule_.expected[p]);
  }

  bool AllExact() const {
    for (size_t p = 0; p < rule_.expected.size(); ++p) {
      const Parameter& parameter = problem_.parameters[p];
      if (parameter.IsWritten() && Info(parameter.dtype).is_floating && !MustBeExact(p)) return false;
    }
    return true;
  }

  ErrorBound BoundOf(size_t p, bool* exact) const {
    const Parameter& parameter = problem_.parameters[p];
    const Expected& expected = rule_.expected[p];
    ErrorBound bound = BoundFor(problem_, parameter, accumulations_, expected, rule_.one.DrawsExtremes(problem_));
    if (strict_ && !problem_.tolerance.absolute && Info(parameter.dtype).is_floating) bound.absolute = 0;
    // An absolute tolerance of the problem stays; so does the scale of a reference without an oracle, unless the moved
    // outputs ask for more room.
    if (!problem_.tolerance.absolute && p < scales_.size() && Info(parameter.dtype).is_floating) {
      const ErrorBound own = ScaledBound(problem_, parameter, accumulations_, scales_[p]);
      bound.absolute = rule_.oracle ? own.absolute : std::max(bound.absolute, own.absolute);
    }
    if (!rule_.oracle) bound = OfRounded(parameter, bound);
    if (rule_.one.IsStress()) {
      bound.relative *= kStressSlack;
      bound.absolute *= kStressSlack;
      return bound;
    }
    *exact = MustBeExact(p);
    return *exact ? ExactBound(parameter, bound, p < reference_errors_.size() ? kOfReference * reference_errors_[p] : 0)
                  : bound;
  }

  Round Compare(const std::vector<std::vector<uint8_t>>& outputs,
                const std::vector<std::vector<bool>>& unwritten) const {
    Round round;
    round.errors.resize(outputs.size());
    for (size_t p = 0; p < outputs.size(); ++p) {
      const Parameter& parameter = problem_.parameters[p];
      if (!parameter.IsWritten()) continue;
      bool exact = false;
      const ErrorBound bound = BoundOf(p, &exact);
      const Comparison comparison =
          evaluator::Compare(parameter, parameter.ShapeAt(*rule_.one.size), outputs[p], rule_.expected[p],
                             p < unwritten.size() ? unwritten[p] : std::vector<bool>(), bound,
                             problem_.tolerance.Differing(parameter.Elements(*rule_.one.size)));
      // How near a kernel comes to the tolerance is about its rounding, which exact and unusual values do not show.
      round.errors[p] = exact || rule_.one.IsStress() ? 0 : comparison.largest_error;
      if (comparison.matches) continue;
      round.worst = std::max(round.worst, comparison.unwritten > 0 ? INFINITY : comparison.largest_error);
      round.exact = round.exact || exact;
      if (!round.trouble) round.trouble = {"wrong", comparison.sentence, comparison.wrong};
    }
    return round;
  }

  std::vector<std::vector<uint8_t>> BytesOf(const std::vector<Expected>& values) const {
    std::vector<std::vector<uint8_t>> bytes(values.size());
    for (size_t p = 0; p < values.size(); ++p) {
      if (problem_.parameters[p].IsWritten()) bytes[p] = BytesFrom(problem_.parameters[p], values[p]);
    }
    return bytes;
  }

  const CaseRule& rule_;
  const Problem& problem_;
  const double accumulations_;
  // Bounds are without the part that scales give, which takes the oracle several times: what keeps to them is right.
  bool strict_ = false;
  std::vector<double> scales_;            // by parameter; empty where outputs' magnitudes decide
  std::vector<double> reference_errors_;  // by parameter: relative, of exact outputs
};

}  // namespace

CaseVerdict JudgeOutputs(const CaseRule& rule, const std::vector<std::vector<uint8_t>>& outputs,
                         const std::vector<std::vector<bool>>& unwritten) {
  return CaseJudge(rule).Judge(outputs, unwritten);
}

bool ReferenceFails(const CaseRule& rule) {
  if (!rule.one.further || !rule.reference) return false;
  try {
    rule.reference(rule.arguments);
    return false;
  } catch (const Error& error) {
    if (error.code() == KGRPO_ERROR_CANCELLED) throw;
    return true;
  }
}

}  // namespace kgrpo::evaluator
