#include "report/report.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "compare/compare.h"
#include "compare/comparison_json.h"
#include "report/page.h"
#include "report/run_figures.h"
#include "report/trajectory_parts.h"
#include "store/schema.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

// JSON within a <script>: its text must not end the element or begin a comment.
std::string ForScript(const Json& json) {
  std::string text = DumpJson(json);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

std::string ForHtml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Part(const std::string& id, const std::string& packed) {
  return "<script type=\"text/plain\" id=\"" + id + "\">" + packed + "</script>\n";
}

// The content of the run's folder apart from its database.
Json ReadFolder(const RunMeasures& run) {
  Json json;
  json["folder"] = run.folder.string();
  json["seed"] = run.seed;
  json["finished"] = run.finished;
  json["steps"] = run.steps;
  json["values"] = run.values;
  json["resolved"] = ReadFile(run.folder / "resolved.yaml");
  try {
    const Json record = Json::parse(ReadFile(run.folder / "run.json"), nullptr, false);
    for (const char* key : {"overrides", "resumed", "plugins", "evaluator"}) {
      if (record.is_object() && record.contains(key)) json[key] = record[key];
    }
  } catch (const Error&) {
    json["plugins"] = Json::array();  // the figures do not need run.json
  }
  return json;
}

}  // namespace

std::string MakeReport(std::vector<RunMeasures> runs, bool samples, const std::vector<std::string>& left_out) {
  const std::vector<RunGroup> groups = GroupRuns(std::move(runs));
  TrajectoryParts parts;
  Json page, all = Json::array(), group_list = Json::array();
  for (const RunGroup& group : groups) {
    Json indices = Json::array();
    for (const RunMeasures& run : group.runs) {
      indices.push_back(all.size());
      Json json = ReadFolder(run);
      RecordToRead database(run.database());
      json["figures"] = ReadFigures(database, &parts);
      if (samples) json["samples"] = parts.AddRun(database, run.folder);
      all.push_back(std::move(json));
    }
    group_list.push_back({{"label", group.label}, {"seeds", SeedsText(group)}, {"runs", std::move(indices)}});
  }
  parts.Finish();
  page["groups"] = std::move(group_list);
  page["runs"] = std::move(all);
  page["comparison"] = ComparisonToJson(groups, Compare(groups), left_out);
  page["sources_a_part"] = TrajectoryParts::kSourcesAPart;

  const std::string seeds = SeedsText(groups.front());
  const std::string title = groups.size() > 1 ? std::to_string(groups.size()) + " configurations"
                            : seeds.empty()   ? groups.front().label
                                              : groups.front().label + " (" + seeds + ")";
  std::string data = "<script type=\"application/json\" id=\"data\">" + ForScript(page) + "</script>\n";
  for (size_t i = 0; i < parts.sources().size(); ++i) data += Part("sources" + std::to_string(i), parts.sources()[i]);
  for (size_t i = 0; i < parts.steps().size(); ++i) data += Part("step" + std::to_string(i), parts.steps()[i]);

  std::string html = kPageHtml;
  const auto fill = [&html](const std::string& place, const std::string& text) {
    for (size_t at = 0; (at = html.find(place, at)) != std::string::npos; at += text.size())
      html.replace(at, place.size(), text);
  };
  fill("<!--title-->", ForHtml(title));
  fill("/*style*/", kPageCss);
  fill("/*script*/", std::string(kChartsJs) + kSectionsJs + kTrajectoriesJs + kPageJs);
  fill("<!--data-->", data);  // last, so that placeholders inside the data are not replaced
  return html;
}

}  // namespace kgrpo
