#include "store/readable.h"

#include "store/schema.h"

#include <kgrpo/sdk/error.h>

#include <system_error>

namespace kgrpo {

namespace fs = std::filesystem;

std::string RunsWithin(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "run.sqlite", error)) return "";
  size_t count = 0;
  std::string example;  // the first by name, so that the sentence is the same each time
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!fs::exists(entry.path() / "run.sqlite", error)) continue;
    ++count;
    if (example.empty() || entry.path().string() < example) example = entry.path().string();
  }
  if (count == 0) return "";
  return folder.string() + " is no run, but holds " + std::to_string(count) + (count == 1 ? " run" : " runs") +
         ": name one, such as " + example;
}

std::string WhyNoRun(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return "there is no folder " + folder.string() + ": name a run's folder";
  if (const std::string runs = RunsWithin(folder); !runs.empty()) return runs;
  return "there is no run in " + folder.string() + ": a run's folder holds run.sqlite and resolved.yaml";
}

std::string WhyNoRecord(const fs::path& folder) {
  const fs::path file = folder / "run.sqlite";
  const RunProgress progress = ReadProgress(file);
  if (progress.is_foreign) {
    return file.string() +
           " was written by another version of kgrpo-host, or by another program: use the version that wrote it (this "
           "one "
           "reads tables of versions " +
           std::to_string(kOldestSchema) + " to " + std::to_string(kSchemaVersion) +
           "; sqlite3 FILE 'PRAGMA user_version' prints those of the file). A new run "
           "needs another folder (--set output_dir=...) or --overwrite";
  }
  if (!progress.is_empty) return "";
  if (!HoldsCheckpoints(folder)) {
    return file.string() + " is empty: the run was ended before its first step. To start it: kgrpo-host resume " +
           folder.string();
  }
  return file.string() +
         " is empty: the run's samples, metrics and costs are lost, and it cannot be resumed. Put back a copy of the "
         "file. Without one, the models in " +
         (folder / "checkpoints").string() + " remain, and a new run needs another folder or --overwrite";
}

void RequireRecord(const fs::path& folder) {
  if (const std::string reason = WhyNoRecord(folder); !reason.empty()) throw Error(KGRPO_ERROR_INVALID, reason);
}

RunDatabase OpenRecord(const fs::path& folder) {
  if (!fs::exists(folder / "run.sqlite")) throw Error(KGRPO_ERROR_INVALID, WhyNoRun(folder));
  RequireRecord(folder);
  return RunDatabase::ToRead(folder / "run.sqlite");
}

void RequireUndamaged(const fs::path& database) {
  Database file(database, Database::ToRead(database));
  Statement check(file, "PRAGMA quick_check(1)");
  if (check.Step() && check.Text(0) != "ok") file.FailAsDamaged();
}

bool HoldsCheckpoints(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entry(folder / "checkpoints", error);
  return !error && entry != fs::directory_iterator();
}

}  // namespace kgrpo
