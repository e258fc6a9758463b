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

// A part that could not be made. Each line is a mistake in its plugin's words, after the part's name and, for an option
// that a file or --set gives, its place: "mine.yaml:4:9: coder (my_coder): options.seed: expected an integer". In the
// plugin's message, a line that begins with "options." starts a mistake; other lines continue the one before them.
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

  // Makes the services for plugin instances. Call it before making parts; a second call replaces the services, and no
  // instance may use the old ones. `artifact_root` as in HostOptions.
  HostServices& StartServices(uint64_t seed, const std::filesystem::path& artifact_root = {});

  HostServices& services() { return *services_; }

  // Metric declarations of all instances.
  const MetricRegistry& metrics() const { return services_->metrics(); }

  // Makes instances of the roles; throws PartError where a plugin cannot make one. With `identify`, records the
  // libraries' digests for the run.
  PipelineParts MakeParts(const PipelineConfig& config, const std::set<Role>& roles, bool identify = false);

  // Has each trainer check the plan of its stage. `problems`: number of training problems that can be used, 0 if
  // not known. `done`: steps of a resumed run, whose finished stages are left out. Throws PartError with all that they
  // refuse.
  static void CheckPlans(const PipelineConfig& config, const PipelineParts& parts, size_t problems, uint64_t done = 0);

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
