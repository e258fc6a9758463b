#include "compare/run_measures.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/sqlite.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "config/node.h"
#include "loop/statistics.h"
#include "store/database.h"
#include "store/readable.h"
#include "store/schema.h"

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

// Reads episodes of the steps from `first` on only, since rounds are most of a long run's database.
std::vector<Episode> ReadEpisodes(Database& database, const char* purpose, uint64_t first) {
  Statement select(database,
                   "SELECT step, number, problem, problem_name, avg(reward), max(speedup), avg(coalesce(correct, 0)), "
                   "dropped = '' FROM rounds JOIN (SELECT *, row_number() OVER (PARTITION BY purpose, step, problem "
                   "ORDER BY trajectory) - 1 AS number FROM trajectories WHERE purpose = ?1 AND step >= ?2) "
                   "USING(purpose, step, trajectory) GROUP BY step, trajectory ORDER BY step, trajectory");
  select << purpose << first;
  std::vector<Episode> episodes;
  while (select.Step()) {
    episodes.push_back({static_cast<uint64_t>(select.Integer(0)), static_cast<uint64_t>(select.Integer(1)),
                        static_cast<uint64_t>(select.Integer(2)), select.Text(3), select.Real(4), select.Real(5),
                        select.Real(6), select.Integer(7) != 0});
  }
  return episodes;
}

// Stores the geometric mean over problems of the best speedup on each. The commands compare and report share this
// definition.
void KeepBest(const std::string& measure, const std::map<std::string, double>& best, RunMeasures* run) {
  if (best.empty()) return;
  std::vector<double> logs;
  logs.reserve(best.size());
  for (const auto& [problem, speedup] : best) logs.push_back(std::log(speedup));
  run->values[measure] = std::exp(Mean(logs));
  run->by_problem[measure] = best;
}

// Stores the measures that are means over these episodes.
void Summarise(const std::vector<Episode>& episodes, EpisodeMean::Over over, RunMeasures* run) {
  if (episodes.empty()) return;
  for (const Measure& measure : Measures()) {
    if (measure.mean.over != over) continue;
    std::vector<double> all;
    std::map<std::string, std::vector<double>> by_problem;
    for (const Episode& episode : episodes) {
      const double value = measure.mean.value(episode), term = measure.is_ratio ? std::log(value) : value;
      all.push_back(term);
      by_problem[episode.problem_name].push_back(term);
    }
    const auto mean = [&](const std::vector<double>& of) { return measure.is_ratio ? std::exp(Mean(of)) : Mean(of); };
    run->values[measure.name] = mean(all);
    for (const auto& [problem, terms] : by_problem) run->by_problem[measure.name][problem] = mean(terms);
  }
}

// `purpose`: "train", or "search": its rounds have the same measures.
void ReadTraining(Database& database, const char* purpose, RunMeasures* run) {
  std::vector<uint64_t> steps;
  Statement select(database,
                   "SELECT step, reward_mean FROM steps s WHERE EXISTS(SELECT 1 FROM rounds r WHERE purpose = ? "
                   "AND r.step = s.step) ORDER BY step");
  select << purpose;
  while (select.Step()) {
    steps.push_back(static_cast<uint64_t>(select.Integer(0)));
    run->rewards.push_back(select.Real(1));
  }
  if (steps.empty()) return;
  const size_t tenth = TenthOf(steps.size());
  Summarise(ReadEpisodes(database, purpose, steps[steps.size() - tenth]), EpisodeMean::Over::kTraining, run);
  const auto window = [&](size_t begin) { return Mean(std::span(run->rewards).subspan(begin, tenth)); };
  double best = window(0);
  for (size_t begin = 1; begin + tenth <= run->rewards.size(); ++begin) best = std::max(best, window(begin));
  run->values["reward_first"] = window(0);
  run->values["reward_best"] = best;
  run->values["reward_area"] = Mean(run->rewards);
  // Runs that draw different problems differ from the first steps on, so the first trajectories suffice.
  Statement drawn(database,
                  "SELECT problem_name FROM trajectories WHERE purpose = ? ORDER BY step, trajectory LIMIT 256");
  drawn << purpose;
  while (drawn.Step()) run->drawn.push_back(drawn.Text(0));
}

