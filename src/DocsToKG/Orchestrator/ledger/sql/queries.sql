-- name: enqueue
-- Add a job; says nothing when the artifact or the idempotency key is known.
INSERT INTO jobs (
  artifact_id, artifact_json, payload_digest, tenant, project, job_type, source, resolver_hint, host_key, priority,
  state, due, max_attempts, next_eligible_at, idempotency_key, correlation_id, trace_context, replay_of,
  created_at, updated_at
) VALUES (
  :artifact_id, :artifact_json, :payload_digest, :tenant, :project, :job_type, :source, :resolver_hint, :host_key,
  :priority, 'queued', :due, :max_attempts, :next_eligible_at, :idempotency_key, :correlation_id, :trace_context,
  :replay_of, :now, :now
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: known_job
-- The job that already stands for an artifact or an idempotency key.
SELECT id, artifact_id, state FROM jobs
WHERE (tenant = :tenant AND job_type = :job_type AND artifact_id = :artifact_id AND replay_of IS NULL)
UNION ALL
SELECT id, artifact_id, state FROM jobs
WHERE tenant = :tenant AND idempotency_key = :idempotency_key AND idempotency_key IS NOT NULL
LIMIT 1;

-- name: wake_waiting
-- Mark waiting jobs whose time has come, so that leasing reads only jobs it can take.
UPDATE jobs SET due = 1
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_waiting WHERE state = 'queued' AND due = 0 AND next_eligible_at <= :now
  ORDER BY next_eligible_at LIMIT :limit
);

-- name: expire_leases
-- Take jobs back whose lease has run out. A worker that comes back for a job it never began proves the job harmless.
UPDATE jobs SET
  attempts = attempts + (started_at IS NOT NULL OR worker_id <> :worker),
  crashes = crashes + (started_at IS NOT NULL OR worker_id <> :worker),
  last_error = CASE
    WHEN started_at IS NOT NULL OR worker_id <> :worker THEN 'lease_expired: the worker did not come back'
    ELSE last_error
  END,
  state = CASE
    WHEN crashes + (started_at IS NOT NULL OR worker_id <> :worker) >= max_attempts THEN 'error' ELSE 'queued'
  END,
  finished_at = CASE
    WHEN crashes + (started_at IS NOT NULL OR worker_id <> :worker) >= max_attempts THEN :now
  END,
  due = 1, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL, next_eligible_at = :now,
  updated_at = :now
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_leased WHERE state = 'in_progress' AND lease_until <= :now
  ORDER BY lease_until LIMIT :limit
)
RETURNING id, tenant, job_type, state, fence, attempts, last_error;

-- name: free_worker
-- Take back every lease of a worker that is known to be dead. Only jobs it had begun count an attempt.
UPDATE jobs SET
  attempts = attempts + (started_at IS NOT NULL),
  crashes = crashes + (started_at IS NOT NULL),
  last_error = CASE WHEN started_at IS NOT NULL THEN 'worker_lost: the worker process ended' ELSE last_error END,
  state = CASE
    WHEN started_at IS NOT NULL AND crashes + 1 >= max_attempts THEN 'error' ELSE 'queued'
  END,
  finished_at = CASE WHEN started_at IS NOT NULL AND crashes + 1 >= max_attempts THEN :now END,
  due = 1, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL, next_eligible_at = :now,
  updated_at = :now
WHERE state = 'in_progress' AND worker_id = :worker
RETURNING id, tenant, job_type, state, fence, attempts, last_error;

-- name: lease
-- Grant leases on jobs that are due: highest priority first, then oldest.
UPDATE jobs SET
  state = 'in_progress', stage = 'scheduled', fence = fence + 1, lease_until = :until, worker_id = :worker,
  lease_id = 'lease_' || lower(hex(randomblob(16))), started_at = :started, updated_at = :now
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_due
  WHERE state = 'queued' AND due = 1 AND (:job_type IS NULL OR job_type = :job_type)
  ORDER BY priority DESC, id LIMIT :limit
)
RETURNING
  id, fence, lease_id, lease_until / 1000.0, artifact_id, artifact_json, payload_digest, resolver_hint, host_key,
  priority, attempts, max_attempts, tenant, project, job_type, source, idempotency_key, correlation_id,
  trace_context, replay_of;

-- name: heartbeat
-- Extend the live leases of one worker; an expired lease stays expired.
UPDATE jobs SET lease_until = max(lease_until, :until), updated_at = :now
WHERE state = 'in_progress' AND worker_id = :worker AND lease_until > :now
RETURNING lease_id, tenant;

-- name: finish
-- End a job, if the lease is still the one that was granted.
UPDATE jobs SET
  state = :state, outcome = :outcome, last_error = :last_error, result_json = :result_json, stage = NULL,
  lease_until = NULL, worker_id = NULL, finished_at = :now, updated_at = :now
WHERE id = :job_id AND fence = :fence AND lease_id = :lease_id AND state = 'in_progress'
RETURNING tenant, job_type, attempts;

-- name: leases_among
-- The live leases among these jobs.
SELECT id, fence, lease_id, tenant, job_type, attempts FROM jobs
WHERE id IN (SELECT value FROM json_each(:job_ids)) AND state = 'in_progress';

-- name: finish_owned
-- End a job whose lease was found good in this transaction.
UPDATE jobs SET
  state = :state, outcome = :outcome, last_error = :last_error, result_json = :result_json, stage = NULL,
  lease_until = NULL, worker_id = NULL, finished_at = :now, updated_at = :now
WHERE id = :job_id AND fence = :fence AND lease_id = :lease_id AND state = 'in_progress';

