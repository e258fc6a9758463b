// Whether a run's run.sqlite holds a record that can be read. Used by what reads a run (reports, comparisons, exports)
// and by what continues one.
#ifndef KGRPO_STORE_READABLE_H
#define KGRPO_STORE_READABLE_H

#include <filesystem>
#include <string>

namespace kgrpo {

// What to say of a folder that is no run but holds some: name one. Empty where it holds none.
std::string RunsWithin(const std::filesystem::path& folder);

// What to say of a folder without a run: that, or that there is no such folder, or that it holds something else.
std::string WhyNoRun(const std::filesystem::path& folder);

// Why nothing can be read of the run in the folder, and what to do: its run.sqlite is empty, or was written by another
// program or another version of this one. Empty where it can be read. Throws KGRPO_ERROR_UNAVAILABLE where the file is
// damaged.
std::string WhyNoRecord(const std::filesystem::path& folder);

// KGRPO_ERROR_INVALID with that reason.
void RequireRecord(const std::filesystem::path& folder);

// Whether the folder holds a checkpoint, and so had steps that were recorded.
bool HoldsCheckpoints(const std::filesystem::path& folder);

}  // namespace kgrpo
#endif
