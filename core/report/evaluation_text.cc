#include "report/evaluation_text.h"

#include <algorithm>
#include <cstdio>

#include <kgrpo/support/number_text.h>  // FormatSeconds

namespace kgrpo {

std::vector<NamedNumber> NumbersOf(const Evaluation& evaluation) {
  std::vector<NamedNumber> numbers;
  for (const Metric& metric : evaluation.metrics) numbers.emplace_back(metric.name, metric.value);
  return numbers;
}

double MetricOf(const Evaluation& evaluation, std::string_view name) {
  const auto found = std::find_if(evaluation.metrics.begin(), evaluation.metrics.end(),
                                  [name](const Metric& metric) { return metric.name == name; });
  return found == evaluation.metrics.end() ? 0.0 : found->value;
}

std::string IntervalText(const Evaluation& evaluation) {
  if (evaluation.seconds_low == evaluation.seconds_high) return "";
  return " (95%: " + FormatSeconds(evaluation.seconds_low) + " to " + FormatSeconds(evaluation.seconds_high) + ")";
}

std::string SpeedupText(const Evaluation& candidate, const Evaluation& baseline) {
  char text[96];
  int length = std::snprintf(text, sizeof text, "%.3g", baseline.seconds / candidate.seconds);
  if (const double low = MetricOf(candidate, "speedup_low"), high = MetricOf(candidate, "speedup_high");
      low > 0 && high > 0) {
    std::snprintf(text + length, sizeof text - static_cast<size_t>(length), " (95%%: %.3g to %.3g)", low, high);
  }
  return text;
}

std::optional<WorstError> WorstErrorOf(const Evaluation& evaluation) {
  constexpr std::string_view kFamily = "worst_error/";
  std::optional<WorstError> worst;
  for (const Metric& metric : evaluation.metrics) {
    if (!metric.name.starts_with(kFamily) || (worst && worst->ratio >= metric.value)) continue;
    worst = {metric.name.substr(kFamily.size()), metric.value};
  }
  return worst;
}

std::string WorstErrorWords(const WorstError& error) {
  constexpr double kClose = 0.5;
  return "of the tolerance, in " + error.output + (error.ratio > kClose ? " (close: other inputs may exceed it)" : "");
}

}  // namespace kgrpo
