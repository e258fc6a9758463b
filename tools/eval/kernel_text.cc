#include "eval/kernel_text.h"

#include <kgrpo/support/evaluation_text.h>
#include <kgrpo/support/metrics.h>
#include <kgrpo/support/number_text.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <vector>

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

namespace {

using Json = nlohmann::ordered_json;

std::string Xml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\n': escaped += "&#10;"; break;
      default: escaped += static_cast<unsigned char>(c) >= ' ' || c == '\t' ? c : '?';
    }
  }
  return escaped;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// The file and line that the diagnosis names first: "line 32", "own.cuh:2: ", "kernel.cu(4)". The kernel's own file is
// called kernel.cu or kernel.ptx there.
std::pair<std::string, int> PlaceOf(const ReportedKernel& kernel) {
  static const std::regex kPlace(R"(\bline (\d{1,9})\b|([\w./-]+\.(?:cuh?|ptx))(?::|\()(\d{1,9}))");
  std::smatch found;
  if (!std::regex_search(kernel.evaluation->diagnosis, found, kPlace)) return {kernel.file, 1};
  if (found[1].matched) return {kernel.file, std::stoi(found[1])};
  const size_t folder = kernel.file.rfind('/') + 1;  // 0 without one
  const std::string named = found[2];
  return {named == "kernel.cu" || named == "kernel.ptx" ? kernel.file : kernel.file.substr(0, folder) + named,
          std::stoi(found[3])};
}

std::string RuleOf(const ReportedKernel& kernel) {
  return kernel.evaluation->correct ? "slow" : kernel.evaluation->verdict;
}

}  // namespace

std::string JunitReport(const std::string& problem, const std::vector<ReportedKernel>& kernels) {
  const auto failures = std::ranges::count_if(kernels, [](const auto& kernel) { return !kernel.unmet.empty(); });
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + Xml(problem) + "\" tests=\"" +
                    std::to_string(kernels.size()) + "\" failures=\"" + std::to_string(failures) + "\">\n";
  for (const ReportedKernel& kernel : kernels) {
    const Evaluation& found = *kernel.evaluation;
    xml += "  <testcase classname=\"" + Xml(problem) + "\" name=\"" + Xml(kernel.file) + "\">\n";
    if (!kernel.unmet.empty()) {
      xml += "    <failure type=\"" + RuleOf(kernel) + "\" message=\"" + Xml(kernel.unmet) + "\">" +
             Xml(found.diagnosis) + "</failure>\n";
    }
    if (found.correct)
      xml += "    <system-out>" + Xml(Format("%.4g us, speedup %.3g", found.seconds * 1e6, found.speedup)) +
             "</system-out>\n";
    xml += "  </testcase>\n";
  }
  return xml + "</testsuite>\n";
}

Json SarifReport(const std::string& problem, const std::vector<ReportedKernel>& kernels) {
  Json results = Json::array(), rules = Json::array();
  for (const ReportedKernel& kernel : kernels) {
    if (kernel.unmet.empty()) continue;
    const auto [file, line] = PlaceOf(kernel);
    const std::string rule = RuleOf(kernel), found = FirstLine(kernel.evaluation->diagnosis);
    if (std::ranges::none_of(rules, [&](const Json& known) { return known["id"] == rule; }))
      rules.push_back({{"id", rule}});
    results.push_back(
        {{"ruleId", rule},
         {"level", "error"},
         {"message", {{"text", problem + ": " + kernel.unmet + (found.empty() ? "" : ". " + found)}}},
         {"locations",
          {{{"physicalLocation", {{"artifactLocation", {{"uri", file}}}, {"region", {{"startLine", line}}}}}}}}});
  }
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs",
           {{{"tool", {{"driver", {{"name", "kgrpo"}, {"version", KGRPO_VERSION}, {"rules", rules}}}}},
             {"results", results}}}}};
}

}  // namespace kgrpo::cli
