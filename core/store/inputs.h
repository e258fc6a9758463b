// The content of what a pipeline reads: its configuration names scripts, problems, models, pairs, runs and plugins by
// their paths alone. A run records a digest of each (loop/identity.cc). Comparisons and experiments use the digests,
// and store/run_folder.cc deletes nothing that the pipeline reads.
#ifndef KGRPO_STORE_INPUTS_H
#define KGRPO_STORE_INPUTS_H

#include "config/changes.h"
#include "config/pipeline.h"
#include "store/records.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kgrpo {

class RunDatabase;

// By key: that of the pipeline and kContent, "reward.options.command (content)", or kDescription.
using InputDigests = std::map<std::string, std::string>;
inline constexpr const char* kContent = " (content)";
inline constexpr const char* kDescription = "evaluator (description)";  // without measured values

// Digests of the content of all inputs whose content counts. The content of a run's folder is its configuration and
// what it has recorded. Throws KGRPO_ERROR_UNAVAILABLE where a file cannot be read.
InputDigests DigestsOf(const std::vector<Input>& inputs);
// Describe()'s text for the record: what follows a ';' in a line may be a measurement, and is left out.
std::string StableDescription(const std::string& described);

// The digests that a run recorded last. A run of a version that recorded none: those of its plugins.
InputDigests RecordedInputs(RunDatabase& database);
// The value of that key when the run did `step`: `last` is its value now, and `changes` has what it was before.
std::string AtStep(const std::string& key, const std::string& last, uint64_t step,
                   const std::vector<SettingChange>& changes);

// The differences of digests that both sides have, as changes of their keys.
std::vector<Change> ChangedInputs(const InputDigests& before, const InputDigests& now);
// Throws KGRPO_ERROR_INVALID if a change among them would make the records of earlier steps false: content may change
// where its key may (`may_change`, PipelineConfig's), and that of plugins and of recorded runs.
void RequireResumable(const std::vector<Change>& changed, const std::vector<std::string>& may_change);

// Returns "trainer.demonstrations.from reads runs/a" for an input, or a file of one, that is among what a new run in
// `folder` deletes there; "" if there is none.
std::string ReadFromOverwritten(const std::vector<Input>& inputs, const std::filesystem::path& folder);

}  // namespace kgrpo
#endif
