// Checks whether a run's run.sqlite holds a readable record. Used by readers of runs (reports, comparisons, exports)
// and by what continues one.
#ifndef KGRPO_STORE_READABLE_H
#define KGRPO_STORE_READABLE_H

#include "store/database.h"

#include <filesystem>
#include <string>

namespace kgrpo {

// A sentence for a folder that is no run but holds some, asking for one of them. Empty where it holds none.
std::string RunsWithin(const std::filesystem::path& folder);

// A sentence for a folder without a run: RunsWithin, or that there is no such folder, or that it holds no run.
std::string WhyNoRun(const std::filesystem::path& folder);

// Returns why the run in the folder cannot be read, and what to do: its run.sqlite is empty, or was written by another
// program or another version of this one. Empty if it can be read. Throws KGRPO_ERROR_UNAVAILABLE if the file is
// damaged.
std::string WhyNoRecord(const std::filesystem::path& folder);

// Throws KGRPO_ERROR_INVALID with that reason, if there is one.
void RequireRecord(const std::filesystem::path& folder);
// Opens the record of the run in the folder for reading. Throws KGRPO_ERROR_INVALID with WhyNoRun or WhyNoRecord.
RunDatabase OpenRecord(const std::filesystem::path& folder);

// Reads the whole database, which takes as long as that. Throws KGRPO_ERROR_UNAVAILABLE if it is damaged.
void RequireUndamaged(const std::filesystem::path& database);

// True if the folder holds a checkpoint, and so had steps that were recorded.
bool HoldsCheckpoints(const std::filesystem::path& folder);

}  // namespace kgrpo
#endif
