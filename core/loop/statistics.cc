#include "loop/statistics.h"

#include "base/keyed.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kgrpo {

double Mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double StandardDeviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double GeometricMean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

Interval Bootstrap(const std::vector<std::vector<double>>& groups, uint64_t seed, std::string_view stream,
                   const std::function<double(std::span<const double>)>& statistic, size_t resamples, double error) {
  std::vector<double> all;
  for (const std::vector<double>& group : groups) all.insert(all.end(), group.begin(), group.end());
  Interval interval;
  interval.value = interval.low = interval.high = statistic(all);
  if (all.empty() || resamples == 0) return interval;
  if (std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.size() == 1; })) {
    interval.low = interval.high = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  KeyedStream random(seed, stream, {});
  std::vector<double> results(resamples);
  std::vector<double> drawn(all.size());
  for (double& result : results) {
    size_t i = 0;
    for (const std::vector<double>& group : groups) {
      for (size_t k = 0; k < group.size(); ++k) drawn[i++] = group[random.Below(group.size())];
    }
    result = statistic(drawn);
  }
  std::sort(results.begin(), results.end());
  const auto at = [&](double share) {
    return results[static_cast<size_t>(share * static_cast<double>(resamples - 1))];
  };
  interval.low = at(error / 2);
  interval.high = at(1 - error / 2);
  return interval;
}

std::string Tally::favourite() const {
  std::string best;
  size_t most = 0;
  for (const auto& [label, count] : counts_) {
    if (count > most) {
      most = count;
      best = label;
    }
  }
  return best;
}

double Tally::favourite_share() const {
  size_t most = 0;
  for (const auto& [label, count] : counts_) most = std::max(most, count);
  return total_ == 0 ? 0 : static_cast<double>(most) / static_cast<double>(total_);
}

double Tally::entropy() const {
  double entropy = 0;
  for (const auto& [label, count] : counts_) {
    const double share = static_cast<double>(count) / static_cast<double>(total_);
    entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace kgrpo
