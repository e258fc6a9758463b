#include "loop/compare_policies.h"

#include <cmath>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "loop/report_text.h"

namespace kgrpo {
namespace {

constexpr double kError = 0.05;  // of all statements about one figure together

// "B beats A in reward by 0.12 [0.05, 0.19]". If `first` is better, the difference is negated, or a ratio inverted.
std::string Verdict(const std::string& first, const std::string& other, const char* what, const Interval& of,
                    bool ratio) {
  const double none = ratio ? 1 : 0;
  const char* number = ratio ? "%.2fx" : "%.3g";
  const auto text = [&](double value) { return Format(number, value); };
  if (std::isnan(of.low)) {
    return std::string(what) + ": " + other + (ratio ? " at " : " against ") + first + " " + text(of.value) +
           "; no interval: it needs two episodes of a problem";
  }
  const std::string interval = " [" + text(of.low) + ", " + text(of.high) + "]";
  if (of.low <= none && of.high >= none)
    return std::string("no difference seen in ") + what + " between " + other + " and " + first + ": " +
           text(of.value) + interval;
  if (of.low > none) return other + " beats " + first + " in " + what + " by " + text(of.value) + interval;
  const auto turned = [&](double value) { return text(ratio ? 1 / value : -value); };
  return first + " beats " + other + " in " + what + " by " + turned(of.value) + " [" + turned(of.high) + ", " +
         turned(of.low) + "]";
}

}  // namespace

std::vector<PolicyDifference> ComparePolicies(const std::vector<PolicyReport>& reports) {
  std::vector<PolicyDifference> differences;
  using Key = std::tuple<std::string, uint64_t, uint64_t>;
  std::map<Key, const EpisodeFigures*> first;
  if (reports.size() < 2) return differences;
  for (const EpisodeFigures& episode : reports.front().all_episodes) {
    if (episode.dropped.empty()) first[{episode.problem, episode.repeat, episode.episode}] = &episode;
  }
  const double error = kError / static_cast<double>(reports.size() - 1);
  for (size_t other = 1; other < reports.size(); ++other) {
    std::map<std::string, std::vector<double>> rewards, logarithms;
    PolicyDifference difference;
    difference.other = other;
    for (const EpisodeFigures& episode : reports[other].all_episodes) {
      const auto pair = first.find({episode.problem, episode.repeat, episode.episode});
      if (pair == first.end() || !episode.dropped.empty()) continue;
      rewards[episode.problem].push_back(episode.reward - pair->second->reward);
      logarithms[episode.problem].push_back(std::log(episode.best_speedup / pair->second->best_speedup));
      ++difference.episodes;
    }
    if (difference.episodes == 0) continue;
    const auto interval = [&](const std::map<std::string, std::vector<double>>& by_problem) {
      std::vector<std::vector<double>> groups;
      groups.reserve(by_problem.size());
      for (const auto& [problem, values] : by_problem) groups.push_back(values);
      constexpr size_t kResamples = 4000;
      return Bootstrap(
          groups, reports.front().seed, "policies", [](std::span<const double> values) { return Mean(values); },
          kResamples, error);
    };
    difference.reward = interval(rewards);
    const Interval of_logarithms = interval(logarithms);
    difference.speedup = {std::exp(of_logarithms.value), std::exp(of_logarithms.low), std::exp(of_logarithms.high)};
    differences.push_back(difference);
  }
  return differences;
}

nlohmann::ordered_json PoliciesToJson(const std::vector<PolicyReport>& reports) {
  using Json = nlohmann::ordered_json;
  Json policies = Json::array(), differences = Json::array();
  for (const PolicyReport& report : reports) policies.push_back(report.ToJson());
  for (const PolicyDifference& one : ComparePolicies(reports)) {
    differences.push_back({{"first", reports.front().policy},
                           {"other", reports[one.other].policy},
                           {"episodes", one.episodes},
                           {"reward", IntervalJson(one.reward)},
                           {"best_speedup_ratio", IntervalJson(one.speedup)}});
  }
  return {{"policies", policies}, {"differences", differences}};
}

void ShowPolicies(Console& console, const std::vector<PolicyReport>& reports) {
  std::vector<std::vector<std::string>> rows;
  std::vector<double> rewards;
  for (const PolicyReport& report : reports) {
    rewards.push_back(report.reward.value);
    double fast_1 = 0;
    for (const auto& [p, share] : report.fast_p) fast_1 = p == 1.0 ? share : fast_1;
    const auto rate = report.metrics.find("kernel/correct_rate");
    rows.push_back({report.policy, std::to_string(report.episodes), Format("%.3f", report.reward.value),
                    Format("%.2fx", report.best_speedup.value), Format("%.0f%%", 100 * fast_1),
                    Format("%.0f%%", rate == report.metrics.end() ? 0.0 : 100 * rate->second)});
  }
  console.Table("", {"policy", "episodes", "reward", "best speedup", "fast_1", "correct"}, rows);
  if (reports.size() > 2) console.Note("reward in this order: " + Sparkline(rewards, 60));
  for (const PolicyDifference& one : ComparePolicies(reports)) {
    const std::string &first = reports.front().policy, &other = reports[one.other].policy;
    console.Note(Verdict(first, other, "reward", one.reward, false));
    console.Note(Verdict(first, other, "best speedup", one.speedup, true));
  }
  if (reports.size() > 1)
    console.Note("95% intervals over pairs of episodes on these problems" +
                 std::string(reports.size() > 2 ? ", that hold together (Bonferroni)" : ""));
}

}  // namespace kgrpo
