-- name: begin
-- For the rest of the transaction, plain names of tables are those of the ledger.
SELECT
  b.database_ms, b.stored_ms, b.unsettled, b.xid, b.heads,
  (SELECT value FROM orchestrator.settings WHERE name = 'control_version'),
  EXISTS (SELECT FROM orchestrator.settings WHERE name = 'paused' AND value = '1'),
  set_config('search_path', rtrim('orchestrator.', '.'), true)
FROM orchestrator.begin_v1(%(tenants)s::text[], %(lock_timeout)s, %(idle_timeout)s) AS b

-- name: lock_heads
-- For each tenant the first chain that nobody writes to at this moment.
SELECT t.tenant, h.shard, h.link, encode(h.hash, 'hex'), h.at
FROM unnest(%(tenants)s::text[]) AS t (tenant)
CROSS JOIN LATERAL (
  SELECT shard, link, hash, at FROM orchestrator.history_heads AS c
  WHERE c.tenant = t.tenant ORDER BY shard LIMIT 1 FOR UPDATE SKIP LOCKED
) AS h

-- name: new_head
INSERT INTO orchestrator.history_heads (tenant, shard, link, hash)
SELECT
  %(tenant)s,
  CASE
    WHEN EXISTS (SELECT FROM orchestrator.history_heads WHERE tenant = %(tenant)s)
    THEN nextval('orchestrator.history_shards') ELSE 0
  END,
  0, %(hash)b
ON CONFLICT DO NOTHING
RETURNING shard

-- name: write
SELECT orchestrator.write_v1(%(history)s, %(heads)s, %(counts)s, %(turned)s::bigint[], %(time)s)

-- name: push_time
UPDATE orchestrator.ledger_time SET high_water_ms = %(now)s
WHERE only_row IN (
  SELECT only_row FROM orchestrator.ledger_time WHERE high_water_ms < %(now)s FOR UPDATE SKIP LOCKED
)

-- name: begin_dependency_changes
-- Remember the jobs among these that others wait for; their dependents are looked at from the first.
INSERT INTO orchestrator.dependency_changes (needs_job_id, after_job_id)
SELECT DISTINCT v.id, 0 FROM unnest(%(turned)s::bigint[]) AS v (id)
WHERE EXISTS (SELECT FROM orchestrator.job_dependencies AS d WHERE d.needs_job_id = v.id)
ON CONFLICT (needs_job_id) DO UPDATE SET after_job_id = 0
RETURNING needs_job_id

-- name: lease
SELECT * FROM orchestrator.lease_v1(
  %(now)s, %(until)s, %(started)s, %(job_type)s, %(workers)s::text[], %(limits)s::integer[], %(tokens)s::text[],
  %(sweep)s, %(after_rank)s, %(after_id)s, %(after_host)s, %(spare)s
)

-- name: free_worker
-- Take back every lease of a worker that is known to be dead. `crashes` counts the dead workers in a row that were at
-- work on a job: after two it is a suspect, which waits as pending and is leased alone. A suspect counts only what its
-- worker's parent tells (how), and two more of those end it. Attempts are not touched.
UPDATE orchestrator.jobs AS j SET
  crashes = before + counts,
  last_error = CASE
    WHEN counts = 1 AND before >= 2 THEN %(how)s::text
    WHEN counts = 1 THEN 'worker_lost: the worker process ended while it was at work on this'
    ELSE last_error
  END,
  result_json = CASE WHEN before + counts >= 4 THEN %(result)s::text ELSE result_json END,
  state = CASE WHEN before + counts >= 4 THEN 'error' WHEN before + counts >= 2 THEN 'pending' ELSE 'queued' END,
  finished_at = CASE WHEN before + counts >= 4 THEN %(now)s::bigint END,
  due = before + counts < 2, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL,
  next_eligible_at = %(now)s, updated_at = %(now)s
