#include <kgrpo/support/template_data.h>

#include <kgrpo/sdk/text.h>             // Copy
#include <kgrpo/support/closest.h>      // JoinedText
#include <kgrpo/support/number_text.h>  // FormatSeconds

namespace kgrpo {
namespace {

namespace mustache = kainjow::mustache;

// Sets data.a.b.c for the name "a.b.c", which is how mustache reads that name.
void SetNested(mustache::data& data, const std::string& name, const mustache::data& value) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return data.set(name, value);
  const std::string head = name.substr(0, dot);
  const mustache::data* known = data.get(head);
  mustache::data inner = known != nullptr && known->is_object() ? *known : mustache::data(mustache::data::type::object);
  SetNested(inner, name.substr(dot + 1), value);
  data.set(head, inner);
}

}  // namespace

mustache::data TextData(const std::string& text) { return text.empty() ? mustache::data(false) : mustache::data(text); }

mustache::data TextsData(const std::vector<std::string>& texts) {
  mustache::data list(mustache::data::type::list);
  for (const std::string& text : texts) list.push_back(mustache::data(text));
  return list;
}

mustache::data MetricsData(const std::vector<Metric>& metrics, const MetricRegistry* registry) {
  if (metrics.empty()) return mustache::data(false);
  mustache::data data;
  for (const auto& [name, value, low, high] : metrics)
    SetNested(data, name, mustache::data(FormatMetric(name, value, registry)));
  return data;
}

void SetFigures(const Evaluation& evaluation, const MetricRegistry* registry, mustache::data* data) {
  data->set("time", TextData(evaluation.seconds > 0 ? FormatSeconds(evaluation.seconds) : ""));
  data->set("metrics", MetricsData(evaluation.metrics, registry));
  data->set("evidence", TextData(EvidenceText(evaluation, registry)));
}

const Variable& ProblemVariable() {
  using Kind = Variable::Kind;
  static const Variable kText{Kind::kText, {}};
  static const Variable kProblem{Kind::kRecord,
                                 {{"name", kText},
                                  {"title", kText},
                                  {"family", kText},
                                  {"task", kText},
                                  {"signature", kText},
                                  {"traits", {Kind::kTexts, {}}},
                                  {"traits_joined", kText}}};
  return kProblem;
}

PromptProblem MakePromptProblem(const kgrpo_problem_info& info) {
  PromptProblem prompt;
  prompt.name = Copy(info.name);
  prompt.title = Copy(info.title);
  prompt.family = Copy(info.family);
  prompt.task = Copy(info.task);
  prompt.signature = Copy(info.signature);
  for (size_t i = 0; i < info.trait_count; ++i) prompt.traits.push_back(Copy(info.traits[i]));
  return prompt;
}

mustache::data ProblemData(const PromptProblem& problem) {
  mustache::data data;
  data.set("name", TextData(problem.name));
  data.set("title", TextData(problem.title));
  data.set("family", TextData(problem.family));
  data.set("task", TextData(problem.task));
  data.set("signature", TextData(problem.signature));
  data.set("traits", TextsData(problem.traits));
  data.set("traits_joined", TextData(JoinedText(problem.traits)));
  return data;
}

}  // namespace kgrpo
