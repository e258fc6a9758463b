#include "compare/compare.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <kgrpo/support/number_text.h>  // Format
#include "base/keyed.h"
#include "loop/statistics.h"

namespace kgrpo {
namespace {

constexpr double kError = 0.05;  // level of all statements about one measure together

constexpr size_t kResamples = 4000;

double VarianceOf(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

double StudentQuantile(double degrees, double error) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), error / 2));
}

struct Estimate {
  double value, low, high;
};

// Student's t interval of the mean of paired differences; exact for any number of normally distributed differences. A
// percentile bootstrap over three seeds would exclude a true zero in a third of all cases (notes/).
Estimate PairedInterval(const std::vector<double>& differences, double error) {
  const double n = static_cast<double>(differences.size());
  const double mean = Mean(differences);
  const double half = StudentQuantile(n - 1, error) * std::sqrt(VarianceOf(differences) / n);
  return {mean, mean - half, mean + half};
}

// Welch's t interval (1947) of the difference of two means.
Estimate WelchInterval(const std::vector<double>& first, const std::vector<double>& other, double error) {
  const double a = VarianceOf(first) / static_cast<double>(first.size());
  const double b = VarianceOf(other) / static_cast<double>(other.size());
  const double difference = Mean(other) - Mean(first);
  if (a + b == 0) return {difference, difference, difference};
  const double degrees =
      (a + b) * (a + b) /
      (a * a / static_cast<double>(first.size() - 1) + b * b / static_cast<double>(other.size() - 1));
  const double half = StudentQuantile(degrees, error) * std::sqrt(a + b);
  return {difference, difference - half, difference + half};
}

// Back from logarithms for ratios, and within what the measure can differ by.
Estimate InRange(Estimate estimate, const Measure& measure) {
  for (double* value : {&estimate.value, &estimate.low, &estimate.high}) {
    if (measure.is_ratio) *value = std::exp(*value);
    if (measure.is_share) *value = std::clamp(*value, -1.0, 1.0);
  }
  return estimate;
}

// The percentile bootstrap over problems of their mean difference.
Estimate BootstrapInterval(const std::vector<double>& differences, double error) {
  std::vector<double> means;
  for (size_t sample = 0; sample < kResamples; ++sample) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i) {
      sum += differences[Keyed(0, "compare/bootstrap", {sample}, i) % differences.size()];
    }
    means.push_back(sum / static_cast<double>(differences.size()));
  }
  std::ranges::sort(means);
  const auto at = [&](double share) {
    return means[static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(kResamples - 1))];
  };
  return {Mean(differences), at(error / 2), at(1 - error / 2)};
}

std::optional<double> ValueOf(const RunMeasures& run, const Measure& measure) {
  const auto found = run.values.find(measure.name);
  if (found == run.values.end() || (measure.is_ratio && found->second <= 0)) return std::nullopt;
  return measure.is_ratio ? std::log(found->second) : found->second;
}

const RunMeasures* OfSeed(const std::vector<RunMeasures>& runs, uint64_t seed) {
  const auto found = std::ranges::find(runs, seed, &RunMeasures::seed);
  return found == runs.end() ? nullptr : &*found;
}

// Averages the measures over runs of one seed.
RunMeasures MeanOf(const std::vector<const RunMeasures*>& repeats, const std::vector<Measure>& measures) {
  RunMeasures mean;
  mean.seed = repeats.front()->seed;
  for (const Measure& measure : measures) {
    std::vector<double> values;
    std::map<std::string, std::vector<double>> by_problem;
    for (const RunMeasures* run : repeats) {
      if (const auto found = run->values.find(measure.name); found != run->values.end())
        values.push_back(found->second);
      const auto problems = run->by_problem.find(measure.name);
      if (problems == run->by_problem.end()) continue;
      for (const auto& [problem, value] : problems->second) by_problem[problem].push_back(value);
    }
    const auto average = [&](const std::vector<double>& of) { return measure.is_ratio ? GeometricMean(of) : Mean(of); };
    if (!values.empty()) mean.values[measure.name] = average(values);
    for (const auto& [problem, of] : by_problem) mean.by_problem[measure.name][problem] = average(of);
  }
  return mean;
}

std::vector<double> ByProblem(const RunMeasures& first, const RunMeasures& other, const Measure& measure) {
  std::vector<double> differences;
  const auto a = first.by_problem.find(measure.name), b = other.by_problem.find(measure.name);
  if (a == first.by_problem.end() || b == other.by_problem.end()) return differences;
  for (const auto& [problem, value] : a->second) {
    const auto found = b->second.find(problem);
    if (found == b->second.end()) continue;
    differences.push_back(measure.is_ratio ? std::log(found->second / value) : found->second - value);
  }
  return differences;
}