FROM (
  SELECT
    id AS held, crashes AS before,
    (
      CASE
        WHEN crashes >= 2 THEN %(how)s::text IS NOT NULL
        WHEN %(in_hand)s::bigint[] IS NULL THEN started_at IS NOT NULL
        ELSE id = ANY (%(in_hand)s::bigint[])
      END
    )::integer AS counts
  FROM orchestrator.jobs WHERE state = 'in_progress' AND worker_id = %(worker)s
  FOR UPDATE
) AS theirs
WHERE j.id = held
RETURNING id, tenant, job_type, state, fence, attempts, last_error

-- name: expire_leases
-- As a lease does: take jobs back whose lease has run out.
UPDATE orchestrator.jobs AS j SET
  last_error = CASE
    WHEN j.started_at IS NOT NULL OR j.worker_id <> %(worker)s THEN 'lease_expired: the worker did not come back'
    ELSE j.last_error
  END,
  state = CASE WHEN j.crashes >= 2 THEN 'pending' ELSE 'queued' END,
  due = j.crashes < 2, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL,
  next_eligible_at = %(now)s, updated_at = %(now)s
FROM (
  SELECT id FROM orchestrator.jobs WHERE state = 'in_progress' AND lease_until <= %(now)s
  ORDER BY lease_until LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS s
WHERE j.id = s.id
RETURNING j.id, j.tenant, j.job_type, j.state, j.fence, j.attempts, j.last_error

-- name: next_suspect
-- The suspect that has waited longest for its time and that nobody else takes at this moment.
SELECT id, tenant, job_type, coalesce(source, ''), fence, attempts FROM orchestrator.jobs
WHERE state = 'pending' AND crashes >= 2 AND next_eligible_at <= %(now)s
  AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
ORDER BY next_eligible_at LIMIT 1 FOR UPDATE SKIP LOCKED

-- name: next_suspect_at
SELECT min(next_eligible_at) FROM orchestrator.jobs
WHERE state = 'pending' AND crashes >= 2 AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)

-- name: queue_suspect
-- On its way to the lease that is granted in the same transaction.
UPDATE orchestrator.jobs SET state = 'queued' WHERE id = %(job_id)s RETURNING id

-- name: heartbeat
-- Extend the live leases of one worker; an expired lease stays expired.
UPDATE orchestrator.jobs SET lease_until = greatest(lease_until, %(until)s), updated_at = %(now)s
WHERE state = 'in_progress' AND worker_id = %(worker)s AND lease_until > %(now)s
RETURNING lease_id, tenant

-- name: finish
SELECT * FROM orchestrator.finish_v1(%(rows)s, %(now)s)

-- name: fail
-- Count failed tries and requeue the jobs, or end them when the tries are used up. A try that came to its end, however
-- it went, did not end its worker: the job is no suspect.
UPDATE orchestrator.jobs AS j SET
  attempts = j.attempts + 1, crashes = 0, max_attempts = v.d, last_error = v.e, result_json = v.f,
  state = CASE WHEN j.attempts + 1 < v.d THEN 'queued' ELSE 'error' END,
  finished_at = CASE WHEN j.attempts + 1 < v.d THEN NULL ELSE %(now)s::bigint END,
  stage = CASE WHEN j.attempts + 1 < v.d THEN 'backoff' END,
  due = v.g = 0, next_eligible_at = %(now)s + v.g, lease_until = NULL, worker_id = NULL, updated_at = %(now)s
FROM json_to_recordset(%(rows)s) AS v (a bigint, b bigint, c text, d integer, e text, f text, g bigint)
WHERE j.id = v.a AND j.fence = v.b AND j.lease_id = v.c AND j.state || '' = 'in_progress'
RETURNING j.id, j.tenant, j.job_type, j.attempts, j.state

-- name: release
-- Give leases back. A counted release still requeues: only failures end a job. A suspect stays one.
UPDATE orchestrator.jobs AS j SET
  state = CASE WHEN j.crashes >= 2 THEN 'pending' ELSE 'queued' END,
  attempts = j.attempts + v.d, host_key = coalesce(v.e, j.host_key),
  stage = CASE WHEN v.f > 0 THEN 'backoff' END, due = v.f = 0 AND j.crashes < 2, next_eligible_at = %(now)s + v.f,
  lease_id = NULL, lease_until = NULL, worker_id = NULL, updated_at = %(now)s
