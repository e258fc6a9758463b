#include "judge/report/kernel_report.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdio>
#include <kainjow/mustache.hpp>
#include <map>
#include <vector>

#include <kgrpo/support/evaluation_text.h>
#include <kgrpo/support/metrics.h>
#include <kgrpo/support/number_text.h>
#include "judge/report/declared_metrics.h"
#include "judge/report/escape.h"
#include "judge/report/roofline.h"
#include "judge/report/roofline_picture.h"
#include "judge/report/source_notes.h"

namespace kgrpo::evaluator {

extern const char* const kKernelReportTemplate;  // mustache, in kernel_report_template.cc

namespace {

namespace mustache = kainjow::mustache;
using Data = mustache::data;

// A width of a bar: from 0 to 100.
std::string BarPercent(double fraction) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 100 * std::clamp(fraction, 0.0, 1.0));
  return text;
}

Data Record(std::initializer_list<std::pair<const char*, std::string>> members) {
  Data data(Data::type::object);
  for (const auto& [name, value] : members) data.set(name, Data(value));
  return data;
}

// " (95%: a to b)" without the blank before it.
std::string Beside(const std::string& interval) { return interval.empty() ? "" : interval.substr(1); }

Data FiguresOf(const KernelReport& report) {
  const Evaluation &candidate = report.candidate, &baseline = report.baseline;
  Data figures(Data::type::list);
  const std::string clock = (baseline.modelled ? "modelled: " : "measured: ") + baseline.time_source;
  if (candidate.correct) {
    figures.push_back(Record({{"label", "kernel"},
                              {"value", FormatSeconds(candidate.seconds)},
                              {"beside", Beside(IntervalText(candidate))}}));
  }
  if (baseline.correct) {
    figures.push_back(Record({{"label", "reference"},
                              {"value", FormatSeconds(baseline.seconds)},
                              {"beside", Beside(IntervalText(baseline))}}));
  }
  if (candidate.correct && baseline.correct) {
    const std::string speedup = SpeedupText(candidate);
    const size_t blank = std::min(speedup.find(' '), speedup.size());
    figures.push_back(
        Record({{"label", "speedup"}, {"value", speedup.substr(0, blank)}, {"beside", Beside(speedup.substr(blank))}}));
  }
  if (const std::optional<WorstError> error = WorstErrorOf(candidate); candidate.correct && error) {
    figures.push_back(
        Record({{"label", "worst error"}, {"value", ThreeDigits(error->ratio)}, {"beside", WorstErrorWords(*error)}}));
  }
  figures.push_back(Record({{"label", "time"},
                            {"value", baseline.modelled ? "modelled, no GPU used" : "measured"},
                            {"beside", baseline.time_source}}));
  return figures;
}

const MetricRegistry& Names() {
  static MetricRegistry names;
  static const bool declared = [] {
    for (const MetricDeclaration& metric : DeclaredMetrics()) names.Declare(metric.ToC());
    return true;
  }();
  static_cast<void>(declared);
  return names;
}

Data GroupsOf(Evaluation candidate) {
  std::erase_if(candidate.remarks, [](const Remark& remark) { return remark.line > 0; });  // beside the source
  Data groups(Data::type::list);
  for (const FactGroup& group : GroupFacts(candidate, &Names())) {
    Data facts(Data::type::list);
    for (const Fact& fact : group.facts) {
      Data one = Record({{"label", fact.label}, {"value", fact.value}});
      one.set("has_bar", Data(fact.fraction.has_value()));
      if (fact.fraction) one.set("percent", Data(BarPercent(*fact.fraction)));
      facts.push_back(one);
    }
    Data one = Record({{"title", group.title}});
    one.set("facts", facts);
    groups.push_back(one);
  }
  return groups;
}

Data SourceOf(const KernelReport& report) {
  std::map<unsigned, const Remark*> remarks;
  double largest = 0;
  for (const Remark& remark : report.candidate.remarks) {
    if (remark.line == 0) continue;
    remarks[remark.line] = &remark;
    largest = std::max(largest, remark.share);
  }
  std::map<unsigned, std::vector<std::string>> notes;
  // A correct kernel's diagnosis is about its time, which the lines' own figures show already.
  if (!report.candidate.correct) notes = NotesByLine(report.candidate.diagnosis);
  Data rows(Data::type::list);
  unsigned number = 0;
  for (const std::string& code : SplitLines(report.source)) {
    ++number;
    Data row = Record({{"number", std::to_string(number)}, {"code", code}});
    std::string look;
    row.set("share", Data(false));
    row.set("note", Data(false));
    if (const auto found = remarks.find(number); found != remarks.end()) {
      const Remark& remark = *found->second;
      row.set("share", Data(Percent(remark.share)));
      row.set("percent", Data(BarPercent(largest > 0 ? remark.share / largest : 0)));
      if (!remark.text.empty()) row.set("note", Data(remark.text));
      look = "told";
    }
    Data findings(Data::type::list);
    if (const auto found = notes.find(number); found != notes.end()) {
      for (const std::string& note : found->second) findings.push_back(Data(note));
      look = "wrong";
    }
    row.set("findings", findings);
    row.set("class", look.empty() ? Data(false) : Data(look));
    rows.push_back(row);
  }
  return rows;
}

Data RooflineData(const KernelReport& report) {
  const std::optional<Roofline> roofline = RooflineOf(report.candidate, report.baseline);
  if (!roofline) return Data(false);
  std::string words =
      "Higher is faster. A slope is what a memory level delivers, a level line what the multiprocessors do.";
  if (roofline->needed_intensity > 0)
    words += " Left of \"least traffic\" a kernel moves more than the problem needs; below the roof it waits.";
  else
    words +=
        " The problem needs next to no arithmetic, so instructions are drawn: further right is more of them a byte.";
  return Record({{"picture", RooflineSvg(*roofline)}, {"words", words}});
}

}  // namespace

std::string KernelReportHtml(const KernelReport& report) {
  mustache::mustache page(kKernelReportTemplate);
  if (!page.is_valid()) throw Error(KGRPO_ERROR_INTERNAL, "the report's template: " + page.error_message());
  page.set_custom_escape([](const std::string& text) { return EscapeHtml(text); });
  const Evaluation& candidate = report.candidate;
  const bool has_shares = std::any_of(candidate.remarks.begin(), candidate.remarks.end(),
                                      [](const Remark& remark) { return remark.line > 0; });
  Data data = Record({{"problem", report.problem}, {"file", report.file}, {"verdict", candidate.verdict}});
  data.set("correct", Data(candidate.correct));
  data.set("diagnosis", candidate.diagnosis.empty() ? Data(false) : Data(candidate.diagnosis));
  data.set("figures", FiguresOf(report));
  data.set("roofline", RooflineData(report));
  data.set("has_groups", Data(!candidate.metrics.empty()));
  data.set("groups", GroupsOf(candidate));
  data.set("has_shares", Data(has_shares));
  data.set("lines", SourceOf(report));
  data.set("has_evaluator", Data(!report.evaluator.empty()));
  Data evaluator(Data::type::list);
  for (const std::string& line : SplitLines(report.evaluator)) evaluator.push_back(Data(line));
  data.set("evaluator", evaluator);
  return page.render(data);
}

}  // namespace kgrpo::evaluator
