// PolicyReport (loop/evaluate_policy.h) for readers: as JSON, and on a terminal.
#include <kgrpo/support/number_text.h>  // FormatDollars
#include "loop/evaluate_policy.h"
#include "loop/report_text.h"

#include <cmath>

namespace kgrpo {
namespace {

std::string IntervalText(const Interval& interval, const char* unit) {
  if (std::isnan(interval.low)) return Format("%.2f%s", interval.value, unit);  // one episode a problem
  return Format("%.2f%s [%.2f, %.2f]", interval.value, unit, interval.low, interval.high);
}

}  // namespace

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
                          {"favourite_applied", figures.favourite_applied},
                          {"samples", figures.samples}});
  }
  Json rows = Json::array();
  for (const EpisodeFigures& episode : all_episodes) {
    rows.push_back({{"problem", episode.problem},
                    {"repeat", episode.repeat},
                    {"episode", episode.episode},
                    {"reward", episode.reward},
                    {"best_speedup", episode.best_speedup},
                    {"correct_rate", episode.correct_rate},
                    {"dropped", episode.dropped}});
  }
  Json best = Json::object(), repeated = Json::array(), kept = Json::object();
  for (const auto& [k, speedup] : best_of) best[std::to_string(k)] = speedup;
  for (const auto& [mean_reward, speedup] : repeats)
    repeated.push_back({{"reward", mean_reward}, {"best_speedup_geomean", speedup}});
  for (const auto& [problem, speedup] : kernels) kept[problem] = speedup;
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
          {"best_of", best},
          {"repeats", repeated},
          {"kernels", kept},
          {"token_entropy", token_entropy},
          {"coder_answers", coder.answers},
          {"coder_answers_reused", coder.reused},
          {"coder_answers_without_kernel", refusals.without_kernel()},
          {"coder_commonest_refusal", refusals.commonest()},
          {"metrics", rates},
          {"problems", by_problem},
          {"episode_rows", rows}};
}

void PolicyReport::Show(Console& console) const {
  const auto rate = [&](const char* name) {
    const auto found = metrics.find(name);
    return Format("%.0f%%", 100 * (found == metrics.end() ? 0.0 : found->second));
  };
  std::string fast;
  for (const auto& [p, share] : fast_p) fast += Format("%sfast_%g %.0f%%", fast.empty() ? "" : "  ", p, 100 * share);
  std::string best;
  for (const auto& [k, speedup] : best_of)
    best += Format("%s%llu: %.2fx", best.empty() ? "" : "  ", static_cast<unsigned long long>(k), speedup);
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
      {"best of k", best},
      {"rounds", "correct " + rate("kernel/correct_rate") + "  failed " + rate("kernel/failed_rate") +
                     "  not applicable " + rate("coder/not_applicable_rate") + "  unclear " +
                     rate("coder/unclear_rate") + "  coder errors " + rate("coder/error_rate") + "  evaluator errors " +
                     rate("evaluator/error_rate") + "  reward errors " + rate("reward/error_rate")},
      {"suggestions",
       "share of the favourite " + rate("policy/favourite_share") +
           Format("  distinct %.0f",
                  metrics.contains("policy/distinct_suggestions") ? metrics.at("policy/distinct_suggestions") : 0.0) +
           (token_entropy > 0 ? Format("  entropy %.3f nats a token", token_entropy) : "")}};
  if (refusals.without_kernel() > 0) lines.emplace_back("no kernel", refusals.Text());
  if (repeats.size() > 1) {
    std::vector<double> rewards;
    std::string each;
    for (const auto& [mean_reward, speedup] : repeats) {
      rewards.push_back(mean_reward);
      each += Format("%s%.3f", each.empty() ? "" : "  ", mean_reward);
    }
    lines.emplace_back("repeats", "reward " + each + Format("  (standard deviation %.3f)", StandardDeviation(rewards)));
  }
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
    if (figures.episodes == 0) {  // all were dropped: there is no figure
      rows.push_back({figures.problem, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    rows.push_back({figures.problem, IntervalText(figures.reward, ""), IntervalText(figures.best_speedup, "x"),
                    Format("%.0f%%", 100 * figures.correct_rate), ShownSuggestion(figures.favourite, 40),
                    Format("%.0f%%", 100 * figures.favourite_share),
                    Format("%.0f%%", 100 * figures.favourite_applied)});
  }
  console.Table("", {"problem", "reward", "best speedup", "correct", "favourite suggestion", "share", "applied"}, rows);
}

}  // namespace kgrpo
