// Small statistics over rounds, and resampling. Used by the metrics of a step and by the evaluation of policies.
#ifndef KGRPO_LOOP_STATISTICS_H
#define KGRPO_LOOP_STATISTICS_H

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// 0 for no values.
double Mean(std::span<const double> values);
double StandardDeviation(std::span<const double> values);  // with Bessel's correction; 0 for fewer than two
double Median(std::vector<double> values);
double GeometricMean(std::span<const double> values);  // for positive values

struct Interval {
  double value = 0;
  double low = 0, high = 0;  // NaN where a group has a single value
};

// Percentile bootstrap interval of a statistic, at level 1 - `error`. Values are resampled within their group (episodes
// within their problem), so the interval covers other episodes on the same problems. There is no interval where a group
// has a single value: its spread is unknown. Draws are keyed by (seed, stream).
Interval Bootstrap(const std::vector<std::vector<double>>& groups, uint64_t seed, std::string_view stream,
                   const std::function<double(std::span<const double>)>& statistic, size_t resamples = 2000,
                   double error = 0.05);

// Counts of labels.
class Tally {
 public:
  void Add(const std::string& label) { ++counts_[label], ++total_; }
  size_t total() const { return total_; }
  size_t count(const std::string& label) const {
    const auto found = counts_.find(label);
    return found == counts_.end() ? 0 : found->second;
  }
  size_t distinct() const { return counts_.size(); }
  std::string favourite() const;  // the most frequent label; in a tie the first by name
  double favourite_share() const;
  double entropy() const;  // entropy of the shares, in nats

 private:
  std::map<std::string, size_t> counts_;
  size_t total_ = 0;
};

}  // namespace kgrpo
#endif
