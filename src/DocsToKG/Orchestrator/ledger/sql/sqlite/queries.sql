-- name: enqueue
-- Add a job that is known to be new.
INSERT INTO jobs (
  id, artifact_id, artifact_json, payload_digest, tenant, project, job_type, source, resolver_hint, host_key, priority,
  max_attempts, idempotency_key, correlation_id, trace_context, replay_of, state, due, next_eligible_at, created_at,
  updated_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: known_artifacts
-- The jobs that already stand for some of these artifacts, a JSON list.
SELECT id, artifact_id, state FROM jobs INDEXED BY jobs_by_artifact
WHERE tenant = :tenant AND job_type = :job_type AND replay_of IS NULL
  AND artifact_id IN (SELECT value FROM json_each(:artifacts));

-- name: known_keys
-- The jobs that were enqueued with some of these idempotency keys, a JSON list.
SELECT id, artifact_id, state, idempotency_key FROM jobs INDEXED BY jobs_by_idempotency_key
WHERE tenant = :tenant AND idempotency_key IS NOT NULL
  AND idempotency_key IN (SELECT value FROM json_each(:keys));

-- name: states_of
SELECT id, state FROM jobs WHERE id IN (SELECT value FROM json_each(:job_ids));

-- name: last_id
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs';

-- name: add_needs
INSERT INTO job_dependencies (job_id, needs_job_id) VALUES (?, ?);

-- name: has_dependencies
-- Whether any job waits for another; without one, ending a job costs nothing more.
SELECT EXISTS (SELECT 1 FROM job_dependencies);

-- name: need_states
-- The states of the jobs that one job needs.
SELECT need.state FROM job_dependencies AS d CROSS JOIN jobs AS need ON need.id = d.needs_job_id
WHERE d.job_id = :job_id;

-- name: needs_of
-- The jobs that one job needs, those that are not over first.
SELECT need.id, need.artifact_id, need.state
FROM job_dependencies AS d CROSS JOIN jobs AS need ON need.id = d.needs_job_id
WHERE d.job_id = :job_id
ORDER BY need.state IN ('done', 'skipped'), need.id LIMIT 1000;

-- name: name_and_state
SELECT artifact_id, state FROM jobs WHERE id = :job_id;

-- name: begin_dependency_changes
-- Remember the jobs among these that others wait for; their dependents are looked at from the first.
INSERT INTO dependency_changes (needs_job_id, after_job_id)
SELECT value, 0 FROM json_each(:turned)
WHERE EXISTS (SELECT 1 FROM job_dependencies INDEXED BY job_dependents WHERE needs_job_id = value)
ON CONFLICT (needs_job_id) DO UPDATE SET after_job_id = 0
RETURNING needs_job_id;

-- name: next_dependency_change
SELECT needs_job_id, after_job_id FROM dependency_changes ORDER BY needs_job_id LIMIT 1;

-- name: advance_dependency_change
UPDATE dependency_changes SET after_job_id = :after WHERE needs_job_id = :need;

-- name: end_dependency_change
DELETE FROM dependency_changes WHERE needs_job_id = :need;

-- name: dependents
-- The next jobs that wait for one, each with the states of all that it needs and the first need that failed. A suspect
-- has run before: a need once met stays met.
SELECT
  j.id, j.tenant, j.job_type, j.state, j.outcome, j.fence, j.attempts,
  (
    SELECT group_concat(DISTINCT need.state) FROM job_dependencies AS n CROSS JOIN jobs AS need
      ON need.id = n.needs_job_id
    WHERE n.job_id = j.id
  ),
  (
    SELECT min(need.id) FROM job_dependencies AS n CROSS JOIN jobs AS need ON need.id = n.needs_job_id
    WHERE n.job_id = j.id AND need.state IN ('error', 'canceled', 'timed_out')
  )
FROM job_dependencies AS d INDEXED BY job_dependents CROSS JOIN jobs AS j ON j.id = d.job_id
WHERE d.needs_job_id = :need AND d.job_id > :after AND NOT (j.state = 'pending' AND j.crashes >= 2)
ORDER BY d.job_id LIMIT :limit;

-- name: follow
-- Move a job to where the jobs that it needs put it.
UPDATE jobs SET
  state = :state, due = (:state = 'queued' AND next_eligible_at <= :now), stage = NULL, updated_at = :now,
  next_eligible_at = CASE WHEN :state = 'queued' THEN max(next_eligible_at, :now) ELSE next_eligible_at END,
  outcome = CASE WHEN :state = 'canceled' THEN 'dependency_failed' END,
  finished_at = CASE WHEN :state = 'canceled' THEN :now END,
  last_error = CASE WHEN :state = 'canceled' THEN :reason WHEN state = 'canceled' THEN NULL ELSE last_error END
WHERE id = :job_id AND state = :before
RETURNING fence;

-- name: wake_waiting
-- Mark waiting jobs whose time has come, so that leasing reads only jobs it can take.
UPDATE jobs SET due = 1
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_waiting WHERE state = 'queued' AND due = 0 AND next_eligible_at <= :now
  ORDER BY next_eligible_at LIMIT :limit
);

