#include "coder_gpt4o/recording.h"

#include <kgrpo/support/sha256.h>

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kgrpo::coder_gpt4o {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kImpatience(10);  // the wait for the database after a failed change
constexpr int kApplicationId = 0x6b677263;            // "kgrc"
constexpr int kVersion = 3;

constexpr const char* kTables = R"sql(
CREATE TABLE exchanges(
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL, sample TEXT NOT NULL, request TEXT NOT NULL,
  identity TEXT NOT NULL, answered INTEGER NOT NULL, text TEXT NOT NULL, refusal TEXT NOT NULL,
  finish_reason TEXT NOT NULL, model TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usage_known INTEGER NOT NULL,
  cost REAL NOT NULL, answer_seconds REAL NOT NULL, attempts INTEGER NOT NULL, http_status INTEGER NOT NULL,
  failure TEXT NOT NULL, message TEXT NOT NULL, recorded_at REAL NOT NULL, service TEXT NOT NULL,
  paid INTEGER NOT NULL) STRICT;
CREATE INDEX exchanges_by_digest ON exchanges(digest, sample);
CREATE TABLE spending(
  only INTEGER PRIMARY KEY CHECK(only = 1), calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, cost REAL NOT NULL, lost_cost REAL NOT NULL) STRICT;
INSERT INTO spending VALUES(1, 0, 0, 0, 0, 0);
CREATE TABLE in_flight(
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL, sample TEXT NOT NULL, cost REAL NOT NULL,
  sent_at REAL NOT NULL) STRICT;
)sql";

constexpr std::chrono::milliseconds kLockLook(10);  // polling interval for a locked file

// Switches to a write-ahead log, trying for `patience`: SQLite's own busy timeout does not cover this change.
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

// Throws unless the file is a recording of this version.
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

// Creates the tables in a new file.
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
}

// Also true for a file that is empty, since SQLite writes its header later, or unreadable.
bool LooksLikeADatabase(const fs::path& file) {
  constexpr std::string_view kBeginning = "SQLite format 3";
  std::ifstream stream(file, std::ios::binary);
  std::string beginning(kBeginning.size(), '\0');
  if (!stream) return true;  // unreadable, which is a different error
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return stream.gcount() == 0 || beginning == kBeginning;
}

double UnixNow() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

RecordedCompletion Read(const Statement& row) {
  RecordedCompletion recorded;
  Completion& completion = recorded.completion;
  completion.outcome = row.Integer(0) != 0 ? Completion::Outcome::kAnswered : Completion::Outcome::kFailed;
  completion.text = row.Text(1);
  completion.refusal = row.Text(2);
  completion.finish_reason = row.Text(3);
  completion.model = row.Text(4);
  completion.prompt_tokens = static_cast<uint64_t>(row.Integer(5));
  completion.completion_tokens = static_cast<uint64_t>(row.Integer(6));
  completion.usage_known = row.Integer(7) != 0;
  recorded.cost = row.Real(8);
  completion.answer_seconds = row.Real(9);
  completion.attempts = static_cast<uint32_t>(row.Integer(10));
  completion.http_status = static_cast<int>(row.Integer(11));
  completion.failure = row.Text(12);
  completion.message = row.Text(13);
  recorded.paid = row.Integer(14) != 0;
  return recorded;
}

constexpr const char* kRow =
    "SELECT answered, text, refusal, finish_reason, model, prompt_tokens, completion_tokens, usage_known, "
    "cost, answer_seconds, attempts, http_status, failure, message, paid FROM exchanges WHERE id = ?";

}  // namespace

RecordedRequest MakeRecordedRequest(std::string body, std::string identity, uint64_t sample) {
  RecordedRequest request;
  request.digest = Sha256(identity);
  request.body = std::move(body);
  request.identity = std::move(identity);
  request.sample = sample;
  return request;
}

fs::path RecordingFile(const fs::path& named) {
  if (!fs::is_directory(named)) return named;
  for (const fs::path& file : {named / "artifacts" / "coder" / kRecordingName, named / kRecordingName}) {
    if (fs::exists(file)) return file;
  }
  return named / "artifacts" / "coder" / kRecordingName;
}

Recording::Recording(const fs::path& file, Access access, std::chrono::milliseconds patience)
    : file_(file), access_(access), patience_(patience) {
  if (access == Access::kReplay && !fs::exists(file)) {
    throw Error(KGRPO_ERROR_NOT_FOUND,
                "there is no recording at " + file.string() + ": name the folder of a run, or the file");
  }
  if (access == Access::kReadWrite && file.has_parent_path()) fs::create_directories(file.parent_path());
  try {
    database_ = std::make_unique<Database>(
        file, access == Access::kReplay ? Database::Mode::kReadOnly : Database::Mode::kReadWrite);
    sqlite3_busy_timeout(database_->raw(), static_cast<int>(patience.count()));
    if (access == Access::kReadWrite)
      PrepareTables(*database_, file, patience);
    else
      RequireTables(*database_, file);
    if (access == Access::kReadWrite) {
      // NORMAL loses nothing if the process is killed. Only a crash of the machine may lose the last exchanges.
      UseWriteAheadLog(*database_, patience);
      database_->Execute("PRAGMA synchronous = NORMAL");
    }
  } catch (const Error& error) {
    if (error.code() != KGRPO_ERROR_UNAVAILABLE) throw;
    if (!LooksLikeADatabase(file)) {
      throw Error(KGRPO_ERROR_INVALID, file.string() +
                                           " is no recording of exchanges with a coder, nor any database (the one of a "
                                           "run is artifacts/coder/exchanges.sqlite in its folder)");
    }
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("the recording cannot be used: ") + error.what());
  }
}

