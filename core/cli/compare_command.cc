// `kgrpo-host compare RUN...`: what differs between runs, and whether one configuration is better than another.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/table.h"
#include "compare/compare.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CompareOptions {
  std::vector<std::string> folders;
  bool json = false, markdown = false;
};

std::string Number(double value, bool ratio) {
  char text[48];
  std::snprintf(text, sizeof text, ratio ? "%.2fx" : "%.4g", value);
  return text;
}

// "1.23 (1.1 to 1.4)": the mean over seeds, and the range.
std::string CellOf(const RunGroup& group, const Measure& measure) {
  std::vector<double> values;
  for (const RunMeasures& run : group.runs) {
    const auto found = run.values.find(measure.name);
    if (found != run.values.end()) values.push_back(found->second);
  }
  if (values.empty()) return "-";
  double sum = 0;
  for (const double value : values) sum += value;
  const std::string mean = Number(sum / static_cast<double>(values.size()), measure.is_ratio);
  if (values.size() == 1) return mean;
  const auto [least, most] = std::ranges::minmax(values);
  return mean + " (" + Number(least, measure.is_ratio) + " to " + Number(most, measure.is_ratio) + ")";
}

// What a reader must know of the runs before the figures.
std::vector<std::string> Notes(const std::vector<RunGroup>& groups) {
  std::vector<std::string> notes;
  size_t fewest = groups.front().runs.size();
  for (const RunGroup& group : groups) {
    fewest = std::min(fewest, group.runs.size());
    for (const RunMeasures& run : group.runs) {
      if (!run.finished)
        notes.push_back(run.folder.string() + " is not finished: " + std::to_string(run.steps) + " steps so far");
    }
  }
  if (groups.size() < 2) return notes;
  for (size_t other = 1; other < groups.size(); ++other) {
    if (!ArePaired(groups.front(), groups[other])) {
      notes.push_back(groups[other].label + " and " + groups.front().label +
                      " are not paired: no two runs of one seed drew the same problems");
    }
  }
  if (!SameReward(groups)) {
    notes.push_back(
        "the rewards differ, each on a scale of its own: rewards are not compared, speedups and correct rates are");
  }
  if (fewest == 1) {
    notes.push_back("one seed: intervals are over problems, and say nothing of other seeds");
  } else if (fewest < 5) {
    notes.push_back(std::to_string(fewest) + " seeds: weak evidence; five or more tell smaller differences");
  }
  if (groups.size() > 2) {
    notes.push_back("intervals against " + groups.front().label +
                    " hold together at 95% for each measure (Bonferroni)");
  }
  return notes;
}

std::vector<std::string> Words(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons) {
  std::vector<std::string> words;
  for (const Comparison& comparison : comparisons) {
    if (comparison.measure->is_outcome) words.push_back(InWords(comparison, groups));
  }
  return words;
}

const char* NameOf(Basis basis) {
  switch (basis) {
    case Basis::kPairedSeeds:
      return "paired seeds";
    case Basis::kSeeds:
      return "seeds";
    case Basis::kProblems:
      return "problems";
    case Basis::kNone:
      return "none";
  }
  return "none";
}

