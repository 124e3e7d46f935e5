-- The ledger as it stands after every migration. A test keeps the two equal.
-- Times are integers: milliseconds of ledger time, which never steps back.

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
CREATE INDEX jobs_due ON jobs (priority DESC, id) WHERE state = 'queued' AND due = 1 AND host_key IS NULL;
CREATE INDEX jobs_due_by_host ON jobs (priority DESC, host_key, id)
WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (next_eligible_at) WHERE state = 'queued' AND due = 0;
CREATE INDEX jobs_leased ON jobs (lease_until, worker_id) WHERE state = 'in_progress';
CREATE INDEX jobs_replays ON jobs (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX jobs_suspect ON jobs (next_eligible_at) WHERE state = 'pending' AND crashes >= 2;

CREATE TRIGGER jobs_keep_to_the_diagram AFTER UPDATE OF state, fence ON jobs
WHEN NEW.fence < OLD.fence OR OLD.state <> NEW.state AND OLD.state <> 'in_progress'
AND NOT (OLD.state = 'queued' AND NEW.state = 'in_progress') AND NOT (
  (OLD.state = 'queued' AND NEW.state IN ('pending', 'canceled'))
  OR (OLD.state = 'pending' AND NEW.state IN ('queued', 'error', 'canceled'))
  OR (OLD.state IN ('done', 'skipped', 'error', 'canceled', 'timed_out') AND NEW.state IN ('queued', 'pending'))
)
BEGIN
  SELECT CASE
    WHEN NEW.fence < OLD.fence THEN RAISE(ABORT, 'a fence only grows')
    ELSE RAISE(ABORT, 'a job cannot change its state this way')
  END;
END;

CREATE TABLE job_dependencies (
  job_id INTEGER NOT NULL REFERENCES jobs (id),
  needs_job_id INTEGER NOT NULL REFERENCES jobs (id),
  PRIMARY KEY (job_id, needs_job_id),
  CHECK (needs_job_id < job_id)
) WITHOUT ROWID;

CREATE INDEX job_dependents ON job_dependencies (needs_job_id, job_id);

CREATE TABLE dependency_changes (
  needs_job_id INTEGER PRIMARY KEY,
  after_job_id INTEGER NOT NULL
);

CREATE TABLE job_history (
  seq INTEGER PRIMARY KEY,
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

-- How many jobs there are, in the one form that both databases have.
CREATE VIEW job_totals AS SELECT tenant, job_type, state, n FROM job_counts;

-- For the lists of a tenant. The tenant of a single machine is left out: its jobs are the whole ledger, and it need not
-- pay for one more index.
CREATE INDEX jobs_of_tenants ON jobs (tenant, state, id) WHERE tenant <> 'default';

-- What people decided, to be read without the course of every job.
CREATE INDEX job_history_decisions ON job_history (tenant, at, seq)
WHERE event = 'canceled' OR (to_state IS NULL AND event <> 'renewed');

-- What workers know of the hosts of a source: counts since they were first asked, and how each stands now. The row
-- without a host is of the source itself.
CREATE TABLE source_hosts (
  tenant TEXT NOT NULL,
  source TEXT NOT NULL,
  host TEXT NOT NULL,
  requests BIGINT NOT NULL,
  answered BIGINT NOT NULL,
  refused BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  works BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  last_status INTEGER,
  next_allowed_at BIGINT,
  held_by TEXT,
  breaker TEXT,
  breaker_until BIGINT,
  limits_json TEXT NOT NULL,
  worker_id TEXT,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, source, host)
);

-- Events for others: who wants them, and what was not delivered yet.

CREATE TABLE event_targets (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  types TEXT,
  registered_at INTEGER NOT NULL,
  sent INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  last_sent_at INTEGER,
  last_error TEXT
) WITHOUT ROWID;

CREATE TABLE events_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT NOT NULL,
  event_type TEXT NOT NULL,
  lane INTEGER NOT NULL,
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
  hash BLOB NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL DEFAULT 0,
  claimed_by TEXT,
  dead_at INTEGER,
  last_error TEXT
);

CREATE INDEX events_outbox_waiting ON events_outbox (target, id) WHERE dead_at IS NULL;
CREATE INDEX events_outbox_tried ON events_outbox (target, tenant, lane, id) WHERE dead_at IS NULL AND tries > 0;
CREATE INDEX events_outbox_dead ON events_outbox (target, id) WHERE dead_at IS NOT NULL;
