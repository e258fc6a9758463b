// An evaluation as lists of labelled facts: its metrics, as plugins declared them
// (kgrpo/support/metric_registry.h), and its remarks. Used by `kgrpo-host eval`, by the variables current.metrics and
// current.evidence of prompts, and by evaluators' reports. An undeclared metric is shown under its own name.
#ifndef KGRPO_SUPPORT_METRICS_H
#define KGRPO_SUPPORT_METRICS_H

#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/evaluation.h>
#include <kgrpo/support/metric_registry.h>

namespace kgrpo {

struct Fact {
  std::string label;  // "bytes a call"
  std::string value;  // "30"; with the 95% interval, if it is known
  // The value as a fraction of a whole, if it has one. For a time the whole is the run time, and the fraction may
  // exceed 1.
  std::optional<double> fraction = std::nullopt;
  std::string name = {};  // the metric's, which rewards and prompts use; empty for a remark
};

struct FactGroup {
  std::string title;  // "Machine code"
  std::vector<Fact> facts;
};

// The value pushed as `name`; nothing if there is none.
std::optional<double> ValueOf(const std::vector<Metric>& metrics, const std::string& name);

// Returns metrics in the order of declaration, each group's remarks after its metrics; then groups of remarks alone;
// last undeclared metrics, in the order in which they were pushed. Metrics declared without a group are left out.
// `registry` may be null: nothing is declared then.
std::vector<FactGroup> GroupFacts(const Evaluation& evaluation, const MetricRegistry* registry);

// Formats a value of the metric `name` as declared: FormatMetric("reached", 0.5, ...) is "50%".
std::string FormatMetric(const std::string& name, double value, const MetricRegistry* registry);

// All facts as text, a line for each group: what prompts call current.evidence.
std::string EvidenceText(const Evaluation& evaluation, const MetricRegistry* registry);

}  // namespace kgrpo
#endif
