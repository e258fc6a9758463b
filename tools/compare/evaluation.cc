#include "compare/evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include <kgrpo/support/number_text.h>  // Format
#include "compare/report_text.h"
#include "loop/trajectory.h"  // ForEachAnswer

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;
using Groups = std::vector<std::vector<double>>;  // values by problem

// The expected largest of k values drawn without replacement: in ascending order, the i-th (from 0) is the largest in
// C(i, k - 1) of the C(n, k) draws.
double ExpectedLargest(std::vector<double> values, uint64_t k) {
  std::ranges::sort(values);
  const double n = static_cast<double>(values.size()), count = static_cast<double>(k);
  double weight = count / n, sum = 0;  // weight of the last one: C(n - 1, k - 1) / C(n, k)
  for (size_t i = values.size(); i-- > 0;) {
    sum += weight * values[i];
    const double at = static_cast<double>(i);
    if (i > 0) weight *= std::max(0.0, at - count + 1) / at;
  }
  return sum;
}

// `speedups`: best speedups of each problem's episodes.
std::vector<std::pair<uint64_t, double>> BestOf(const Groups& speedups) {
  size_t fewest = ~size_t{0};
  for (const std::vector<double>& of_problem : speedups) {
    if (!of_problem.empty()) fewest = std::min(fewest, of_problem.size());
  }
  std::vector<std::pair<uint64_t, double>> best_of;
  for (uint64_t k = 1; fewest != ~size_t{0} && k <= fewest; k *= 2) {
    std::vector<double> logarithms;
    for (const std::vector<double>& of_problem : speedups) {
      std::vector<double> values;
      values.reserve(of_problem.size());
      for (const double speedup : of_problem) values.push_back(std::log(speedup));
      if (!values.empty()) logarithms.push_back(ExpectedLargest(std::move(values), k));
    }
    best_of.emplace_back(k, std::exp(Mean(logarithms)));
  }
  return best_of;
}

void AddRounds(const std::vector<TrajectoryRecord>& trajectories, EvaluationFigures* figures) {
  std::vector<size_t> correct(figures->problems.size());
  for (const TrajectoryRecord& trajectory : trajectories) {
    EvaluationFigures::OfProblem& problem = figures->problems.at(trajectory.problem);
    for (const RoundRecord& round : trajectory.rounds_done) {
      const std::string text = SuggestionText(round.suggestion);
      problem.suggested.Add(text);
      if (round.answer.outcome == KGRPO_CODER_OK) problem.applied.Add(text);
      if (round.speedup > 0) ++correct[trajectory.problem];
    }
  }
  for (size_t p = 0; p < correct.size(); ++p) {
    EvaluationFigures::OfProblem& problem = figures->problems[p];
    if (const size_t rounds = problem.suggested.total(); rounds > 0)
      problem.correct_rate = static_cast<double>(correct[p]) / static_cast<double>(rounds);
  }
  ForEachAnswer(trajectories, [&](const CoderAnswer& answer) {
    if (answer.outcome != KGRPO_CODER_OK) figures->refusals.Add(answer.message);
  });
  figures->metrics = RolloutMetrics(trajectories);
}

}  // namespace

EvaluationFigures ReadEvaluation(const RunMeasures& run) {
  RunDatabase database = RunDatabase::ToRead(run.database());
  EvaluationFigures figures;
  for (const std::string& name : database.ReadProblemNames(Purpose::kEvaluation))
    figures.problems.emplace_back().problem = name;
  std::vector<TrajectoryRecord> trajectories;
  for (const uint64_t step : run.heldout_steps) {
    for (TrajectoryRecord& trajectory : database.ReadStep(Purpose::kEvaluation, step))
      trajectories.push_back(std::move(trajectory));
  }
  AddRounds(trajectories, &figures);
  Groups rewards(figures.problems.size()), speedups(figures.problems.size());
  for (const Episode& episode : run.episodes) {
    rewards.at(episode.problem).push_back(episode.reward);
    speedups[episode.problem].push_back(episode.best_speedup());
    ++figures.problems[episode.problem].episodes;
    ++figures.episodes;
  }
  const auto mean = [](std::span<const double> values) { return Mean(values); };
  const auto geometric = [](std::span<const double> values) { return GeometricMean(values); };
  for (size_t p = 0; p < figures.problems.size(); ++p) {
    figures.problems[p].reward = Bootstrap({rewards[p]}, run.seed, "bootstrap", mean);
    figures.problems[p].best_speedup = Bootstrap({speedups[p]}, run.seed, "bootstrap", geometric);
  }
  figures.reward = Bootstrap(rewards, run.seed, "bootstrap", mean);
  figures.best_speedup = Bootstrap(speedups, run.seed, "bootstrap", geometric);
  figures.best_of = BestOf(speedups);
  for (const double p : {0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0}) {
    const auto over = std::ranges::count_if(run.episodes, [p](const Episode& e) { return e.best_correct > p; });
    figures.fast_p.emplace_back(
        p, run.episodes.empty() ? 0 : static_cast<double>(over) / static_cast<double>(run.episodes.size()));
  }
  std::vector<double> entropies;
  for (const auto& [step, value] : database.MetricCurve("policy/token_entropy")) entropies.push_back(value);
  if (!entropies.empty()) figures.metrics["policy/token_entropy"] = Mean(entropies);
  figures.coder = database.ReadCoderTotals(run.steps);
  for (const auto& [problem, kernel] : database.ReadBest(run.steps))
    figures.kernels.emplace_back(problem, kernel.speedup);
  return figures;
}

Json FiguresToJson(const EvaluationFigures& figures, const RunMeasures& run) {
  Json problems = Json::array(), episodes = Json::array(), fast = Json::object(), best = Json::object(),
       kernels = Json::object();
  for (const EvaluationFigures::OfProblem& problem : figures.problems) {
    problems.push_back({{"problem", problem.problem},
                        {"episodes", problem.episodes},
                        {"reward", IntervalJson(problem.reward)},
                        {"best_speedup_geomean", IntervalJson(problem.best_speedup)},
                        {"correct_rate", problem.correct_rate},
                        {"favourite", problem.suggested.favourite()},
                        {"favourite_share", problem.suggested.favourite_share()}});
  }
  for (const Episode& episode : run.episodes) {
    episodes.push_back({{"problem", episode.problem_name},
                        {"repeat", episode.step},
                        {"episode", episode.number},
                        {"reward", episode.reward},
                        {"best_speedup", episode.best_speedup()},
                        {"correct_rate", episode.correct},
                        {"complete", episode.complete}});
  }
  for (const auto& [p, share] : figures.fast_p) fast[Format("%g", p)] = share;
  for (const auto& [k, speedup] : figures.best_of) best[std::to_string(k)] = speedup;
  for (const auto& [problem, speedup] : figures.kernels) kernels[problem] = speedup;
  return {{"folder", run.folder.string()},
          {"seed", run.seed},
          {"episodes", figures.episodes},
          {"reward", IntervalJson(figures.reward)},
          {"best_speedup_geomean", IntervalJson(figures.best_speedup)},
          {"fast_p", fast},
          {"best_of", best},
          {"kernels", kernels},
          {"coder_answers", figures.coder.answers},
          {"coder_answers_reused", figures.coder.reused},
          {"coder_commonest_refusal", figures.refusals.favourite()},
          {"metrics", figures.metrics},
          {"problems", problems},
          {"episode_rows", episodes}};
}

}  // namespace kgrpo
