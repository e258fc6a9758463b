// Values for mustache templates: texts, lists, measured facts, a problem. Used by core/prompt/template.cc and by
// plugins that have templates.
#ifndef KGRPO_SUPPORT_TEMPLATE_DATA_H
#define KGRPO_SUPPORT_TEMPLATE_DATA_H

#include <kgrpo/evaluator.h>  // kgrpo_problem_info
#include <kgrpo/support/metrics.h>
#include <kgrpo/support/prompt_problem.h>
#include <kgrpo/support/template_check.h>  // Variable

#include <kainjow/mustache.hpp>
#include <string>
#include <vector>

namespace kgrpo {

// Empty text is false, so that {{#name}} can ask for it.
kainjow::mustache::data TextData(const std::string& text);

kainjow::mustache::data TextsData(const std::vector<std::string>& texts);

// By name, formatted as they were declared; false where there are none.
kainjow::mustache::data MetricsData(const std::vector<Metric>& metrics, const MetricRegistry* registry);

// Sets what templates show of an evaluation's figures: `time` (false unless correct), `metrics` and `evidence`.
void SetFigures(const Evaluation& evaluation, const MetricRegistry* registry, kainjow::mustache::data* data);

// The variable `problem`: what it is, its contents and its value.
const Variable& ProblemVariable();
PromptProblem MakePromptProblem(const kgrpo_problem_info& info);
kainjow::mustache::data ProblemData(const PromptProblem& problem);

}  // namespace kgrpo
#endif