-- name: expire_leases
-- Take jobs back whose lease has run out. That its worker did not come back says nothing about a job: it costs no attempt.
UPDATE jobs SET
  last_error = CASE
    WHEN started_at IS NOT NULL OR worker_id <> :worker THEN 'lease_expired: the worker did not come back'
    ELSE last_error
  END,
  state = CASE WHEN crashes >= 2 THEN 'pending' ELSE 'queued' END,
  due = crashes < 2, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL, next_eligible_at = :now,
  updated_at = :now
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_leased WHERE state = 'in_progress' AND lease_until <= :now
  ORDER BY lease_until LIMIT :limit
)
RETURNING id, tenant, job_type, state, fence, attempts, last_error;

-- name: free_worker
-- Take back every lease of a worker that is known to be dead. `crashes` counts the dead workers in a row that were at
-- work on a job: after two it is a suspect, which waits as pending and is leased alone. A suspect counts only what its
-- worker's parent tells (:how), and two more of those end it. Attempts are not touched.
UPDATE jobs SET
  crashes = before + counts,
  last_error = CASE
    WHEN counts AND before >= 2 THEN :how
    WHEN counts THEN 'worker_lost: the worker process ended while it was at work on this'
    ELSE last_error
  END,
  result_json = CASE WHEN before + counts >= 4 THEN :result ELSE result_json END,
  state = CASE WHEN before + counts >= 4 THEN 'error' WHEN before + counts >= 2 THEN 'pending' ELSE 'queued' END,
  finished_at = CASE WHEN before + counts >= 4 THEN :now END,
  due = before + counts < 2, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL,
  next_eligible_at = :now, updated_at = :now
FROM (
  SELECT
    id AS held, crashes AS before,
    CASE
      WHEN crashes >= 2 THEN :how IS NOT NULL
      WHEN :in_hand IS NULL THEN started_at IS NOT NULL
      ELSE id IN (SELECT value FROM json_each(:in_hand))
    END AS counts
  FROM jobs INDEXED BY jobs_leased WHERE state = 'in_progress' AND worker_id = :worker
)
WHERE id = held
RETURNING id, tenant, job_type, state, fence, attempts, last_error;

-- name: next_suspect
-- The suspect that has waited longest for its time.
SELECT id, tenant, job_type, coalesce(source, ''), fence, attempts FROM jobs INDEXED BY jobs_suspect
WHERE state = 'pending' AND crashes >= 2 AND next_eligible_at <= :now AND (:job_type IS NULL OR job_type = :job_type)
ORDER BY next_eligible_at LIMIT 1;

-- name: next_suspect_at
SELECT min(next_eligible_at) FROM jobs INDEXED BY jobs_suspect
WHERE state = 'pending' AND crashes >= 2 AND (:job_type IS NULL OR job_type = :job_type);

-- name: queue_suspect
-- On its way to the lease that is granted in the same transaction.
UPDATE jobs SET state = 'queued' WHERE id = :job_id RETURNING id;

-- name: any_due_by_host
SELECT 1 FROM jobs INDEXED BY jobs_due_by_host WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL
  /* of type */ LIMIT 1;

-- name: due_by_age
-- The jobs to lease where no host is known: highest priority first, then oldest.
SELECT
  id, fence + 1, :token || id, :until / 1000.0, artifact_id, artifact_json, payload_digest, resolver_hint, host_key,
  priority, attempts, max_attempts, tenant, project, job_type, source, idempotency_key, correlation_id,
  trace_context, replay_of, next_eligible_at / 1000.0, :now / 1000.0
FROM jobs INDEXED BY jobs_due
WHERE state = 'queued' AND due = 1 AND host_key IS NULL AND (:job_type IS NULL OR job_type = :job_type)
ORDER BY priority DESC, id LIMIT :limit;

