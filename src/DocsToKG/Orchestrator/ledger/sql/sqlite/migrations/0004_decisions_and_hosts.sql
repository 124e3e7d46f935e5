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
