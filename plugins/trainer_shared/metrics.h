// metrics.h - the summaries behind metrics, and the metrics common to all trainers. Used by both trainers.
#pragma once
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/trainer.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

namespace kgrpo::trainer {

// Count, mean, extremes and spread of a stream of numbers, in one pass (Welford 1962).
class Summary {
 public:
  Summary() = default;
  // Makes the summary of values that were added elsewhere. `squares`: sum of their squared distances from the mean.
  Summary(size_t count, double mean, double squares, double min, double max)
      : count_(count), mean_(mean), squares_(squares), min_(min), max_(max) {}

  void Add(double value) {
    ++count_;
    const double distance = value - mean_;
    mean_ += distance / static_cast<double>(count_);
    squares_ += distance * (value - mean_);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  double mean() const { return mean_; }
  double squares() const { return squares_; }
  double min() const { return min_; }
  double max() const { return max_; }
  // Divides by n - 1; 0 for fewer than two values.
  double standard_deviation() const { return count_ < 2 ? 0.0 : std::sqrt(squares_ / static_cast<double>(count_ - 1)); }

 private:
  size_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
};

// Pushes a figure of the whole update.
inline void Push(const kgrpo_update_sink& sink, std::string_view name, double value) {
  sink.step(sink.context, Measured(name, value));
}

inline constexpr std::string_view kMetricGroup = "Training";

// Declares the metrics that both trainers push.
void DeclareTrainingMetrics(const Host& host);

}  // namespace kgrpo::trainer