// The episode's term of a mean over held-out episodes (a logarithm for ratios); nothing for other measures.
std::optional<double> ValueOf(const Episode& episode, const Measure& measure) {
  if (measure.mean.over != EpisodeMean::Over::kHeldout) return std::nullopt;
  const double value = measure.mean.value(episode);
  return measure.is_ratio ? std::log(value) : value;
}

// Differences of the episodes that both played to their end with the same inputs and random numbers, by problem.
std::map<std::string, std::vector<double>> ByEpisode(const RunMeasures& first, const RunMeasures& other,
                                                     const Measure& measure) {
  using Key = std::tuple<std::string, uint64_t, uint64_t>;
  std::map<Key, double> values;
  std::map<std::string, std::vector<double>> differences;
  for (const Episode& episode : first.episodes) {
    const auto value = ValueOf(episode, measure);
    if (value && episode.complete) values[{episode.problem_name, episode.step, episode.number}] = *value;
  }
  for (const Episode& episode : other.episodes) {
    const auto pair = values.find({episode.problem_name, episode.step, episode.number});
    if (pair != values.end() && episode.complete)
      differences[episode.problem_name].push_back(*ValueOf(episode, measure) - pair->second);
  }
  return differences;
}

// `a` and `b` have one entry a seed.
std::optional<Comparison> CompareOne(const std::vector<RunMeasures>& a, const std::vector<RunMeasures>& b,
                                     const Measure& measure, bool paired, double error) {
  std::vector<double> first, second, differences;
  const RunMeasures *one = nullptr, *its_pair = nullptr;
  for (const RunMeasures& run : a) {
    if (const auto value = ValueOf(run, measure)) first.push_back(*value);
    const RunMeasures* pair = OfSeed(b, run.seed);
    if (pair == nullptr || !ValueOf(run, measure) || !ValueOf(*pair, measure)) continue;
    differences.push_back(*ValueOf(*pair, measure) - *ValueOf(run, measure));
    one = &run;
    its_pair = pair;
  }
  for (const RunMeasures& run : b) {
    if (const auto value = ValueOf(run, measure)) second.push_back(*value);
  }
  if (first.empty() || second.empty()) return std::nullopt;
  Comparison result;
  result.measure = &measure;
  result.paired = paired;
  const double plain = Mean(second) - Mean(first);
  Estimate estimate = {plain, plain, plain};
  if (paired && differences.size() >= 2) {
    estimate = PairedInterval(differences, error);
    result.basis = Basis::kPairedSeeds;
    result.seeds = differences.size();
  } else if (!paired && first.size() >= 2 && second.size() >= 2) {
    estimate = WelchInterval(first, second, error);
    result.basis = Basis::kSeeds;
    result.seeds = std::min(first.size(), second.size());
  } else if (const auto episodes =
                 one == nullptr ? std::map<std::string, std::vector<double>>() : ByEpisode(*one, *its_pair, measure);
             !episodes.empty()) {
    std::vector<std::vector<double>> groups;
    for (const auto& [problem, values] : episodes) groups.push_back(values), result.episodes += values.size();
    const Interval interval = Bootstrap(
        groups, one->seed, "policies", [](std::span<const double> values) { return Mean(values); }, kResamples, error);
    estimate = {interval.value, interval.low, interval.high};
    result.basis = Basis::kEpisodes;
    result.seeds = 1;
    if (std::isnan(interval.low)) estimate.low = estimate.high = estimate.value, result.basis = Basis::kNone;
  } else if (one != nullptr) {
    const std::vector<double> by_problem = ByProblem(*one, *its_pair, measure);
    result.common_problems = by_problem.size();
    if (by_problem.size() >= 5) {
      estimate = BootstrapInterval(by_problem, error);
      result.basis = Basis::kProblems;
      result.seeds = 1;
    }
  }
  estimate = InRange(estimate, measure);
  result.effect = estimate.value;
  result.low = estimate.low;
  result.high = estimate.high;
  return result;
}

// A value of a key that differs, against the key's value in the first group: pairs of groups that differ in it alone.
struct KeyValue {
  std::string key, first, value;
  std::vector<std::pair<size_t, size_t>> pairs;
};

std::vector<KeyValue> KeyValuesOf(const std::vector<RunGroup>& groups) {
  const auto differences = Differences(groups);
  std::vector<KeyValue> found;
  for (const auto& [key, values] : differences) {
    std::vector<std::string> seen = {values.front()};
    for (const std::string& value : values) {
      if (std::ranges::find(seen, value) != seen.end()) continue;
      seen.push_back(value);
      KeyValue one = {key, values.front(), value, {}};
      for (size_t a = 0; a < groups.size(); ++a) {
        for (size_t b = 0; b < groups.size(); ++b) {
          const bool alone = std::ranges::all_of(differences, [&, &key = key](const auto& other) {
            return other.first == key || other.second[a] == other.second[b];
          });
          if (alone && values[a] == values.front() && values[b] == value) one.pairs.emplace_back(a, b);
        }
      }
      found.push_back(std::move(one));
    }
  }
  return found;
}

}  // namespace

