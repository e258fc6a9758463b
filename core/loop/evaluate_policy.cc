#include "loop/evaluate_policy.h"

#include <kgrpo/support/number_text.h>  // FormatDollars
#include "config/diagnostic.h"          // Closest
#include "loop/heldout.h"
#include "store/json.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

namespace kgrpo {
namespace {

constexpr size_t kMostFaults = 32;  // with nothing else: a coder that is of use now and then gets by

std::string Format(const char* format, auto... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

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

nlohmann::ordered_json IntervalJson(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

std::string IntervalText(const Interval& interval, const char* unit) {
  if (std::isnan(interval.low)) return Format("%.2f%s", interval.value, unit);  // one episode a problem
  return Format("%.2f%s [%.2f, %.2f]", interval.value, unit, interval.low, interval.high);
}

}  // namespace

namespace {

// A coder with a list does what is on it: another technique would be played in vain.
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
    if (!std::filesystem::is_directory(text)) {
      throw Error(KGRPO_ERROR_NOT_FOUND,
                  "--policy " + text + " is neither \"uniform\", nor \"fixed:TECHNIQUE,...\", nor a model's folder");
    }
    if (std::filesystem::exists(std::filesystem::path(text) / "run.sqlite")) {
      throw Error(KGRPO_ERROR_INVALID, "--policy " + text + " is a run's folder; its trained model is " +
                                           (std::filesystem::path(text) / "final").string());
    }
    choice.model = text;
  }
  return choice;
}

PolicyReport EvaluatePolicy(const PipelineConfig& config, PipelineParts& parts, const PolicyChoice& choice,
                            uint64_t episodes) {
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
  const ProblemSet problems(*parts.evaluator, config.heldout_problems, pool);
  Rollout rollout(config, parts, problems, pool);
  // Step 0: no step of a training run, so that a policy is not evaluated with what it may have been trained on.
  RolloutRequest request = HeldoutRequest(config, problems.families(), 0, episodes, choice.suggester);
  request.most_faults = std::min(kMostFaults, request.assignments.size());
  const std::vector<TrajectoryRecord> trajectories = rollout.Collect(request).trajectories;

  PolicyReport report;
  report.policy = choice.label;
  report.seed = config.seed;
  report.rounds = config.loop.rounds;
  report.modelled = problems[0].baseline.modelled;
  report.time_source = problems[0].baseline.time_source;
  report.coder = CountAnswers(trajectories);
  report.metrics = RolloutMetrics(trajectories);
  std::vector<std::vector<double>> rewards(problems.size()), speedups(problems.size());
  std::vector<double> correct_speedups;  // an episode's best correct kernel; 0 where there was none
  report.problems.resize(problems.size());
  std::vector<Tally> labels(problems.size());
  std::vector<size_t> rounds(problems.size()), correct(problems.size());
  for (const TrajectoryRecord& trajectory : trajectories) {
    if (trajectory.rounds_done.empty()) continue;  // dropped in its first round: no episode
    const size_t p = trajectory.problem;
    std::vector<double> of_episode;
    double best = 0;
    for (const RoundRecord& round : trajectory.rounds_done) {
      of_episode.push_back(round.reward);
      best = std::max(best, round.speedup);
      labels[p].Add(SuggestionLabel(round));
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
    figures.favourite = labels[p].favourite();
    figures.favourite_share = labels[p].favourite_share();
  }
  report.reward = Bootstrap(rewards, config.seed, "bootstrap", mean);
  report.best_speedup = Bootstrap(speedups, config.seed, "bootstrap", geometric);
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

nlohmann::ordered_json PolicyReport::ToJson() const {
  using Json = nlohmann::ordered_json;
  Json by_problem = Json::array();
  for (const ProblemFigures& figures : problems) {
    by_problem.push_back({{"problem", figures.problem},
                          {"family", figures.family},
                          {"episodes", figures.episodes},
                          {"reward", IntervalJson(figures.reward)},
                          {"best_speedup_geomean", IntervalJson(figures.best_speedup)},
                          {"correct_rate", figures.correct_rate},
                          {"favourite", figures.favourite},
                          {"favourite_share", figures.favourite_share},
                          {"samples", figures.samples}});
  }
  Json fast = Json::object();
  for (const auto& [p, share] : fast_p) fast[Format("%g", p)] = share;
  Json rates = Json::object();
  for (const auto& [name, value] : metrics) rates[name] = value;
  return {{"policy", policy},
          {"seed", seed},
          {"episodes", episodes},
          {"rounds", rounds},
          {"modelled", modelled},
          {"time_source", time_source},
          {"reward", IntervalJson(reward)},
          {"best_speedup_geomean", IntervalJson(best_speedup)},
          {"fast_p", fast},
          {"token_entropy", token_entropy},
          {"coder_answers", coder.answers},
          {"coder_answers_reused", coder.reused},
          {"metrics", rates},
          {"problems", by_problem}};
}

void PolicyReport::Show(Console& console) const {
  const auto rate = [&](const char* name) {
    const auto found = metrics.find(name);
    return Format("%.0f%%", 100 * (found == metrics.end() ? 0.0 : found->second));
  };
  std::string fast;
  for (const auto& [p, share] : fast_p) fast += Format("%sfast_%g %.0f%%", fast.empty() ? "" : "  ", p, 100 * share);
  const std::string times = (modelled ? "MODELLED, no device ran: " : "measured: ") + time_source;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"episodes", Format("%llu of %llu rounds, seed %llu", static_cast<unsigned long long>(episodes),
                          static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(seed))},
      {"times", times},
      {"reward", IntervalText(reward, "")},
      {"best speedup",
       IntervalText(best_speedup, "x") + (std::isnan(best_speedup.low)
                                              ? "  (geometric mean over episodes; intervals need two a problem)"
                                              : "  (geometric mean over episodes; 95% intervals)")},
      {"fast_p", fast},
      {"rounds", "correct " + rate("kernel/correct_rate") + "  failed " + rate("kernel/failed_rate") +
                     "  not applicable " + rate("coder/not_applicable_rate") + "  unclear " +
                     rate("coder/unclear_rate") + "  coder errors " + rate("coder/error_rate")},
      {"suggestions",
       "favourite " + rate("policy/favourite_share") +
           Format("  distinct %.0f",
                  metrics.contains("policy/distinct_suggestions") ? metrics.at("policy/distinct_suggestions") : 0.0) +
           (token_entropy > 0 ? Format("  entropy %.3f nats a token", token_entropy) : "")}};
  const std::string reused = ReusedText(coder);
  if (const auto cost = metrics.find("coder/cost"); cost != metrics.end() && cost->second > 0) {
    lines.emplace_back("coder", FormatDollars(cost->second) + Format(", %.0f tokens", metrics.at("coder/tokens")) +
                                    (reused.empty() ? "" : "; " + reused));
  } else if (!reused.empty()) {
    lines.emplace_back("coder", reused);
  }
  console.Header("policy: " + policy, lines);
  std::vector<std::vector<std::string>> rows;
  for (const ProblemFigures& figures : problems) {
    std::string sample = figures.samples.empty() ? "-" : figures.samples.front().substr(0, 40);
    for (char& c : sample) c = c == '\n' ? ' ' : c;
    if (figures.episodes == 0) {  // all were dropped: there is no figure
      rows.push_back({figures.problem, "-", "-", "-", "-", "-"});
      continue;
    }
    rows.push_back({figures.problem, IntervalText(figures.reward, ""), IntervalText(figures.best_speedup, "x"),
                    Format("%.0f%%", 100 * figures.correct_rate),
                    figures.favourite.substr(0, 32) + Format(" %.0f%%", 100 * figures.favourite_share), sample});
  }
  console.Table("", {"problem", "reward", "best speedup", "correct", "favourite", "a suggestion"}, rows);
}

}  // namespace kgrpo
