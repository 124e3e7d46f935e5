-- Dependencies between jobs, leasing that is fair over hosts, and fewer things to write for every change.
-- A process of schema 1 that is still running stops with an error: it would not wake the jobs that wait for others.

DROP TRIGGER jobs_keep_to_the_diagram;
DROP TRIGGER jobs_fence_only_grows;
CREATE TRIGGER jobs_keep_to_the_diagram AFTER UPDATE OF state, fence ON jobs
WHEN NEW.fence < OLD.fence OR OLD.state <> NEW.state AND NOT (
  (OLD.state = 'queued' AND NEW.state IN ('pending', 'in_progress', 'canceled'))
  OR OLD.state = 'in_progress'
  OR (OLD.state = 'pending' AND NEW.state IN ('queued', 'error', 'canceled'))
  OR (OLD.state IN ('done', 'skipped', 'error', 'canceled', 'timed_out') AND NEW.state IN ('queued', 'pending'))
)
BEGIN
  SELECT CASE
    WHEN NEW.fence < OLD.fence THEN RAISE(ABORT, 'a fence only grows')
    ELSE RAISE(ABORT, 'a job cannot change its state this way')
  END;
END;

DROP INDEX jobs_due;
DROP INDEX jobs_staged;
DROP INDEX jobs_leased;
DROP INDEX jobs_by_worker;
CREATE INDEX jobs_due ON jobs (priority DESC, id) WHERE state = 'queued' AND due = 1 AND host_key IS NULL;
CREATE INDEX jobs_due_by_host ON jobs (priority DESC, host_key, id)
WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL;
CREATE INDEX jobs_leased ON jobs (lease_until, worker_id) WHERE state = 'in_progress';

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

-- The history loses its AUTOINCREMENT, which writes another row for each one; no row is ever deleted, so none is reused.
DROP TRIGGER job_history_keeps_rows;
DROP TRIGGER job_history_loses_no_row;
DROP INDEX job_history_by_job;
ALTER TABLE job_history RENAME TO job_history_1;
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

INSERT INTO job_history SELECT * FROM job_history_1 ORDER BY seq;
DROP TABLE job_history_1;

CREATE INDEX job_history_by_job ON job_history (job_id) WHERE job_id IS NOT NULL;

CREATE TRIGGER job_history_keeps_rows BEFORE UPDATE ON job_history
BEGIN
  SELECT RAISE(ABORT, 'job_history is append-only');
END;

CREATE TRIGGER job_history_loses_no_row BEFORE DELETE ON job_history
BEGIN
  SELECT RAISE(ABORT, 'job_history is append-only');
END;
