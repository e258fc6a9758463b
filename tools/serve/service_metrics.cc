#include "serve/service_metrics.h"

#include <algorithm>
#include <sstream>

namespace kgrpo::serve {
namespace {

struct Family {
  const char *name, *type, *help;
};
constexpr Family kFamilies[] = {{"evaluations_total", "counter", "Finished evaluations."},
                                {"evaluation_errors_total", "counter", "Evaluations that were impossible."},
                                {"evaluation_seconds", "histogram", "Time of judging one kernel."},
                                {"queue_seconds", "histogram", "Time that an evaluation waited before it was judged."},
                                {"requests_total", "counter", "Answered requests; status 499: the client left."},
                                {"requests_aborted_total", "counter", "Requests whose client left before the end."},
                                {"requests_refused_total", "counter", "Requests refused for load."},
                                {"connections_refused_total", "counter", "Connections beyond the limit."},
                                {"connections", "gauge", "Open connections."},
                                {"requests_active", "gauge", "Requests that are being answered."},
                                {"queue_waiting", "gauge", "Evaluations that wait."},
                                {"queue_limit", "gauge", "Evaluations that may wait."},
                                {"evaluations_running", "gauge", "Evaluations that run."},
                                {"workers", "gauge", "Evaluations that may run at the same time."},
                                {"draining", "gauge", "1 after a stop was requested."},
                                {"process_resident_bytes", "gauge", "Memory of the process."},
                                {"process_open_descriptors", "gauge", "Open files of the process."}};

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

std::string Braced(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

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

void ServiceMetrics::Declare(const std::string& name, const Labels& labels) {
  const std::lock_guard<std::mutex> lock(mutex_);
  histograms_[name][LabelText(labels)];
}

std::string ServiceMetrics::Text(const std::map<std::string, double>& current) const {
  std::ostringstream text;
  text.precision(17);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Family& family : kFamilies) {
    const std::string name = std::string("kgrpo_") + family.name;
    text << "# HELP " << name << " " << family.help << "\n# TYPE " << name << " " << family.type << "\n";
    if (const auto found = current.find(family.name); found != current.end())
      text << name << " " << found->second << "\n";
    if (const auto found = counters_.find(family.name); found != counters_.end()) {
      for (const auto& [labels, count] : found->second) text << name << Braced(labels) << " " << count << "\n";
    }
    const auto found = histograms_.find(family.name);
    if (found == histograms_.end()) continue;
    for (const auto& [labels, histogram] : found->second) {
      const std::string before = labels.empty() ? "" : labels + ",";
      uint64_t sum = 0;
      for (size_t i = 0; i < kBounds.size(); ++i) {
        sum += histogram.counts[i];
        std::ostringstream bound;
        bound << kBounds[i];
        text << name << "_bucket{" << before << "le=\"" << bound.str() << "\"} " << sum << "\n";
      }
      sum += histogram.counts.back();
      text << name << "_bucket{" << before << "le=\"+Inf\"} " << sum << "\n"
           << name << "_sum" << Braced(labels) << " " << histogram.sum << "\n"
           << name << "_count" << Braced(labels) << " " << sum << "\n";
    }
  }
  return text.str();
}

}  // namespace kgrpo::serve
