#include "judge/cache/cache_file.h"

#include <kgrpo/sdk/error.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "judge/process/own_files.h"

namespace kgrpo::evaluator {
namespace {

constexpr int kBusyMilliseconds = 5000;
constexpr int kPauseMilliseconds = 20;

}  // namespace

CacheFile::Statement::Statement(CacheFile& file, const char* text) : file_(file) {
  if (file_.database_ == nullptr) return;
  const int status = sqlite3_prepare_v2(file_.database_, text, -1, &statement_, nullptr);
  if (status == SQLITE_CORRUPT || status == SQLITE_NOTADB) file_.damaged_ = true;
}

CacheFile::Statement::~Statement() { sqlite3_finalize(statement_); }

CacheFile::Statement& CacheFile::Statement::Bind(int index, std::string_view bytes, bool binary) {
  if (statement_ == nullptr) return *this;
  if (binary) {
    sqlite3_bind_blob64(statement_, index, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  } else {
    sqlite3_bind_text64(statement_, index, bytes.data(), bytes.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return *this;
}

CacheFile::Statement& CacheFile::Statement::Bind(int index, int64_t number) {
  if (statement_ != nullptr) sqlite3_bind_int64(statement_, index, number);
  return *this;
}

int CacheFile::Statement::Step() {
  if (statement_ == nullptr) return SQLITE_ERROR;
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_CORRUPT || status == SQLITE_NOTADB) file_.damaged_ = true;
  return status;
}

bool CacheFile::Statement::Row() { return Step() == SQLITE_ROW; }

bool CacheFile::Statement::Done() { return Step() == SQLITE_DONE; }

std::string CacheFile::Statement::Text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes != nullptr ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

int64_t CacheFile::Statement::Integer(int column) const { return sqlite3_column_int64(statement_, column); }

CacheFile::CacheFile(std::string path, int application_id, std::string tables, const std::string& what)
    : path_(std::move(path)), application_id_(application_id), tables_(std::move(tables)) {
  std::string why;
  // Some of what opening does is not covered by SQLite's own waiting.
  for (int waited = 0; !Open(&why) && busy_ && waited < kBusyMilliseconds; waited += kPauseMilliseconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMilliseconds));
  if (database_ != nullptr || (damaged_ && BeginAnew(&why))) return;
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              path_ + ": " + what + " cannot be opened: " + why + "; check the folder, or set cache: false");
}

CacheFile::~CacheFile() { sqlite3_close(database_); }

void CacheFile::NoteOpened() {
  struct stat status = {};
  if (stat(path_.c_str(), &status) != 0) return;
  opened_[0] = status.st_dev;
  opened_[1] = status.st_ino;
}

bool CacheFile::PathIsOpened() const {
  struct stat status = {};
  return stat(path_.c_str(), &status) == 0 && status.st_dev == opened_[0] && status.st_ino == opened_[1];
}

bool CacheFile::BeginAnew(std::string* why) {
  // Another process may have done so already.
  if (PathIsOpened()) {
    std::error_code code;
    std::filesystem::rename(path_, path_ + ".damaged", code);
    std::filesystem::remove(path_ + "-wal", code);
    std::filesystem::remove(path_ + "-shm", code);
  }
  return Open(why);
}

void CacheFile::MendIfDamaged() {
  if (!damaged_) return;
  damaged_ = false;
  sqlite3_close_v2(database_);
  database_ = nullptr;
  std::string why;
  BeginAnew(&why);  // where that fails too, everything is a miss
}

bool CacheFile::Open(std::string* why) {
  busy_ = false;
  const auto fail = [this, why](const std::string& what) {
    *why = what;
    const int status = database_ != nullptr ? sqlite3_errcode(database_) : SQLITE_NOMEM;
    damaged_ = damaged_ || status == SQLITE_CORRUPT || status == SQLITE_NOTADB;
    busy_ = status == SQLITE_BUSY || status == SQLITE_LOCKED;
    sqlite3_close_v2(database_);  // statements of the caller may still be open
    database_ = nullptr;
    return false;
  };
  if (std::error_code code; std::filesystem::exists(path_, code) && !IsOwnFile(path_))
    return fail("another user owns it, or can write to it or rename it");
  if (sqlite3_open_v2(path_.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    return fail(database_ != nullptr ? sqlite3_errmsg(database_) : "out of memory");
  }
  sqlite3_busy_timeout(database_, kBusyMilliseconds);
  NoteOpened();
  int64_t application = 0, tables = 0;
  {
    Statement id(*this, "PRAGMA application_id");
    if (!id.Row()) return fail(sqlite3_errmsg(database_));
    application = id.Integer(0);
    Statement count(*this, "SELECT count(*) FROM sqlite_master");
    if (!count.Row()) return fail(sqlite3_errmsg(database_));
    tables = count.Integer(0);
  }
  if (application != application_id_ && tables != 0) {
    damaged_ = true;
    return fail("it is a database of another program");
  }
  const std::string set_up = "PRAGMA application_id = " + std::to_string(application_id_) +
                             "; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + tables_;
  char* message = nullptr;
  if (sqlite3_exec(database_, set_up.c_str(), nullptr, nullptr, &message) != SQLITE_OK) {
    const std::string text = message != nullptr ? message : "cannot set it up";
    sqlite3_free(message);
    return fail(text);
  }
  NoteOpened();  // a new file is there only now
  damaged_ = false;
  return true;
}

}  // namespace kgrpo::evaluator
