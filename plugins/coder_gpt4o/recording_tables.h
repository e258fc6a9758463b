// Creates, upgrades or refuses the tables of a recording's file. Used by recording.cc.
#ifndef KGRPO_CODER_GPT4O_RECORDING_TABLES_H
#define KGRPO_CODER_GPT4O_RECORDING_TABLES_H

#include <kgrpo/support/sqlite.h>  // Database

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace kgrpo::coder_gpt4o {

// Switches to a write-ahead log, trying for `patience`: SQLite's own busy timeout does not cover this change.
void UseWriteAheadLog(Database& database, std::chrono::milliseconds patience);

// The first column of a query's first row; 0 without a row.
int64_t NumberOf(Database& database, const char* sql);

// Throws KGRPO_ERROR_INVALID if the file is a database but no recording, KGRPO_ERROR_UNSUPPORTED if its tables are of
// another version.
void RequireTables(Database& database, const std::filesystem::path& file);

// The same for a file to be written. First creates the tables of an empty file; adds later columns and tables to an
// older one.
void PrepareTables(Database& database, const std::filesystem::path& file, std::chrono::milliseconds patience);

// True if the file begins like an SQLite database. Also true if it is empty, since SQLite writes its header later, or
// unreadable.
bool LooksLikeADatabase(const std::filesystem::path& file);

}  // namespace kgrpo::coder_gpt4o

#endif
