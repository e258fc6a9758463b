#include "loop/evaluate_policy.h"

#include <kgrpo/support/closest.h>
#include "loop/best_kernels.h"
#include "loop/heldout.h"
#include "loop/round_faults.h"
#include "loop/trajectory.h"
#include "store/kernels.h"
#include "store/readable.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

namespace kgrpo {
namespace {

std::string Trim(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The mean entropy of the distributions that the suggestions' tokens were drawn from.
double TokenEntropy(Policy& policy, const std::vector<TrajectoryRecord>& trajectories, double temperature) {
  constexpr size_t kChunk = 32;  // sequences a forward pass
  std::vector<kgrpo_sequence> sequences;
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.completion_ids.empty()) continue;
      sequences.push_back(
          {round.prompt_ids.data(), round.prompt_ids.size(), round.completion_ids.data(), round.completion_ids.size()});
    }
  }
  double sum = 0;
  size_t count = 0;
  for (size_t first = 0; first < sequences.size(); first += kChunk) {
    const auto chunk = std::span(sequences).subspan(first, std::min(kChunk, sequences.size() - first));
    std::vector<float> entropies;
    policy.LogProbabilities(chunk, temperature > 0 ? temperature : 1.0, KGRPO_POLICY_CURRENT, &entropies);
    for (const float entropy : entropies) sum += entropy;
    count += entropies.size();
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

void RequireListed(const std::vector<std::string>& techniques, const Coder& coder, const std::string& name) {
  const std::vector<std::string> listed = coder.Suggestions();
  if (listed.empty()) return;
  for (const std::string& technique : techniques) {
    if (std::ranges::find(listed, technique) != listed.end()) continue;
    const std::string closest = Closest(technique, listed);
    std::string all;
    for (const std::string& suggestion : listed) all += (all.empty() ? "" : ", ") + suggestion;
    throw Error(KGRPO_ERROR_INVALID, "--policy fixed: \"" + technique + "\" is not in " + name + "'s list" +
                                         (closest.empty() ? ": " + all : "; did you mean \"" + closest + "\"?"));
  }
}

namespace {

// Returns the folder of a run's trained model, or of its last checkpoint's model where the run has not ended.
std::string PolicyOfRun(const std::filesystem::path& run) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::is_directory(run / "final", code)) return (run / "final").string();
  std::string newest;
  uint64_t last = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints", code)) {
    const std::string name = entry.path().filename().string();
    uint64_t step = 0;
    const std::string prefix = "step-";
    if (!name.starts_with(prefix)) continue;
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
    if (error != std::errc() || end != name.data() + name.size() || step < last) continue;  // "step-4.partial"
    if (!fs::is_directory(entry.path() / "policy", code)) continue;
    last = step;
    newest = (entry.path() / "policy").string();
  }
  if (newest.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "--policy " + run.string() +
                                         " is a run without final/ and without a checkpoint: it holds no model yet");
  }
  spdlog::warn("{} has not ended: its policy after step {} is taken", run.string(), last);
  return newest;
}

}  // namespace

PolicyChoice ParsePolicyChoice(const std::string& text) {
  PolicyChoice choice;
  choice.label = text;
  const std::string kFixed = "fixed:";
  if (text == "uniform") {
    choice.suggester.kind = Suggester::Kind::kUniform;
  } else if (text.rfind(kFixed, 0) == 0) {
    choice.suggester.kind = Suggester::Kind::kFixed;
    for (size_t at = kFixed.size(); at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      choice.suggester.sequence.push_back(Trim(text.substr(at, comma - at)));
      at = comma + 1;
    }
    for (const std::string& technique : choice.suggester.sequence) {
      if (technique.empty()) {
        throw Error(KGRPO_ERROR_INVALID, "--policy " + text +
                                             " names an empty technique: write fixed:TECHNIQUE or "
                                             "fixed:TECHNIQUE,TECHNIQUE,...");
      }
    }
  } else {
    if (!std::filesystem::exists(text) && text.find('/') != std::string::npos) {
      throw Error(KGRPO_ERROR_NOT_FOUND, "--policy " + text + ": there is no folder " + text +
                                             ". Train first (scripts/quickstart trains runs/quickstart), or use "
                                             "--policy uniform");
    }
    if (!std::filesystem::is_directory(text)) {
      throw Error(KGRPO_ERROR_NOT_FOUND,
                  "--policy " + text +
                      " is neither \"uniform\", nor \"fixed:TECHNIQUE,...\", nor a folder (a run's or a model's)");
    }
    if (const std::string runs = RunsWithin(text); !runs.empty()) throw Error(KGRPO_ERROR_INVALID, "--policy " + runs);
    choice.model = std::filesystem::exists(std::filesystem::path(text) / "run.sqlite") ? PolicyOfRun(text) : text;
  }
  return choice;
}

