-- The first ledger: jobs, their history, counts, switches and the clock's high-water mark.
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  artifact_id TEXT NOT NULL,
  artifact_json TEXT NOT NULL,
  payload_digest TEXT NOT NULL,
  tenant TEXT NOT NULL DEFAULT 'default',
  project TEXT,
  job_type TEXT NOT NULL DEFAULT 'content.download',
  source TEXT,
  resolver_hint TEXT,
  host_key TEXT,
  priority INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL CHECK (
    state IN ('pending', 'queued', 'in_progress', 'done', 'skipped', 'error', 'canceled', 'timed_out')
  ),
  due INTEGER NOT NULL DEFAULT 0 CHECK (due IN (0, 1)),
  stage TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL DEFAULT 3,
  crashes INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_id TEXT,
  lease_until INTEGER,
  worker_id TEXT,
  next_eligible_at INTEGER NOT NULL,
  last_error TEXT,
  result_json TEXT,
  outcome TEXT,
  idempotency_key TEXT,
  correlation_id TEXT,
  trace_context TEXT,
  replay_of INTEGER REFERENCES jobs (id),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER
);

CREATE UNIQUE INDEX jobs_by_artifact ON jobs (tenant, job_type, artifact_id) WHERE replay_of IS NULL;
CREATE UNIQUE INDEX jobs_by_idempotency_key ON jobs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_due ON jobs (priority DESC, id) WHERE state = 'queued' AND due = 1;
CREATE INDEX jobs_waiting ON jobs (next_eligible_at) WHERE state = 'queued' AND due = 0;
CREATE INDEX jobs_staged ON jobs (next_eligible_at) WHERE state = 'pending';
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE state = 'in_progress';
CREATE INDEX jobs_by_worker ON jobs (worker_id) WHERE state = 'in_progress';
CREATE INDEX jobs_replays ON jobs (replay_of) WHERE replay_of IS NOT NULL;

CREATE TRIGGER jobs_keep_to_the_diagram BEFORE UPDATE OF state ON jobs
WHEN OLD.state <> NEW.state AND NOT (
  (OLD.state = 'pending' AND NEW.state IN ('queued', 'error', 'canceled'))
  OR (OLD.state = 'queued' AND NEW.state IN ('pending', 'in_progress', 'canceled'))
  OR (OLD.state = 'in_progress' AND NEW.state <> 'in_progress')
  OR (OLD.state IN ('done', 'skipped', 'error', 'canceled', 'timed_out') AND NEW.state = 'queued')
)
BEGIN
  SELECT RAISE(ABORT, 'a job cannot change its state this way');
END;

CREATE TRIGGER jobs_fence_only_grows BEFORE UPDATE OF fence ON jobs
WHEN NEW.fence < OLD.fence
BEGIN
  SELECT RAISE(ABORT, 'a fence only grows');
END;

CREATE TABLE job_history (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  shard INTEGER NOT NULL,
  link INTEGER NOT NULL,
  job_id INTEGER,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  from_state TEXT,
  to_state TEXT,
  fence INTEGER,
  attempts INTEGER,
  actor TEXT NOT NULL,
  reason TEXT,
  ticket TEXT,
  detail_json TEXT,
  prev_hash BLOB NOT NULL,
  hash BLOB NOT NULL
);

CREATE INDEX job_history_by_job ON job_history (job_id) WHERE job_id IS NOT NULL;

CREATE TRIGGER job_history_keeps_rows BEFORE UPDATE ON job_history
BEGIN
  SELECT RAISE(ABORT, 'job_history is append-only');
END;

CREATE TRIGGER job_history_loses_no_row BEFORE DELETE ON job_history
BEGIN
  SELECT RAISE(ABORT, 'job_history is append-only');
END;

CREATE TABLE history_heads (
  tenant TEXT NOT NULL,
  shard INTEGER NOT NULL,
  link INTEGER NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (tenant, shard)
) WITHOUT ROWID;

CREATE TABLE job_counts (
  tenant TEXT NOT NULL,
  job_type TEXT NOT NULL,
  state TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (tenant, job_type, state)
) WITHOUT ROWID;

CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  actor TEXT,
  reason TEXT,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE ledger_time (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  high_water_ms INTEGER NOT NULL
);

INSERT INTO ledger_time (only, high_water_ms) VALUES (1, 0);

CREATE VIEW jobs_v1 AS
SELECT
  id,
  artifact_id,
  artifact_json,
  state,
  attempts,
  last_error,
  resolver_hint,
  strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch') AS updated_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', lease_until / 1000.0, 'unixepoch') AS lease_expires_at,
  worker_id
FROM jobs;
