// The beginning of most commands: find plugins, read a pipeline, make instances. Used by the commands in this folder.
#ifndef KGRPO_CLI_SESSION_H
#define KGRPO_CLI_SESSION_H

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/services.h"
#include "cli/command.h"
#include "config/findings.h"
#include "config/load.h"
#include "config/pipeline.h"
#include "plugin/loader.h"
#include "plugin/parts.h"

namespace kgrpo::cli {

class Session {
 public:
  explicit Session(const Globals& globals);

  PluginLoader& loader() { return loader_; }

  // LoadPipeline with the plugins that the loader finds.
  PipelineConfig Load(const LoadRequest& request);

  // Makes the services for plugin instances. Call it before making parts; a second call replaces the services, and no
  // instance may use the old ones. `artifact_root` as in HostOptions.
  HostServices& StartServices(uint64_t seed, const std::filesystem::path& artifact_root = {});

  HostServices& services() { return *services_; }

  // Metric declarations of all instances.
  const MetricRegistry& metrics() const { return services_->metrics(); }

  // Makes instances of the roles, the cheap ones first: their faults are found before a model is loaded. `findings`
  // receives a PartError for each plugin that cannot make one; null: the first is thrown. With `identify`, records the
  // libraries' digests for the run.
  PipelineParts MakeParts(const PipelineConfig& config, const std::set<Role>& roles, bool identify = false,
                          Findings* findings = nullptr);

  // Makes an instance of one plugin, with options from --set. Messages name them "options".
  std::unique_ptr<Policy> MakePolicy(const std::string& plugin, const nlohmann::ordered_json& options);
  std::unique_ptr<Evaluator> MakeEvaluator(const std::string& plugin, const nlohmann::ordered_json& options);

 private:
  nlohmann::json Checked(Role role, const std::string& plugin, const nlohmann::ordered_json& options);

  PluginLoader loader_;
  std::unique_ptr<HostServices> services_;
};

}  // namespace kgrpo::cli
#endif
