#include "simt/time/time_by_line.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "simt/time/traffic.h"

namespace kgrpo::simt {
namespace {

// One line's amount of the quantity that the term counts.
double Amount(const Demand& demand, std::string_view term, const Device& device) {
  if (term == "dram" || term == "l2") return demand.l2_sectors + demand.local_sectors;
  if (term == "l1") return demand.l1_wavefronts + demand.local_sectors / 4;
  if (term == "shared") return SharedCycles(demand, device);
  if (term == "shared atomics") return demand.shared_atomic_wavefronts;
  if (term == "atomics") return demand.atomic_operations;
  if (term == "issue") return demand.issued;
  if (term == "latency") return demand.chain;
  for (size_t p = 0; p < demand.pipe.size(); ++p) {
    if (term == PipeName(static_cast<Pipe>(p))) return demand.pipe[p];
  }
  return 0;
}

}  // namespace

std::vector<LineTime> TimeByLine(const Counts& counts, const TimeEstimate& estimate, const Device& device) {
  std::vector<LineTime> lines;
  for (const LineDemand& line : counts.lines) lines.push_back({line.file, line.line, 0, ""});
  std::vector<double> most(lines.size(), 0);
  double powers = 0, waited = 0;
  for (const TimeTerm& term : estimate.terms) {
    if (term.name == "latency") waited = term.seconds;
    if (term.name != "launch" && term.name != "latency") powers += std::pow(term.seconds, estimate.norm);
  }
  if (powers == 0 || !std::isfinite(estimate.seconds)) return {};
  const double busy = std::pow(powers, estimate.latency_norm / estimate.norm),
               waiting = std::pow(waited, estimate.latency_norm);
  for (const TimeTerm& term : estimate.terms) {
    double whole = 0;
    for (const LineDemand& line : counts.lines) whole += Amount(line, term.name, device);
    if (term.name == "launch" || whole == 0) continue;
    const double share = term.name == "latency"
                             ? waiting / (busy + waiting)
                             : busy / (busy + waiting) * std::pow(term.seconds, estimate.norm) / powers;
    const double seconds = share * (estimate.seconds - estimate.launch_seconds);
    for (size_t i = 0; i < lines.size(); ++i) {
      const double part = seconds * Amount(counts.lines[i], term.name, device) / whole;
      lines[i].seconds += part;
      if (part <= most[i]) continue;
      most[i] = part;
      lines[i].bound = term.name;
    }
  }
  std::erase_if(lines, [](const LineTime& line) { return line.seconds == 0; });
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LineTime& a, const LineTime& b) { return a.seconds > b.seconds; });
  return lines;
}

}  // namespace kgrpo::simt