-- name: due_among
-- The chosen jobs as they will be leased.
SELECT
  id, fence + 1, :token || id, :until / 1000.0, artifact_id, artifact_json, payload_digest, resolver_hint, host_key,
  priority, attempts, max_attempts, tenant, project, job_type, source, idempotency_key, correlation_id,
  trace_context, replay_of, next_eligible_at / 1000.0, :now / 1000.0
FROM jobs WHERE id IN (SELECT value FROM json_each(:job_ids));

-- name: due_level
-- The highest priority that has a due job, below one already looked at.
SELECT max(priority) FROM (
  SELECT * FROM (
    SELECT priority FROM jobs INDEXED BY jobs_due
    WHERE state = 'queued' AND due = 1 AND host_key IS NULL AND priority < coalesce(:below, 9e9)
      /* of type */
    ORDER BY priority DESC LIMIT 1
  )
  UNION ALL
  SELECT * FROM (
    SELECT priority FROM jobs INDEXED BY jobs_due_by_host
    WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority < coalesce(:below, 9e9)
      /* of type */
    ORDER BY priority DESC LIMIT 1
  )
);

-- name: due_ids_by_age
SELECT id FROM jobs INDEXED BY jobs_due
WHERE state = 'queued' AND due = 1 AND host_key IS NULL AND priority = :priority
  AND (:job_type IS NULL OR job_type = :job_type)
ORDER BY id LIMIT :limit;

-- name: due_hosts
-- The next hosts that have a due job, in the order of their names: one step in the index for each.
WITH RECURSIVE host (name, place) AS (
  SELECT (
    SELECT host_key FROM jobs INDEXED BY jobs_due_by_host
    WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority = :priority AND host_key > :after
      /* of type */
    ORDER BY host_key LIMIT 1
  ), 1
  UNION ALL
  SELECT (
    SELECT host_key FROM jobs INDEXED BY jobs_due_by_host
    WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority = :priority AND host_key > host.name
      /* of type */
    ORDER BY host_key LIMIT 1
  ), place + 1 FROM host WHERE name IS NOT NULL AND place < :limit
)
SELECT name FROM host WHERE name IS NOT NULL AND (:upto IS NULL OR name <= :upto);

-- name: due_at_hosts
-- How many due jobs each of these hosts has, counted no further than it matters.
SELECT value, (
  SELECT count(*) FROM (
    SELECT 1 FROM jobs INDEXED BY jobs_due_by_host
    WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority = :priority AND host_key = value
      /* of type */
    LIMIT :most
  )
)
FROM json_each(:hosts);

-- name: due_of_hosts
-- The next due jobs of each host, after the last that is known of it: one statement for all hosts that get as many.
SELECT key, (
  SELECT group_concat(id) FROM (
    SELECT id FROM jobs INDEXED BY jobs_due_by_host
    WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority = :priority AND host_key = key
      AND id > value /* of type */
    ORDER BY id LIMIT :limit
  )
)
FROM json_each(:after);

-- name: grant
-- Grant the leases that were chosen in this transaction.
UPDATE jobs SET
  state = 'in_progress', stage = 'scheduled', fence = fence + 1, lease_until = :until, worker_id = :worker,
  lease_id = :token || id, started_at = :started, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:job_ids));

-- name: heartbeat
-- Extend the live leases of one worker; an expired lease stays expired.
UPDATE jobs SET lease_until = max(lease_until, :until), updated_at = :now
WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_leased
  WHERE state = 'in_progress' AND worker_id = :worker AND lease_until > :now
)
RETURNING lease_id, tenant;

-- name: finish
-- End many jobs, each if the lease is still the one that was granted. The sign keeps SQLite from reading all that are
-- in progress instead of looking each up by its number. The columns of an end: job, fence, lease, state, outcome, last
-- error, result; ?1 is the moment.
UPDATE jobs SET
  finished_at = ?1, updated_at = ?1, state = ends.column4, outcome = ends.column5, last_error = ends.column6,
  result_json = ends.column7, stage = NULL, lease_until = NULL, worker_id = NULL
FROM (VALUES (?, ?, ?, ?, ?, ?, ?)) AS ends
WHERE jobs.id = ends.column1 AND jobs.fence = ends.column2 AND jobs.lease_id = ends.column3
  AND +jobs.state = 'in_progress'
RETURNING id, tenant, job_type, attempts;

