#include "compare/comparison_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "store/json.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(Basis basis) {
  switch (basis) {
    case Basis::kPairedSeeds: return "paired seeds";
    case Basis::kSeeds: return "seeds";
    case Basis::kEpisodes: return "episodes";
    case Basis::kProblems: return "problems";
    case Basis::kNone: return "none";
  }
  return "none";
}

// Returns a note on runs that share a column; empty for a single run. Variants of an experiment need no note: their
// columns have their names.
std::string OneColumn(const RunGroup& group, bool alone) {
  const bool repeats = CountSeeds(group) < group.runs.size();
  if (group.runs.size() < 2 || (!alone && !repeats && !group.runs.front().variant.empty())) return "";
  std::string folders;
  for (size_t i = 0; i < group.runs.size(); ++i) {
    folders += (i == 0 ? "" : i + 1 == group.runs.size() ? " and " : ", ") + group.runs[i].folder.string();
  }
  return folders +
         (repeats ? " have one configuration: one group of " + SeedsText(group) + "; repeats of a seed are averaged"
                  : " differ only in their seed: one group of " + SeedsText(group)) +
         (alone ? "; a verdict needs a run of another configuration" : "");
}

// "runs/a changed on the way: after step 20 trainer.options.beta 0.04 -> 0.0"; empty for a run that did not.
std::string ChangesOnTheWay(const RunMeasures& run) {
  constexpr size_t kLongest = 60;  // values such as prompts are cut
  const auto shown = [](const std::string& value) {
    return value.size() <= kLongest ? value : value.substr(0, kLongest - 3) + "...";
  };
  std::string text;
  uint64_t step = 0;
  for (const SettingChange& change : run.changes) {
    text += text.empty() ? run.folder.string() + " changed on the way: " : step == change.after_step ? ", " : "; ";
    if (step != change.after_step) text += "after step " + std::to_string(change.after_step) + " ";
    step = change.after_step;
    text += change.key + " " + shown(change.before) + " -> " + shown(change.after);
  }
  return text;
}

}  // namespace

std::vector<std::string> WithoutSteps(const std::vector<RunGroup>& groups) {
  std::vector<std::string> notes;
  for (const RunGroup& group : groups) {
    for (const RunMeasures& run : group.runs) {
      if (run.steps == 0) notes.push_back(run.folder.string() + " finished no step: no verdict is of it");
    }
  }
  return notes;
}

std::vector<std::string> NotesOf(const std::vector<RunGroup>& groups, const std::vector<std::string>& left_out) {
  std::vector<std::string> notes = WithoutSteps(groups);
  notes.insert(notes.end(), left_out.begin(), left_out.end());
  size_t fewest = CountSeeds(groups.front());
  for (const RunGroup& group : groups) {
    fewest = std::min(fewest, CountSeeds(group));
    for (const RunMeasures& run : group.runs) {
      if (!run.finished && run.steps > 0)
        notes.push_back(run.folder.string() + " is not finished: " + std::to_string(run.steps) + " steps so far");
      if (const std::string changes = ChangesOnTheWay(run); !changes.empty()) notes.push_back(changes);
    }
    if (const std::string note = OneColumn(group, groups.size() == 1); !note.empty()) notes.push_back(note);
  }
  if (groups.size() < 2) return notes;
  for (size_t other = 1; other < groups.size(); ++other) {
    if (!ArePaired(groups.front(), groups[other])) {
      notes.push_back(groups[other].label + " and " + groups.front().label + " are not paired: " +
                      (ShareASeed(groups.front(), groups[other]) ? "runs of one seed drew different problems"
                                                                 : "they have no seed in common"));
    }
  }
  const auto differences = Differences(groups);
  for (const std::string list : {"train", "heldout"}) {
    const bool content = list == "train" && std::ranges::any_of(differences, [](const auto& entry) {
                           return entry.first.starts_with("problems.") && entry.first.ends_with(kContent);
                         });
    if (content) notes.push_back("a problem's files differ: a difference may be that of the problem");
    if (!differences.contains("problems." + list)) continue;
    notes.push_back("problems." + list +
                    " differs: " + (list == "train" ? "measures of training" : "held-out measures") +
                    " are of different problems, so a difference may be that of the problems");
  }
  if (!SameReward(groups)) {
    notes.push_back(
        "The rewards are on different scales and are not compared; `compare` scores all runs by each reward that "
        "loads.");
  }
  if (std::ranges::all_of(groups, [](const RunGroup& group) { return !group.runs.front().episodes.empty(); })) {
    notes.push_back("intervals are over pairs of episodes on these problems; other problems may come out otherwise");
  } else if (fewest == 1) {
    notes.push_back("one seed: other seeds may come out otherwise; an interval, where there is one, is over problems");
  } else if (fewest < 5) {
    notes.push_back("With " + std::to_string(fewest) +
                    " seeds only large differences can be detected. Use five or more.");
  }
  if (groups.size() > 2) {
    notes.push_back("intervals against " + groups.front().label +
                    " hold together at 95% for each measure (Bonferroni)");
  }
  return notes;
}

std::vector<std::string> WordsOf(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons) {
  std::vector<std::string> words = WordsByKey(groups, comparisons);
  if (!words.empty()) return words;
  for (const Comparison& comparison : comparisons) {
    if (comparison.measure->is_outcome) words.push_back(InWords(comparison, groups));
  }
  return words;
}

Json ComparisonToJson(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons,
                      const std::vector<std::string>& left_out) {
  Json json;
  json["groups"] = Json::array();
  for (const RunGroup& group : groups) {
    Json runs = Json::array();
    for (const RunMeasures& run : group.runs) {
      Json changes = Json::array();
      for (const SettingChange& change : run.changes) changes.push_back(ChangeToJson(change));
      runs.push_back({{"folder", run.folder.string()},
                      {"seed", run.seed},
                      {"finished", run.finished},
                      {"steps", run.steps},
                      {"changes", changes},
                      {"measures", run.values},
                      {"by_problem", run.by_problem},
                      {"rewards", run.rewards}});
    }
    json["groups"].push_back({{"label", group.label}, {"seeds", CountSeeds(group)}, {"runs", runs}});
  }
  json["differences"] = Differences(groups);
  json["same_reward"] = SameReward(groups);
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
                                   {"episodes", comparison.episodes},
                                   {"differs", comparison.differs()}});
  }
  json["words"] = WordsOf(groups, comparisons);
  json["notes"] = NotesOf(groups, left_out);
  return json;
}

}  // namespace kgrpo
