// A thin C++ layer over SQLite: owning handles and exceptions. Used by store/, by compare/ and report/ to read a run,
// and by a coder for its recordings.
#ifndef KGRPO_SUPPORT_SQLITE_H
#define KGRPO_SUPPORT_SQLITE_H

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace kgrpo {

class Database;

// A prepared statement: bind the parameters in order, then Step or Run.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  ~Statement() { sqlite3_finalize(raw_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& operator<<(int64_t value);
  Statement& operator<<(uint64_t value) { return *this << static_cast<int64_t>(value); }
  Statement& operator<<(uint32_t value) { return *this << static_cast<int64_t>(value); }
  Statement& operator<<(int value) { return *this << static_cast<int64_t>(value); }
  Statement& operator<<(bool value) { return *this << static_cast<int64_t>(value); }
  Statement& operator<<(double value);  // NaN is stored as NULL
  Statement& operator<<(std::string_view text);
  Statement& operator<<(const std::string& text) { return *this << std::string_view(text); }
  Statement& operator<<(const char* text) { return *this << std::string_view(text); }
  Statement& operator<<(std::nullptr_t);
  template <typename T>
  Statement& Blob(std::span<const T> values) {
    return BlobBytes(values.data(), values.size_bytes());
  }

  bool Step();  // true: a row is there
  void Run();   // steps to the end and is ready to be bound again

  int64_t Integer(int column) const { return sqlite3_column_int64(raw_, column); }
  double Real(int column) const { return sqlite3_column_double(raw_, column); }
  std::string Text(int column) const;
  template <typename T>
  std::span<const T> Values(int column) const {  // valid until the next Step
    const void* data = sqlite3_column_blob(raw_, column);
    return {static_cast<const T*>(data), static_cast<size_t>(sqlite3_column_bytes(raw_, column)) / sizeof(T)};
  }
  bool IsNull(int column) const { return sqlite3_column_type(raw_, column) == SQLITE_NULL; }

 private:
  Statement& BlobBytes(const void* data, size_t size);
  void Bound(int result);

  Database& database_;
  sqlite3_stmt* raw_ = nullptr;
  int next_ = 1;
};

// An open database. Throws KGRPO_ERROR_UNAVAILABLE with the file's name when SQLite reports a failure.
class Database {
 public:
  enum class Mode {
    kReadOnly,  // SQLite may leave its own files beside the database
    kAtRest,    // read only, without files of SQLite's own: for a database that no process writes
    kReadWrite
  };
  explicit Database(const std::filesystem::path& path, Mode mode = Mode::kReadWrite);
  ~Database() { sqlite3_close_v2(raw_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Returns the mode for a database that is only read. While a process writes it, or after a writer was killed, the
  // newest data is in the write-ahead log beside the file, which kAtRest ignores.
  static Mode ToRead(const std::filesystem::path& path);

  // While another process holds a lock: asks `wait` every 50 ms, with the seconds so far, and fails once it says false.
  // Without this call a lock is waited for during 10 s, as after a call with an empty function.
  void WaitForLocks(std::function<bool(double seconds)> wait);

  void Execute(const char* sql);
  bool HasTable(const char* name);
  [[noreturn]] void Fail(const std::string& what) const;
  [[noreturn]] void FailAsDamaged() const;  // names the command that saves what can be read
  sqlite3* raw() const { return raw_; }

 private:
  static int OnBusy(void* self, int count);

  std::string path_;
  sqlite3* raw_ = nullptr;
  std::function<bool(double seconds)> wait_;
  std::chrono::steady_clock::time_point busy_since_;
};

// The statements between construction and Commit take effect together or not at all.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database_.Execute("BEGIN IMMEDIATE"); }
  ~Transaction();
  void Commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace kgrpo
#endif