FROM json_to_recordset(%(rows)s) AS v (a bigint, b bigint, c text, d integer, e text, f bigint)
WHERE j.id = v.a AND j.fence = v.b AND j.lease_id = v.c AND j.state || '' = 'in_progress'
RETURNING j.id, j.tenant, j.job_type, j.attempts, j.state

-- name: progress
-- Say where running jobs are; the first word of a lease marks its job as begun.
UPDATE orchestrator.jobs AS j SET
  stage = v.d, updated_at = %(now)s, started_at = coalesce(j.started_at, %(now)s::bigint)
FROM json_to_recordset(%(rows)s) AS v (a bigint, b bigint, c text, d text)
WHERE j.id = v.a AND j.fence = v.b AND j.lease_id = v.c AND j.state || '' = 'in_progress'
RETURNING j.id

-- name: progress_hosts
-- The same with whether the job has begun and the host that is asked, for jobs that wait before their first request.
UPDATE orchestrator.jobs AS j SET
  stage = v.d, host_key = coalesce(v.f, j.host_key), updated_at = %(now)s,
  started_at = coalesce(j.started_at, CASE WHEN v.e THEN %(now)s::bigint END)
FROM json_to_recordset(%(rows)s) AS v (a bigint, b bigint, c text, d text, e boolean, f text)
WHERE j.id = v.a AND j.fence = v.b AND j.lease_id = v.c AND j.state || '' = 'in_progress'
RETURNING j.id

-- name: leases_of
-- What became of leases, to tell a repeated answer from a late one.
SELECT j.id, j.state, j.last_error, j.result_json
FROM json_to_recordset(%(rows)s) AS v (a bigint, b bigint, c text)
JOIN orchestrator.jobs AS j ON j.id = v.a AND j.fence = v.b AND j.lease_id = v.c

-- name: cancel
-- Call off the jobs of a page that was chosen in this transaction. The fence moves on, so that a running worker is
-- refused from now on.
UPDATE orchestrator.jobs SET
  state = 'canceled', fence = fence + 1, last_error = %(reason)s, stage = NULL, lease_id = NULL, lease_until = NULL,
  worker_id = NULL, finished_at = %(now)s, updated_at = %(now)s
WHERE id = ANY (%(job_ids)s::bigint[])

-- name: open_among
-- Those of the jobs found that still fit and are not over, as they will be called off; they are locked.
SELECT id, tenant, job_type, state, fence + 1, attempts FROM orchestrator.jobs
WHERE id = ANY (%(job_ids)s::bigint[]) AND state IN ('pending', 'queued', 'in_progress') AND {wanted}
ORDER BY id FOR UPDATE

-- name: ended_jobs
-- The next jobs that ended in one of the named states, by id.
SELECT id, state FROM orchestrator.jobs
WHERE state = ANY (%(states)s::text[]) AND id > %(after_id)s
  AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
  AND (%(job_ids)s::bigint[] IS NULL OR id = ANY (%(job_ids)s))
ORDER BY id LIMIT %(limit)s

-- name: retry
-- Bring an ended job back with its attempts reset.
UPDATE orchestrator.jobs SET
  state = %(after)s, due = (%(after)s = 'queued'), attempts = 0, crashes = 0, stage = NULL, outcome = NULL,
  lease_id = NULL, next_eligible_at = %(now)s, started_at = NULL, finished_at = NULL, updated_at = %(now)s
WHERE id = %(job_id)s AND state = %(state)s
RETURNING tenant, job_type, fence

-- name: need_states
-- The states of the jobs that one job needs, which stay as they are until this transaction is over.
SELECT need.state FROM orchestrator.job_dependencies AS d JOIN orchestrator.jobs AS need ON need.id = d.needs_job_id
WHERE d.job_id = %(job_id)s ORDER BY need.id FOR SHARE OF need

