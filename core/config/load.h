// Reads and checks a pipeline file: every mistake of the file, of the files it extends, of the settings on the command
// line and of the plugins' options is reported at once. Called by the commands (cli/) before anything runs.
#ifndef KGRPO_CONFIG_LOAD_H
#define KGRPO_CONFIG_LOAD_H

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/role.h"
#include "config/diagnostic.h"
#include "config/pipeline.h"
#include "config/schema.h"

namespace kgrpo {

// The options schema of a plugin that plays a role. Throws kgrpo::Error with the reason when there is no such plugin,
// or it does not offer the role's interface.
using SchemaLookup = std::function<Schema(Role role, const std::string& plugin)>;

struct LoadRequest {
  std::string file;                   // empty: no file. Then only the evaluator is used, and `settings` are its options
  std::vector<std::string> settings;  // each --set
  std::string evaluator;  // --evaluator: the plugin to use instead of the file's; empty: that, or the default one
  // For a run of an experiment: how many of the last settings are its own, and its name for people ("short, seed 2").
  size_t run_settings = 0;
  std::string run_name;
  // The parts that will be used: they must be present and their options valid. Others may be absent; where they are
  // written, only their shape is checked.
  std::set<Role> roles = {kRoles.begin(), kRoles.end()};
  bool needs_train_problems = true;
  bool needs_heldout_problems = false;
  bool of_experiment = false;    // one run of a file that describes several: its keys for that are left out
  bool ignore_problems = false;  // `problems` is not looked at: its patterns stay as they are written
  bool resumes = false;     // the file is of a begun run: `settings` may change what PipelineConfig::may_change names
  uint64_t steps_done = 0;  // steps of that run: options of stages that ended by then stay
};

// Throws ConfigError with every mistake.
PipelineConfig LoadPipeline(const LoadRequest& request, const SchemaLookup& lookup);

// Checks the options of one plugin, as given by hand (`--set`, a command's own options): throws ConfigError, else
// returns them with defaults filled in. `path` begins the paths in messages: "evaluator.options".
nlohmann::json CheckOptions(const nlohmann::ordered_json& options, const Schema& schema, const std::string& path,
                            const std::string& source);

// {"a": {"b": 1}} of the settings {"a.b=1"}. Throws ConfigError.
nlohmann::ordered_json OptionsFromSettings(const std::vector<std::string>& settings);

}  // namespace kgrpo
#endif
