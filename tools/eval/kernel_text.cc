#include "eval/kernel_text.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include <kgrpo/support/evaluation_text.h>
#include <kgrpo/support/metrics.h>
#include <kgrpo/support/number_text.h>
#include "base/console.h"  // Columns
#include "base/log.h"
#include "common/table.h"

namespace kgrpo::cli {
namespace {

std::string Padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, Columns(text)), ' ');
}

// Label, value, and the metric's name.
void PrintFacts(const std::vector<FactGroup>& groups) {
  size_t labels = 0, values = 0;
  std::string example;
  for (const FactGroup& group : groups) {
    for (const Fact& fact : group.facts) {
      labels = std::max(labels, Columns(PrintableText(fact.label)));
      if (!fact.name.empty()) values = std::max(values, Columns(PrintableText(fact.value)));
      if (example.empty()) example = fact.name;
    }
  }
  for (const FactGroup& group : groups) {
    std::printf("\n%s\n", PrintableText(group.title).c_str());
    for (const Fact& fact : group.facts) {
      const std::string label = Padded(PrintableText(fact.label), labels), value = PrintableText(fact.value);
      if (fact.name.empty()) {
        std::printf("  %s  %s\n", label.c_str(), value.c_str());
      } else {
        std::printf("  %s  %s  %s\n", label.c_str(), Padded(value, values).c_str(), PrintableText(fact.name).c_str());
      }
    }
  }
  if (!example.empty())
    std::printf("\nThe last column is a metric's name in rewards: metric(\"%s\")\n", PrintableText(example).c_str());
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// Remarks on lines, a row each with the line: tables of their own, one a group, of at most `most` rows.
void PrintLines(const std::vector<Remark>& remarks, const std::string& source, size_t most) {
  const std::vector<std::string> texts = SplitLines(source);
  std::map<std::string, std::vector<std::vector<std::string>>> rows;
  for (const Remark& remark : remarks) {
    if (remark.line == 0) continue;
    std::string text = remark.line <= texts.size() ? texts[remark.line - 1] : "";
    const size_t first = text.find_first_not_of(" \t");
    text = first == std::string::npos ? "" : text.substr(first);
    const std::string words = remark.label + (remark.label.empty() ? "" : " ") + remark.text;
    rows[remark.group].push_back(
        {"  " + std::to_string(remark.line), remark.share > 0 ? Percent(remark.share) : std::string("-"), words, text});
  }
  for (auto& [group, table] : rows) {
    if (table.size() > most) table.resize(most);
    std::printf("\n%s\n", PrintableText(group).c_str());
    PrintTable({"  line", "time", "remark", "source"}, table);
  }
}

}  // namespace

void PrintKernelText(const Evaluation& candidate, const Evaluation& baseline, const std::string& problem,
                     const std::string& source, const std::string& evaluator, bool thorough, bool verbose,
                     const MetricRegistry& registry) {
  PrintField("verdict", candidate.verdict, candidate.correct ? "32" : "31");
  PrintField("problem", problem);
  if (!candidate.diagnosis.empty()) PrintField("found", candidate.diagnosis);
  const std::string clock = (baseline.modelled ? "modelled: " : "measured: ") + baseline.time_source;
  PrintField("reference", FormatSeconds(baseline.seconds) + IntervalText(baseline) + " (" + clock + ")");
  if (candidate.correct) {
    PrintField("kernel", FormatSeconds(candidate.seconds) + IntervalText(candidate));
    PrintField("speedup", SpeedupText(candidate));
  }
  if (const std::optional<WorstError> error = WorstErrorOf(candidate); candidate.correct && error)
    PrintField("error", "at worst " + ThreeDigits(error->ratio) + " " + WorstErrorWords(*error));
  if (!candidate.correct) PrintField("see", "docs/judging.md#verdicts");
  Evaluation whole = candidate;
  if (!candidate.correct) whole.metrics.clear();  // for a failed kernel only the diagnosis matters
  std::erase_if(whole.remarks, [](const Remark& remark) { return remark.line > 0; });
  if (verbose) PrintFacts(GroupFacts(whole, &registry));
  constexpr size_t kLines = 6;
  PrintLines(candidate.remarks, source, verbose ? std::numeric_limits<size_t>::max() : kLines);
  if (!verbose) {
    if (!whole.metrics.empty()) {
      std::printf("\n");
      PrintField("more",
                 "-v prints all " + std::to_string(whole.metrics.size()) + " metrics and the evaluator's conditions");
    }
    return;
  }
  if (evaluator.empty()) return;
  std::printf("\nEvaluator (%s evaluation)\n", thorough ? "thorough" : "quick");
  for (const std::string& line : SplitLines(evaluator)) std::printf("  %s\n", PrintableText(line).c_str());
}

}  // namespace kgrpo::cli
