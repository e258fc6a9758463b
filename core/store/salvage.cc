#include "store/salvage.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/sqlite.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "store/database.h"
#include "store/json.h"
#include "store/rollouts.h"

namespace kgrpo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Tables in the order in which their loss is reported.
constexpr const char* kTables[] = {"run",
                                   "sources",
                                   "problems",
                                   "steps",
                                   "metrics",
                                   "trajectories",
                                   "rounds",
                                   "evaluations",
                                   "best_kernels",
                                   "refuted_kernels",
                                   "judgings",
                                   "optimizer_steps",
                                   "dropped_rounds",
                                   "part_failures",
                                   "evaluation_details",
                                   "reused_answers",
                                   "sample_outcomes",
                                   "changes"};

// SQLite's own interface, because a failed read is an expected result here and no error.
using RawStatement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;
RawStatement Prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (database != nullptr) sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr);
  return {statement, sqlite3_finalize};
}

// The columns of a table of the new database, and those of its key, as lists for SQL.
struct TableForm {
  std::string columns, descending;
  int count = 0;
};
TableForm FormOf(sqlite3* database, const std::string& table) {
  TableForm form;
  const RawStatement info = Prepare(database, "PRAGMA table_info(" + table + ")");
  std::map<int, std::string> key;
  while (sqlite3_step(info.get()) == SQLITE_ROW) {
    const std::string name = reinterpret_cast<const char*>(sqlite3_column_text(info.get(), 1));
    form.columns += (form.count++ > 0 ? ", " : "") + name;
    if (const int place = sqlite3_column_int(info.get(), 5); place > 0) key[place] = name;
  }
  for (const auto& [place, name] : key) form.descending += (place > 1 ? ", " : "") + name + " DESC";
  return form;
}

// Copies the rows that the statement gives until its end, or until one cannot be read. Returns true at the end.
bool CopyRows(sqlite3_stmt* select, sqlite3_stmt* insert, Database& to, int columns) {
  if (select == nullptr || insert == nullptr) return false;
  int result = 0;
  while ((result = sqlite3_step(select)) == SQLITE_ROW) {
    for (int i = 0; i < columns; ++i) sqlite3_bind_value(insert, i + 1, sqlite3_column_value(select, i));
    const int taken = sqlite3_step(insert);
    sqlite3_reset(insert);
    // A row that the new table rejects was damaged. Any other failure is one of the new table, such as a full disk.
    if (taken != SQLITE_DONE && taken != SQLITE_CONSTRAINT && taken != SQLITE_MISMATCH)
      to.Fail("copying what can be read");
  }
  return result == SQLITE_DONE;
}

// Returns the integer that the query selects; -1 if the query fails or has no row.
int64_t Number(sqlite3* database, const std::string& question) {
  const RawStatement statement = Prepare(database, question);
  return statement && sqlite3_step(statement.get()) == SQLITE_ROW ? sqlite3_column_int64(statement.get(), 0) : -1;
}

// Copies the readable rows of a table. Returns true if nothing is lost: the table was read to its end, or a run of an
// earlier version never had it.
bool CopyTable(Database& from, Database& to, const std::string& table) {
  if (Number(from.raw(), "SELECT count(*) FROM sqlite_master WHERE name = '" + table + "'") == 0) return true;
  const TableForm form = FormOf(to.raw(), table);
  std::string places;
  for (int i = 0; i < form.count; ++i) places += i > 0 ? ", ?" : "?";
  const RawStatement insert = Prepare(to.raw(), "INSERT OR IGNORE INTO " + table + " VALUES(" + places + ")");
  const std::string question = "SELECT " + form.columns + " FROM " + table;
  Transaction transaction(to);
  const bool whole = CopyRows(Prepare(from.raw(), question).get(), insert.get(), to, form.count);
  if (!whole)
    CopyRows(Prepare(from.raw(), question + " ORDER BY " + form.descending).get(), insert.get(), to, form.count);
  transaction.Commit();
  return whole;
}

// The metrics of each step, from metrics.jsonl, which an observer writes.
std::map<uint64_t, std::vector<Metric>> ReadMetricLines(const fs::path& file) {
  std::map<uint64_t, std::vector<Metric>> steps;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) continue;
    std::vector<Metric>& metrics = steps[json["step"].get<uint64_t>()];
    for (const auto& [name, value] : json.items()) {
      if (value.is_number() && name != "step" && name != "stage" && name != "time")
        metrics.push_back({name, value.get<double>()});
    }
  }
  return steps;
}

