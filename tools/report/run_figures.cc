#include "report/run_figures.h"

#include <kgrpo/evaluator.h>  // KGRPO_VERDICT_CRASH

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "loop/metrics.h"  // SuggestionText
#include "store/records.h"

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWindows = 20;
constexpr size_t kLabels = 40;  // suggestions that are listed

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// Every metric that a page draws.
Json ReadCurves(Database& database) {
  Statement select(database, "SELECT name, step, value FROM metrics WHERE value IS NOT NULL ORDER BY name, step");
  Json curves = Json::object();
  std::string name;
  Json* points = nullptr;
  while (select.Step()) {
    if (std::string now = select.Text(0); points == nullptr || now != name) {
      name = std::move(now);
      points = &(curves[name] = Json::array());
    }
    points->push_back({select.Integer(1), Number(select.Real(2))});
  }
  return curves;
}

Json ReadStages(Database& database) {
  Statement select(database, "SELECT stage_name, min(step) FROM steps GROUP BY stage ORDER BY stage");
  Json stages = Json::array();
  while (select.Step()) stages.push_back({select.Text(0), select.Integer(1)});
  return stages;
}

// Counts the outcomes of the rounds by step, in the order of the chart from the bottom.
Json ReadOutcomes(Database& database) {
  Statement select(database,
                   "SELECT step, CASE WHEN correct = 1 AND speedup > 1 THEN 0 WHEN correct = 1 THEN 1 "
                   "WHEN compiled = 0 THEN 4 WHEN verdict IN ('" KGRPO_VERDICT_CRASH "', '" KGRPO_VERDICT_TIMEOUT
                   "') THEN 3 WHEN compiled = 1 THEN 2 "
                   "WHEN coder_outcome = 1 THEN 5 WHEN coder_outcome = 2 THEN 6 WHEN coder_outcome = 7 THEN 7 "
                   "ELSE 8 END AS kind, count(*) "
                   "FROM rounds WHERE " KGRPO_OWN_ROUNDS
                   " GROUP BY step, kind UNION ALL "
                   "SELECT step, 8 AS kind, count(*) FROM dropped_rounds WHERE " KGRPO_OWN_ROUNDS
                   " GROUP BY step "
                   "ORDER BY 1");
  const Json kinds = {"correct and faster",
                      "correct, not faster",
                      "wrong",
                      "crash or timeout",
                      "does not compile",
                      "not applicable",
                      "unclear to the coder",
                      "no kernel in the completion",
                      "no score: a part failed"};
  Json steps = Json::array();
  while (select.Step()) {
    if (steps.empty() || steps.back()[0] != select.Integer(0)) {
      Json row = Json::array({select.Integer(0)});
      for (size_t i = 0; i < kinds.size(); ++i) row.push_back(0);
      steps.push_back(std::move(row));
    }
    Json& count = steps.back()[static_cast<size_t>(select.Integer(1)) + 1];
    count = count.get<int64_t>() + select.Integer(2);
  }
  return {{"kinds", kinds}, {"steps", std::move(steps)}};
}

struct LabelFigures {
  std::vector<int64_t> windows = std::vector<int64_t>(kWindows);
  int64_t count = 0, applied = 0, correct = 0, advantages = 0;
  std::map<std::string, int64_t> summaries;
  double reward = 0, log_speedup = 0, advantage = 0;
};

