// The tables of run.sqlite, and how a record of an earlier version gets the columns that were added since. Used by
// store/database.cc, and RecordToRead by whatever reads a run by SQL of its own.
//
// Records grow: a new column or table needs no new version. Readers see its default in records that lack it; `resume`
// adds it. A column of rounds or trajectories is a field in store/records.h, and its default is the field's.
#ifndef KGRPO_STORE_SCHEMA_H
#define KGRPO_STORE_SCHEMA_H

#include <kgrpo/support/sqlite.h>

#include <filesystem>
#include <string>

namespace kgrpo {

// Raised only if the meaning of a column changes: then this program cannot continue runs of the version before.
inline constexpr int kSchemaVersion = 4;
// The oldest version that is read.
inline constexpr int kOldestSchema = 3;

// Returns the SQL that makes all tables of this version.
std::string Schema();

// Adds the tables and columns that a record of this version lacks, within the caller's transaction.
void GrowTables(Database& database);

// Makes tables and columns that a record lacks appear to this connection, which only reads, as if it had them.
void ShowWhole(Database& database);

// A record that is only read, shown whole.
class RecordToRead : public Database {
 public:
  explicit RecordToRead(const std::filesystem::path& path) : Database(path, ToRead(path)) { ShowWhole(*this); }
};

}  // namespace kgrpo
#endif