-- name: states_of
SELECT id, state FROM orchestrator.jobs WHERE id = ANY (%(job_ids)s::bigint[]) ORDER BY id FOR SHARE

-- name: known_artifacts
-- The jobs that already stand for some of these artifacts, a JSON list: a look into the index for each. As a join, a
-- table that was never analysed would be read as a whole for each.
SELECT j.id, v.artifact_id, j.state
FROM json_array_elements_text(%(artifacts)s::json) AS v (artifact_id)
CROSS JOIN LATERAL (
  SELECT k.id, k.state FROM orchestrator.jobs AS k
  WHERE k.tenant = %(tenant)s AND k.job_type = %(job_type)s AND k.artifact_id = v.artifact_id AND k.replay_of IS NULL
  LIMIT 1
) AS j

-- name: known_keys
-- The jobs that were enqueued with some of these idempotency keys, a JSON list.
SELECT j.id, j.artifact_id, j.state, v.idempotency_key
FROM json_array_elements_text(%(keys)s::json) AS v (idempotency_key)
CROSS JOIN LATERAL (
  SELECT k.id, k.artifact_id, k.state FROM orchestrator.jobs AS k
  WHERE k.tenant = %(tenant)s AND k.idempotency_key = v.idempotency_key LIMIT 1
) AS j

-- name: new_ids
SELECT nextval(pg_get_serial_sequence('orchestrator.jobs', 'id')) FROM generate_series(1, %(count)s)

-- name: enqueue
INSERT INTO orchestrator.jobs (
  id, artifact_id, artifact_json, payload_digest, tenant, project, job_type, source, resolver_hint, host_key, priority,
  max_attempts, idempotency_key, correlation_id, trace_context, replay_of, state, due, next_eligible_at, created_at,
  updated_at
)
SELECT v.*
FROM json_to_recordset(%(rows)s) AS v (
  a bigint, b text, c text, d text, e text, f text, g text, h text, i text, j text, k integer, l integer, m text,
  n text, o text, p bigint, q text, r boolean, s bigint, t bigint, u bigint
)

-- name: enqueue_many
-- The same columns as `enqueue`: by COPY many rows take two thirds of the time.
COPY orchestrator.jobs (
  id, artifact_id, artifact_json, payload_digest, tenant, project, job_type, source, resolver_hint, host_key, priority,
  max_attempts, idempotency_key, correlation_id, trace_context, replay_of, state, due, next_eligible_at, created_at,
  updated_at
) FROM STDIN (FORMAT BINARY)

-- name: add_needs
INSERT INTO orchestrator.job_dependencies (job_id, needs_job_id)
SELECT v.* FROM json_to_recordset(%(rows)s) AS v (a bigint, b bigint)

-- name: has_dependencies
SELECT EXISTS (SELECT FROM orchestrator.job_dependencies)

-- name: next_dependency_change
SELECT needs_job_id, after_job_id FROM orchestrator.dependency_changes ORDER BY needs_job_id LIMIT 1

-- name: advance_dependency_change
UPDATE orchestrator.dependency_changes SET after_job_id = %(after)s WHERE needs_job_id = %(need)s

-- name: end_dependency_change
DELETE FROM orchestrator.dependency_changes WHERE needs_job_id = %(need)s

-- name: dependents
-- The next jobs that wait for one, each with the states of all that it needs and the first need that failed. A suspect
-- has run before: a need once met stays met.
SELECT
  j.id, j.tenant, j.job_type, j.state, j.outcome, j.fence, j.attempts,
  (
    SELECT string_agg(DISTINCT need.state, ',') FROM orchestrator.job_dependencies AS n
    JOIN orchestrator.jobs AS need ON need.id = n.needs_job_id WHERE n.job_id = j.id
  ),
  (
    SELECT min(need.id) FROM orchestrator.job_dependencies AS n
    JOIN orchestrator.jobs AS need ON need.id = n.needs_job_id
    WHERE n.job_id = j.id AND need.state IN ('error', 'canceled', 'timed_out')
  )
