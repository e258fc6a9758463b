// The table of what measured facts are called: from the names that evaluators push to a group, a label and a unit.
// Private to metrics.cc; docs/judging.md lists the names for users.
#ifndef KGRPO_SUPPORT_METRIC_LABELS_H
#define KGRPO_SUPPORT_METRIC_LABELS_H

#include <cstddef>
#include <string_view>

namespace kgrpo {

enum class Unit {
  kNumber,
  kCount,  // with a decimal prefix
  kBytes,
  kSeconds,
  kFraction,
  kBytesPerSecond,
  kOperationsPerSecond,
  kPerSecond,
  kMegahertz,
  kYesNo
};

struct MetricLabel {
  std::string_view name;   // one that ends in '/' or '.' stands for all that begin with it
  std::string_view group;  // "": not shown among the facts
  std::string_view label;  // of a family: what goes before the rest of the name
  Unit unit;
  bool IsFamily() const { return name.back() == '/' || name.back() == '.'; }
};

// Where occupancy is told, behind which what limits it goes.
inline constexpr std::string_view kOccupancy = "Occupancy";

// The line of the table for a name, counted in the order in which they are shown, or null where it has none. "NAME of
// KERNEL" is found as NAME.
const MetricLabel* LabelOf(std::string_view name, size_t* order);

}  // namespace kgrpo
#endif