-- name: fail
-- Count failed tries and requeue the jobs, or end them when the tries are used up. A try that came to its end, however
-- it went, did not end its worker: the job is no suspect. The columns of a try: job, fence, lease, tries at most, last
-- error, result, delay.
UPDATE jobs SET
  attempts = attempts + 1, crashes = 0, max_attempts = tries.column4, last_error = tries.column5,
  result_json = tries.column6,
  state = CASE WHEN attempts + 1 < tries.column4 THEN 'queued' ELSE 'error' END,
  finished_at = CASE WHEN attempts + 1 < tries.column4 THEN NULL ELSE ?1 END,
  stage = CASE WHEN attempts + 1 < tries.column4 THEN 'backoff' END,
  due = tries.column7 = 0, next_eligible_at = ?1 + tries.column7, lease_until = NULL, worker_id = NULL, updated_at = ?1
FROM (VALUES (?, ?, ?, ?, ?, ?, ?)) AS tries
WHERE jobs.id = tries.column1 AND jobs.fence = tries.column2 AND jobs.lease_id = tries.column3
  AND +jobs.state = 'in_progress'
RETURNING id, tenant, job_type, attempts, state;

-- name: release
-- Give leases back. A counted release still requeues: only failures end a job. A suspect stays one. The columns: job,
-- fence, lease, counted, host, delay.
UPDATE jobs SET
  state = CASE WHEN crashes >= 2 THEN 'pending' ELSE 'queued' END,
  attempts = attempts + given.column4, host_key = coalesce(given.column5, host_key),
  stage = CASE WHEN given.column6 > 0 THEN 'backoff' END, due = given.column6 = 0 AND crashes < 2,
  next_eligible_at = ?1 + given.column6, lease_id = NULL, lease_until = NULL, worker_id = NULL, updated_at = ?1
FROM (VALUES (?, ?, ?, ?, ?, ?)) AS given
WHERE jobs.id = given.column1 AND jobs.fence = given.column2 AND jobs.lease_id = given.column3
  AND +jobs.state = 'in_progress'
RETURNING id, tenant, job_type, attempts, state;

-- name: progress
-- Say where running jobs are; the first word of a lease marks its job as begun. The columns of a word: job, fence,
-- lease, stage; ?1 is the moment.
UPDATE jobs SET updated_at = ?1, started_at = coalesce(started_at, ?1), stage = words.column4
FROM (VALUES (?, ?, ?, ?)) AS words
WHERE jobs.id = words.column1 AND jobs.fence = words.column2 AND jobs.lease_id = words.column3
  AND +jobs.state = 'in_progress'
RETURNING id;

-- name: progress_hosts
-- The same with whether the job has begun and the host that is asked, for jobs that wait before their first request.
UPDATE jobs SET
  updated_at = ?1, started_at = coalesce(started_at, CASE WHEN words.column5 THEN ?1 END), stage = words.column4,
  host_key = coalesce(words.column6, jobs.host_key)
FROM (VALUES (?, ?, ?, ?, ?, ?)) AS words
WHERE jobs.id = words.column1 AND jobs.fence = words.column2 AND jobs.lease_id = words.column3
  AND +jobs.state = 'in_progress'
RETURNING id;

-- name: leases_of
-- What became of leases, to tell a repeated answer from a late one.
SELECT id, state, last_error, result_json FROM (VALUES (?, ?, ?)) AS names
JOIN jobs ON jobs.id = names.column1 AND jobs.fence = names.column2 AND jobs.lease_id = names.column3;

-- name: open_among
-- Those of the jobs found that still fit and are not over, as they will be called off.
SELECT id, tenant, job_type, state, fence + 1, attempts FROM jobs
WHERE id IN (SELECT value FROM json_each(:job_ids)) AND +state IN ('pending', 'queued', 'in_progress') AND {wanted};

-- name: cancel
-- Call off the jobs of a page that was chosen in this transaction. The fence moves on, so that a running worker is
-- refused from now on.
UPDATE jobs SET
  state = 'canceled', fence = fence + 1, last_error = :reason, stage = NULL, lease_id = NULL, lease_until = NULL,
  worker_id = NULL, finished_at = :now, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:job_ids));

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
  state = :after, due = (:after = 'queued'), attempts = 0, crashes = 0, stage = NULL, outcome = NULL, lease_id = NULL,
  next_eligible_at = :now, started_at = NULL, finished_at = NULL, updated_at = :now
WHERE id = :job_id AND state = :state
RETURNING tenant, job_type, fence;

