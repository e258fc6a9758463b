#include "serve/service_metrics.h"

#include <algorithm>
#include <sstream>

namespace kgrpo::serve {
namespace {

// device="default",verdict="correct"
std::string LabelText(const ServiceMetrics::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += (text.empty() ? "" : ",") + name + "=\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    text += '"';
  }
  return text;
}

std::string Braced(const std::string& labels) {
  return labels.empty() ? "" : "{" + labels + "}";
}

}  // namespace

void ServiceMetrics::Count(const std::string& name, const Labels& labels, uint64_t by) {
  const std::lock_guard<std::mutex> lock(mutex_);
  counters_[name][LabelText(labels)] += by;
}

void ServiceMetrics::Observe(const std::string& name, const Labels& labels, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Histogram& histogram = histograms_[name][LabelText(labels)];
  ++histogram.counts[static_cast<size_t>(std::ranges::lower_bound(kBounds, seconds) - kBounds.begin())];
  histogram.sum += seconds;
}

std::string ServiceMetrics::Text(const std::vector<std::pair<std::string, double>>& gauges) const {
  std::ostringstream text;
  text.precision(17);
  for (const auto& [name, value] : gauges)
    text << "# TYPE kgrpo_" << name << " gauge\nkgrpo_" << name << " " << value << "\n";
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, by_labels] : counters_) {
    text << "# TYPE kgrpo_" << name << " counter\n";
    for (const auto& [labels, count] : by_labels) text << "kgrpo_" << name << Braced(labels) << " " << count << "\n";
  }
  for (const auto& [name, by_labels] : histograms_) {
    text << "# TYPE kgrpo_" << name << " histogram\n";
    for (const auto& [labels, histogram] : by_labels) {
      const std::string before = labels.empty() ? "" : labels + ",";
      uint64_t sum = 0;
      for (size_t i = 0; i < kBounds.size(); ++i) {
        sum += histogram.counts[i];
        std::ostringstream bound;
        bound << kBounds[i];
        text << "kgrpo_" << name << "_bucket{" << before << "le=\"" << bound.str() << "\"} " << sum << "\n";
      }
      sum += histogram.counts.back();
      text << "kgrpo_" << name << "_bucket{" << before << "le=\"+Inf\"} " << sum << "\n"
           << "kgrpo_" << name << "_sum" << Braced(labels) << " " << histogram.sum << "\n"
           << "kgrpo_" << name << "_count" << Braced(labels) << " " << sum << "\n";
    }
  }
  return text.str();
}

}  // namespace kgrpo::serve