std::vector<RunGroup> GroupRuns(std::vector<RunMeasures> runs) {
  std::vector<RunGroup> groups;
  for (RunMeasures& run : runs) {
    const auto found = std::ranges::find_if(groups, [&](const RunGroup& group) {
      const RunMeasures& first = group.runs.front();
      const bool unknown = first.inputs.empty() || run.inputs.empty();
      return first.variant == run.variant && first.configuration == run.configuration &&
             (unknown || first.inputs == run.inputs);
    });
    if (found != groups.end()) {
      found->runs.push_back(std::move(run));
    } else {
      const std::string label = run.variant.empty() ? run.folder.lexically_normal().string() : run.variant;
      groups.push_back({label, {}});
      groups.back().runs.push_back(std::move(run));
    }
  }
  return groups;
}

std::map<std::string, std::vector<std::string>> Differences(const std::vector<RunGroup>& groups) {
  std::set<std::string> keys;
  std::vector<std::map<std::string, std::string>> known;  // of each group
  for (const RunGroup& group : groups) {
    known.push_back(group.runs.front().configuration);
    known.back().insert(group.runs.front().inputs.begin(), group.runs.front().inputs.end());
    for (const auto& [key, value] : known.back()) keys.insert(key);
  }
  std::map<std::string, std::vector<std::string>> differences;
  for (const std::string& key : keys) {
    std::vector<std::string> values;
    bool unknown = false;  // an older record
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto found = known[i].find(key);
      values.push_back(found == known[i].end() ? "-" : found->second);
      unknown = unknown || (groups[i].runs.front().inputs.empty() && (key.ends_with(kContent) || key == kDescription));
    }
    if (!unknown && std::ranges::any_of(values, [&](const std::string& value) { return value != values.front(); })) {
      differences[key] = std::move(values);
    }
  }
  return differences;
}

std::vector<RunMeasures> MeansBySeed(const RunGroup& group, const std::vector<Measure>& measures) {
  std::map<uint64_t, std::vector<const RunMeasures*>> repeats;
  for (const RunMeasures& run : group.runs) repeats[run.seed].push_back(&run);
  std::vector<RunMeasures> seeds;
  seeds.reserve(repeats.size());
  for (const auto& [seed, runs] : repeats) seeds.push_back(runs.size() == 1 ? *runs.front() : MeanOf(runs, measures));
  return seeds;
}

size_t CountSeeds(const RunGroup& group) {
  std::set<uint64_t> seeds;
  for (const RunMeasures& run : group.runs) seeds.insert(run.seed);
  return seeds.size();
}

std::string SeedsText(const RunGroup& group) {
  if (group.runs.size() < 2) return "";
  const size_t seeds = CountSeeds(group);
  std::string text = std::to_string(seeds) + (seeds == 1 ? " seed" : " seeds");
  if (seeds != group.runs.size()) text += ", " + std::to_string(group.runs.size()) + " runs";
  return text;
}

bool Comparison::differs() const {
  const double none = measure->is_ratio ? 1 : 0;
  return basis != Basis::kNone && (low > none || high < none);
}

bool ArePaired(const RunGroup& a, const RunGroup& b) {
  bool any = false;
  for (const RunMeasures& run : a.runs) {
    const RunMeasures* pair = OfSeed(b.runs, run.seed);
    if (pair == nullptr) continue;
    any = true;
    const size_t common = std::min(run.drawn.size(), pair->drawn.size());
    if (!std::equal(run.drawn.begin(), run.drawn.begin() + static_cast<ptrdiff_t>(common), pair->drawn.begin()))
      return false;
  }
  return any;
}

bool ShareASeed(const RunGroup& a, const RunGroup& b) {
  return std::ranges::any_of(a.runs, [&b](const RunMeasures& run) { return OfSeed(b.runs, run.seed) != nullptr; });
}

bool SameReward(const std::vector<RunGroup>& groups) {
  for (const RunGroup& group : groups) {
    if (std::ranges::any_of(group.runs, &RunMeasures::changed_its_reward)) return false;
  }
  const auto differences = Differences(groups);
  return std::ranges::none_of(differences, [](const auto& entry) { return entry.first.starts_with("reward."); });
}

