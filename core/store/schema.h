// The tables of run.sqlite. Used by store/database.cc, which adds those of trajectories and rounds: their columns are
// the fields of store/records.h. A change that older readers would misread raises kSchemaVersion.
#ifndef KGRPO_STORE_SCHEMA_H
#define KGRPO_STORE_SCHEMA_H

namespace kgrpo {

inline constexpr int kSchemaVersion = 4;

// `purpose` is PurposeName (store/records.h); trajectories and rounds count from 0, steps from 1. Kernels are
// hashes in `sources`. `changes` has the settings that `resume` changed, as JSON.
inline constexpr const char* kSchema = R"sql(
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

}  // namespace kgrpo
#endif
