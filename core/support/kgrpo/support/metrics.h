// What a measured fact is called: a table from the names that evaluators push to a label, a unit and a group. Used by
// `kgrpo-host eval` and by the variables current.metrics and current.evidence of prompts. A metric that the table does
// not know, of a third party's evaluator say, is shown under its own name.
#ifndef KGRPO_SUPPORT_METRICS_H
#define KGRPO_SUPPORT_METRICS_H

#include <optional>
#include <string>
#include <vector>

#include <kgrpo/support/line_facts.h>  // NamedNumber

namespace kgrpo {

struct Fact {
  std::string label;  // "registers a thread"
  std::string value;  // "30"; with the 95% interval where NAME_low and NAME_high were pushed too
  // Where it is a part of a whole, which: of the call's time for what something would take alone, so above 1 too.
  std::optional<double> fraction = std::nullopt;
};

struct FactGroup {
  std::string title;  // "Machine code"
  std::vector<Fact> facts;
};

// Groups and facts in the table's order; what limits the occupancy behind it; then a fact for each source line that is
// told of, in the group kLinesTitle; unknown metrics last, in the order in which they were pushed. The speedup is left
// out: whoever shows facts shows it above them.
std::vector<FactGroup> GroupFacts(const std::vector<NamedNumber>& metrics);

// The title of the group of source lines.
inline constexpr const char* kLinesTitle = "By source line";

// The value of the metric `name` in its unit: FormatMetric("occupancy", 0.5) is "50%".
std::string FormatMetric(const std::string& name, double value);

// All facts as text, a line for each group: what prompts call current.evidence.
std::string EvidenceText(const std::vector<NamedNumber>& metrics);

}  // namespace kgrpo
#endif
