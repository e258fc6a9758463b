#include "coder_gpt4o/recording_tables.h"

#include <kgrpo/sdk/error.h>

#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace kgrpo::coder_gpt4o {
namespace {

namespace fs = std::filesystem;

constexpr int kApplicationId = 0x6b677263;  // "kgrc"
constexpr int kVersion = 2;

constexpr const char* kTables = R"sql(
CREATE TABLE exchanges(
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL, sample TEXT NOT NULL, request TEXT NOT NULL,
  identity TEXT NOT NULL, answered INTEGER NOT NULL, text TEXT NOT NULL, refusal TEXT NOT NULL,
  finish_reason TEXT NOT NULL, model TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usage_known INTEGER NOT NULL,
  cost REAL NOT NULL, answer_seconds REAL NOT NULL, attempts INTEGER NOT NULL, http_status INTEGER NOT NULL,
  failure TEXT NOT NULL, message TEXT NOT NULL, recorded_at REAL NOT NULL) STRICT;
CREATE INDEX exchanges_by_digest ON exchanges(digest, sample);
CREATE TABLE spending(
  only INTEGER PRIMARY KEY CHECK(only = 1), calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, cost REAL NOT NULL) STRICT;
INSERT INTO spending VALUES(1, 0, 0, 0, 0);
)sql";

// Tables added later. They are created in every recording that is opened for writing, older ones included.
constexpr const char* kAddedTables = R"sql(
CREATE TABLE IF NOT EXISTS in_flight(
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL, sample TEXT NOT NULL, cost REAL NOT NULL,
  sent_at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS lost_attempts(why TEXT PRIMARY KEY, attempts INTEGER NOT NULL) STRICT;
)sql";

constexpr std::chrono::milliseconds kLockLook(10);  // polling interval for a locked file

}  // namespace

void UseWriteAheadLog(Database& database, std::chrono::milliseconds patience) {
  constexpr const char* kSql = "PRAGMA journal_mode = WAL";
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    const int result = sqlite3_exec(database.raw(), kSql, nullptr, nullptr, nullptr);
    if (result == SQLITE_OK) return;
    if (result != SQLITE_BUSY && result != SQLITE_LOCKED) break;
    std::this_thread::sleep_for(kLockLook);
  }
  database.Execute(kSql);
}

int64_t NumberOf(Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.Step() ? statement.Integer(0) : 0;
}

void RequireTables(Database& database, const fs::path& file) {
  if (NumberOf(database, "PRAGMA application_id") != kApplicationId) {
    throw Error(KGRPO_ERROR_INVALID, file.string() +
                                         " is a database, but no recording of exchanges with a coder (the one "
                                         "of a run is artifacts/coder/exchanges.sqlite in its folder)");
  }
  const int64_t version = NumberOf(database, "PRAGMA user_version");
  if (version != kVersion) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, file.string() +
                                             " was recorded by another version of the plugin (its tables are of "
                                             "version " +
                                             std::to_string(version) + ", not " + std::to_string(kVersion) + ")");
  }
}

void PrepareTables(Database& database, const fs::path& file, std::chrono::milliseconds patience) {
  const bool is_new =
      NumberOf(database, "PRAGMA application_id") == 0 && NumberOf(database, "SELECT count(*) FROM sqlite_schema") == 0;
  if (is_new) {
    UseWriteAheadLog(database, patience);
    Transaction transaction(database);
    // Another process may have created the tables meanwhile.
    if (NumberOf(database, "PRAGMA application_id") == 0) {
      database.Execute(kTables);
      database.Execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
      database.Execute(("PRAGMA user_version = " + std::to_string(kVersion)).c_str());
    }
    transaction.Commit();
  }
  RequireTables(database, file);
  Transaction transaction(database);  // adds columns to older recordings; two processes may do this at once
  const auto lacks = [&](const std::string& table, const std::string& column) {
    const std::string sql = "SELECT count(*) = 0 FROM pragma_table_info('" + table + "') WHERE name = '" + column + "'";
    return NumberOf(database, sql.c_str()) != 0;
  };
  if (lacks("exchanges", "service"))
    database.Execute("ALTER TABLE exchanges ADD COLUMN service TEXT NOT NULL DEFAULT ''");
  if (lacks("exchanges", "paid")) database.Execute("ALTER TABLE exchanges ADD COLUMN paid INTEGER NOT NULL DEFAULT 1");
  if (lacks("spending", "lost_cost"))
    database.Execute("ALTER TABLE spending ADD COLUMN lost_cost REAL NOT NULL DEFAULT 0");
  database.Execute(kAddedTables);
  transaction.Commit();
}

bool LooksLikeADatabase(const fs::path& file) {
  constexpr std::string_view kBeginning = "SQLite format 3";
  std::ifstream stream(file, std::ios::binary);
  std::string beginning(kBeginning.size(), '\0');
  if (!stream) return true;  // unreadable, which is a different error
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return stream.gcount() == 0 || beginning == kBeginning;
}

}  // namespace kgrpo::coder_gpt4o
