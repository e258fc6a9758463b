// Implementation of kgrpo/host.h, the host's services for plugins: one HostServices a run or command, one kgrpo_host an
// instance.
//
// Log lines go to spdlog's default logger under the instance's name; metrics gather until TakeMetrics; the stop flag
// and the deadline are base/cancel.h's; device locks are shared by all instances; random numbers are base/keyed.h's
// with the instance's name as the stream.
#ifndef KGRPO_BASE_SERVICES_H
#define KGRPO_BASE_SERVICES_H

#include <kgrpo/draft/collective.h>
#include <kgrpo/host.h>

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kgrpo/support/metric_registry.h>
#include "base/device_locks.h"
#include "base/directories.h"
#include "base/plugin_calls.h"

namespace kgrpo {

struct HostOptions {
  uint64_t seed = 0;
  std::filesystem::path
      artifact_root;                 // parent of the instances' folders; empty: a temporary folder, removed at the end
  std::filesystem::path cache_root;  // parent of the instances' cache folders; empty: CacheRoot()
};

class HostServices {
 public:
  explicit HostServices(HostOptions options);
  ~HostServices();
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  // Returns the services of a new instance, valid as long as this object. `name` labels log lines and names the random
  // stream and the folders: it must be unique within a run and the same when the run is resumed. `cache_name` names the
  // cache folder, for instances of one plugin that share it. `plugin_directory`: what the plugin is told. [main thread]
  const kgrpo_host* ForInstance(const std::string& name) { return ForInstance(name, name); }
  const kgrpo_host* ForInstance(const std::string& name, const std::string& cache_name,
                                const std::filesystem::path& plugin_directory = {});

  // Instances made after this call are offered the collective interface of the other ranks; `context` is its functions'
  // first argument. Both outlive the instances. [main thread]
  void SetCollective(const kgrpo_collective_interface* collective, void* context);

  // Returns each metric's points since the last call, combined as declared (undeclared: their mean), sorted by name.
  // The result does not depend on the order in which points arrived. [any thread]
  std::map<std::string, double> TakeMetrics();

  // Adds a point, as plugins do. [any thread]
  void AddMetric(std::string_view name, double value);

  // Declares a metric, as plugins do. [any thread]
  void DeclareMetric(const kgrpo_metric_declaration& declaration) { registry_.Declare(declaration); }

  const MetricRegistry& metrics() const { return registry_; }
  DeviceLocks& device_locks() { return device_locks_; }
  const HostOptions& options() const { return options_; }

 private:
  struct InstanceServices;

  // Root of the artifact folders; the first call makes it if it is temporary. [any thread]
  std::filesystem::path ArtifactRoot();

  HostOptions options_;
  std::once_flag temporary_made_;
  std::optional<TemporaryDirectory> temporary_;
  const kgrpo_collective_interface* collective_ = nullptr;  // the transport's; null in a run of one process
  void* collective_context_ = nullptr;
  kgrpo_collective_interface offered_{};   // the collective as plugins see it
  const PluginName* transport_ = nullptr;  // the collective's plugin
  DeviceLocks device_locks_;
  MetricRegistry registry_;
  std::mutex metrics_mutex_;
  std::map<std::string, std::vector<double>, std::less<>> metrics_;
  std::list<std::unique_ptr<InstanceServices>> instances_;
};

}  // namespace kgrpo
#endif
