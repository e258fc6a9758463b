#include "eval/kernel_reports.h"

#include <kgrpo/support/number_text.h>  // Format

#include <algorithm>
#include <regex>

namespace kgrpo::cli {
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
