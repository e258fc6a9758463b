// The service's counters in Prometheus' format. Filled by service.cc.
#ifndef KGRPO_SERVE_SERVICE_METRICS_H
#define KGRPO_SERVE_SERVICE_METRICS_H

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::serve {

// [any thread]
class ServiceMetrics {
 public:
  // {{"device", "default"}, {"verdict", "correct"}}
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // `name` without the prefix "kgrpo_": a row of kFamilies in service_metrics.cc. `by` 0: the counter is there.
  void Count(const std::string& name, const Labels& labels = {}, uint64_t by = 1);
  // Adds a value to a histogram of seconds. Declare: the histogram is there.
  void Observe(const std::string& name, const Labels& labels, double seconds);
  void Declare(const std::string& name, const Labels& labels);

  // Returns the text format (version 0.0.4), including `current` values. Every family has its help and type, whether it
  // has values or not.
  std::string Text(const std::map<std::string, double>& current) const;

 private:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   60};
  struct Histogram {
    std::array<uint64_t, kBounds.size() + 1> counts{};
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, uint64_t>> counters_;  // by name, then by labels as text
  std::map<std::string, std::map<std::string, Histogram>> histograms_;
};

}  // namespace kgrpo::serve
#endif
