// A cache's file in SQLite, shared by several processes. A damaged file, or one of another program, is set aside and
// created again. Used by EvaluationCache and CompileCache, which define its tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace kgrpo::evaluator {

// One thread at a time.
class CacheFile {
 public:
  // Opens or makes the file. `application_id` tells this kind of cache from others; `tables` is the SQL that makes what
  // is missing in it; `what` names it in errors: "the evaluation cache". A file that is damaged or of another program
  // becomes FILE.damaged; one that is only in use is waited for. Throws Error(KGRPO_ERROR_UNAVAILABLE) where it cannot
  // be written at all.
  CacheFile(std::string path, int application_id, std::string tables, const std::string& what);
  ~CacheFile();
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;

  // A prepared statement that finalises itself. Every failure shows as a step that yields no row.
  class Statement {
   public:
    Statement(CacheFile& file, const char* text);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& Bind(int index, std::string_view bytes, bool binary = false);
    Statement& Bind(int index, int64_t number);
    bool Row();   // steps; whether there is a row
    bool Done();  // steps; whether it ended well, without a row
    std::string Text(int column) const;
    int64_t Integer(int column) const;

   private:
    int Step();

    CacheFile& file_;
    sqlite3_stmt* statement_ = nullptr;
  };

  // After a statement met a damaged page: sets the file aside and begins a new one, so that later entries are kept.
  // Call this while no statement is open; cheap where nothing is wrong.
  void MendIfDamaged();

 private:
  friend class Statement;
  bool Open(std::string* why);
  bool BeginAnew(std::string* why);

  void NoteOpened();
  bool PathIsOpened() const;

  const std::string path_;
  const int application_id_;
  const std::string tables_;
  sqlite3* database_ = nullptr;
  bool damaged_ = false;         // or of another program
  bool busy_ = false;            // another process had it when it was to be opened
  uint64_t opened_[2] = {0, 0};  // device and inode of the file that was opened
};

}  // namespace kgrpo::evaluator
