#include <kgrpo/support/metrics.h>

#include <kgrpo/support/metric_labels.h>
#include <kgrpo/support/number_text.h>
#include <kgrpo/support/occupancy_limit.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

namespace kgrpo {
namespace {

constexpr std::string_view kOther = "Other";

std::string Digits(double value, const char* format = "%.4g") {
  // Whole numbers below a billion are counts: all of their digits count.
  if (std::fabs(value) < 1e9 && value == std::floor(value)) format = "%.0f";
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Format(Unit unit, double value) {
  switch (unit) {
    case Unit::kNumber:
      return Digits(value);
    case Unit::kCount:
      return value < 10000 ? Digits(value) : Scaled(value, "");
    case Unit::kBytes:
      return value < 10000 ? Digits(value) + " bytes" : Scaled(value, "B");
    case Unit::kSeconds:
      return value < 0 ? "-" + FormatSeconds(-value) : FormatSeconds(value);
    case Unit::kFraction:
      return Percent(value);
    case Unit::kBytesPerSecond:
      return Scaled(value, "B/s");
    case Unit::kOperationsPerSecond:
      return Scaled(value, "FLOP/s");
    case Unit::kPerSecond:
      return Scaled(value, "/s");
    case Unit::kMegahertz:
      return Digits(value) + " MHz";
    case Unit::kYesNo:
      return value != 0 ? "yes" : "no";
  }
  return Digits(value);
}

std::optional<double> Find(const std::vector<NamedNumber>& metrics, const std::string& name) {
  for (const auto& [other, value] : metrics) {
    if (other == name) return value;
  }
  return std::nullopt;
}

// Whether it is an end of another metric's interval.
bool IsEnd(const std::vector<NamedNumber>& metrics, const std::string& name) {
  for (const char* end : {"_low", "_high"}) {
    if (name.ends_with(end) && Find(metrics, name.substr(0, name.size() - std::string_view(end).size()))) return true;
  }
  return false;
}

}  // namespace

std::string FormatMetric(const std::string& name, double value) {
  size_t order = 0;
  const MetricLabel* label = LabelOf(name, &order);
  return label != nullptr ? Format(label->unit, value) : Digits(value, "%.5g");
}

std::vector<FactGroup> GroupFacts(const std::vector<NamedNumber>& metrics) {
  struct Placed {
    const MetricLabel* label;
    size_t order, pushed;
  };
  std::vector<Placed> places;
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (IsEnd(metrics, metrics[i].first)) continue;
    size_t order = 0;
    const MetricLabel* label = LabelOf(metrics[i].first, &order);
    places.push_back({label, order, i});
  }
  std::stable_sort(places.begin(), places.end(), [](const Placed& a, const Placed& b) { return a.order < b.order; });
  const std::optional<double> call = Find(metrics, "modelled_seconds");
  std::vector<FactGroup> groups;
  const auto add = [&groups](std::string_view title, Fact fact) {
    if (groups.empty() || groups.back().title != title) groups.push_back({std::string(title), {}});
    groups.back().facts.push_back(std::move(fact));
  };
  const auto add_lines = [&] {
    for (const LineFacts& line : LinesOf(metrics))
      add(kLinesTitle, {"line " + std::to_string(line.line), line.Text(), line.share});
  };
  bool lines_told = false;
  for (const auto& [label, order, pushed] : places) {
    const auto& [name, value] = metrics[pushed];
    if (label != nullptr && label->group.empty()) continue;
    if (label == nullptr && !lines_told) {
      add_lines();
      lines_told = true;
    }
    Fact fact{name, FormatMetric(name, value)};
    if (label != nullptr) {
      fact.label = label->label;
      if (label->IsFamily()) {
        std::string rest = name.substr(label->name.size());
        std::replace(rest.begin(), rest.end(), '_', ' ');
        fact.label += (fact.label.empty() ? "" : " ") + rest;
      }
      if (const size_t of = name.find(" of "); of != std::string::npos) fact.label += "," + name.substr(of + 3);
      if (label->unit == Unit::kFraction) fact.fraction = value;
      if (call && *call > 0 && name.starts_with("seconds/")) {
        fact.fraction = value / *call;
        fact.value += " (" + Percent(*fact.fraction) + ")";
      }
    }
    const std::optional<double> low = Find(metrics, name + "_low"), high = Find(metrics, name + "_high");
    if (low && high) fact.value += " (95%: " + FormatMetric(name, *low) + " to " + FormatMetric(name, *high) + ")";
    add(label != nullptr ? label->group : kOther, std::move(fact));
    if (name == "occupancy") {
      if (std::string limit = OccupancyLimit(metrics); !limit.empty())
        add(kOccupancy, {"limited by", std::move(limit)});
    }
  }
  if (!lines_told) add_lines();
  return groups;
}

std::string EvidenceText(const std::vector<NamedNumber>& metrics) {
  std::string text;
  for (const FactGroup& group : GroupFacts(metrics)) {
    text += (text.empty() ? "" : "\n") + group.title + ": ";
    for (size_t i = 0; i < group.facts.size(); ++i)
      text += (i == 0 ? "" : "; ") + group.facts[i].label + " " + group.facts[i].value;
  }
  return text;
}

}  // namespace kgrpo