FROM orchestrator.job_dependencies AS d JOIN orchestrator.jobs AS j ON j.id = d.job_id
WHERE d.needs_job_id = %(need)s AND d.job_id > %(after)s AND NOT (j.state = 'pending' AND j.crashes >= 2)
ORDER BY d.job_id LIMIT %(limit)s

-- name: follow
-- Move a job to where the jobs that it needs put it, unless somebody else has moved it meanwhile.
UPDATE orchestrator.jobs SET
  state = %(state)s, due = (%(state)s = 'queued' AND next_eligible_at <= %(now)s), stage = NULL, updated_at = %(now)s,
  next_eligible_at = CASE
    WHEN %(state)s = 'queued' THEN greatest(next_eligible_at, %(now)s) ELSE next_eligible_at
  END,
  outcome = CASE WHEN %(state)s = 'canceled' THEN 'dependency_failed' END,
  finished_at = CASE WHEN %(state)s = 'canceled' THEN %(now)s::bigint END,
  last_error = CASE
    WHEN %(state)s = 'canceled' THEN %(reason)s WHEN state = 'canceled' THEN NULL ELSE last_error
  END
WHERE id = %(job_id)s AND state = %(before)s
RETURNING fence

-- name: name_and_state
SELECT artifact_id, state FROM orchestrator.jobs WHERE id = %(job_id)s

-- name: set_switch
INSERT INTO orchestrator.settings AS s (name, value, actor, reason, updated_at)
VALUES (%(name)s, %(value)s, %(actor)s, %(reason)s, %(now)s)
ON CONFLICT (name) DO UPDATE SET
  value = excluded.value, actor = excluded.actor, reason = excluded.reason, updated_at = excluded.updated_at
WHERE s.value <> excluded.value
RETURNING name

-- name: fold_counts
-- Move gathered changes into the counts. Whoever folds beside us takes other rows.
WITH gone AS (
  DELETE FROM orchestrator.count_changes WHERE id IN (
    SELECT id FROM orchestrator.count_changes ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
  )
  RETURNING tenant, job_type, state, n
)
INSERT INTO orchestrator.job_counts AS c (tenant, job_type, state, n)
SELECT tenant, job_type, state, sum(n) FROM gone GROUP BY tenant, job_type, state ORDER BY tenant, job_type, state
ON CONFLICT (tenant, job_type, state) DO UPDATE SET n = c.n + excluded.n

-- name: stats
SELECT state, sum(n)::bigint FROM (
  SELECT job_type, state, n FROM orchestrator.job_counts
  UNION ALL SELECT job_type, state, n FROM orchestrator.count_changes
) AS counted WHERE %(job_type)s::text IS NULL OR job_type = %(job_type)s GROUP BY state

-- name: depths
SELECT job_type, tenant, sum(n)::bigint FROM (
  SELECT job_type, tenant, state, n FROM orchestrator.job_counts
  UNION ALL SELECT job_type, tenant, state, n FROM orchestrator.count_changes
) AS counted WHERE state IN ('queued', 'pending') GROUP BY job_type, tenant

-- name: jobs
-- Whole job rows, as JobRecord has them.
SELECT
  id, artifact_id, artifact_json, payload_digest, tenant, project, job_type, source, resolver_hint, host_key,
  priority, state, stage, attempts, max_attempts, crashes, fence, lease_id, lease_until / 1000.0::float8, worker_id,
  next_eligible_at / 1000.0::float8, last_error, result_json, outcome, idempotency_key, correlation_id, trace_context,
  replay_of, created_at / 1000.0::float8, updated_at / 1000.0::float8, started_at / 1000.0::float8,
  finished_at / 1000.0::float8
FROM orchestrator.jobs

-- name: job
{jobs} WHERE id = %(job_id)s