Recording::~Recording() {
  // Removes the write-ahead log: a closed recording is a single file, which can be copied and read on read-only media.
  if (access_ == Access::kReadWrite)
    sqlite3_exec(database_->raw(), "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

std::optional<RecordedCompletion> Recording::Find(const RecordedRequest& request, Match match) {
  // A replay accepts the answers of any service; otherwise only those of the request's own service count.
  const bool any_service = match == Match::kContent;
  const std::string sample = std::to_string(request.sample);
  const std::lock_guard lock(mutex_);
  std::vector<int64_t> answers, failures;
  int64_t own_answer = 0, own_failure = 0;  // the newest
  {
    Statement rows(*database_,
                   "SELECT id, answered, sample FROM exchanges WHERE digest = ? AND (? OR service = ?) ORDER BY id");
    rows << request.digest << any_service << request.service;
    while (rows.Step()) {
      const bool answered = rows.Integer(1) != 0;
      (answered ? answers : failures).push_back(rows.Integer(0));
      if (rows.Text(2) == sample) (answered ? own_answer : own_failure) = rows.Integer(0);
    }
  }
  const auto any = [&](const std::vector<int64_t>& ids) { return ids.empty() ? 0 : ids[request.sample % ids.size()]; };
  int64_t id = own_answer;
  if (id == 0 && match == Match::kContent) id = own_failure;
  if (id == 0 && match != Match::kSample) id = any(answers);
  if (id == 0 && match == Match::kContent) id = any(failures);
  if (id == 0) return std::nullopt;
  Statement row(*database_, kRow);
  row << id;
  return row.Step() ? std::optional(Read(row)) : std::nullopt;
}

void Recording::Change(const std::function<void()>& change) {
  const auto wait = std::exchange(failed_, true) ? std::min(kImpatience, patience_) : patience_;
  sqlite3_busy_timeout(database_->raw(), static_cast<int>(wait.count()));
  Transaction transaction(*database_);
  change();
  transaction.Commit();
  failed_ = false;
}

int64_t Recording::Reserve(const RecordedRequest& request, double cost, int64_t reservation) {
  const std::lock_guard lock(mutex_);
  Change([&] {
    if (reservation != 0) (Statement(*database_, "DELETE FROM in_flight WHERE id = ?") << reservation).Run();
    reservation = 0;
    if (cost <= 0) return;
    Statement insert(*database_, "INSERT INTO in_flight(digest, sample, cost, sent_at) VALUES(?, ?, ?, ?)");
    (insert << request.digest << std::to_string(request.sample) << cost << UnixNow()).Run();
    reservation = sqlite3_last_insert_rowid(database_->raw());
  });
  return reservation;
}

LeftInFlight Recording::BookLeftInFlight() {
  const std::lock_guard lock(mutex_);
  LeftInFlight left;
  {
    Statement select(*database_, "SELECT count(*), total(cost) FROM in_flight");
    if (!select.Step() || select.Integer(0) == 0) return left;
    left.calls = static_cast<uint64_t>(select.Integer(0));
    left.cost = select.Real(1);
  }
  Change([&] {
    Statement add(*database_, "UPDATE spending SET calls = calls + ?, cost = cost + ?, lost_cost = lost_cost + ?");
    (add << left.calls << left.cost << left.cost).Run();
    database_->Execute("DELETE FROM in_flight");
  });
  return left;
}

void Recording::Add(const RecordedRequest& request, const RecordedCompletion& exchange, bool keep, bool paid) {
  const Completion& completion = exchange.completion;
  const std::lock_guard lock(mutex_);
  Change([&] {
    if (keep) {
      Statement insert(
          *database_,
          "INSERT INTO exchanges(digest, sample, request, identity, answered, text, refusal, finish_reason, model, "
          "prompt_tokens, completion_tokens, usage_known, cost, answer_seconds, attempts, http_status, failure, "
          "message, recorded_at, service, paid) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      (insert << request.digest << std::to_string(request.sample) << request.body << request.identity
              << (completion.outcome == Completion::Outcome::kAnswered) << completion.text << completion.refusal
              << completion.finish_reason << completion.model << completion.prompt_tokens
              << completion.completion_tokens << completion.usage_known << exchange.cost << completion.answer_seconds
              << completion.attempts << completion.http_status << completion.failure << completion.message << UnixNow()
              << request.service << exchange.paid)
          .Run();
    }
    if (paid) {
      Statement add(*database_,
                    "UPDATE spending SET calls = calls + 1, prompt_tokens = prompt_tokens + ?, completion_tokens = "
                    "completion_tokens + ?, cost = cost + ?, lost_cost = lost_cost + ?");
      (add << completion.prompt_tokens << completion.completion_tokens << exchange.cost << exchange.lost_cost).Run();
    }
    if (paid && exchange.reservation != 0)  // the actual cost replaces the reservation
      (Statement(*database_, "DELETE FROM in_flight WHERE id = ?") << exchange.reservation).Run();
  });
}

Spending Recording::Spent() {
  const std::lock_guard lock(mutex_);
  Statement select(*database_, "SELECT cost, lost_cost FROM spending");
  return select.Step() ? Spending{select.Real(0), select.Real(1)} : Spending{};
}

uint64_t Recording::Exchanges() {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(NumberOf(*database_, "SELECT count(*) FROM exchanges"));
}

}  // namespace kgrpo::coder_gpt4o
