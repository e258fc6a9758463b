// Rollouts as JSON lines, one file a step: rollouts/step-000001.jsonl. The columns are the same in every row, in one
// order and of one type, so that `datasets.load_dataset("json", data_files=...)` opens any set of them.
// docs/run_folder.md lists them.
#ifndef KGRPO_STORE_ROLLOUTS_H
#define KGRPO_STORE_ROLLOUTS_H

#include "store/records.h"

#include <filesystem>
#include <optional>
#include <string>

namespace kgrpo {

// A row a round, in the order of (trajectory, round). `return` is the reward discounted over the rounds that follow.
std::string RolloutLines(const StepRecord& step);

// Writes the step's file, whole or not at all; nothing for a step without rollouts.
void WriteRollouts(const std::filesystem::path& directory, const StepRecord& step);

// Reads the step of such a file, which lacks metrics, costs and the parts of rewards. Returns nothing if the file is of
// another kind.
std::optional<StepRecord> ReadRollouts(const std::filesystem::path& file);

}  // namespace kgrpo
#endif