std::string Counted(uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// True if the step's rounds in the database equal those in its file. A page lost within a long text may give no error.
bool HoldsStep(RunDatabase& database, sqlite3* raw, const StepRecord& file) {
  if (Number(raw, "SELECT count(*) FROM steps WHERE step = " + std::to_string(file.step)) != 1) return false;
  try {
    std::vector<TrajectoryRecord> found = database.ReadStep(Purpose::kTrain, file.step);
    // The file has no line of a trajectory that was dropped in its first round.
    std::erase_if(found, [](const TrajectoryRecord& trajectory) { return trajectory.rounds_done.empty(); });
    return std::equal(found.begin(), found.end(), file.trajectories.begin(), file.trajectories.end(),
                      [](const TrajectoryRecord& a, const TrajectoryRecord& b) {
                        return a.problem_name == b.problem_name &&
                               std::equal(a.rounds_done.begin(), a.rounds_done.end(), b.rounds_done.begin(),
                                          b.rounds_done.end(), [](const RoundRecord& x, const RoundRecord& y) {
                                            return x.suggestion == y.suggestion && x.reward == y.reward &&
                                                   x.code_b == y.code_b && x.answer.source == y.answer.source &&
                                                   x.completion_ids == y.completion_ids;
                                          });
                      });
  } catch (const std::exception&) {  // not what was written: JSON that is none
    return false;
  }
}

// Rewrites rounds of training that the database lacks from their step's file. Returns the number of steps.
uint64_t AddRollouts(RunDatabase& database, sqlite3* raw, const fs::path& run) {
  uint64_t added = 0;
  std::error_code code;
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "rollouts", code)) files.insert(entry.path());
  for (const fs::path& file : files) {
    const std::optional<StepRecord> record = ReadRollouts(file);
    if (!record || HoldsStep(database, raw, *record)) continue;
    database.WriteTraining(*record);
    ++added;
  }
  return added;
}

// Adds metrics to steps that have none. Returns the number of steps.
uint64_t AddMetrics(RunDatabase& database, sqlite3* raw, const std::map<uint64_t, std::vector<Metric>>& metrics) {
  uint64_t added = 0;
  for (const auto& [step, values] : metrics) {
    if (Number(raw, "SELECT count(*) FROM metrics WHERE step = " + std::to_string(step)) != 0) continue;
    for (const Metric& metric : values) database.AddMetric(step, metric);
    ++added;
  }
  return added;
}

}  // namespace

bool IsDamaged(const fs::path& database) {
  std::error_code code;
  if (fs::file_size(database, code) == 0 || code) return false;
  const Database file(database, Database::ToRead(database));
  const RawStatement check = Prepare(file.raw(), "PRAGMA quick_check(1)");
  if (!check) {
    const int why = sqlite3_errcode(file.raw());
    return why == SQLITE_NOTADB || why == SQLITE_CORRUPT;
  }
  const int result = sqlite3_step(check.get());
  if (result != SQLITE_ROW) return result == SQLITE_NOTADB || result == SQLITE_CORRUPT;
  return std::string(reinterpret_cast<const char*>(sqlite3_column_text(check.get(), 0))) != "ok";
}

SalvagedRun::SalvagedRun(const fs::path& run) {
  std::string lost;
  size_t unread = 0;  // tables
  uint64_t rollouts = 0, metric_steps = 0;
  {
    RunDatabase database(database_);
    Database from(run / "run.sqlite", Database::ToRead(run / "run.sqlite")), to(database_, Database::Mode::kReadWrite);
    for (const std::string table : kTables) {
      if (CopyTable(from, to, table)) continue;
      const int64_t rows = Number(to.raw(), "SELECT count(*) FROM " + table);
      unread += rows == 0 ? 1 : 0;
      lost += (lost.empty() ? "" : "; ") + table + ": " +
              (rows == 0 ? "nothing" : Counted(static_cast<uint64_t>(rows), "row")) + " can be read";
    }
    const std::map<uint64_t, std::vector<Metric>> metrics = ReadMetricLines(run / "metrics.jsonl");
    rollouts = AddRollouts(database, to.raw(), run);
    metric_steps = AddMetrics(database, to.raw(), metrics);
  }
  summary_ = (run / "run.sqlite").string() + " is damaged; " +
             (lost.empty()                   ? "every table can be read to its end"
              : unread == std::size(kTables) ? "none of its tables can be read"
                                             : "of some tables a part is lost (" + lost + ")");
  if (rollouts > 0) summary_ += "; from rollouts/: " + Counted(rollouts, "step") + " of training";
  if (metric_steps > 0) summary_ += "; from metrics.jsonl: the metrics of " + Counted(metric_steps, "step");
}

}  // namespace kgrpo
