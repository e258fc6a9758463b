#include <kgrpo/support/evaluation_text.h>
#include <kgrpo/support/number_text.h>  // FormatSeconds

#include <string_view>

namespace kgrpo {

std::string IntervalText(const Evaluation& evaluation) {
  if (evaluation.seconds_low == evaluation.seconds_high) return "";
  return " (95%: " + FormatSeconds(evaluation.seconds_low) + " to " + FormatSeconds(evaluation.seconds_high) + ")";
}

std::string SpeedupText(const Evaluation& candidate) {
  const std::string text = Format("%.3g", candidate.speedup);
  if (candidate.speedup_low <= 0) return text;
  return text + Format(" (95%%: %.3g to %.3g)", candidate.speedup_low, candidate.speedup_high);
}

std::optional<WorstError> WorstErrorOf(const Evaluation& evaluation) {
  constexpr std::string_view kFamily = KGRPO_METRIC_WORST_ERROR;
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
