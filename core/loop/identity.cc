#include "loop/identity.h"

#include "store/files.h"
#include "store/json.h"

#include <optional>

namespace kgrpo {

bool WriteIdentity(const PipelineConfig& config, const PipelineParts& parts, uint64_t steps,
                   const std::vector<std::string>& overrides, const RunFolder& folder, RunDatabase& database) {
  nlohmann::ordered_json plugins = nlohmann::ordered_json::array();
  for (const PluginIdentity& plugin : parts.identities) {
    plugins.push_back({{"role", plugin.role},
                       {"name", plugin.name},
                       {"version", plugin.version},
                       {"path", plugin.path},
                       {"sha256", plugin.sha256}});
  }
  const std::string text = DumpJson(plugins);
  const std::optional<std::string> before = database.Get("plugins");
  database.Set("plugins", text);
  database.Set("resolved_yaml", config.resolved_yaml);
  database.Set("evaluator", parts.evaluator->Describe());
  const nlohmann::ordered_json identity = {{"name", config.name},
                                           {"seed", config.seed},
                                           {"steps", steps},
                                           {"overrides", overrides},
                                           {"evaluator", parts.evaluator->Describe()},
                                           {"plugins", plugins}};
  WriteFileAtomically(folder.run_json(), DumpJson(identity, 2) + "\n");
  return !before || *before == text;
}

}  // namespace kgrpo