// `purpose`: "heldout", or "evaluation", of which every step counts.
void ReadHeldout(Database& database, const char* purpose, RunMeasures* run) {
  Statement steps(database, "SELECT DISTINCT step FROM trajectories WHERE purpose = ? ORDER BY step");
  steps << purpose;
  while (steps.Step()) run->heldout_steps.push_back(static_cast<uint64_t>(steps.Integer(0)));
  if (run->heldout_steps.empty()) return;
  const bool evaluation = purpose == std::string_view(PurposeName(Purpose::kEvaluation));
  if (!evaluation) run->heldout_steps = {run->heldout_steps.back()};
  std::vector<Episode> episodes = ReadEpisodes(database, purpose, run->heldout_steps.front());
  Summarise(episodes, EpisodeMean::Over::kHeldout, run);
  std::map<std::string, double> best;
  for (const Episode& episode : episodes) {
    double& known = best.try_emplace(episode.problem_name, 1).first->second;
    known = std::max(known, episode.best_speedup());
  }
  KeepBest("heldout_best", best, run);
  if (evaluation) run->episodes = std::move(episodes);
}

// Reads the kernels that thorough evaluations confirmed; a problem without one counts with its reference. Stores
// nothing for a run that ended before judging any.
void ReadVerified(Database& database, RunMeasures* run) {
  Statement any(database, "SELECT EXISTS(SELECT 1 FROM judgings) OR EXISTS(SELECT 1 FROM best_kernels)");
  if (!any.Step() || any.Integer(0) == 0) return;
  Statement select(database,
                   "SELECT name, max(1, coalesce(max(best_kernels.speedup), 1)) FROM problems LEFT JOIN best_kernels "
                   "ON best_kernels.problem = name WHERE " KGRPO_OWN_ROUNDS " GROUP BY name");
  std::map<std::string, double> best;
  while (select.Step()) best[select.Text(0)] = select.Real(1);
  KeepBest("verified_best", best, run);
}

std::optional<double> Number(Database& database, const char* question) {
  Statement select(database, question);
  if (!select.Step() || select.IsNull(0)) return std::nullopt;
  return select.Real(0);
}

void Flatten(const nlohmann::ordered_json& json, const std::string& path, std::map<std::string, std::string>* flat) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items()) Flatten(value, path.empty() ? key : path + "." + key, flat);
  } else if (json.is_array() && std::ranges::any_of(json, [](const auto& item) { return item.is_object(); })) {
    for (size_t i = 0; i < json.size(); ++i) Flatten(json[i], path + "[" + std::to_string(i) + "]", flat);
  } else {
    (*flat)[path] = json.dump();
  }
}

}  // namespace

size_t TenthOf(size_t steps) { return std::max<size_t>(1, steps / 10); }

const std::vector<Measure>& Measures() {
  using enum EpisodeMean::Over;
  const auto reward = [](const Episode& episode) { return episode.reward; };
  const auto speedup = [](const Episode& episode) { return episode.best_speedup(); };
  const auto correct = [](const Episode& episode) { return episode.correct; };
  const auto fast_1 = [](const Episode& episode) { return episode.best_speedup() > 1 ? 1.0 : 0.0; };
  static const std::vector<Measure> measures = {
      {"heldout_reward", "held-out reward", false, true, true, false, {kHeldout, reward}},
      {"heldout_speedup", "held-out best speedup", true, false, true, false, {kHeldout, speedup}},
      {"heldout_best", "held-out best speedup by problem", true, false, true},
      {"heldout_correct", "held-out correct rate", false, false, true, true, {kHeldout, correct}},
      {"heldout_fast_1", "held-out fast_1", false, false, true, true, {kHeldout, fast_1}},
      {"reward", "reward, last tenth", false, true, true, false, {kTraining, reward}},
      {"speedup", "best speedup, last tenth", true, false, true, false, {kTraining, speedup}},
      {"verified_best", "best verified speedup by problem", true, false, true},
      {"correct", "correct rate, last tenth", false, false, true, true, {kTraining, correct}},
      {"fast_1", "fast_1, last tenth", false, false, true, true, {kTraining, fast_1}},
      {"reward_first", "reward, first tenth", false, true, false},
      {"reward_best", "reward, best tenth", false, true, false},
      {"reward_area", "reward, mean of all steps", false, true, true},
      {"cost", "cost of the coder, $", false, false, false},
      {"seconds", "wall clock in seconds (depends on the cache)", false, false, false},
  };
  return measures;
}