void PrintJson(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons) {
  Json json;
  json["groups"] = Json::array();
  for (const RunGroup& group : groups) {
    Json runs = Json::array();
    for (const RunMeasures& run : group.runs) {
      runs.push_back({{"folder", run.folder.string()},
                      {"seed", run.seed},
                      {"finished", run.finished},
                      {"steps", run.steps},
                      {"measures", run.values},
                      {"by_problem", run.by_problem},
                      {"rewards", run.rewards}});
    }
    json["groups"].push_back({{"label", group.label}, {"runs", runs}});
  }
  json["differences"] = Differences(groups);
  json["comparisons"] = Json::array();
  for (const Comparison& comparison : comparisons) {
    json["comparisons"].push_back({{"measure", comparison.measure->name},
                                   {"first", groups.front().label},
                                   {"other", groups[comparison.other].label},
                                   {"is_ratio", comparison.measure->is_ratio},
                                   {"effect", comparison.effect},
                                   {"low", comparison.low},
                                   {"high", comparison.high},
                                   {"basis", NameOf(comparison.basis)},
                                   {"seeds", comparison.seeds},
                                   {"differs", comparison.differs()}});
  }
  json["words"] = Words(groups, comparisons);
  json["notes"] = Notes(groups);
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void PrintMarkdownTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  const auto print = [](const std::vector<std::string>& cells) {
    std::string line = "|";
    for (std::string cell : cells) {
      for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
      line += " " + cell + " |";
    }
    std::printf("%s\n", line.c_str());
  };
  print(header);
  print(std::vector<std::string>(header.size(), "---"));
  for (const auto& row : rows) print(row);
  std::printf("\n");
}

void PrintText(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons, bool markdown) {
  const auto table = [markdown](const auto& header, const auto& rows) {
    if (markdown)
      PrintMarkdownTable(header, rows);
    else
      PrintTable(header, rows);
  };
  const auto heading = [markdown](const char* text) { std::printf(markdown ? "## %s\n\n" : "\n%s\n", text); };
  std::vector<std::string> labels;
  labels.reserve(groups.size());
  for (const RunGroup& group : groups) {
    labels.push_back(group.label + (group.runs.size() > 1 ? " (" + std::to_string(group.runs.size()) + " seeds)" : ""));
  }
  const auto differences = Differences(groups);
  if (!differences.empty()) {
    heading("What differs");
    std::vector<std::vector<std::string>> rows;
    for (const auto& [key, values] : differences) {
      rows.push_back({key});
      for (const std::string& value : values)
        rows.back().push_back(value.size() <= 60 ? value : value.substr(0, 57) + "...");
    }
    std::vector<std::string> header = {"key"};
    header.insert(header.end(), labels.begin(), labels.end());
    table(header, rows);
  }
  heading("Measures (mean over seeds, least to most)");
  std::vector<std::vector<std::string>> rows;
  for (const Measure& measure : Measures()) {
    std::vector<std::string> row = {measure.label};
    for (const RunGroup& group : groups) row.push_back(CellOf(group, measure));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& cell) { return cell != "-"; }))
      rows.push_back(row);
  }
  std::vector<std::string> header = {"measure"};
  header.insert(header.end(), labels.begin(), labels.end());
  table(header, rows);
  const std::vector<std::string> words = Words(groups, comparisons);
  if (!words.empty()) heading("Verdict (95% intervals)");
  for (const std::string& line : words) std::printf("- %s\n", line.c_str());
  const std::vector<std::string> notes = Notes(groups);
  if (!notes.empty()) std::printf("\n");
  for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
}

int RunCompare(const CompareOptions& options) {
  const std::vector<RunGroup> groups = GroupRuns(ReadRuns(options.folders));
  if (groups.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, "none of the experiment's runs has begun");
  const std::vector<Comparison> comparisons = Compare(groups);
  if (options.json)
    PrintJson(groups, comparisons);
  else
    PrintText(groups, comparisons, options.markdown);
  return kFine;
}

}  // namespace

void AddCompareCommand(CLI::App& app, const Globals&, Action* action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Is one configuration better than another?");
  command->add_option("RUN", options->folders, "Folders of runs, or of an experiment")->required();
  command->add_flag("--json", options->json, "Print everything as JSON, each run's figures included");
  command->add_flag("--markdown", options->markdown, "Print tables as Markdown");
  command->footer(
      "Examples:\n"
      "  kgrpo-host compare runs/ab                    all variants of an experiment, against the first\n"
      "  kgrpo-host compare runs/one runs/two --markdown > comparison.md");
  command->callback([=] { *action = [=] { return RunCompare(*options); }; });
}

}  // namespace kgrpo::cli
