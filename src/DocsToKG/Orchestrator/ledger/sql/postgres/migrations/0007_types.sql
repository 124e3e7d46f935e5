-- oldest program: 3
-- apart
-- The ways by which a lease for one job type finds its jobs, however many of another type wait in front of them.

CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_due_of_type ON orchestrator.jobs (job_type, (-priority), id)
WHERE state = 'queued' AND due AND host_key IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_due_by_host_of_type ON orchestrator.jobs (
  job_type, (-priority), host_key COLLATE "C", id
) WHERE state = 'queued' AND due AND host_key IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_waiting_of_type ON orchestrator.jobs (job_type, next_eligible_at)
WHERE state = 'queued' AND NOT due;
