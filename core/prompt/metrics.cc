#include "prompt/metrics.h"

#include "prompt/template.h"  // FormatSeconds

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

namespace kgrpo {
namespace {

enum class Unit { kNumber, kBytes, kSeconds, kFraction, kBytesPerSecond, kOperationsPerSecond, kMegahertz, kYesNo };

struct Label {
  std::string_view name;   // one that ends in '/' or '.' stands for all that begin with it
  std::string_view group;  // "": not shown among the facts
  std::string_view label;  // of a family: what goes before the rest of the name
  Unit unit;
};

constexpr std::string_view kTime = "Time", kCode = "Machine code", kLaunch = "Launch", kRoofline = "Roofline",
                           kChecks = "Cross-checks", kProfile = "Profile (Nsight Compute)", kTraffic = "Traffic",
                           kModel = "Model's terms", kLines = "Time by source line, and what most of it is for",
                           kOther = "Other";

// In the order in which they are shown.
constexpr auto kLabels = std::to_array<Label>({
    {"speedup", "", "speedup", Unit::kNumber},
    {"measured_seconds", kTime, "a call, beside the reference", Unit::kSeconds},
    {"baseline_seconds", kTime, "the reference, beside it", Unit::kSeconds},
    {"timing_rounds", kTime, "rounds", Unit::kNumber},
    {"timing_throttled_rounds", kTime, "rounds with throttled clocks", Unit::kNumber},
    {"timing_dropped_rounds", kTime, "rounds dropped for that", Unit::kNumber},
    {"timing_calls", kTime, "calls timed", Unit::kNumber},
    {"timing_sets", kTime, "sets of inputs", Unit::kNumber},
    {"timing_gated", kTime, "calls launched ahead (1) or timed with their launches (0)", Unit::kNumber},
    {"timing_baseline_gated", kTime, "the reference's likewise", Unit::kNumber},
    {"timing_early_checks", kTime, "batches in which it was looked for work before its time", Unit::kNumber},
    {"timing_pairs", kTime, "processes of each side that took turns", Unit::kNumber},
    {"clock_mhz", kTime, "clock", Unit::kMegahertz},

    {"registers", kCode, "registers a thread", Unit::kNumber},
    {"spill_bytes", kCode, "registers spilled", Unit::kBytes},
    {"shared_bytes", kCode, "shared memory a block", Unit::kBytes},
    {"static_shared_bytes", kCode, "of it with a fixed size", Unit::kBytes},
    {"stack_bytes", kCode, "local memory a thread", Unit::kBytes},
    {"constant_bytes", kCode, "constant memory", Unit::kBytes},

    {"launches", kLaunch, "kernels a call", Unit::kNumber},
    {"grid_blocks", kLaunch, "blocks", Unit::kNumber},
    {"block_threads", kLaunch, "threads a block", Unit::kNumber},
    {"dynamic_shared_bytes", kLaunch, "dynamic shared memory a block", Unit::kBytes},
    {"occupancy", kLaunch, "occupancy", Unit::kFraction},
    {"resident_blocks", kLaunch, "blocks at once on a multiprocessor", Unit::kNumber},
    {"resident_blocks_by/", kLaunch, "blocks at once as far as it goes by", Unit::kNumber},

    {"roofline_fraction", kRoofline, "of the roofline", Unit::kFraction},
    {"roofline_seconds", kRoofline, "a call at the roofline", Unit::kSeconds},
    {"bytes_per_second", kRoofline, "needed traffic", Unit::kBytesPerSecond},
    {"bandwidth_fraction", kRoofline, "of the bandwidth", Unit::kFraction},
    {"bandwidth_ceiling", kRoofline, "bandwidth reached by a plain read", Unit::kBytesPerSecond},
    {"operations_per_second", kRoofline, "needed arithmetic", Unit::kOperationsPerSecond},
    {"arithmetic_fraction", kRoofline, "of the arithmetic rate", Unit::kFraction},
    {"arithmetic_ceiling", kRoofline, "arithmetic rate reached by a plain loop", Unit::kOperationsPerSecond},
    {"least_seconds", kRoofline, "a call by the fastest units there are", Unit::kSeconds},

    {"event_seconds", kChecks, "a call by events of its own process", Unit::kSeconds},
    {"first_call_seconds", kChecks, "first call of a batch longer by", Unit::kSeconds},
    {"same_bits_twice", kChecks, "same bits when called twice", Unit::kYesNo},
    {"checked_warp_instructions", kChecks, "warp instructions checked", Unit::kNumber},

    {"profile.kernels", kProfile, "kernels profiled", Unit::kNumber},
    {"profile.seconds", kProfile, "all of them", Unit::kSeconds},
    {"profile.longest_seconds", kProfile, "the longest, of which the rest is", Unit::kSeconds},
    {"profile.occupancy", kProfile, "achieved occupancy", Unit::kFraction},
    {"profile.dram_fraction", kProfile, "DRAM throughput, of its peak", Unit::kFraction},
    {"profile.dram_bytes", kProfile, "DRAM traffic", Unit::kBytes},
    {"profile.l2_hits", kProfile, "L2 hits", Unit::kFraction},
    {"profile.l1_hits", kProfile, "L1 hits", Unit::kFraction},
    {"profile.multiprocessor_fraction", kProfile, "multiprocessor throughput, of its peak", Unit::kFraction},
    {"profile.tensor_fraction", kProfile, "tensor pipe busy", Unit::kFraction},
    {"profile.issue_fraction", kProfile, "issue slots used", Unit::kFraction},
    {"profile.load_sectors", kProfile, "sectors a global load request", Unit::kNumber},
    {"profile.store_sectors", kProfile, "sectors a global store request", Unit::kNumber},
    {"profile.bank_conflicts", kProfile, "shared memory bank conflicts", Unit::kNumber},
    {"profile.stalls.", kProfile, "warps' time lost to", Unit::kFraction},

    {"dram_bytes", kTraffic, "DRAM", Unit::kBytes},
    {"l2_bytes", kTraffic, "L2", Unit::kBytes},
    {"load_sectors", kTraffic, "sectors a load request", Unit::kNumber},
    {"load_sectors_used", kTraffic, "bytes of those sectors that are asked for", Unit::kFraction},
    {"store_sectors", kTraffic, "sectors a store request", Unit::kNumber},
    {"store_sectors_used", kTraffic, "bytes of those sectors that are written", Unit::kFraction},
    {"shared_cycles", kTraffic, "cycles a shared memory access", Unit::kNumber},
    {"shared_conflicts", kTraffic, "of them by bank conflicts", Unit::kFraction},
    {"active_lanes", kTraffic, "lanes active", Unit::kFraction},
    {"divergent_branches", kTraffic, "branches at which a warp parts", Unit::kFraction},
    {"seconds/", kModel, "", Unit::kSeconds},
    {"line/", kLines, "line", Unit::kFraction},
});

bool IsFamily(const Label& label) {
  return label.name.back() == '/' || label.name.back() == '.';
}

// The table's line for a name, or its size.
size_t LineOf(std::string_view name) {
  const auto* found = std::find_if(kLabels.begin(), kLabels.end(), [name](const Label& label) {
    return IsFamily(label) ? name.starts_with(label.name) && name.size() > label.name.size() : name == label.name;
  });
  return static_cast<size_t>(found - kLabels.begin());
}

std::string Digits(double value, const char* format = "%.4g") {
  // Whole numbers below a billion are counts: all of their digits count.
  if (std::fabs(value) < 1e9 && value == std::floor(value)) format = "%.0f";
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// "3.02 TB/s" and the like: three digits and a decimal prefix.
std::string Scaled(double value, const char* unit) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s%s", value, kPrefixes[prefix], unit);
  return text;
}

std::string Format(Unit unit, double value) {
  switch (unit) {
    case Unit::kNumber:
      return Digits(value);
    case Unit::kBytes:
      return value < 10000 ? Digits(value) + " bytes" : Scaled(value, "B");
    case Unit::kSeconds:
      return value < 0 ? "-" + FormatSeconds(-value) : FormatSeconds(value);
    case Unit::kFraction: {
      char text[32];
      std::snprintf(text, sizeof text, "%.3g%%", 100 * value);
      return text;
    }
    case Unit::kBytesPerSecond:
      return Scaled(value, "B/s");
    case Unit::kOperationsPerSecond:
      return Scaled(value, "FLOP/s");
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
  const size_t line = LineOf(name);
  return line < kLabels.size() ? Format(kLabels[line].unit, value) : Digits(value, "%.5g");
}

std::vector<FactGroup> GroupFacts(const std::vector<NamedNumber>& metrics) {
  struct Placed {
    size_t line, pushed;
  };
  std::vector<Placed> places;
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (!IsEnd(metrics, metrics[i].first)) places.push_back({LineOf(metrics[i].first), i});
  }
  std::stable_sort(places.begin(), places.end(), [](const Placed& a, const Placed& b) { return a.line < b.line; });
  std::vector<FactGroup> groups;
  for (const auto& [line, pushed] : places) {
    const auto& [name, value] = metrics[pushed];
    const bool known = line < kLabels.size();
    const std::string_view title = known ? kLabels[line].group : kOther;
    if (title.empty()) continue;
    Fact fact{name, FormatMetric(name, value)};
    if (known) {
      fact.label = kLabels[line].label;
      if (IsFamily(kLabels[line])) {
        std::string rest = name.substr(kLabels[line].name.size());
        std::replace(rest.begin(), rest.end(), '_', ' ');
        fact.label += (fact.label.empty() ? "" : " ") + rest;
      }
    }
    const std::optional<double> low = Find(metrics, name + "_low"), high = Find(metrics, name + "_high");
    if (low && high) fact.value += " (95%: " + FormatMetric(name, *low) + " to " + FormatMetric(name, *high) + ")";
    if (groups.empty() || groups.back().title != title) groups.push_back({std::string(title), {}});
    groups.back().facts.push_back(std::move(fact));
  }
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
