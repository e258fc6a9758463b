#include "cli/kernel_text.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include <kgrpo/support/metrics.h>
#include <kgrpo/support/number_text.h>
#include "cli/table.h"
#include "console/console.h"  // Columns
#include "host/log.h"
#include "report/evaluation_text.h"
#include "report/source_notes.h"  // SplitLines

namespace kgrpo::cli {
namespace {

void PrintFacts(const std::vector<FactGroup>& groups) {
  size_t width = 0;
  for (const FactGroup& group : groups) {
    for (const Fact& fact : group.facts) width = std::max(width, Columns(PrintableText(fact.label)));
  }
  for (const FactGroup& group : groups) {
    std::printf("\n%s\n", group.title.c_str());
    for (const Fact& fact : group.facts) {
      const std::string label = PrintableText(fact.label);
      std::printf("  %s%s  %s\n", label.c_str(), std::string(width - Columns(label), ' ').c_str(), fact.value.c_str());
    }
  }
}

// A row a source line, with the line.
void PrintLines(const std::vector<LineFacts>& lines, const std::string& source) {
  const std::vector<std::string> texts = SplitLines(source);
  const auto number = [](const std::optional<double>& value) { return value ? ThreeDigits(*value) : std::string("-"); };
  const auto percent = [](const std::optional<double>& value) { return value ? Percent(*value) : std::string("-"); };
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
  if (const std::optional<WorstError> error = WorstErrorOf(candidate); candidate.correct && error) {
    std::printf("error      at worst %s %s\n", ThreeDigits(error->ratio).c_str(),
                PrintableText(WorstErrorWords(*error)).c_str());
  }
  const std::vector<NamedNumber> metrics = NumbersOf(candidate);
  std::vector<FactGroup> facts = GroupFacts(metrics);
  std::erase_if(facts, [](const FactGroup& group) { return group.title == kLinesTitle; });
  PrintFacts(facts);
  if (const std::vector<LineFacts> lines = LinesOf(metrics); !lines.empty()) PrintLines(lines, source);
  if (evaluator.empty()) return;
  std::printf("\nEvaluator\n");
  for (const std::string& line : SplitLines(evaluator)) std::printf("  %s\n", PrintableText(line).c_str());
}

}  // namespace kgrpo::cli
