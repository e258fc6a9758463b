// `kgrpo-host compare RUN...`: what differs between runs, and whether one configuration is better than another.
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/number_text.h>  // Format

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/session.h"
#include "common/table.h"
#include "compare/compare.h"
#include "compare/comparison_json.h"
#include "compare/rescore.h"
#include "loop/statistics.h"  // Mean, GeometricMean
#include "report/command.h"

namespace kgrpo::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> folders;
  bool json = false, markdown = false;
};

// "1.23 (1.1 to 1.4)": the mean over seeds (geometric for ratios) and the range; followed by "(1 of 2 seeds)" where
// some seeds lack the measure. `seeds`: MeansBySeed.
std::string CellOf(const std::vector<RunMeasures>& seeds, const Measure& measure) {
  std::vector<double> values;
  for (const RunMeasures& seed : seeds) {
    const auto found = seed.values.find(measure.name);
    if (found != seed.values.end()) values.push_back(found->second);
  }
  if (values.empty()) return "-";
  const char* const format = measure.is_ratio ? "%.2fx" : "%.4g";
  std::string cell = Format(format, measure.is_ratio ? GeometricMean(values) : Mean(values));
  if (values.size() > 1) {
    const auto [least, most] = std::ranges::minmax(values);
    cell += " (" + Format(format, least) + " to " + Format(format, most) + ")";
  }
  if (values.size() == seeds.size()) return cell;
  return cell + " (" + std::to_string(values.size()) + " of " + std::to_string(seeds.size()) + " seeds)";
}

// "; last tenth: of 270 steps the last 27"; empty where no run has a step with rollouts.
std::string LastTenthOf(const std::vector<RunGroup>& groups) {
  std::set<size_t> steps;
  for (const RunGroup& group : groups) {
    for (const RunMeasures& run : group.runs) {
      if (!run.rewards.empty()) steps.insert(run.rewards.size());
    }
  }
  if (steps.size() > 3) {
    return "; last tenth: of each run's steps, " + std::to_string(TenthOf(*steps.begin())) + " to " +
           std::to_string(TenthOf(*steps.rbegin()));
  }
  std::string text;
  for (const size_t of : steps) {
    text += std::string(text.empty() ? "; last tenth: " : ", ") + "of " + std::to_string(of) +
            (of == 1 ? " step" : " steps") + " the last " + std::to_string(TenthOf(of));
  }
  return text;
}

void PrintText(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons,
               const std::vector<std::string>& left_out, const std::vector<Measure>& measures, bool markdown) {
  const auto table = [markdown](const auto& header, const auto& rows) {
    PrintTable(header, rows, markdown);
    if (markdown) std::printf("\n");
  };
  const auto heading = [markdown](const char* text) { std::printf(markdown ? "## %s\n\n" : "\n%s\n", text); };
  const std::vector<std::string> empty = WithoutSteps(groups);
  for (const std::string& note : empty) std::printf("note: %s\n", note.c_str());
  std::vector<std::string> labels;
  labels.reserve(groups.size());
  bool preliminary = false;
  for (const RunGroup& group : groups) {
    const auto unfinished = std::ranges::count(group.runs, false, &RunMeasures::finished);
    preliminary = preliminary || unfinished > 0;
    std::string state = unfinished > 0 ? "unfinished" : "";
    if (group.runs.size() > 1)
      state = SeedsText(group) + (unfinished > 0 ? ", " + std::to_string(unfinished) + " unfinished" : "");
    labels.push_back(group.label + (state.empty() ? "" : " (" + state + ")"));
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
  heading(("Measures (mean over seeds, min to max" + LastTenthOf(groups) + ")").c_str());
  std::vector<std::vector<std::string>> rows;
  const bool same_reward = SameReward(groups);
  std::vector<std::vector<RunMeasures>> by_seed;
  by_seed.reserve(groups.size());
  for (const RunGroup& group : groups) by_seed.push_back(MeansBySeed(group, measures));
  for (const Measure& measure : measures) {
    std::vector<std::string> row = {measure.label +
                                    (measure.own_scale && !same_reward ? " (own reward: not comparable)" : "")};
    for (const std::vector<RunMeasures>& seeds : by_seed) row.push_back(CellOf(seeds, measure));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& cell) { return cell != "-"; }))
      rows.push_back(row);
  }
  std::vector<std::string> header = {"measure"};
  header.insert(header.end(), labels.begin(), labels.end());
  table(header, rows);
  const std::vector<std::string> words = WordsOf(groups, comparisons);
  if (!words.empty()) {
    heading(preliminary ? "Preliminary verdict, since runs are unfinished (95% intervals, each for one measure)"
                        : "Verdict (95% intervals, each for one measure: decide beforehand which measure counts)");
  }
  for (const std::string& line : words) std::printf("- %s\n", line.c_str());
  std::vector<std::string> notes = NotesOf(groups, left_out);
  notes.erase(notes.begin(), notes.begin() + static_cast<ptrdiff_t>(empty.size()));  // printed above
  if (!notes.empty()) std::printf("\n");
  for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
}

std::map<std::string, std::string> RewardOf(const RunMeasures& run) {
  std::map<std::string, std::string> reward;
  for (const auto* known : {&run.configuration, &run.inputs}) {
    for (const auto& [key, value] : *known)
      if (key.starts_with("reward.")) reward[key] = value;
  }
  return reward;
}