void ReadSuggestions(Database& database, Json* figures) {
  std::vector<int64_t> steps;
  Statement select_steps(database, "SELECT step FROM steps WHERE has_rollouts != 0 ORDER BY step");
  while (select_steps.Step()) steps.push_back(select_steps.Integer(0));
  Statement select(database,
                   "SELECT step, coder_summary, suggestion, reward, coalesce(correct, 0), speedup, coder_outcome, "
                   "advantage FROM rounds WHERE " KGRPO_OWN_ROUNDS);
  std::map<std::string, LabelFigures> labels;
  std::vector<int64_t> totals(kWindows);
  while (select.Step()) {
    const auto place = std::ranges::lower_bound(steps, select.Integer(0)) - steps.begin();
    const auto window =
        std::min(kWindows - 1, static_cast<size_t>(place) * kWindows / std::max<size_t>(1, steps.size()));
    LabelFigures& label = labels[SuggestionText(select.Text(2))];
    if (select.Integer(6) == KGRPO_CODER_OK) ++label.applied;
    if (const std::string summary = select.Text(1); !summary.empty()) ++label.summaries[summary];
    ++totals[window];
    ++label.windows[window];
    ++label.count;
    label.reward += select.Real(3);
    if (select.Integer(4) != 0 && select.Real(5) > 0) {
      ++label.correct;
      label.log_speedup += std::log(select.Real(5));
    }
    if (!select.IsNull(7)) {
      ++label.advantages;
      label.advantage += select.Real(7);
    }
  }
  std::vector<std::pair<std::string, LabelFigures>> order(labels.begin(), labels.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  Json rows = Json::array();
  for (size_t i = 0; i < std::min(order.size(), kLabels); ++i) {
    const auto& [name, of] = order[i];
    const auto n = static_cast<double>(of.count);
    Json row;
    row["label"] = name;
    const auto summary = std::ranges::max_element(of.summaries, {}, [](const auto& entry) { return entry.second; });
    row["summary"] = summary == of.summaries.end() ? "" : summary->first;
    row["count"] = of.count;
    row["applied"] = static_cast<double>(of.applied) / n;
    row["reward"] = Number(of.reward / n);
    row["correct"] = static_cast<double>(of.correct) / n;
    row["speedup"] = of.correct == 0 ? Json() : Number(std::exp(of.log_speedup / static_cast<double>(of.correct)));
    row["advantage"] = of.advantages == 0 ? Json() : Number(of.advantage / static_cast<double>(of.advantages));
    row["windows"] = of.windows;
    rows.push_back(std::move(row));
  }
  (*figures)["suggestions"] = std::move(rows);
  (*figures)["distinct_suggestions"] = order.size();
  (*figures)["windows"] = totals;
  (*figures)["rollout_steps"] = steps.empty() ? Json::array() : Json::array({steps.front(), steps.back()});
}

// A member of an evaluation in its JSON form, or null.
Json Member(const Json& evaluation, const char* name) {
  const auto found = evaluation.find(name);
  return found == evaluation.end() ? Json() : *found;
}

Json ReadProblems(Database& database, TrajectoryParts* parts) {
  std::map<std::string, Json> best;
  Statement select_best(database,
                        "SELECT problem, step, trajectory, round, source, speedup, evaluation, suggestions FROM "
                        "best_kernels ORDER BY judged_step");
  while (select_best.Step()) {
    const Json evaluation = Json::parse(select_best.Text(6), nullptr, false);
    Json kernel;
    kernel["speedup"] = Number(select_best.Real(5));
    kernel["step"] = select_best.Integer(1);
    kernel["trajectory"] = select_best.Integer(2);
    kernel["round"] = select_best.Integer(3);
    kernel["source"] = parts->SourceNumber(database, select_best.Text(4));
    kernel["suggestions"] = Json::parse(select_best.Text(7), nullptr, false);
    if (evaluation.is_object()) {
      kernel["seconds"] = Member(evaluation, "seconds");
      kernel["diagnosis"] = Member(evaluation, "diagnosis");
    }
    best[select_best.Text(0)] = std::move(kernel);  // later rows are better kernels
  }
  Statement select(database,
                   "SELECT name, title, family, baseline_seconds, modelled, time_source, source FROM problems "
                   "WHERE " KGRPO_OWN_ROUNDS " ORDER BY name");
  Json problems = Json::array();
  while (select.Step()) {
    Json problem;
    problem["problem"] = select.Text(0);
    problem["title"] = select.Text(1);
    problem["family"] = select.Text(2);
    problem["baseline"] = Number(select.Real(3));
    problem["modelled"] = select.Integer(4) != 0;
    problem["time_source"] = select.Text(5);
    problem["source"] = parts->SourceNumber(database, select.Text(6));
    const auto found = best.find(select.Text(0));
    problem["best"] = found == best.end() ? Json() : found->second;
    problems.push_back(std::move(problem));
  }
  return problems;
}

Json ReadTimes(Database& database) {
  Statement select(database,
                   "SELECT name, SUM(value) FROM metrics WHERE name LIKE 'time/%' OR name = 'step_time' GROUP BY name");
  Json times = Json::object();
  while (select.Step()) times[select.Text(0)] = Number(select.Real(1));
  return times;
}

// Returns the figures of the first and the last held-out measurement, by problem.
Json ReadHeldout(Database& database) {
  Statement range(database,
                  "SELECT min(step), max(step), count(DISTINCT step) FROM trajectories WHERE purpose IN "
                  "('heldout', 'evaluation')");
  if (!range.Step() || range.IsNull(0)) return nullptr;
  const int64_t first = range.Integer(0), last = range.Integer(1);
  Json heldout = {{"first", first}, {"last", last}, {"measurements", range.Integer(2)}, {"problems", Json::array()}};
  Statement select(
      database,
      "SELECT problem_name, step, count(*), avg(reward), avg(best), avg(correct) FROM (SELECT problem_name, "
      "step, avg(reward) AS reward, ln(max(1, max(speedup))) AS best, avg(coalesce(correct, 0)) AS correct "
      "FROM rounds JOIN trajectories USING(purpose, step, trajectory) WHERE purpose IN ('heldout', 'evaluation') AND "
      "(step = ?1 OR step = ?2) GROUP BY step, trajectory) GROUP BY problem_name, step "
      "ORDER BY problem_name, step");
  select << first << last;
  Json& problems = heldout["problems"];
  while (select.Step()) {
    if (problems.empty() || problems.back()["problem"] != select.Text(0))
      problems.push_back({{"problem", select.Text(0)}});
    Json figures = {{"episodes", select.Integer(2)},
                    {"reward", Number(select.Real(3))},
                    {"speedup", Number(std::exp(select.Real(4)))},
                    {"correct", Number(select.Real(5))}};
    if (select.Integer(1) == last) problems.back()["last"] = figures;
    if (select.Integer(1) == first) problems.back()["first"] = std::move(figures);
  }
  return heldout;
}

}  // namespace

Json ReadFigures(Database& database, TrajectoryParts* parts) {
  Json figures;
  figures["curves"] = ReadCurves(database);
  figures["stages"] = ReadStages(database);
  figures["outcomes"] = ReadOutcomes(database);
  ReadSuggestions(database, &figures);
  figures["problems"] = ReadProblems(database, parts);
  figures["times"] = ReadTimes(database);
  figures["heldout"] = ReadHeldout(database);
  return figures;
}

}  // namespace kgrpo
