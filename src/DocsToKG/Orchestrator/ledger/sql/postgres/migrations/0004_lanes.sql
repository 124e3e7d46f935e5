-- oldest program: 3
-- apart
-- The ways by which a governed lease finds lanes with work and counts what runs.

CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_by_lane ON orchestrator.jobs (
  tenant COLLATE "C", job_type COLLATE "C", (coalesce(source, '')) COLLATE "C", (-priority), id
) WHERE state = 'queued' AND due;
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_running ON orchestrator.jobs (
  tenant COLLATE "C", job_type COLLATE "C", (coalesce(source, '')) COLLATE "C", lease_until
) WHERE state = 'in_progress';

-- For the lists of a tenant. The tenant of a single machine is left out: its jobs are the whole ledger, and it need not
-- pay for one more index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_of_tenants ON orchestrator.jobs (tenant, state, id)
WHERE tenant <> 'default';