namespace {

// The expected largest of k values drawn without replacement: in ascending order, the i-th (from 0) is the largest in
// C(i, k - 1) of the C(n, k) draws.
double ExpectedLargest(std::vector<double> values, uint64_t k) {
  std::ranges::sort(values);
  const double n = static_cast<double>(values.size()), count = static_cast<double>(k);
  double weight = count / n, sum = 0;  // of the last one: C(n - 1, k - 1) / C(n, k)
  for (size_t i = values.size(); i-- > 0;) {
    sum += weight * values[i];
    const double at = static_cast<double>(i);
    if (i > 0) weight *= std::max(0.0, at - count + 1) / at;
  }
  return sum;
}

// `speedups`: best speedups of each problem's episodes.
std::vector<std::pair<uint64_t, double>> BestOf(const std::vector<std::vector<double>>& speedups) {
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

// Judges the fastest kernels thoroughly and writes the confirmed ones. Fills the report's `kernels` and `interrupted`.
void KeepKernels(const std::filesystem::path& folder, uint64_t seed, const ProblemSet& problems, PipelineParts& parts,
                 WorkerPool& pool, const std::vector<TrajectoryRecord>& trajectories, PolicyReport* report) {
  BestKernels best(problems, parts, pool, seed, {}, {});
  best.Add(0, trajectories);
  best.Start();
  const JudgedKernels judged = best.Finish();
  if (!judged.failed.empty())
    throw Error(KGRPO_ERROR_UNAVAILABLE, "the fastest kernels cannot be evaluated again: " + judged.failed);
  report->interrupted = !judged.complete;
  for (const BestKernel& kernel : judged.best) {
    WriteBestKernel(folder, kernel);
    report->kernels.emplace_back(kernel.problem, kernel.speedup);
  }
}

}  // namespace

PolicyReport EvaluatePolicy(const PipelineConfig& config, PipelineParts& parts, const PolicyChoice& choice,
                            const EpisodePlan& plan) {
  const uint64_t episodes = plan.episodes;
  if (config.heldout_problems.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "problems.heldout names no problem: there is nothing to evaluate on");
  }
  if (episodes == 0) throw Error(KGRPO_ERROR_INVALID, "the number of episodes must be at least 1");
  if (choice.needs_policy() && parts.policy == nullptr) {
    throw Error(KGRPO_ERROR_INTERNAL, "no policy was loaded for --policy " + choice.label);
  }
  RequireListed(choice.suggester.sequence, *parts.coder, config.coder.plugin);
  if (!choice.model.empty()) parts.policy->Load(KGRPO_POLICY_CURRENT, choice.model);
  WorkerPool pool(config.loop.workers);
  const ProblemSet problems(*parts.evaluator, config.heldout_problems, pool, config.skip_unusable);
  for (const std::string& why : problems.skipped()) spdlog::warn("left out (problems.skip_unusable): {}", why);
  PolicyReport report;
  std::vector<TrajectoryRecord> trajectories;
  for (uint64_t repeat = 0; repeat < plan.repeats; ++repeat) {
    PipelineConfig own = config;
    own.seed += repeat;
    Rollout rollout(own, parts, problems, pool);
    // Step 0 is no step of a training run: the evaluation does not reuse random streams that the policy may have been
    // trained with.
    RolloutRequest request = HeldoutRequest(own, problems.families(), 0, episodes, choice.suggester);
    request.most_faults = std::min(kMostFaults, request.assignments.size());
    std::vector<double> rewards, speedups;
    for (TrajectoryRecord& trajectory : rollout.Collect(request).trajectories) {
      EpisodeFigures& figures = report.all_episodes.emplace_back();
      figures.problem = trajectory.problem_name;
      figures.repeat = repeat;
      figures.episode = trajectory.trajectory % episodes;
      figures.dropped = trajectory.dropped;
      std::vector<double> of_rounds;
      size_t correct = 0;
      for (const RoundRecord& round : trajectory.rounds_done) {
        of_rounds.push_back(round.reward);
        if (round.speedup > 0) ++correct;
      }
      trajectory.trajectory += repeat * problems.size() * episodes;
      if (!of_rounds.empty()) {
        figures.reward = Mean(of_rounds);
        figures.best_speedup = BestSpeedup(trajectory);
        figures.correct_rate = static_cast<double>(correct) / static_cast<double>(of_rounds.size());
        rewards.push_back(figures.reward);
        speedups.push_back(figures.best_speedup);
      }
      trajectories.push_back(std::move(trajectory));
    }
    report.repeats.emplace_back(Mean(rewards), speedups.empty() ? 1 : GeometricMean(speedups));
  }
  if (!plan.kernels.empty()) KeepKernels(plan.kernels, config.seed, problems, parts, pool, trajectories, &report);
  report.policy = choice.label;
  report.seed = config.seed;
  report.rounds = config.loop.rounds;
  report.modelled = problems[0].baseline.modelled;
  report.time_source = problems[0].baseline.time_source;
  report.coder = CountAnswers(trajectories);
  ForEachAnswer(trajectories, [&](const CoderAnswer& answer) {
    if (answer.outcome == KGRPO_CODER_OK) {
      report.refusals.AddKernel();
    } else {
      report.refusals.Add(answer.message);
    }
  });
  report.metrics = RolloutMetrics(trajectories);
  std::vector<std::vector<double>> rewards(problems.size()), speedups(problems.size());
  std::vector<double> correct_speedups;  // an episode's best correct kernel; 0 where there was none
  report.problems.resize(problems.size());
  std::vector<Tally> suggested(problems.size()), applied(problems.size());
  std::vector<size_t> rounds(problems.size()), correct(problems.size());
  for (const TrajectoryRecord& trajectory : trajectories) {
    if (trajectory.rounds_done.empty()) continue;  // dropped in its first round: no episode
    const size_t p = trajectory.problem;
    std::vector<double> of_episode;
    double best = 0;
    for (const RoundRecord& round : trajectory.rounds_done) {
      of_episode.push_back(round.reward);
      best = std::max(best, round.speedup);
      const std::string text = SuggestionText(round.suggestion);
      suggested[p].Add(text);
      if (round.answer.outcome == KGRPO_CODER_OK) applied[p].Add(text);
      ++rounds[p];
      if (round.speedup > 0) ++correct[p];
      if (report.problems[p].episodes == 0) report.problems[p].samples.push_back(round.suggestion);
    }
    rewards[p].push_back(Mean(of_episode));
    speedups[p].push_back(BestSpeedup(trajectory));
    correct_speedups.push_back(best);
    ++report.problems[p].episodes;
    ++report.episodes;
  }
  const auto mean = [](std::span<const double> values) { return Mean(values); };
  const auto geometric = [](std::span<const double> values) { return GeometricMean(values); };
  for (size_t p = 0; p < problems.size(); ++p) {
    ProblemFigures& figures = report.problems[p];
    figures.problem = problems[p].name;
    figures.family = problems[p].family;
    figures.reward = Bootstrap({rewards[p]}, config.seed, "bootstrap", mean);
    figures.best_speedup = Bootstrap({speedups[p]}, config.seed, "bootstrap", geometric);
    figures.correct_rate = rounds[p] == 0 ? 0 : static_cast<double>(correct[p]) / static_cast<double>(rounds[p]);
    figures.favourite = suggested[p].favourite();
    figures.favourite_share = suggested[p].favourite_share();
    if (const size_t times = suggested[p].count(figures.favourite); times > 0) {
      figures.favourite_applied = static_cast<double>(applied[p].count(figures.favourite)) / static_cast<double>(times);
    }
  }
  report.reward = Bootstrap(rewards, config.seed, "bootstrap", mean);
  report.best_speedup = Bootstrap(speedups, config.seed, "bootstrap", geometric);
  report.best_of = BestOf(speedups);
  for (const double p : {0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0}) {
    const auto over = std::count_if(correct_speedups.begin(), correct_speedups.end(), [p](double s) { return s > p; });
    report.fast_p.emplace_back(
        p, correct_speedups.empty() ? 0 : static_cast<double>(over) / static_cast<double>(correct_speedups.size()));
  }
  if (choice.needs_policy()) {
    report.token_entropy = TokenEntropy(*parts.policy, trajectories, config.loop.sampling.temperature);
  }
  return report;
}

}  // namespace kgrpo
