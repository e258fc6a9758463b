// The differences between two resolved pipelines, and which of them a resumed run may adopt. Used by
// store/run_folder.cc, to say why a new run may not use a folder, by the command resume, for its --set, and by
// loop/identity.cc, to record what that replaced.
#ifndef KGRPO_CONFIG_CHANGES_H
#define KGRPO_CONFIG_CHANGES_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {

// A key that has another value.
struct Change {
  std::string path;                             // as --set takes it: "coder.options.max_cost"
  std::optional<nlohmann::ordered_json> value;  // the new one; nothing where the key is gone
};

// Returns the differences of two texts of resolved.yaml, in the order of `after`. A mapping that has lost keys, or has
// a key that a path cannot name, is one change as a whole. output_dir is left out: a run folder may be moved. Returns
// nothing if `before` cannot be read.
std::optional<std::vector<Change>> ChangesBetween(const std::string& before, const std::string& after);

// True if a resumed run may use another value of this key: the value may differ between two steps, and the records of
// earlier steps stay as they are.
bool MayChangeOnResume(std::string_view path);

// Throws ConfigError where a `--set` of resume changes anything else.
void CheckResumeSettings(const std::vector<std::string>& settings);

// "loop.rounds, seed, name and 2 more".
std::string NamesOf(const std::vector<Change>& changes);

// Returns "--set coder.options.max_cost=80", one for each change, quoted for a shell; a general hint if that is too
// long to read. Empty if --set cannot express a change, or a resumed run may not adopt it.
std::string ResumeSettingsFor(const std::vector<Change>& changes);

// Returns the options that make such changes, for the shell: "--set a=1 --set b=2"; empty if a key was removed or the
// text would be too long.
std::string SettingsFor(const std::vector<Change>& changes);

}  // namespace kgrpo
#endif