-- name: append_history
-- Add links that share what has a number.
INSERT INTO job_history (
  tenant, shard, at, event, from_state, to_state, ticket, detail_json, link, job_id, fence, attempts, actor, reason,
  prev_hash, hash
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?, ?, ?, ?, ?, ?, ?, ?);

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
FROM jobs

-- name: job
{jobs} WHERE id = :job_id;

-- name: job_of_artifact
-- The job that stands for an artifact, if there is one.
{jobs} WHERE tenant = :tenant AND job_type = :job_type AND artifact_id = :artifact AND replay_of IS NULL;

-- name: job_page
{jobs} WHERE {wanted} AND id > :after_id ORDER BY id LIMIT :limit;

-- name: job_page_of_state
{jobs} WHERE state = :state AND {wanted} AND id > :after_id ORDER BY id LIMIT :limit;

-- name: ids_of_state
SELECT id FROM jobs WHERE state = :state AND {wanted} AND id > :after_id ORDER BY id LIMIT :limit;

-- name: history
-- Whole history rows, as HistoryRow has them.
SELECT
  seq, tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket,
  detail_json, prev_hash, hash
FROM job_history

-- name: history_of_job
{history} WHERE job_id = :job_id ORDER BY seq;

-- name: history_after
-- The next links, those of each chain in their order.
{history} WHERE seq > :seq ORDER BY seq LIMIT :limit;

-- name: heads
-- The known end of every chain.
SELECT tenant, shard, link, hash FROM history_heads;

-- name: anchors
-- Where chains begin whose first part was removed: here none is.
SELECT tenant, shard, link, hash FROM history_heads WHERE 0;

-- name: head
SELECT link, hash FROM history_heads WHERE tenant = :tenant AND shard = 0;

-- name: begin
-- The latest time that was written, whether jobs wait to be moved on, the number of the rules, whether all is paused.
SELECT
  high_water_ms, EXISTS (SELECT 1 FROM dependency_changes),
  (SELECT value FROM settings WHERE name = 'control_version'),
  EXISTS (SELECT 1 FROM settings WHERE name = 'paused' AND value = '1')
FROM ledger_time;

-- name: time_mark
SELECT high_water_ms FROM ledger_time;

-- name: pause
SELECT reason FROM settings WHERE name = 'paused' AND value = '1';

-- name: stats
SELECT state, sum(n) FROM job_counts WHERE :job_type IS NULL OR job_type = :job_type GROUP BY state;

-- name: depths
SELECT job_type, tenant, sum(n) FROM job_counts WHERE state IN ('queued', 'pending') GROUP BY job_type, tenant;

-- name: last_event
SELECT event, reason FROM job_history WHERE job_id = :job_id ORDER BY seq DESC LIMIT 1

-- name: next_moments
-- Whether a job is due, when the next one will be, when the next lease runs out, whether all is paused; the time is
-- told by the clock of the process.
SELECT
  EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_due WHERE state = 'queued' AND due = 1 AND host_key IS NULL /* of type */)
  OR EXISTS (
    SELECT 1 FROM jobs INDEXED BY jobs_due_by_host
    WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL /* of type */
  ),
  (SELECT min(next_eligible_at) FROM jobs INDEXED BY jobs_waiting WHERE state = 'queued' AND due = 0 /* of type */),
  (SELECT min(lease_until) FROM jobs INDEXED BY jobs_leased WHERE state = 'in_progress'),
  EXISTS (SELECT 1 FROM settings WHERE name = 'paused' AND value = '1'), 0;

-- name: ahead
-- How many due jobs come before one of this priority and id, counted up to a cap.
SELECT count(*) FROM (
  SELECT 1 FROM jobs INDEXED BY jobs_due
  WHERE state = 'queued' AND due = 1 AND host_key IS NULL AND priority > :priority
  UNION ALL
  SELECT 1 FROM jobs INDEXED BY jobs_due
  WHERE state = 'queued' AND due = 1 AND host_key IS NULL AND priority = :priority AND id < :job_id
  UNION ALL
  SELECT 1 FROM jobs INDEXED BY jobs_due_by_host
  WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority > :priority
  UNION ALL
  SELECT 1 FROM jobs INDEXED BY jobs_due_by_host
  WHERE state = 'queued' AND due = 1 AND host_key IS NOT NULL AND priority = :priority AND host_key = :host_key
    AND id < :job_id
  LIMIT :cap
);
