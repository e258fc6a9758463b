// The tables of run.sqlite. Used by store/database.cc. A change that older readers would misread raises kSchemaVersion.
#ifndef KGRPO_STORE_SCHEMA_H
#define KGRPO_STORE_SCHEMA_H

namespace kgrpo {

inline constexpr int kSchemaVersion = 2;

// `purpose` is "train", "demonstration" or "heldout"; trajectories and rounds count from 0, steps from 1. Token ids are
// little-endian int32, log-probabilities float32. A sample's outcome is the trainer's return and advantage for a round
// of training. `changes` holds what `resume` changed, as JSON. code_a, code_b, code_c are hashes in `sources`.
inline constexpr const char* kSchema = R"sql(
CREATE TABLE run(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

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

CREATE TABLE trajectories(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, problem INTEGER NOT NULL,
  problem_name TEXT NOT NULL, family TEXT NOT NULL, prompted_as TEXT NOT NULL, baseline_seconds REAL NOT NULL,
  rounds INTEGER NOT NULL, dropped TEXT NOT NULL,
  PRIMARY KEY(purpose, step, trajectory)) STRICT, WITHOUT ROWID;

CREATE TABLE rounds(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  prompt TEXT NOT NULL, suggestion TEXT NOT NULL,
  prompt_ids BLOB NOT NULL, completion_ids BLOB NOT NULL, logprobs BLOB NOT NULL, truncated INTEGER NOT NULL,
  code_a TEXT NOT NULL, code_b TEXT NOT NULL, code_c TEXT NOT NULL,
  coder_outcome INTEGER NOT NULL, coder_summary TEXT NOT NULL, coder_message TEXT NOT NULL,
  coder_prompt_tokens INTEGER NOT NULL, coder_completion_tokens INTEGER NOT NULL, coder_cost REAL NOT NULL,
  coder_seconds REAL NOT NULL, coder_attempts INTEGER NOT NULL,
  unchanged INTEGER NOT NULL, applied INTEGER NOT NULL, speedup REAL NOT NULL,
  reward REAL NOT NULL, idle_reward REAL NOT NULL, reward_parts TEXT NOT NULL,
  PRIMARY KEY(purpose, step, trajectory, round)) STRICT, WITHOUT ROWID;

CREATE TABLE evaluations(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  seed TEXT NOT NULL, compiled INTEGER NOT NULL, correct INTEGER NOT NULL, verdict TEXT NOT NULL,
  seconds REAL NOT NULL, seconds_low REAL NOT NULL, seconds_high REAL NOT NULL,
  modelled INTEGER NOT NULL, time_source TEXT NOT NULL, diagnosis TEXT NOT NULL, metrics TEXT NOT NULL,
  evaluate_seconds REAL NOT NULL,
  PRIMARY KEY(purpose, step, trajectory, round)) STRICT, WITHOUT ROWID;

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

// Tables that were added since, which a database of this version may lack.
inline constexpr const char* kLaterTables = R"sql(
CREATE TABLE IF NOT EXISTS dropped_rounds(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  suggestion TEXT NOT NULL, completion_ids BLOB NOT NULL, code_a TEXT NOT NULL, code_b TEXT NOT NULL,
  coder_outcome INTEGER NOT NULL, coder_message TEXT NOT NULL, coder_prompt_tokens INTEGER NOT NULL,
  coder_completion_tokens INTEGER NOT NULL, coder_cost REAL NOT NULL, coder_seconds REAL NOT NULL,
  coder_attempts INTEGER NOT NULL,
  PRIMARY KEY(purpose, step, trajectory)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS part_failures(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  part TEXT NOT NULL, message TEXT NOT NULL, code_c TEXT NOT NULL, coder_summary TEXT NOT NULL,
  unchanged INTEGER NOT NULL,
  PRIMARY KEY(purpose, step, trajectory)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluation_details(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  speedup REAL NOT NULL, speedup_low REAL NOT NULL, speedup_high REAL NOT NULL, remarks TEXT NOT NULL,
  PRIMARY KEY(purpose, step, trajectory, round)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reused_answers(
  purpose TEXT NOT NULL, step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  PRIMARY KEY(purpose, step, trajectory, round)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS changes(
  after_step INTEGER NOT NULL, key TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
  PRIMARY KEY(after_step, key)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sample_outcomes(
  step INTEGER NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL, returned REAL, advantage REAL,
  PRIMARY KEY(step, trajectory, round)) STRICT, WITHOUT ROWID;
)sql";

}  // namespace kgrpo
#endif
