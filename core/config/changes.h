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

// Both are the text of a resolved.yaml. In the order of `after`; where a mapping has lost keys, or one of its keys
// cannot be named in a path, the mapping as a whole. output_dir is left out: a run folder may be moved. Nothing where
// `before` cannot be read.
std::optional<std::vector<Change>> ChangesBetween(const std::string& before, const std::string& after);

// True if a run may go on with another value of this key: it may differ between two steps, and what is recorded of
// earlier ones stays as it is.
bool MayChangeOnResume(std::string_view path);

// Throws ConfigError where a `--set` of resume changes anything else.
void CheckResumeSettings(const std::vector<std::string>& settings);

// "loop.rounds, seed, name and 2 more".
std::string NamesOf(const std::vector<Change>& changes);

// "--set coder.options.max_cost=80", one for each, quoted for a shell; where that is too long to read, how it is done.
// Empty where --set cannot say one of them, or a run may not go on with it.
std::string ResumeSettingsFor(const std::vector<Change>& changes);

}  // namespace kgrpo
#endif