-- name: fail
-- Count a failed try and requeue the job, or end it when the tries are used up. Crashes have a cap of their own:
-- a process that was killed says little about the job, and must not use up the tries that a real fault needs.
UPDATE jobs SET
  attempts = attempts + 1, max_attempts = :max_attempts, last_error = :last_error, result_json = :result_json,
  state = CASE WHEN attempts - crashes + 1 < :max_attempts THEN 'queued' ELSE 'error' END,
  finished_at = CASE WHEN attempts - crashes + 1 < :max_attempts THEN NULL ELSE :now END,
  stage = CASE WHEN attempts - crashes + 1 < :max_attempts THEN 'backoff' END,
  due = :due, next_eligible_at = :eligible, lease_until = NULL, worker_id = NULL, updated_at = :now
WHERE id = :job_id AND fence = :fence AND lease_id = :lease_id AND state = 'in_progress'
RETURNING tenant, job_type, attempts, state;

-- name: release
-- Give a lease back. A counted release still requeues: only failures and crashes end a job.
UPDATE jobs SET
  state = 'queued', attempts = attempts + :counted, host_key = coalesce(:host_key, host_key),
  stage = CASE WHEN :due = 1 THEN NULL ELSE 'backoff' END, due = :due, next_eligible_at = :eligible,
  lease_id = NULL, lease_until = NULL, worker_id = NULL, updated_at = :now
WHERE id = :job_id AND fence = :fence AND lease_id = :lease_id AND state = 'in_progress'
RETURNING tenant, job_type, attempts;

-- name: progress
-- Say where a running job is; the first word of a lease marks it as begun.
UPDATE jobs SET stage = :stage, started_at = coalesce(started_at, :now), updated_at = :now
WHERE id = :job_id AND fence = :fence AND lease_id = :lease_id AND state = 'in_progress'
RETURNING id;

-- name: lease_of
-- What became of a lease, to tell a repeated answer from a late one.
SELECT state, last_error, result_json FROM jobs
WHERE id = :job_id AND fence = :fence AND lease_id = :lease_id;

-- name: cancel
-- Call off a job that is not over. The fence moves on, so that a running worker is refused from now on.
UPDATE jobs SET
  state = 'canceled', fence = fence + 1, last_error = :reason, stage = NULL, lease_id = NULL, lease_until = NULL,
  worker_id = NULL, finished_at = :now, updated_at = :now
WHERE id = :job_id AND state IN ('pending', 'queued', 'in_progress')
RETURNING tenant, job_type, attempts, fence;

-- name: ended_jobs
-- The next jobs that ended in one of the named states, by id.
SELECT id, state FROM jobs
WHERE state IN (SELECT value FROM json_each(:states)) AND id > :after_id
  AND (:job_type IS NULL OR job_type = :job_type)
  AND (:job_ids IS NULL OR id IN (SELECT value FROM json_each(:job_ids)))
ORDER BY id LIMIT :limit;

-- name: retry
-- Bring an ended job back with its attempts reset.
UPDATE jobs SET
  state = 'queued', due = 1, attempts = 0, crashes = 0, stage = NULL, outcome = NULL, lease_id = NULL,
  next_eligible_at = :now, started_at = NULL, finished_at = NULL, updated_at = :now
WHERE id = :job_id AND state = :state
RETURNING tenant, job_type, fence;

-- name: append_history
INSERT INTO job_history (
  tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket, detail_json,
  prev_hash, hash
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_head
INSERT INTO history_heads (tenant, shard, link, hash) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, shard) DO UPDATE SET link = excluded.link, hash = excluded.hash;

-- name: count
INSERT INTO job_counts (tenant, job_type, state, n) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, job_type, state) DO UPDATE SET n = n + excluded.n;

-- name: set_switch
INSERT INTO settings (name, value, actor, reason, updated_at) VALUES (:name, :value, :actor, :reason, :now)
ON CONFLICT (name) DO UPDATE SET
  value = excluded.value, actor = excluded.actor, reason = excluded.reason, updated_at = excluded.updated_at
WHERE value <> excluded.value
RETURNING name;

-- name: jobs
-- Whole job rows, as JobRecord has them.
SELECT
  id, artifact_id, artifact_json, payload_digest, tenant, project, job_type, source, resolver_hint, host_key,
  priority, state, stage, attempts, max_attempts, crashes, fence, lease_id, lease_until / 1000.0, worker_id,
  next_eligible_at / 1000.0, last_error, result_json, outcome, idempotency_key, correlation_id, trace_context,
  replay_of, created_at / 1000.0, updated_at / 1000.0, started_at / 1000.0, finished_at / 1000.0
FROM jobs;

-- name: history
-- Whole history rows, as HistoryRow has them.
SELECT
  seq, tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket,
  detail_json, prev_hash, hash
FROM job_history;

-- name: heads
-- The known end of every chain, and in the last row how far the history went at that moment.
SELECT tenant, shard, link, hash FROM history_heads
UNION ALL
SELECT NULL, NULL, coalesce(max(seq), 0), NULL FROM job_history;

-- name: next_moments
-- When the next job may be leased (due, waiting or staged), and when the next lease runs out.
SELECT
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_due WHERE state = 'queued' AND due = 1),
  (SELECT min(next_eligible_at) FROM jobs INDEXED BY jobs_waiting WHERE state = 'queued' AND due = 0),
  (SELECT min(next_eligible_at) FROM jobs INDEXED BY jobs_staged WHERE state = 'pending'),
  (SELECT min(lease_until) FROM jobs INDEXED BY jobs_leased WHERE state = 'in_progress');
