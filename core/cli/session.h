// The beginning of most commands: find plugins, read a pipeline, make instances. Used by the commands in this folder.
#ifndef KGRPO_CLI_SESSION_H
#define KGRPO_CLI_SESSION_H

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <kgrpo/sdk/error.h>

#include "base/services.h"
#include "cli/command.h"
#include "config/load.h"
#include "config/pipeline.h"
#include "loop/parts.h"
#include "plugin/loader.h"

namespace kgrpo::cli {

// A part that could not be made: what its plugin says, a line each mistake, each behind the part's name, and
// the place of an option that a file or --set gives: "mine.yaml:4:9: coder (my_coder): options.seed: expected an
// integer". A plugin with several mistakes in its options begins a line with "options." for each; other lines belong to
// the one before them.
class PartError : public Error {
 public:
  // `places`: PipelineConfig::option_places.
  PartError(const Error& error, const std::string& part, const std::string& plugin,
            const std::map<std::string, std::string>& places);
  PartError(kgrpo_error_code code, std::vector<std::string> mistakes);
  const std::vector<std::string>& mistakes() const { return mistakes_; }

 private:
  std::vector<std::string> mistakes_;
};

class Session {
 public:
  explicit Session(const Globals& globals);

  PluginLoader& loader() { return loader_; }

  // LoadPipeline with the plugins that the loader finds.
  PipelineConfig Load(const LoadRequest& request);

  // The services for a run's instances; once, before parts are made. `artifact_root` as in HostOptions.
  HostServices& StartServices(uint64_t seed, const std::filesystem::path& artifact_root = {});

  HostServices& services() { return *services_; }

  // Metric declarations of all instances.
  const MetricRegistry& metrics() const { return services_->metrics(); }

  // Instances of the roles; throws PartError where a plugin makes none. With `identify`, the libraries' digests are
  // taken for the run's records.
  PipelineParts MakeParts(const PipelineConfig& config, const std::set<Role>& roles, bool identify = false);

  // The pipeline's `screen`, which it has. To be made before the parts: the evaluator's words for a metric that both
  // declare are those that are kept.
  std::unique_ptr<Evaluator> MakeScreen(const PipelineConfig& config);

  // One plugin chosen by hand, with options from --set; messages speak of "options".
  std::unique_ptr<Policy> MakePolicy(const std::string& plugin, const nlohmann::ordered_json& options);
  std::unique_ptr<Evaluator> MakeEvaluator(const std::string& plugin, const nlohmann::ordered_json& options);

 private:
  nlohmann::json Checked(Role role, const std::string& plugin, const nlohmann::ordered_json& options);

  PluginLoader loader_;
  std::unique_ptr<HostServices> services_;
};

}  // namespace kgrpo::cli
#endif