namespace {

// Everything of the run that its database holds.
void ReadDatabase(const fs::path& file, RunMeasures* run) {
  const RunProgress progress = ReadProgress(file);
  run->finished = progress.finished;
  run->steps = progress.steps;
  RecordToRead database(file);
  const bool evaluation = progress.purpose == PurposeName(Purpose::kEvaluation);
  if (!evaluation) ReadTraining(database, progress.purpose.c_str(), run);
  ReadHeldout(database, PurposeName(evaluation ? Purpose::kEvaluation : Purpose::kHeldout), run);
  ReadVerified(database, run);
  Statement times(database, "SELECT modelled, time_source FROM problems ORDER BY purpose, problem LIMIT 1");
  if (times.Step()) run->times = (times.Integer(0) != 0 ? "MODELLED, no device ran: " : "measured: ") + times.Text(1);
  RunDatabase record = RunDatabase::ToRead(file);
  run->changes = record.ReadChanges();
  if (record.Get("inputs")) run->inputs = RecordedInputs(record);
  if (const auto options = record.Get("options"))
    Flatten(nlohmann::ordered_json::parse(*options), "", &run->configuration);
  std::erase_if(run->changes, [](const SettingChange& change) { return change.after_step == 0; });
  if (progress.coder_cost > 0) run->values["cost"] = progress.coder_cost;
  if (const auto seconds =
          Number(database,
                 "SELECT sum(value) FROM metrics WHERE name IN ('time/begin_stage', "
                 "'time/rollout', 'time/train', 'time/judge_best', 'time/checkpoint', 'time/heldout')")) {
    run->values["seconds"] = *seconds;
  }
}

bool EachStageHasSteps(const nlohmann::ordered_json& resolved) {
  if (!resolved.contains("trainer")) return false;
  const nlohmann::ordered_json& trainer = resolved["trainer"];
  if (!trainer.is_array()) return trainer.contains("steps");
  return std::ranges::all_of(trainer, [](const auto& stage) { return stage.contains("steps"); });
}

}  // namespace

RunMeasures ReadMeasures(const fs::path& folder, const std::string& variant, LookForDamage look) {
  if (!fs::exists(folder / "run.sqlite") || !fs::exists(folder / "resolved.yaml")) {
    throw Error(KGRPO_ERROR_NOT_FOUND, WhyNoRun(folder));
  }
  RunMeasures run;
  run.folder = folder;
  run.variant = variant;
  std::vector<Diagnostic> mistakes;
  const nlohmann::ordered_json resolved =
      ParseYaml(ReadFile(folder / "resolved.yaml"), (folder / "resolved.yaml").string(), 0, &mistakes).ToJson();
  if (!mistakes.empty()) throw ConfigError(std::move(mistakes));
  if (!resolved.is_object())
    throw Error(KGRPO_ERROR_INVALID, (folder / "resolved.yaml").string() + " is empty: it holds no pipeline");
  run.seed = resolved.value("seed", uint64_t{0});
  Flatten(resolved, "", &run.configuration);
  for (const char* own : {"seed", "name", "output_dir"}) run.configuration.erase(own);
  if (EachStageHasSteps(resolved)) run.configuration.erase("loop.max_steps");  // it has no effect

  RequireRecord(folder);
  if (look == LookForDamage::kFirst) RequireUndamaged(run.database());
  ReadDatabase(run.database(), &run);
  return run;
}

std::vector<RunMeasures> ReadRuns(const std::vector<std::string>& folders, std::vector<std::string>* left_out,
                                  LookForDamage look) {
  std::vector<RunMeasures> runs;
  std::optional<Error> first_failure;
  const auto read = [&](const fs::path& folder, const std::string& variant) {
    try {
      std::error_code error;
      if (std::ranges::any_of(runs, [&](const RunMeasures& run) { return fs::equivalent(run.folder, folder, error); }))
        return left_out->push_back(folder.string() + " is named twice, and counts once");
      runs.push_back(ReadMeasures(folder, variant, look));
    } catch (const Error& error) {
      if (!first_failure) first_failure = error;
      left_out->push_back(folder.string() + " is left out: " + error.what());
    }
  };
  for (const std::string& name : folders) {
    const fs::path folder = name;
    // A misspelt name is an error: leaving it out would compare other runs than the user asked for.
    if (!fs::exists(folder)) throw Error(KGRPO_ERROR_NOT_FOUND, WhyNoRun(folder));
    if (!fs::exists(folder / "experiment.json")) {
      read(folder, "");
      continue;
    }
    const auto damaged = [&folder](const std::string& reason) {
      return Error(KGRPO_ERROR_INVALID, (folder / "experiment.json").string() + " is damaged: " + reason +
                                            ". Name its runs' folders one by one");
    };
    try {
      const auto experiment = nlohmann::json::parse(ReadFile(folder / "experiment.json"));
      for (const nlohmann::json& entry : experiment.at("runs")) {
        const fs::path run = folder / entry.at("folder").get<std::string>();
        if (fs::exists(run / "run.sqlite")) {
          read(run, entry.at("variant"));
        } else {
          left_out->push_back(run.string() + " has not begun");
        }
      }
    } catch (const nlohmann::json::exception& error) {
      throw damaged(error.what());
    }
  }
  if (runs.empty() && first_failure) throw Error(*first_failure);
  if (runs.empty()) throw Error(KGRPO_ERROR_NOT_FOUND, "none of the experiment's runs has begun");
  return runs;
}

}  // namespace kgrpo
