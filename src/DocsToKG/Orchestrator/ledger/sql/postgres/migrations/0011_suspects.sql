-- oldest program: 3
-- apart
-- Jobs that were in hand in two deaths in a row are suspects: pending, and leased alone.
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_suspect ON orchestrator.jobs (next_eligible_at)
WHERE state = 'pending' AND crashes >= 2;
