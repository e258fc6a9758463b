#include <kgrpo/support/metric_registry.h>

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

namespace kgrpo {

void MetricRegistry::Declare(const kgrpo_metric_declaration& declaration) {
  DeclaredMetric metric;
  metric.name = Copy(declaration.name);
  const auto refuse = [&](const std::string& why) {
    throw Error(KGRPO_ERROR_INVALID, "the declaration of metric \"" + metric.name + "\": " + why);
  };
  if (declaration.struct_size < KGRPO_METRIC_DECLARATION_SIZE_1) refuse("struct_size is too small");
  if (metric.name.empty()) refuse("it has no name");
  if (declaration.kind > KGRPO_METRIC_RUN_TIME) refuse("unknown kind " + std::to_string(declaration.kind));
  if (declaration.direction > KGRPO_METRIC_LOWER_IS_BETTER)
    refuse("unknown direction " + std::to_string(declaration.direction));
  if (declaration.combination > KGRPO_METRIC_MAXIMUM)
    refuse("unknown combination " + std::to_string(declaration.combination));
  metric.label = Copy(declaration.label);
  metric.unit = Copy(declaration.unit);
  metric.group = Copy(declaration.group);
  metric.kind = static_cast<kgrpo_metric_kind>(declaration.kind);
  metric.direction = static_cast<kgrpo_metric_direction>(declaration.direction);
  metric.combination = static_cast<kgrpo_metric_combination>(declaration.combination);

  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(metric.name);
  if (known != by_name_.end()) {
    metric.order = known->second->order;
    *known->second = std::move(metric);
    return;
  }
  metric.order = declared_.size();
  DeclaredMetric& kept = declared_.emplace_back(std::move(metric));
  by_name_.emplace(kept.name, &kept);
}

const DeclaredMetric* MetricRegistry::Find(std::string_view name) const {
  name = name.substr(0, name.find(" of "));
  const std::lock_guard lock(mutex_);
  if (const auto exact = by_name_.find(name); exact != by_name_.end()) return exact->second;
  for (size_t end = name.size(); end > 0; --end) {
    if (name[end - 1] != '/' && name[end - 1] != '.') continue;
    const auto family = by_name_.find(name.substr(0, end));
    if (family != by_name_.end() && end < name.size()) return family->second;
  }
  return nullptr;
}

void MetricRegistry::ForEach(const std::function<void(const kgrpo_metric_declaration&)>& use) const {
  std::deque<DeclaredMetric> declared;  // a copy, so that `use` is not called under the lock
  {
    const std::lock_guard lock(mutex_);
    declared = declared_;
  }
  for (const DeclaredMetric& metric : declared) {
    use({sizeof(kgrpo_metric_declaration), static_cast<uint32_t>(metric.kind), Str(metric.name), Str(metric.label),
         Str(metric.unit), Str(metric.group), static_cast<uint32_t>(metric.direction),
         static_cast<uint32_t>(metric.combination)});
  }
}

}  // namespace kgrpo
