#include "judge/report/line_facts.h"

#include <kgrpo/support/number_text.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

namespace kgrpo::evaluator {
namespace {

// "12 dram" behind "line/" is line 12 and "dram"; 0 where no number is there.
unsigned ReadLine(std::string_view text, std::string_view* rest) {
  unsigned line = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  if (error != std::errc()) return 0;
  *rest = text.substr(static_cast<size_t>(end - text.data()));
  if (rest->starts_with(' ')) rest->remove_prefix(1);
  return line;
}

// "1 cycle", "1.5 cycles".
std::string Counted(double count, const std::string& what) {
  const std::string digits = ThreeDigits(count);
  return digits + " " + what + (digits == "1" ? "" : "s");
}

}  // namespace

std::vector<LineFacts> LinesOf(const std::vector<Metric>& metrics) {
  std::map<unsigned, LineFacts> by_line;
  std::map<unsigned, double> largest;  // share, of one reason
  for (const auto& [name, value, low, high] : metrics) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos || !name.starts_with("line")) continue;
    const std::string_view family = std::string_view(name).substr(0, slash);
    std::string_view rest;
    const unsigned number = ReadLine(std::string_view(name).substr(slash + 1), &rest);
    if (number == 0) continue;
    if (family == "line") {
      LineFacts& line = by_line[number];
      line.share += value;
      if (value > largest[number]) {
        largest[number] = value;
        line.bound = rest;
      }
    } else if (family == "line_sectors") {
      by_line[number].sectors = value;
    } else if (family == "line_sectors_used") {
      by_line[number].sectors_used = value;
    } else if (family == "line_shared_cycles") {
      by_line[number].shared_cycles = value;
    } else if (family == "line_shared_conflicts") {
      by_line[number].shared_conflicts = value;
    }
  }
  std::vector<LineFacts> lines;
  for (auto& [number, line] : by_line) {
    line.line = number;
    lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const LineFacts& a, const LineFacts& b) { return a.share > b.share; });
  return lines;
}

std::string LineFacts::Text() const {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!bound.empty()) add("mostly " + bound);
  if (sectors) {
    add(Counted(*sectors, "sector") + " a request");
    if (sectors_used) text += ", " + Percent(*sectors_used) + " of their bytes used";
  }
  if (shared_cycles) {
    add(Counted(*shared_cycles, "cycle") + " a shared memory access");
    if (shared_conflicts) text += ", " + Percent(*shared_conflicts) + " by bank conflicts";
  }
  return text;
}

}  // namespace kgrpo::evaluator
