#include <kgrpo/support/metrics.h>

#include <kgrpo/support/number_text.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kgrpo {
namespace {

constexpr std::string_view kOther = "Other";

std::string Digits(double value, const char* format = "%.4g") {
  // Whole numbers below a billion are counts and are written with all digits.
  if (std::fabs(value) < 1e9 && value == std::floor(value)) format = "%.0f";
  return kgrpo::Format(format, value);
}

std::string WithUnit(const std::string& number, const std::string& unit) {
  return unit.empty() ? number : number + " " + unit;
}

std::string Format(const DeclaredMetric& metric, double value) {
  constexpr double kLeastScaled = 10000;  // smaller quantities are written without a prefix
  switch (metric.kind) {
    case KGRPO_METRIC_NUMBER: break;
    case KGRPO_METRIC_QUANTITY:
      if (std::fabs(value) >= kLeastScaled) return Scaled(value, metric.unit);
      break;
    case KGRPO_METRIC_SECONDS:
    case KGRPO_METRIC_RUN_TIME: return value < 0 ? "-" + FormatSeconds(-value) : FormatSeconds(value);
    case KGRPO_METRIC_FRACTION: return Percent(value);
    case KGRPO_METRIC_FLAG: return value != 0 ? "yes" : "no";
    case KGRPO_METRIC_DOLLARS: return FormatDollars(value);
  }
  return WithUnit(Digits(value), metric.unit);
}

const DeclaredMetric* Find(const MetricRegistry* registry, std::string_view name) {
  return registry == nullptr ? nullptr : registry->Find(name);
}

// The label of a declared metric; one of a family adds the rest of its name.
std::string LabelOf(const DeclaredMetric& declared, const std::string& name) {
  std::string label = declared.label;
  if (declared.IsFamily()) {
    std::string rest = name.substr(declared.name.size());
    std::replace(rest.begin(), rest.end(), '_', ' ');
    label += (label.empty() ? "" : " ") + rest;
  }
  if (const size_t of = name.find(" of "); of != std::string::npos) label += "," + name.substr(of + 3);
  return label;
}

Fact FactOf(const Metric& metric, const Evaluation& evaluation, const MetricRegistry* registry) {
  const std::string& name = metric.name;
  const double value = metric.value;
  Fact fact{.label = name, .value = FormatMetric(name, value, registry), .name = name};
  if (const DeclaredMetric* declared = Find(registry, name)) {
    fact.label = LabelOf(*declared, name);
    if (declared->kind == KGRPO_METRIC_FRACTION) fact.fraction = value;
    if (declared->kind == KGRPO_METRIC_RUN_TIME && evaluation.seconds > 0) {
      fact.fraction = value / evaluation.seconds;
      fact.value += " (" + Percent(*fact.fraction) + ")";
    }
  }
  if (metric.has_interval()) {
    fact.value +=
        " (95%: " + FormatMetric(name, metric.low, registry) + " to " + FormatMetric(name, metric.high, registry) + ")";
  }
  return fact;
}

Fact FactOf(const Remark& remark) {
  if (remark.line == 0) return {remark.label, remark.text};
  Fact fact{"line " + std::to_string(remark.line) + (remark.label.empty() ? "" : ", " + remark.label), remark.text};
  if (remark.share > 0) {
    fact.fraction = remark.share;
    fact.value = Percent(remark.share) + " of the time" + (remark.text.empty() ? "" : ", ") + remark.text;
  }
  return fact;
}

}  // namespace

std::optional<double> ValueOf(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::nullopt;
}

std::string FormatMetric(const std::string& name, double value, const MetricRegistry* registry) {
  const DeclaredMetric* declared = Find(registry, name);
  return declared != nullptr ? Format(*declared, value) : Digits(value, "%.5g");
}

std::vector<FactGroup> GroupFacts(const Evaluation& evaluation, const MetricRegistry* registry) {
  std::vector<FactGroup> groups;
  const auto add = [&groups](std::string_view title, Fact fact) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const FactGroup& one) { return one.title == title; });
    if (group == groups.end()) group = groups.insert(group, {std::string(title), {}});
    group->facts.push_back(std::move(fact));
  };
  std::vector<std::pair<const DeclaredMetric*, const Metric*>> declared;
  std::vector<const Metric*> undeclared;
  for (const Metric& metric : evaluation.metrics) {
    const DeclaredMetric* found = Find(registry, metric.name);
    if (found == nullptr) {
      undeclared.push_back(&metric);
    } else if (!found->group.empty()) {
      declared.emplace_back(found, &metric);
    }
  }
  std::stable_sort(declared.begin(), declared.end(),
                   [](const auto& a, const auto& b) { return a.first->order < b.first->order; });
  for (const auto& [found, metric] : declared) add(found->group, FactOf(*metric, evaluation, registry));
  for (const Remark& remark : evaluation.remarks) add(remark.group, FactOf(remark));
  for (const Metric* metric : undeclared) add(kOther, FactOf(*metric, evaluation, registry));
  return groups;
}

std::string EvidenceText(const Evaluation& evaluation, const MetricRegistry* registry) {
  std::string text;
  for (const FactGroup& group : GroupFacts(evaluation, registry)) {
    text += (text.empty() ? "" : "\n") + group.title + ": ";
    for (size_t i = 0; i < group.facts.size(); ++i)
      text += (i == 0 ? "" : "; ") + group.facts[i].label + " " + group.facts[i].value;
  }
  return text;
}

}  // namespace kgrpo