-- name: job_of_artifact
-- The job that stands for an artifact, if there is one.
{jobs} WHERE tenant = %(tenant)s AND job_type = %(job_type)s AND artifact_id = %(artifact)s AND replay_of IS NULL

-- name: job_page
{jobs} WHERE {wanted} AND id > %(after_id)s ORDER BY id LIMIT %(limit)s

-- name: job_page_of_state
{jobs} WHERE state = %(state)s AND {wanted} AND id > %(after_id)s ORDER BY id LIMIT %(limit)s

-- name: ids_of_state
SELECT id FROM orchestrator.jobs WHERE state = %(state)s AND {wanted} AND id > %(after_id)s ORDER BY id LIMIT %(limit)s

-- name: history
-- Whole history rows, as HistoryRow has them.
SELECT
  seq, tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, ticket,
  detail_json, prev_hash, hash
FROM orchestrator.job_history

-- name: history_of_job
{history} WHERE job_id = %(job_id)s ORDER BY seq

-- name: history_after
-- The next links, those of each chain in their order.
{history} WHERE (tenant, shard, link) > (%(tenant)s, %(shard)s, %(link)s) ORDER BY tenant, shard, link LIMIT %(limit)s

-- name: heads
-- The known end of every chain.
SELECT tenant, shard, link, hash FROM orchestrator.history_heads

-- name: anchors
-- Where chains begin whose first part was removed.
SELECT tenant, shard, link, hash FROM orchestrator.history_anchors ORDER BY link

-- name: time_mark
SELECT high_water_ms FROM orchestrator.ledger_time

-- name: pause
SELECT reason FROM orchestrator.settings WHERE name = 'paused' AND value = '1'

-- name: last_event
SELECT event, reason FROM orchestrator.job_history WHERE job_id = %(job_id)s ORDER BY seq DESC LIMIT 1

-- name: next_moments
-- Whether a job is due, when the next one will be, when the next lease runs out, and the time.
SELECT
  EXISTS (SELECT FROM orchestrator.jobs WHERE state = 'queued' AND due AND host_key IS NULL)
  OR EXISTS (SELECT FROM orchestrator.jobs WHERE state = 'queued' AND due AND host_key IS NOT NULL),
  (
    SELECT next_eligible_at FROM orchestrator.jobs WHERE state = 'queued' AND NOT due ORDER BY next_eligible_at LIMIT 1
  ),
  (SELECT lease_until FROM orchestrator.jobs WHERE state = 'in_progress' ORDER BY lease_until LIMIT 1),
  EXISTS (SELECT FROM orchestrator.settings WHERE name = 'paused' AND value = '1'),
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- name: next_moments_of_type
-- The same for the jobs of one type; leases are those of all.
SELECT
  EXISTS (SELECT FROM orchestrator.jobs WHERE state = 'queued' AND due AND host_key IS NULL AND job_type = %(job_type)s)
  OR EXISTS (
    SELECT FROM orchestrator.jobs WHERE state = 'queued' AND due AND host_key IS NOT NULL AND job_type = %(job_type)s
  ),
  (
    SELECT next_eligible_at FROM orchestrator.jobs WHERE state = 'queued' AND NOT due AND job_type = %(job_type)s
    ORDER BY next_eligible_at LIMIT 1
  ),
  (SELECT lease_until FROM orchestrator.jobs WHERE state = 'in_progress' ORDER BY lease_until LIMIT 1),
  EXISTS (SELECT FROM orchestrator.settings WHERE name = 'paused' AND value = '1'),
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- name: needs_of
-- The jobs that one job needs, those that are not over first.
SELECT need.id, need.artifact_id, need.state
FROM orchestrator.job_dependencies AS d JOIN orchestrator.jobs AS need ON need.id = d.needs_job_id
WHERE d.job_id = %(job_id)s
ORDER BY need.state IN ('done', 'skipped'), need.id LIMIT 1000

