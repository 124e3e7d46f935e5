-- A worker that ended costs its jobs no attempt. Jobs that were in hand in two deaths in a row are suspects: pending, and
-- leased alone.
UPDATE jobs SET attempts = max(0, attempts - crashes), crashes = 0
WHERE crashes > 0 AND state IN ('pending', 'queued', 'in_progress');

CREATE INDEX jobs_suspect ON jobs (next_eligible_at) WHERE state = 'pending' AND crashes >= 2;
