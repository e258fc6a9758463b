#include "loop/metrics.h"

#include "loop/coder_cost.h"
#include "loop/round_faults.h"
#include "loop/statistics.h"
#include "loop/trajectory.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace kgrpo {
namespace {

// Counts rounds of a kind; a share of all rounds when asked.
struct Counter {
  size_t count = 0;
  double Share(size_t of) const { return of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of); }
};

// Figures of the coder over all rounds. The round in which a trajectory was dropped is not among its rounds, but counts
// as tried.
struct CoderFigures {
  std::map<kgrpo_coder_outcome, Counter> errors;
  size_t tried = 0;
  double cost = 0, tokens = 0, seconds = 0;

  void Add(const CoderAnswer& answer) {
    ++tried;
    cost = SumOfDollars(cost, answer.cost);
    tokens += static_cast<double>(answer.prompt_tokens + answer.completion_tokens);
    seconds += answer.seconds;
    if (CoderFailed(answer)) ++errors[answer.outcome].count;
  }

  void Show(MetricMap& metrics) {
    for (const kgrpo_coder_outcome kind :
         {KGRPO_CODER_REFUSED, KGRPO_CODER_TRUNCATED, KGRPO_CODER_NO_CODE, KGRPO_CODER_FAILED}) {
      metrics[std::string("coder/error_rate/") + CoderOutcomeName(kind)] = errors[kind].Share(tried);
    }
    metrics["coder/cost"] = cost;
    metrics["coder/tokens"] = tokens;
    metrics["time/implement"] = seconds;
  }
};

}  // namespace

double CoderCost(const std::vector<TrajectoryRecord>& trajectories) {
  CoderFigures figures;
  ForEachAnswer(trajectories, [&](const CoderAnswer& answer) { figures.Add(answer); });
  return figures.cost;
}

std::string SuggestionText(const std::string& suggestion) {
  std::string label;
  bool space = false;
  for (const char c : suggestion) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte)) {
      space = !label.empty();
      continue;
    }
    if (std::exchange(space, false)) label += ' ';
    label += static_cast<char>(byte < 128 ? std::tolower(byte) : byte);
  }
  return label;
}

std::string ShownSuggestion(const std::string& text, size_t width) {
  if (text.empty()) return "(empty)";
  if (text.size() <= width) return text;
  size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

double MeanReward(const std::vector<TrajectoryRecord>& trajectories) {
  double sum = 0;
  size_t count = 0;
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) sum += round.reward, ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

double BestSpeedup(const TrajectoryRecord& trajectory) {
  double best = 1;
  for (const RoundRecord& round : trajectory.rounds_done) best = std::max(best, round.speedup);
  return best;
}

MetricMap RolloutMetrics(const std::vector<TrajectoryRecord>& trajectories) {
  MetricMap metrics;
  Counter compiled, correct, faster, timeout, crash, failed, not_applicable, unclear, no_kernel, unchanged;
  CoderFigures coder;
  std::vector<double> rewards, speedups;
  std::map<std::string, std::vector<double>> parts, by_problem;
  Tally suggestions;
  double evaluate = 0;
  size_t rounds = 0, fast = 0, complete = 0;
  std::array<size_t, kRoundParts.size()> dropped{};

  for (const TrajectoryRecord& trajectory : trajectories) {
    if (trajectory.failed_round) {
      coder.Add(trajectory.failed_round->answer);
      if (const auto fault = FaultOf(*trajectory.failed_round)) ++dropped[static_cast<size_t>(fault->part)];
    }
    if (!trajectory.rounds_done.empty()) {
      ++complete;
      if (BestSpeedup(trajectory) > 1) ++fast;
    }
    for (const RoundRecord& round : trajectory.rounds_done) {
      ++rounds;
      rewards.push_back(round.reward);
      by_problem[trajectory.problem_name].push_back(round.reward);
      for (const Metric& part : round.reward_parts) parts[part.name].push_back(part.value);
      suggestions.Add(SuggestionText(round.suggestion));
      coder.Add(round.answer);
      if (round.answer.outcome == KGRPO_CODER_NOT_APPLICABLE) ++not_applicable.count;
      if (round.answer.outcome == KGRPO_CODER_UNCLEAR) ++unclear.count;
      if (round.answer.outcome == KGRPO_CODER_NO_KERNEL) ++no_kernel.count;
      if (round.unchanged) ++unchanged.count;
      if (!round.evaluation) continue;
      const Evaluation& evaluation = *round.evaluation;
      evaluate += round.evaluate_seconds;
      if (evaluation.compiled) ++compiled.count;
      if (!evaluation.correct) ++failed.count;
      if (evaluation.verdict == "timeout") ++timeout.count;
      if (evaluation.verdict == "crash") ++crash.count;
      if (evaluation.correct) {
        ++correct.count;
        speedups.push_back(round.speedup);
        if (round.speedup > 1) ++faster.count;
      }
    }
  }

  if (rounds > 0) {
    metrics["reward"] = Mean(rewards);
    metrics["reward_std"] = StandardDeviation(rewards);
  }
  for (const auto& [name, values] : parts) {
    metrics["rewards/" + name + "/mean"] = Mean(values);
    metrics["rewards/" + name + "/std"] = StandardDeviation(values);
  }
  for (const auto& [name, values] : by_problem) metrics["reward/problem/" + name] = Mean(values);
  metrics["kernel/compiled_rate"] = compiled.Share(rounds);
  metrics["kernel/correct_rate"] = correct.Share(rounds);
  metrics["kernel/speedup_rate"] = faster.Share(rounds);
  metrics["kernel/failed_rate"] = failed.Share(rounds);
  metrics["kernel/timeout_rate"] = timeout.Share(rounds);
  metrics["kernel/crash_rate"] = crash.Share(rounds);
  metrics["kernel/unchanged_rate"] = unchanged.Share(rounds);
  metrics["kernel/fast_1"] = complete == 0 ? 0 : static_cast<double>(fast) / static_cast<double>(complete);
  if (!speedups.empty()) {
    metrics["kernel/speedup_mean"] = Mean(speedups);
    metrics["kernel/speedup_geomean"] = GeometricMean(speedups);
    metrics["kernel/speedup_median"] = Median(speedups);
    metrics["kernel/speedup_max"] = *std::max_element(speedups.begin(), speedups.end());
  }
  metrics["coder/not_applicable_rate"] = not_applicable.Share(rounds);
  metrics["coder/unclear_rate"] = unclear.Share(rounds);
  metrics["policy/no_kernel_rate"] = no_kernel.Share(rounds);
  coder.Show(metrics);
  const auto counts = CountParts(trajectories);
  for (const RoundPart part : kRoundParts) {
    const auto i = static_cast<size_t>(part);
    metrics[RoundPartName(part) + std::string("/error_rate")] = Counter{counts[i].failed}.Share(counts[i].asked);
    metrics[RoundPartName(part) + std::string("/dropped_trajectories")] = static_cast<double>(dropped[i]);
  }
  metrics["policy/favourite_share"] = suggestions.favourite_share();
  metrics["policy/distinct_suggestions"] = static_cast<double>(suggestions.distinct());
  metrics["policy/suggestion_entropy"] = suggestions.entropy();
  metrics["time/evaluate"] = evaluate;
  return metrics;
}

}  // namespace kgrpo