-- name: ahead
-- How many due jobs come before one of this priority and id, counted up to a cap.
SELECT count(*) FROM (
  SELECT 1 FROM orchestrator.jobs
  WHERE state = 'queued' AND due AND host_key IS NULL AND (-priority, id) < (-%(priority)s::integer, %(job_id)s)
  UNION ALL
  SELECT 1 FROM orchestrator.jobs
  WHERE state = 'queued' AND due AND host_key IS NOT NULL AND -priority < -%(priority)s::integer
  UNION ALL
  SELECT 1 FROM orchestrator.jobs
  WHERE state = 'queued' AND due AND host_key IS NOT NULL AND -priority = -%(priority)s::integer
    AND host_key = %(host_key)s::text COLLATE "C" AND id < %(job_id)s
  LIMIT %(cap)s
) AS ahead

-- name: work
-- Its values are written into the text (`calling`), so that one message begins the transaction and makes the call.
SELECT * FROM orchestrator.work_v4

-- name: place
-- For the rest of the transaction, plain names of tables are those of the ledger.
SELECT set_config('search_path', rtrim('orchestrator.', '.'), true)

-- name: due_lanes
-- The next lanes that have a due job, in the order of their names: one step in the index for each.
WITH RECURSIVE lane (tenant, job_type, source, place) AS (
  (
    SELECT j.tenant, j.job_type, coalesce(j.source, ''), 1 FROM orchestrator.jobs AS j
    WHERE j.state = 'queued' AND j.due
      AND (j.tenant COLLATE "C", j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C")
        > (%(tenant)s, %(job_type)s, %(source)s)
    ORDER BY j.tenant COLLATE "C", j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C" LIMIT 1
  )
  UNION ALL
  SELECT n.tenant, n.job_type, n.source, lane.place + 1 FROM lane
  CROSS JOIN LATERAL (
    SELECT j.tenant, j.job_type, coalesce(j.source, '') AS source FROM orchestrator.jobs AS j
    WHERE j.state = 'queued' AND j.due
      AND (j.tenant COLLATE "C", j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C")
        > (lane.tenant, lane.job_type, lane.source)
    ORDER BY j.tenant COLLATE "C", j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C" LIMIT 1
  ) AS n
  WHERE lane.place < %(most)s
)
SELECT tenant, job_type, source FROM lane

-- name: lane_queues
-- The first due jobs of lanes, locked; those that others hold are stepped over.
SELECT l.tenant, l.job_type, l.source, q.rank, q.id
FROM unnest(%(tenants)s::text[], %(job_types)s::text[], %(sources)s::text[]) AS l (tenant, job_type, source)
CROSS JOIN LATERAL (
  SELECT -j.priority AS rank, j.id FROM orchestrator.jobs AS j
  WHERE j.state = 'queued' AND j.due AND j.tenant COLLATE "C" = l.tenant AND j.job_type COLLATE "C" = l.job_type
    AND coalesce(j.source, '') COLLATE "C" = l.source
  ORDER BY -j.priority, j.id LIMIT %(count)s FOR UPDATE SKIP LOCKED
) AS q

-- name: grant
-- Lease the jobs that were chosen and locked in this transaction.
UPDATE orchestrator.jobs AS j SET
  state = 'in_progress', stage = 'scheduled', fence = j.fence + 1, lease_until = %(until)s, worker_id = c.worker,
  lease_id = c.token || j.id, started_at = %(started)s, updated_at = %(now)s
FROM unnest(
  %(ids)s::bigint[], %(requests)s::integer[], %(workers)s::text[], %(tokens)s::text[]
) WITH ORDINALITY AS c (id, request, worker, token, place)
WHERE j.id = c.id AND j.state || '' = 'queued'
RETURNING 'leased', c.request, c.place, NULL::text, j.id, j.fence, j.lease_id, j.artifact_id, j.artifact_json,
  j.payload_digest, j.resolver_hint, j.host_key, j.priority, j.attempts, j.max_attempts, j.tenant, j.project,
  j.job_type, j.source, j.idempotency_key, j.correlation_id, j.trace_context, j.replay_of, j.next_eligible_at