std::vector<Comparison> Compare(const std::vector<RunGroup>& groups, const std::vector<Measure>& measures) {
  std::vector<Comparison> comparisons;
  if (groups.size() < 2) return comparisons;
  const double error = kError / static_cast<double>(groups.size() - 1);
  const bool same_reward = SameReward(groups);
  const std::vector<RunMeasures> first = MeansBySeed(groups.front(), measures);
  for (size_t other = 1; other < groups.size(); ++other) {
    const bool paired = ArePaired(groups.front(), groups[other]);
    const std::vector<RunMeasures> seeds = MeansBySeed(groups[other], measures);
    for (const Measure& measure : measures) {
      if (measure.own_scale && !same_reward) continue;
      auto comparison = CompareOne(first, seeds, measure, paired, error);
      if (!comparison) continue;
      comparison->other = other;
      comparisons.push_back(*comparison);
    }
  }
  return comparisons;
}

std::string InWords(const Comparison& comparison, const std::vector<RunGroup>& groups) {
  const std::string &first = groups.front().label, &other = groups[comparison.other].label;
  const bool ratio = comparison.measure->is_ratio;
  const std::string effect = comparison.measure->label + ": " + other + " vs " + first + " " +
                             Format(ratio ? "x%.2f" : "%+.3g", comparison.effect);
  if (comparison.basis == Basis::kNone) {
    if (comparison.episodes > 0) return effect + "; no interval: it takes two episodes of each problem";
    return effect + "; no interval: it takes two " + (comparison.paired ? "common seeds" : "seeds of each") +
           (comparison.common_problems == 0
                ? ""
                : ", or five problems that both measured (here " + std::to_string(comparison.common_problems) + ")");
  }
  const char* format = ratio ? "%.2f" : "%.3g";
  const std::string interval = " [" + Format(format, comparison.low) + ", " + Format(format, comparison.high) + "], ";
  const bool above = comparison.effect > (ratio ? 1 : 0);
  const std::string &better = above ? other : first, &worse = above ? first : other;
  const std::string verdict = comparison.differs() ? better + " beats " + worse : "no difference seen";
  if (comparison.basis == Basis::kEpisodes)
    return effect + interval + "over " + std::to_string(comparison.episodes) + " pairs of episodes: " + verdict;
  if (comparison.basis == Basis::kProblems) {  // says nothing of other seeds, so nothing of the configurations
    return effect + interval + "one seed, over " + std::to_string(comparison.common_problems) +
           " problems: " + (comparison.differs() ? better + " is better on them" : "no difference seen");
  }
  return effect + interval + (comparison.basis == Basis::kPairedSeeds ? "paired over " : "not paired, ") +
         std::to_string(comparison.seeds) + " seeds: " + verdict;
}

std::vector<std::string> WordsByKey(const std::vector<RunGroup>& groups, const std::vector<Comparison>& comparisons) {
  const std::vector<KeyValue> values = KeyValuesOf(groups);
  const bool several_keys = std::ranges::any_of(values, [&](const KeyValue& one) { return one.key != values[0].key; });
  if (!several_keys || std::ranges::any_of(values, [](const KeyValue& one) { return one.pairs.size() < 2; })) return {};
  std::vector<const Measure*> measures;
  for (const Comparison& comparison : comparisons) {
    if (comparison.measure->is_outcome && std::ranges::find(measures, comparison.measure) == measures.end())
      measures.push_back(comparison.measure);
  }
  std::vector<std::string> lines;
  for (const Measure* measure : measures) {
    std::vector<std::vector<RunMeasures>> seeds;
    for (const RunGroup& group : groups) seeds.push_back(MeansBySeed(group, {*measure}));
    std::string key;
    for (const KeyValue& one : values) {
      std::vector<double> differences;
      for (const auto& [a, b] : one.pairs) {
        for (const RunMeasures& run : seeds[a]) {
          const RunMeasures* pair = OfSeed(seeds[b], run.seed);
          const auto before = ValueOf(run, *measure);
          const auto after = pair == nullptr ? std::nullopt : ValueOf(*pair, *measure);
          if (before && after) differences.push_back(*after - *before);
        }
      }
      if (differences.size() < 2) continue;
      const Estimate shown =
          InRange(PairedInterval(differences, kError / static_cast<double>(values.size())), *measure);
      const char* format = measure->is_ratio ? "x%.2f [%.2f, %.2f]" : "%+.3g [%.3g, %.3g]";
      const std::string text =
          one.value + " vs " + one.first + " " + Format(format, shown.value, shown.low, shown.high);
      if (std::exchange(key, one.key) == one.key) {
        lines.back() += "; " + text;
        continue;
      }
      lines.push_back(measure->label + " by " + one.key + " (over " + std::to_string(differences.size()) +
                      " pairs of runs alike in all else): " + text);
    }
  }
  return lines;
}

}  // namespace kgrpo
