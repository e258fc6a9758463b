// What the readers of a run's database in this folder share.
#ifndef KGRPO_REPORT_TABLES_H
#define KGRPO_REPORT_TABLES_H

#include <kgrpo/support/sqlite.h>

#include <filesystem>
#include <memory>
#include <string>

namespace kgrpo {

// Whether the database has the table: those that came later may be missing (store/schema.h).
inline bool HasTable(Database& database, const std::string& name) {
  Statement select(database, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?");
  select << name;
  return select.Step() && select.Integer(0) > 0;
}

// A run's database, to be read. Where a run writes or was killed, what is new is in the log beside the file.
inline std::unique_ptr<Database> OpenToRead(const std::filesystem::path& file) {
  std::filesystem::path log = file;
  log += "-wal";
  return std::make_unique<Database>(file,
                                    std::filesystem::exists(log) ? Database::Mode::kReadOnly : Database::Mode::kAtRest);
}

}  // namespace kgrpo

#endif  // KGRPO_REPORT_TABLES_H
