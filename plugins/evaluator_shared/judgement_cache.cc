#include "evaluator_shared/judgement_cache.h"

#include <kgrpo/sdk/error.h>
#include <sqlite3.h>

#include <filesystem>

namespace kgrpo::evaluator {
namespace {

constexpr int kApplicationId = 0x6b676a63;  // "kgjc": a file of another program is recognised by its absence
constexpr int kBusyMilliseconds = 5000;

// A prepared statement that finalises itself.
class Statement {
 public:
  Statement(sqlite3* database, const char* text) { sqlite3_prepare_v2(database, text, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Bind(int index, const std::string& text) {
    if (statement_ != nullptr)
      sqlite3_bind_text(statement_, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  int Step() { return statement_ != nullptr ? sqlite3_step(statement_) : SQLITE_ERROR; }
  std::string Text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes != nullptr ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
  }
  int Integer(int column) const { return sqlite3_column_int(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

JudgementCache::JudgementCache(const std::string& path) : path_(path) {
  std::string why;
  std::error_code code;
  if (Open(&why)) return;
  if (std::filesystem::exists(path_, code)) {
    std::filesystem::rename(path_, path_ + ".damaged", code);
    std::filesystem::remove(path_ + "-wal", code);
    std::filesystem::remove(path_ + "-shm", code);
    if (Open(&why)) return;
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              path_ + ": the judgement cache cannot be opened: " + why + "; check the folder, or set cache: false");
}

JudgementCache::~JudgementCache() {
  sqlite3_close(database_);
}

bool JudgementCache::Open(std::string* why) {
  const auto fail = [this, why](const std::string& what) {
    *why = what;
    sqlite3_close_v2(database_);  // statements of the caller may still be open
    database_ = nullptr;
    return false;
  };
  if (sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    return fail(database_ != nullptr ? sqlite3_errmsg(database_) : "out of memory");
  }
  sqlite3_busy_timeout(database_, kBusyMilliseconds);
  int application = 0, tables = 0;
  {
    Statement id(database_, "PRAGMA application_id");
    if (id.Step() != SQLITE_ROW) return fail(sqlite3_errmsg(database_));
    application = id.Integer(0);
    Statement count(database_, "SELECT count(*) FROM sqlite_master");
    if (count.Step() != SQLITE_ROW) return fail(sqlite3_errmsg(database_));
    tables = count.Integer(0);
  }
  if (application != kApplicationId && tables != 0) return fail("it is a database of another program");
  const std::string set_up =
      "PRAGMA application_id = " + std::to_string(kApplicationId) +
      "; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
      "CREATE TABLE IF NOT EXISTS judgement(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;";
  char* message = nullptr;
  if (sqlite3_exec(database_, set_up.c_str(), nullptr, nullptr, &message) != SQLITE_OK) {
    const std::string text = message != nullptr ? message : "cannot set it up";
    sqlite3_free(message);
    return fail(text);
  }
  return true;
}

std::optional<std::string> JudgementCache::Find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Statement select(database_, "SELECT value FROM judgement WHERE key = ?");
  select.Bind(1, key);
  if (select.Step() != SQLITE_ROW) return std::nullopt;
  return select.Text(0);
}

void JudgementCache::Keep(const std::string& key, const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Statement insert(database_, "INSERT OR IGNORE INTO judgement(key, value) VALUES(?, ?)");
  insert.Bind(1, key);
  insert.Bind(2, value);
  insert.Step();
}

}  // namespace kgrpo::evaluator
