// Values for mustache templates: texts, lists, measured facts, a problem. Used by prompt/template.cc and by plugins
// that have templates.
#ifndef KGRPO_PROMPT_TEMPLATE_DATA_H
#define KGRPO_PROMPT_TEMPLATE_DATA_H

#include "prompt/metrics.h"
#include "prompt/state.h"  // PromptProblem

#include <kainjow/mustache.hpp>
#include <string>
#include <vector>

namespace kgrpo {

// Empty text is false, so that {{#name}} can ask for it.
kainjow::mustache::data TextData(const std::string& text);

kainjow::mustache::data TextsData(const std::vector<std::string>& texts);

// "a, b, c"
std::string JoinedText(const std::vector<std::string>& texts);

// By name, formatted as they were declared; false where there are none.
kainjow::mustache::data MetricsData(const std::vector<Metric>& metrics, const MetricRegistry* registry);

// The members of the variable `problem`.
kainjow::mustache::data ProblemData(const PromptProblem& problem);

}  // namespace kgrpo
#endif
