// The differences between two resolved pipelines, and which of them a resumed run may adopt. Used by
// load.cc, for the --set of `resume`, by store/run_folder.cc, to say why a new run may not use a folder, and by
// loop/identity.cc, to record what changed.
#ifndef KGRPO_CONFIG_CHANGES_H
#define KGRPO_CONFIG_CHANGES_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/node.h"

namespace kgrpo {

// A key that has another value.
struct Change {
  std::string path;                              // as --set takes it: "coder.options.max_cost"
  std::optional<nlohmann::ordered_json> value;   // the new one; nothing where the key is gone
  std::optional<nlohmann::ordered_json> before;  // nothing where the key is new
};

// Returns the differences of two texts of resolved.yaml, in the order of `after`. A mapping that has lost keys, or has
// a key that a path cannot name, is one change as a whole. output_dir is left out: a run folder may be moved; so are
// `removed` keys (PipelineConfig's) of an earlier version with the values that are in force now. Returns nothing if
// `before` cannot be read.
std::optional<std::vector<Change>> ChangesBetween(const std::string& before, const std::string& after,
                                                  const std::vector<RemovedKey>& removed = {});

// Keys of a pipeline whose values may differ between two steps of a run, with all below them; records of earlier steps
// stay true. load.cc adds the key of the last stage's steps and the options that plugins mark ("x-resume").
std::vector<std::string> KeysThatMayChange();

// The key that sets the steps of the last stage: "loop.max_steps", or "trainer[1].steps" where that would set those of
// another stage too, or has no effect.
std::string StepsKey(const Node& root);
std::string StepsKey(const std::string& resolved_yaml);

// The last step of the stage whose options `path` names, if that stage ended by the step `done`: its options have no
// effect on later steps.
std::optional<uint64_t> EndOfFinishedStage(const Node& root, const std::string& path, uint64_t done);

// True if a run of `resolved_yaml` that has `done` steps can still adopt the changes: none is of a stage that is over,
// and the run does not end before that step.
bool AreAhead(const std::string& resolved_yaml, const std::vector<Change>& changes, uint64_t done);

// True if the key is one of `may_change`, or below one: a resumed run may give it another value.
bool MayChangeOnResume(std::string_view path, const std::vector<std::string>& may_change);

// For the user: why a resumed run keeps any other key, and what may change.
std::string ReasonToKeep(const std::string& path, const std::vector<std::string>& may_change);

// "loop.rounds, seed, name and 2 more".
std::string NamesOf(const std::vector<Change>& changes);

// Returns "--set coder.options.max_cost=80", one for each change, quoted for a shell; a general hint if that is too
// long to read. Empty if --set cannot express a change, or a resumed run may not adopt it.
std::string ResumeSettingsFor(const std::vector<Change>& changes, const std::vector<std::string>& may_change);

// Returns the options that make such changes, for the shell: "--set a=1 --set b=2"; empty if a key was removed or the
// text would be too long.
std::string SettingsFor(const std::vector<Change>& changes);

}  // namespace kgrpo
#endif
