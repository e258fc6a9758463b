-- A run.sqlite of version 1: one kernel a problem and step, and not when it was judged.
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
  step INTEGER NOT NULL, problem TEXT NOT NULL, trajectory INTEGER NOT NULL, round INTEGER NOT NULL,
  source TEXT NOT NULL, speedup REAL NOT NULL, evaluation TEXT NOT NULL, baseline TEXT NOT NULL,
  suggestions TEXT NOT NULL,
  PRIMARY KEY(step, problem)) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;

INSERT INTO run VALUES('finished', 'yes');
INSERT INTO sources VALUES
  ('ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'a'),
  ('3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d', 'b'),
  ('2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6', 'c'),
  ('8810ad581e59f2bc3928b261707a71308f7e139eb04820366dc4d5c18d980225', 'wrong');
INSERT INTO steps VALUES(4, 0, 'trainer_grpo', 1, 0.65, 1000000000.0);
INSERT INTO metrics VALUES(4, 'kl', NULL), (4, 'loss', 0.5);
INSERT INTO optimizer_steps VALUES(4, 0, 'loss', 1.0), (4, 1, 'loss', 2.0);
INSERT INTO trajectories VALUES
  ('train', 4, 0, 3, 'vector_add', 'elementwise', '', 2.0e-05, 2, ''),
  ('train', 4, 1, 3, 'vector_add', 'elementwise', '', 2.0e-05, 2, 'round 1: the coder gave no kernel (failed)');
INSERT INTO rounds VALUES
  ('train', 4, 0, 0, '[{"role":"user","content":"faster"}]', 'vectorise',
   X'0100000002000000FDFFFFFF', X'070000005D500200', X'000080BE95BFD6B3', 0,
   'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb',
   '3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d',
   '2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6',
   0, 'vectorised', '', 12, 3, 0.01, 1.5, 1, 0, 1, 2.0, 2.3, 1.3, '{"base":0.3,"speedup":2.0}'),
  ('train', 4, 0, 1, '[{"role":"user","content":"faster"}]', 'unroll',
   X'0100000002000000FDFFFFFF', X'070000005D500200', X'000080BE95BFD6B3', 0,
   '3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d',
   '2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6',
   '', 1, '', 'no loop', 12, 3, 0.01, 1.5, 1, 0, 0, 0.0, -1.0, 1.3, '{"base":0.3}');
INSERT INTO evaluations VALUES
  ('train', 4, 0, 0, '18446744073709551615', 1, 1, 'right', 1.0e-05, 9.0e-06, 1.1e-05, 1, 'H100 model',
   'bound by DRAM', '{"registers":32.0,"bytes":1.5}', 0.25);
INSERT INTO best_kernels VALUES
  (4, 'vector_add', 0, 0, '2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6', 2.0,
   '{"compiled":true,"correct":true,"verdict":"right","seconds":1e-05,"seconds_low":0.0,"seconds_high":0.0,
    "modelled":true,"time_source":"H100 model","diagnosis":"","metrics":{}}',
   '{"compiled":true,"correct":true,"verdict":"right","seconds":2e-05,"seconds_low":0.0,"seconds_high":0.0,
    "modelled":true,"time_source":"H100 model","diagnosis":"","metrics":{}}',
   '["vectorise"]');
