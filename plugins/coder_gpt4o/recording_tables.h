// The tables of a recording's file: made, brought up to date, or refused. Used by recording.cc.
#ifndef KGRPO_CODER_GPT4O_RECORDING_TABLES_H
#define KGRPO_CODER_GPT4O_RECORDING_TABLES_H

#include <kgrpo/support/sqlite.h>  // Database

#include <chrono>
#include <cstdint>
#include <filesystem>

namespace kgrpo::coder_gpt4o {

// Switches to a write-ahead log, trying for `patience`: SQLite's own busy timeout does not cover this change.
void UseWriteAheadLog(Database& database, std::chrono::milliseconds patience);

// The number that a query's first row begins with; 0 where it has none.
int64_t NumberOf(Database& database, const char* sql);

// Throws KGRPO_ERROR_INVALID where the file is a database but no recording, KGRPO_ERROR_UNSUPPORTED where it is another
// version's.
void RequireTables(Database& database, const std::filesystem::path& file);

// The same of a file that is to be written to: an empty one gets its tables, an older one what was added since.
void PrepareTables(Database& database, const std::filesystem::path& file, std::chrono::milliseconds patience);

// True if the file begins as databases do; so does an empty one, which SQLite has still to write to.
bool LooksLikeADatabase(const std::filesystem::path& file);

}  // namespace kgrpo::coder_gpt4o

#endif