// True if all recorded rewards of the run are of the reward with this configuration.
bool HadReward(const RunMeasures& run, const std::map<std::string, std::string>& configuration) {
  return RewardOf(run) == configuration && !run.changed_its_reward();
}

// Scores those of the group's runs that had other rewards by `reward`, which is that of the group `whose`.
void RescoreGroup(const Reward& reward, const std::map<std::string, std::string>& configuration,
                  const std::string& whose, RunGroup* group, std::vector<std::string>* notes) {
  try {
    for (RunMeasures& run : group->runs) {
      if (!HadReward(run, configuration)) Rescore(reward, whose, &run);
    }
  } catch (const Error& error) {
    const std::string why = error.what();
    const bool names_metric = why.find("metric(") != std::string::npos;
    notes->push_back(group->label + " cannot be scored by " + whose + "'s reward: " + why +
                     (names_metric ? ". The rounds of a run hold the metrics that its own evaluator measured; the "
                                     "baselines' metrics are not kept"
                                   : ""));
  }
}

// Names of the metrics that the groups' evaluations hold. No evaluator runs here, so none declares its metrics: without
// a declaration a reward would warn that its metrics are unknown.
std::set<std::string> RecordedMetrics(const std::vector<RunGroup>& groups) {
  std::set<std::string> names;
  for (const RunGroup& group : groups) {
    try {
      AddRecordedMetrics(group.runs.front(), &names);
    } catch (const Error&) {
      // RescoreGroup tells of a run that cannot be read; the other groups are scored.
    }
  }
  return names;
}

void DeclareMetrics(const std::set<std::string>& names, HostServices* services) {
  for (const std::string& name : names) {
    kgrpo_metric_declaration declaration{};
    declaration.struct_size = sizeof declaration;
    declaration.name = Str(name);
    services->DeclareMetric(declaration);
  }
}

// Scores every group's rounds by each of the rewards, if these differ. Returns the measures.
// *notes receives why a reward could not be used.
std::vector<Measure> ScoreByEachReward(const Globals& globals, std::vector<RunGroup>* groups,
                                       std::vector<std::string>* notes) {
  std::vector<Measure> measures;
  if (groups->size() < 2 || SameReward(*groups)) return measures;
  const std::set<std::string> recorded = RecordedMetrics(*groups);
  std::set<std::map<std::string, std::string>> seen;
  for (const RunGroup& whose : *groups) {
    const RunMeasures& run = whose.runs.front();
    const auto configuration = RewardOf(run);
    if (!seen.insert(configuration).second) continue;
    for (RunGroup& group : *groups) {
      for (RunMeasures& each : group.runs) {
        if (HadReward(each, configuration)) KeepOwnRewards(whose.label, &each);
      }
    }
    const std::string scored = " (scored by " + whose.label + "'s reward)";
    measures.push_back({"heldout_reward_by/" + whose.label, "held-out reward" + scored, false, false, true});
    measures.push_back({"reward_by/" + whose.label, "reward" + scored + ", last tenth", false, false, true});
    try {
      Session session(globals);
      LoadRequest request;
      request.file = (run.folder / "resolved.yaml").string();
      request.roles = {Role::kReward};
      request.needs_train_problems = false;
      request.ignore_problems = true;
      const PipelineConfig config = session.Load(request);
      for (const Change& change : ChangedInputs(run.inputs, DigestsOf(config.inputs))) {
        if (change.path.starts_with("reward.options."))
          throw Error(KGRPO_ERROR_INVALID, change.path + " is another than when that run ended");
      }
      DeclareMetrics(recorded, &session.StartServices(config.seed));
      const PipelineParts parts = session.MakeParts(config, request.roles);
      for (RunGroup& group : *groups) {
        RescoreGroup(*parts.reward, configuration, whose.label, &group, notes);
      }
    } catch (const Error& error) {
      notes->push_back("The reward of " + whose.label +
                       " cannot be loaded, so it scores its own runs alone: " + error.what());
    }
  }
  return measures;
}

int RunCompare(const Globals& globals, const CompareOptions& options) {
  std::vector<std::string> left_out;
  std::vector<RunGroup> groups = GroupRuns(ReadRuns(options.folders, &left_out));
  std::vector<Measure> measures = Measures();
  const std::vector<Measure> common = ScoreByEachReward(globals, &groups, &left_out);
  measures.insert(measures.begin(), common.begin(), common.end());
  const std::vector<Comparison> comparisons = Compare(groups, measures);
  if (options.json) {
    PrintJson(ComparisonToJson(groups, comparisons, left_out));
  } else {
    PrintText(groups, comparisons, left_out, measures, options.markdown);
  }
  return kFine;
}

}  // namespace

void AddCompareCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Is one configuration better than another?");
  command->add_option("RUN", options->folders, "Folders of runs, or of an experiment")->required();
  CLI::Option* json =
      command->add_flag("--json", options->json, "Print everything as JSON, each run's figures included");
  command->add_flag("--markdown", options->markdown, "Print tables as Markdown")->excludes(json);
  command->footer(
      "Examples:\n"
      "  kgrpo-host compare runs/ab                    all variants of an experiment, against the first\n"
      "  kgrpo-host compare runs/one runs/two --markdown > comparison.md");
  command->callback([=, &globals] { *action = [=, &globals] { return RunCompare(globals, *options); }; });
}

}  // namespace kgrpo::cli
