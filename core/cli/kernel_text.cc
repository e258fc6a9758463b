#include "cli/kernel_text.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <sstream>
#include <vector>

#include "cli/table.h"
#include "host/log.h"
#include "prompt/metrics.h"
#include "prompt/template.h"  // FormatSeconds
#include "report/evaluation_text.h"

namespace kgrpo::cli {
namespace {

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// Characters, not bytes.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void PrintFacts(const std::vector<FactGroup>& groups) {
  size_t width = 0;
  for (const FactGroup& group : groups) {
    for (const Fact& fact : group.facts) width = std::max(width, Width(PrintableText(fact.label)));
  }
  for (const FactGroup& group : groups) {
    std::printf("\n%s\n", group.title.c_str());
    for (const Fact& fact : group.facts) {
      const std::string label = PrintableText(fact.label);
      std::printf("  %s%s  %s\n", label.c_str(), std::string(width - Width(label), ' ').c_str(), fact.value.c_str());
    }
  }
}

// A row a source line, with the line.
void PrintLines(const std::vector<LineFacts>& lines, const std::string& source) {
  std::vector<std::string> texts;
  std::istringstream stream(source);
  for (std::string text; std::getline(stream, text);) texts.push_back(text);
  const auto number = [](const std::optional<double>& value) { return value ? Short(*value) : std::string("-"); };
  const auto percent = [](const std::optional<double>& value) {
    return value ? Short(100 * *value) + "%" : std::string("-");
  };
  std::vector<std::vector<std::string>> rows;
  for (const LineFacts& line : lines) {
    std::string text = line.line <= texts.size() ? texts[line.line - 1] : "";
    const size_t first = text.find_first_not_of(" \t");
    text = first == std::string::npos ? "" : text.substr(first);
    rows.push_back({"  " + std::to_string(line.line), percent(line.share), line.bound, number(line.sectors),
                    percent(line.sectors_used), number(line.shared_cycles), percent(line.shared_conflicts), text});
  }
  std::printf("\n%s\n", kLinesTitle);
  PrintTable(
      {"  line", "time", "mostly", "sectors/request", "bytes used", "cycles/shared access", "bank conflicts", "source"},
      rows);
}

}  // namespace

void PrintKernelText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem,
                     const std::string& source, const std::string& evaluator) {
  std::printf("problem    %s\nverdict    %s\n", problem.c_str(), candidate.verdict.c_str());
  if (!candidate.diagnosis.empty()) std::printf("found      %s\n", PrintableText(candidate.diagnosis).c_str());
  const std::string clock = (baseline.modelled ? "modelled: " : "measured: ") + baseline.time_source;
  std::printf("reference  %s%s (%s)\n", FormatSeconds(baseline.seconds).c_str(), IntervalText(baseline).c_str(),
              PrintableText(clock).c_str());
  if (candidate.correct) {
    std::printf("kernel     %s%s\nspeedup    %s\n", FormatSeconds(candidate.seconds).c_str(),
                IntervalText(candidate).c_str(), SpeedupText(candidate, baseline).c_str());
  }
  const std::vector<NamedNumber> metrics = NumbersOf(candidate);
  std::vector<FactGroup> facts = GroupFacts(metrics);
  std::erase_if(facts, [](const FactGroup& group) { return group.title == kLinesTitle; });
  PrintFacts(facts);
  if (const std::vector<LineFacts> lines = LinesOf(metrics); !lines.empty()) PrintLines(lines, source);
  if (evaluator.empty()) return;
  std::printf("\nEvaluator\n");
  std::istringstream lines(evaluator);
  for (std::string line; std::getline(lines, line);) std::printf("  %s\n", PrintableText(line).c_str());
}

}  // namespace kgrpo::cli
