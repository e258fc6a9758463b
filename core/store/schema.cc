#include "store/schema.h"

#include "store/fields.h"

#include <map>

namespace kgrpo {
namespace {

// `purpose` is PurposeName (store/records.h); trajectories and rounds count from 0, steps from 1. Kernels are
// hashes in `sources`. `changes` has the settings that `resume` changed, as JSON. A new column stands last in its
// table, with a DEFAULT.
constexpr const char* kTables = R"sql(
CREATE TABLE run(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE changes(
  after_step INTEGER NOT NULL, key TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
  PRIMARY KEY(after_step, key)) STRICT, WITHOUT ROWID;

CREATE TABLE sources(hash TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE problems(
  purpose TEXT NOT NULL, problem INTEGER NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL, family TEXT NOT NULL,
  split TEXT NOT NULL, directory TEXT NOT NULL, source TEXT NOT NULL,
  baseline_seconds REAL NOT NULL, modelled INTEGER NOT NULL, time_source TEXT NOT NULL, diagnosis TEXT NOT NULL,
  PRIMARY KEY(purpose, problem)) STRICT, WITHOUT ROWID;

CREATE TABLE steps(
  step INTEGER PRIMARY KEY, stage INTEGER NOT NULL, stage_name TEXT NOT NULL, has_rollouts INTEGER NOT NULL,
  reward_mean REAL NOT NULL, finished_at REAL NOT NULL) STRICT;

CREATE TABLE metrics(
  step INTEGER NOT NULL, name TEXT NOT NULL, value REAL, PRIMARY KEY(step, name)) STRICT, WITHOUT ROWID;

CREATE TABLE optimizer_steps(
  step INTEGER NOT NULL, optimizer_step INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
  PRIMARY KEY(step, optimizer_step, name)) STRICT, WITHOUT ROWID;

CREATE TABLE best_kernels(
  judged_step INTEGER NOT NULL, problem TEXT NOT NULL,
  step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  source TEXT NOT NULL, speedup REAL NOT NULL, evaluation TEXT NOT NULL, baseline TEXT NOT NULL,
  suggestions TEXT NOT NULL,
  PRIMARY KEY(judged_step, problem)) STRICT, WITHOUT ROWID;

CREATE TABLE refuted_kernels(
  judged_step INTEGER NOT NULL, problem TEXT NOT NULL, source TEXT NOT NULL,
  PRIMARY KEY(judged_step, problem, source)) STRICT, WITHOUT ROWID;

CREATE TABLE judgings(judged_step INTEGER PRIMARY KEY) STRICT;
)sql";

// all_rounds has the rounds, and those in which a trajectory was dropped, which are in a table like that of the others.
std::string ViewOfAllRounds(const std::string& create) {
  const std::string columns = "purpose, step, trajectory, " + RoundColumns().Names();
  return create + " all_rounds AS SELECT " + columns + " FROM rounds UNION ALL SELECT " + columns +
         " FROM dropped_rounds;";
}

struct MissingColumn {
  std::string name, type, fallback;  // the last: SQL
  bool not_null = false;
};

struct Missing {
  std::map<std::string, std::string> tables;                  // the statement that makes each
  std::map<std::string, std::vector<MissingColumn>> columns;  // by table
};

// Compares the database's tables with those of this version.
Missing MissingIn(Database& database) {
  Missing missing;
  Database whole(":memory:");
  whole.Execute(Schema().c_str());
  Statement columns(whole,
                    "SELECT t.name, t.sql, c.name, c.type, coalesce(c.dflt_value, CASE WHEN c.\"notnull\" = 0 THEN "
                    "'NULL' WHEN c.type = 'TEXT' THEN '''''' ELSE '0' END), c.\"notnull\" FROM sqlite_master t JOIN "
                    "pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY t.name, c.cid");
  while (columns.Step()) {
    const std::string table = columns.Text(0);
    if (!database.HasTable(table.c_str())) {
      missing.tables[table] = columns.Text(1);
      continue;
    }
    Statement known(database, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
    known << table << columns.Text(2);
    if (!known.Step())
      missing.columns[table].push_back({columns.Text(2), columns.Text(3), columns.Text(4), columns.Integer(5) != 0});
  }
  return missing;
}

}  // namespace

std::string Schema() {
  std::string sql = std::string(kTables) + "CREATE TABLE trajectories(purpose TEXT NOT NULL, step INTEGER NOT NULL, " +
                    TrajectoryColumns().Declared() + ", PRIMARY KEY(purpose, step, trajectory)) STRICT, WITHOUT ROWID;";
  for (const std::string table : {"rounds", "dropped_rounds"}) {
    sql += "CREATE TABLE " + table + "(purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, " +
           RoundColumns().Declared() + ", PRIMARY KEY(purpose, step, trajectory, round)) STRICT, WITHOUT ROWID;";
  }
  return sql + ViewOfAllRounds("CREATE VIEW");
}

void GrowTables(Database& database) {
  const Missing missing = MissingIn(database);
  for (const auto& [table, sql] : missing.tables) database.Execute(sql.c_str());
  for (const auto& [table, columns] : missing.columns) {
    for (const MissingColumn& column : columns) {
      database.Execute(("ALTER TABLE " + table + " ADD COLUMN " + column.name + " " + column.type +
                        (column.not_null ? " NOT NULL" : "") + " DEFAULT " + column.fallback)
                           .c_str());
    }
  }
  if (missing.tables.empty() && missing.columns.empty()) return;
  database.Execute(("DROP VIEW IF EXISTS all_rounds; " + ViewOfAllRounds("CREATE VIEW")).c_str());
}

// Temporary tables and views hide those of the file that have the same name.
void ShowWhole(Database& database) {
  const Missing missing = MissingIn(database);
  if (missing.tables.empty() && missing.columns.empty()) return;
  database.Execute("PRAGMA temp_store = MEMORY");
  for (const auto& [table, sql] : missing.tables)
    database.Execute(("CREATE TEMP " + sql.substr(sql.find("TABLE"))).c_str());
  for (const auto& [table, columns] : missing.columns) {
    std::string view = "CREATE TEMP VIEW " + table + " AS SELECT *";
    for (const MissingColumn& column : columns) view += ", " + column.fallback + " AS " + column.name;
    database.Execute((view + " FROM main." + table).c_str());
  }
  database.Execute(ViewOfAllRounds("CREATE TEMP VIEW").c_str());
}

std::string ColumnList::Selected() const {
  std::string list;
  for (const Column& column : columns_) {
    list += list.empty() ? "" : ", ";
    list += column.is_source ? "(SELECT text FROM sources WHERE hash = " + column.name + ")" : column.name;
  }
  return list;
}

std::string ColumnList::Declared() const {
  std::string list;
  for (const Column& column : columns_) {
    list += list.empty() ? "" : ", ";
    list += column.name + " " + column.type + (column.nullable ? "" : " NOT NULL DEFAULT " + column.fallback);
  }
  return list;
}

std::string ColumnList::Names() const {
  std::string list;
  for (const Column& column : columns_) list += (list.empty() ? "" : ", ") + column.name;
  return list;
}

const ColumnList& RoundColumns() {
  static const ColumnList columns = [] {
    ColumnList list;
    const RoundRecord round;
    VisitFields(round, list);
    return list;
  }();
  return columns;
}

const ColumnList& TrajectoryColumns() {
  static const ColumnList columns = [] {
    ColumnList list;
    const TrajectoryRecord trajectory;
    VisitTrajectoryFields(trajectory, list);
    return list;
  }();
  return columns;
}

}  // namespace kgrpo
