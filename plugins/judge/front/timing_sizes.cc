#include "judge/front/timing_sizes.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <kgrpo/support/sha256.h>

namespace kgrpo::evaluator {
namespace {

bool IsSpeedup(const std::string& metric) {
  return metric == "speedup" || metric == "speedup_low" || metric == "speedup_high";
}

// Says in the diagnosis of a kernel that is not correct which timing size it is about.
void NameSize(size_t i, size_t count, std::string* diagnosis) {
  constexpr std::string_view kBegin = "At the timing size";
  if (!diagnosis->starts_with(kBegin)) return;
  diagnosis->replace(0, kBegin.size(), "At timing size " + std::to_string(i + 1) + " of " + std::to_string(count));
}

}  // namespace

std::vector<Problem> FurtherTimingProblems(const Problem& problem) {
  std::vector<Problem> problems;
  for (const Bindings& size : problem.further_timing) {
    Problem& one = problems.emplace_back(problem);
    one.timing = size;
    one.further_timing.clear();
    one.visible.resize(1);
    one.hidden.clear();
    one.further_cases = false;
    for (Parameter& parameter : one.parameters) {
      parameter.also.clear();
      parameter.may_alias.reset();
    }
    one.digest = Sha256OfParts({problem.digest, "timed at " + SizeText(size)});
  }
  return problems;
}

KernelEvaluation OverTimingSizes(size_t count, const std::function<KernelEvaluation(size_t i)>& evaluate) {
  KernelEvaluation result = evaluate(0);
  if (count == 1) return result;
  if (!result.correct) {
    NameSize(0, count, &result.diagnosis);
    return result;
  }
  std::vector<std::pair<std::string, double>> times = {{"timing_size_seconds/1", result.seconds}};
  for (size_t i = 1; i < count; ++i) {
    KernelEvaluation further = evaluate(i);
    if (!further.correct) {
      NameSize(i, count, &further.diagnosis);
      return further;
    }
    times.emplace_back("timing_size_seconds/" + std::to_string(i + 1), further.seconds);
    result.seconds *= further.seconds;
    result.seconds_low *= further.seconds_low;
    result.seconds_high *= further.seconds_high;
    for (auto& [name, value] : result.metrics) {
      if (!IsSpeedup(name)) continue;
      for (const auto& [further_name, further_value] : further.metrics) {
        if (further_name == name) value *= further_value;
      }
    }
    result.transient = result.transient || further.transient;
    result.compile_seconds += further.compile_seconds;
    result.correctness_seconds += further.correctness_seconds;
    result.oracle_seconds += further.oracle_seconds;
    result.timing_seconds += further.timing_seconds;
  }
  const auto mean = [count](double* product) { *product = std::pow(*product, 1 / static_cast<double>(count)); };
  mean(&result.seconds);
  mean(&result.seconds_low);
  mean(&result.seconds_high);
  for (auto& [name, value] : result.metrics) {
    if (IsSpeedup(name)) mean(&value);
  }
  result.metrics.insert(result.metrics.end(), times.begin(), times.end());
  result.diagnosis += " This describes the first of " + std::to_string(count) +
                      " timing sizes; the time is the geometric mean over them.";
  return result;
}

}  // namespace kgrpo::evaluator
