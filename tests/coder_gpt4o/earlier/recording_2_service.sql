-- A recording of version 2 from before answers out of a cache were told from paid ones.
CREATE TABLE exchanges(
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL, sample TEXT NOT NULL, request TEXT NOT NULL,
  identity TEXT NOT NULL, answered INTEGER NOT NULL, text TEXT NOT NULL, refusal TEXT NOT NULL,
  finish_reason TEXT NOT NULL, model TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  usage_known INTEGER NOT NULL,
  cost REAL NOT NULL, answer_seconds REAL NOT NULL, attempts INTEGER NOT NULL, http_status INTEGER NOT NULL,
  failure TEXT NOT NULL, message TEXT NOT NULL, recorded_at REAL NOT NULL) STRICT;
CREATE INDEX exchanges_by_digest ON exchanges(digest, sample);
CREATE TABLE spending(
  only INTEGER PRIMARY KEY CHECK(only = 1), calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, cost REAL NOT NULL) STRICT;
INSERT INTO spending VALUES(1, 0, 0, 0, 0);
ALTER TABLE exchanges ADD COLUMN service TEXT NOT NULL DEFAULT '';
ALTER TABLE spending ADD COLUMN lost_cost REAL NOT NULL DEFAULT 0;
PRAGMA application_id = 0x6b677263;
PRAGMA user_version = 2;

INSERT INTO exchanges(digest, sample, request, identity, answered, text, refusal, finish_reason, model,
  prompt_tokens, completion_tokens, usage_known, cost, answer_seconds, attempts, http_status, failure, message,
  recorded_at, service) VALUES
  ('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '1', '{}', '{}',
   1, 'one', '', 'stop', 'm', 1000, 200, 1,
   0.5, 1.5, 1, 200, '', '', 1e9, 'https://service'),
  ('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a', '2', '{}', '{}',
   0, '', '', '', '', 0, 0, 0,
   0.25, 0, 3, 500, 'server', 'out of order', 1e9, 'https://service');
UPDATE spending SET calls = 2, prompt_tokens = 1000, completion_tokens = 200, cost = 0.75, lost_cost = 0.25;
