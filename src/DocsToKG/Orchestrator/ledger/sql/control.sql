-- What governs the queue: who may have how much, what is held back and why, and who watches over it. One text for both
-- databases: "orchestrator." stands for the schema, and is left out where there is none.
-- Times are integers: milliseconds of ledger time. '*' as a tenant or a job type means every one.

CREATE TABLE orchestrator.tenants (
  tenant TEXT PRIMARY KEY,
  weight INTEGER NOT NULL DEFAULT 1 CHECK (weight >= 1),
  priority INTEGER NOT NULL DEFAULT 0,
  fixed INTEGER,
  blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
  blocked_reason TEXT,
  version BIGINT NOT NULL DEFAULT 1,
  updated_at BIGINT NOT NULL
);

CREATE TABLE orchestrator.quotas (
  tenant TEXT NOT NULL,
  job_type TEXT NOT NULL,
  max_active BIGINT NOT NULL,
  max_per_hour BIGINT NOT NULL,
  burst BIGINT NOT NULL,
  version BIGINT NOT NULL DEFAULT 1,
  actor TEXT NOT NULL,
  reason TEXT,
  ticket TEXT,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, job_type)
);

CREATE TABLE orchestrator.quota_policies (
  policy_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  strategy TEXT NOT NULL,
  total_capacity BIGINT NOT NULL,
  minimum_per_tenant BIGINT NOT NULL,
  maximum_per_tenant BIGINT,
  reserved_capacity BIGINT NOT NULL,
  allow_burst INTEGER NOT NULL CHECK (allow_burst IN (0, 1)),
  burst_multiplier DOUBLE PRECISION NOT NULL,
  priority INTEGER NOT NULL,
  job_type TEXT,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  version BIGINT NOT NULL DEFAULT 1,
  actor TEXT NOT NULL,
  reason TEXT,
  ticket TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE orchestrator.quota_grants (
  policy_id TEXT NOT NULL,
  tenant TEXT NOT NULL,
  job_type TEXT NOT NULL,
  held BIGINT NOT NULL,
  burst_used BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (policy_id, tenant, job_type)
);

-- The hourly tokens of a tenant's job type, and what its jobs wait for and until when.
CREATE TABLE orchestrator.lanes (
  tenant TEXT NOT NULL,
  job_type TEXT NOT NULL,
  tokens DOUBLE PRECISION,
  tokens_at BIGINT,
  blocked_until BIGINT,
  blocked_by TEXT,
  PRIMARY KEY (tenant, job_type)
);

CREATE TABLE orchestrator.throttles (
  throttle_id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  job_type TEXT,
  source TEXT,
  mode TEXT NOT NULL CHECK (mode IN ('pause', 'limit')),
  max_active BIGINT,
  origin TEXT NOT NULL CHECK (origin IN ('operator', 'breaker')),
  actor TEXT NOT NULL,
  reason TEXT,
  ticket TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  lifted_at BIGINT,
  lifted_by TEXT
);

CREATE INDEX throttles_by_tenant ON orchestrator.throttles (tenant, created_at);
CREATE INDEX throttles_not_lifted ON orchestrator.throttles (tenant) WHERE lifted_at IS NULL;

CREATE TABLE orchestrator.sources (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  state_json TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, name)
);

CREATE TABLE orchestrator.breakers (
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('closed', 'open', 'half-open')),
  forced INTEGER NOT NULL DEFAULT 0 CHECK (forced IN (0, 1)),
  open_until BIGINT,
  state_json TEXT NOT NULL,
  settings_json TEXT,
  version BIGINT NOT NULL DEFAULT 1,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, key)
);

CREATE TABLE orchestrator.breaker_transitions (
  transition_id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,
  at BIGINT NOT NULL,
  old_state TEXT NOT NULL,
  new_state TEXT NOT NULL,
  why TEXT NOT NULL,
  actor TEXT NOT NULL,
  reset_s DOUBLE PRECISION
);

CREATE INDEX breaker_transitions_by_key ON orchestrator.breaker_transitions (tenant, key, at);

CREATE TABLE orchestrator.incidents (
  incident_id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  source TEXT NOT NULL,
  severity TEXT NOT NULL,
  cause TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'acknowledged', 'resolved')),
  count BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  actor TEXT,
  reason TEXT,
  ticket TEXT,
  updated_at BIGINT NOT NULL,
  version BIGINT NOT NULL DEFAULT 1
);

CREATE INDEX incidents_by_time ON orchestrator.incidents (tenant, last_at, incident_id);
-- Of one source there is one incident at a time that is not resolved; what happens again joins it.
CREATE UNIQUE INDEX incidents_unresolved ON orchestrator.incidents (tenant, source) WHERE state <> 'resolved';

CREATE TABLE orchestrator.pack_runs (
  pack_run_id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  project TEXT,
  job_id BIGINT,
  channel TEXT,
  heartbeat_s DOUBLE PRECISION NOT NULL,
  last_heartbeat_at BIGINT,
  state TEXT NOT NULL,
  hints_json TEXT,
  correlation_id TEXT,
  idempotency_key TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  ended_at BIGINT
);

CREATE INDEX pack_runs_by_tenant ON orchestrator.pack_runs (tenant, created_at, pack_run_id);
CREATE INDEX pack_runs_open ON orchestrator.pack_runs (last_heartbeat_at) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX pack_runs_by_key ON orchestrator.pack_runs (tenant, idempotency_key)
WHERE idempotency_key IS NOT NULL;

CREATE TABLE orchestrator.pack_run_logs (
  pack_run_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  stream TEXT NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (pack_run_id, seq)
);

CREATE TABLE orchestrator.pack_run_artifacts (
  pack_run_id TEXT NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  uri TEXT NOT NULL,
  mime TEXT,
  size BIGINT,
  at BIGINT NOT NULL,
  PRIMARY KEY (pack_run_id, name)
);

CREATE TABLE orchestrator.idempotency_keys (
  tenant TEXT NOT NULL,
  path TEXT NOT NULL,
  key TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  status INTEGER,
  body TEXT,
  at BIGINT NOT NULL,
  PRIMARY KEY (tenant, path, key)
);

CREATE INDEX idempotency_keys_by_time ON orchestrator.idempotency_keys (at);

CREATE TABLE orchestrator.leaders (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until_at BIGINT NOT NULL
);

CREATE TABLE orchestrator.workers (
  tenant TEXT NOT NULL,
  worker_id TEXT NOT NULL,
  node TEXT,
  kind TEXT,
  version TEXT,
  info_json TEXT,
  started_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  PRIMARY KEY (tenant, worker_id)
);

CREATE INDEX workers_by_tenant ON orchestrator.workers (tenant, last_seen_at);

CREATE TABLE orchestrator.backfills (
  backfill_id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  job_type TEXT NOT NULL,
  from_at BIGINT NOT NULL,
  to_at BIGINT NOT NULL,
  jobs BIGINT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  ticket TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX backfills_by_tenant ON orchestrator.backfills (tenant, created_at, backfill_id);
