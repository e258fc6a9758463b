// Recovers the readable part of a run whose run.sqlite is damaged. Used by compare/ and, through it, by the commands
// compare and report.
#ifndef KGRPO_STORE_SALVAGE_H
#define KGRPO_STORE_SALVAGE_H

#include <filesystem>
#include <string>
#include <vector>

#include "base/directories.h"

namespace kgrpo {

// True if SQLite finds pages that it cannot read, or no database at all. An empty file is none. It reads the whole
// file.
bool IsDamaged(const std::filesystem::path& database);

// A database of its own with the rows that could be read, in a temporary folder that the destructor removes.
class SalvagedRun {
 public:
  // Reads run.sqlite of the run's folder, row by row from both ends of each table. Steps whose rounds or metrics are
  // missing then come from rollouts/ and metrics.jsonl. The run's folder stays as it is.
  explicit SalvagedRun(const std::filesystem::path& run);

  const std::filesystem::path& database() const { return database_; }
  // Returns the losses and the source of the replacement, in a sentence.
  const std::string& summary() const { return summary_; }

 private:
  TemporaryDirectory folder_;
  std::filesystem::path database_ = folder_.path() / "run.sqlite";
  std::string summary_;
};

}  // namespace kgrpo
#endif
