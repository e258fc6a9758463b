// The metrics that plugins declared: kgrpo_host_interface.declare_metric. Filled by base/services.cc;
// read wherever metrics are combined (HostServices::TakeMetrics) or shown (metrics.h).
#ifndef KGRPO_SUPPORT_METRIC_REGISTRY_H
#define KGRPO_SUPPORT_METRIC_REGISTRY_H

#include <kgrpo/host.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace kgrpo {

// kgrpo_metric_declaration says what each member means.
struct DeclaredMetric {
  kgrpo_metric_kind kind = KGRPO_METRIC_NUMBER;
  std::string name, label, unit, group;
  kgrpo_metric_direction direction = KGRPO_METRIC_NEUTRAL;
  kgrpo_metric_combination combination = KGRPO_METRIC_MEAN;
  size_t order = 0;  // of declaration, from 0

  bool IsFamily() const { return name.ends_with('/') || name.ends_with('.'); }
};

class MetricRegistry {
 public:
  // Throws kgrpo::Error for an empty name, or for enumerators that kgrpo/host.h does not define. Declaring a name again
  // replaces the declaration and keeps its place. [any thread]
  void Declare(const kgrpo_metric_declaration& declaration);

  // Returns the declaration of a metric: of its whole name, else of the family with the longest matching prefix; null
  // if it is undeclared. "NAME of KERNEL" is found as NAME. The pointer stays valid as long as the registry. [any
  // thread]
  const DeclaredMetric* Find(std::string_view name) const;

  // Hands each declaration to `use`, in order, as it was declared. [any thread]
  void ForEach(const std::function<void(const kgrpo_metric_declaration&)>& use) const;

 private:
  mutable std::mutex mutex_;
  std::deque<DeclaredMetric> declared_;  // in order
  std::map<std::string, DeclaredMetric*, std::less<>> by_name_;
};

}  // namespace kgrpo
#endif
