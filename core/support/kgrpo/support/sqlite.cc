#include <kgrpo/support/sqlite.h>

#include <kgrpo/sdk/error.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace kgrpo {
namespace {

// Returns a "file:" URI of the path, with the characters that a URI reserves written as %xx.
std::string AddressOf(const std::filesystem::path& path) {
  std::string address = "file:";
  for (const char character : path.string()) {
    if (std::strchr("%?#", character) == nullptr) {
      address += character;
      continue;
    }
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(character));
    address += code;
  }
  return address;
}

}  // namespace

Database::Database(const std::filesystem::path& path, Mode mode) : path_(path.string()) {
  const bool at_rest = mode == Mode::kAtRest;
  const std::string name = at_rest ? AddressOf(path) + "?immutable=1" : path_;
  const int flags = (mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) |
                    (at_rest ? SQLITE_OPEN_URI : 0);
  if (sqlite3_open_v2(name.c_str(), &raw_, flags, nullptr) != SQLITE_OK) {
    const std::string reason = raw_ == nullptr ? "out of memory" : sqlite3_errmsg(raw_);
    sqlite3_close_v2(raw_);
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot open " + path_ + ": " + reason);
  }
  WaitForLocks({});
}

void Database::WaitForLocks(std::function<bool(double seconds)> wait) {
  constexpr int kMilliseconds = 10'000;  // a reader (a report, a person's shell) may hold it for a moment
  wait_ = std::move(wait);
  if (wait_)
    sqlite3_busy_handler(raw_, OnBusy, this);
  else
    sqlite3_busy_timeout(raw_, kMilliseconds);
}

int Database::OnBusy(void* self, int count) {
  auto& database = *static_cast<Database*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (count == 0) database.busy_since_ = now;
  sqlite3_sleep(50);
  return database.wait_(std::chrono::duration<double>(now - database.busy_since_).count()) ? 1 : 0;
}

Database::Mode Database::ToRead(const std::filesystem::path& path) {
  return std::filesystem::exists(path.string() + "-wal") ? Mode::kReadOnly : Mode::kAtRest;
}

bool Database::HasTable(const char* name) {
  Statement select(*this, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?");
  select << name;
  return select.Step() && select.Integer(0) > 0;
}

void Database::Execute(const char* sql) {
  if (sqlite3_exec(raw_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) Fail(sql);
}

void Database::Fail(const std::string& what) const {
  const int code = sqlite3_errcode(raw_);
  if (code == SQLITE_NOTADB)
    throw Error(KGRPO_ERROR_UNAVAILABLE, path_ + " is not an SQLite database: put back a copy of it");
  if (code == SQLITE_CORRUPT) FailAsDamaged();
  throw Error(KGRPO_ERROR_UNAVAILABLE, path_ + ": " + sqlite3_errmsg(raw_) + " (in: " + what.substr(0, 80) + ")");
}

void Database::FailAsDamaged() const {
  std::string quoted = "'";  // for a shell
  for (const char c : path_) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  quoted += "'";
  // sqlite3's .recover is not in every build. A dump of a damaged database ends with ROLLBACK, and has no user_version.
  throw Error(
      KGRPO_ERROR_UNAVAILABLE,
      path_ + " is damaged: parts of it cannot be read. Put back a copy of it, or save what can be read: (sqlite3 " +
          quoted + " .dump | sed 's/^ROLLBACK;.*/COMMIT;/'; sqlite3 " + quoted +
          " \"SELECT 'PRAGMA user_version=' || user_version || ';' FROM pragma_user_version\") | sqlite3 "
          "recovered.sqlite");
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  if (sqlite3_prepare_v2(database.raw(), sql.data(), static_cast<int>(sql.size()), &raw_, nullptr) != SQLITE_OK) {
    database.Fail(std::string(sql));
  }
}

void Statement::Bound(int result) {
  if (result != SQLITE_OK) database_.Fail(sqlite3_sql(raw_));
  ++next_;
}

Statement& Statement::operator<<(int64_t value) {
  Bound(sqlite3_bind_int64(raw_, next_, value));
  return *this;
}

Statement& Statement::operator<<(double value) {
  Bound(sqlite3_bind_double(raw_, next_, value));
  return *this;
}

Statement& Statement::operator<<(std::string_view text) {
  Bound(sqlite3_bind_text64(raw_, next_, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::operator<<(std::nullptr_t) {
  Bound(sqlite3_bind_null(raw_, next_));
  return *this;
}

Statement& Statement::BlobBytes(const void* data, size_t size) {
  Bound(size == 0 ? sqlite3_bind_zeroblob(raw_, next_, 0)
                  : sqlite3_bind_blob64(raw_, next_, data, size, SQLITE_TRANSIENT));
  return *this;
}

bool Statement::Step() {
  const int result = sqlite3_step(raw_);
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE) database_.Fail(sqlite3_sql(raw_));
  return false;
}

void Statement::Run() {
  while (Step()) {
  }
  sqlite3_reset(raw_);
  sqlite3_clear_bindings(raw_);
  next_ = 1;
}

std::string Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(raw_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(raw_, column))};
}

void Transaction::Commit() {
  database_.Execute("COMMIT");
  open_ = false;
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.raw(), "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace kgrpo
