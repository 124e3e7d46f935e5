-- oldest program: 3
-- A worker that ended, or did not come back, costs its jobs no attempt. Programs of the version before call `lease_v1` by
-- the same name, and profit.
UPDATE orchestrator.jobs SET attempts = greatest(0, attempts - crashes), crashes = 0
WHERE crashes > 0 AND state IN ('pending', 'queued', 'in_progress');

-- Lease for several requests at once, each a worker with its limit and the beginning of its lease ids. The rows are
-- jobs taken back because their lease ran out ('expired'), jobs leased ('leased'), and the place in the round ('turn').
-- A request that is not filled looks once more, after a sweep and from the first due job.
CREATE OR REPLACE FUNCTION orchestrator.lease_v1(
  this_moment bigint, until bigint, started bigint, wanted_type text, workers text[], limits integer[], tokens text[],
  sweep boolean, after_rank integer, after_id bigint, after_host text, spare_to_hosts boolean
) RETURNS TABLE (
  kind text, request integer, place bigint, said text, id bigint, fence bigint, lease_id text, artifact_id text,
  artifact_json text, payload_digest text, resolver_hint text, host_key text, priority integer, attempts integer,
  max_attempts integer, tenant text, project text, job_type text, source text, idempotency_key text,
  correlation_id text, trace_context text, replay_of bigint, next_eligible_at bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  sweeps integer := 1000 + (SELECT sum(l) FROM unnest(limits) AS l);
  swept boolean := false;
  got integer;
  chosen bigint[];
BEGIN
  PERFORM 1 FROM orchestrator.settings WHERE name = 'paused' AND value = '1';
  IF FOUND THEN
    RETURN;
  END IF;
  FOR asked IN 1 .. cardinality(workers) LOOP
    got := 0;
    chosen := NULL;
    LOOP
      IF (sweep OR chosen IS NOT NULL) AND NOT swept THEN
        RETURN QUERY
        UPDATE orchestrator.jobs AS j SET
          last_error = CASE
            WHEN s.counted = 1 THEN 'lease_expired: the worker did not come back' ELSE j.last_error
          END,
          state = CASE WHEN j.crashes >= 2 THEN 'pending' ELSE 'queued' END,
          due = j.crashes < 2, stage = NULL, lease_id = NULL, lease_until = NULL, worker_id = NULL,
          next_eligible_at = this_moment, updated_at = this_moment
        FROM (
          SELECT e.id, (e.started_at IS NOT NULL OR e.worker_id <> ALL (workers))::integer AS counted
          FROM orchestrator.jobs AS e WHERE e.state = 'in_progress' AND e.lease_until <= this_moment
          ORDER BY e.lease_until LIMIT sweeps FOR UPDATE SKIP LOCKED
        ) AS s
        WHERE j.id = s.id
        RETURNING 'expired', 0, 0::bigint, j.state, j.id, j.fence, NULL::text, NULL::text, j.last_error, NULL::text,
          NULL::text, NULL::text, 0, j.attempts, 0, j.tenant, NULL::text, j.job_type, NULL::text, NULL::text,
          NULL::text, NULL::text, NULL::bigint, NULL::bigint;
        IF FOUND THEN
          after_rank := -2147483648;
        END IF;
        UPDATE orchestrator.jobs AS j SET due = true
        FROM (
          SELECT w.id FROM orchestrator.jobs AS w
          WHERE w.state = 'queued' AND NOT w.due AND w.next_eligible_at <= this_moment
          ORDER BY w.next_eligible_at LIMIT sweeps FOR UPDATE SKIP LOCKED
        ) AS s
        WHERE j.id = s.id;
        IF FOUND THEN
          after_rank := -2147483648;
        END IF;
        swept := true;
      END IF;
      SELECT c.chosen, c.after_host, c.spare_to_hosts INTO chosen, after_host, spare_to_hosts
      FROM orchestrator.choose_v1(limits[asked] - got, wanted_type, after_rank, after_id, after_host, spare_to_hosts)
        AS c;
      RETURN QUERY
      UPDATE orchestrator.jobs AS j SET
        state = 'in_progress', stage = 'scheduled', fence = j.fence + 1, lease_until = until,
        worker_id = workers[asked], lease_id = tokens[asked] || j.id, started_at = started, updated_at = this_moment
      FROM unnest(chosen) WITH ORDINALITY AS c (id, place)
      WHERE j.id = c.id
      RETURNING 'leased', asked, got + c.place, NULL::text, j.id, j.fence, j.lease_id, j.artifact_id, j.artifact_json,
        j.payload_digest, j.resolver_hint, j.host_key, j.priority, j.attempts, j.max_attempts, j.tenant, j.project,
        j.job_type, j.source, j.idempotency_key, j.correlation_id, j.trace_context, j.replay_of, j.next_eligible_at;
      got := got + cardinality(chosen);
      EXIT WHEN got >= limits[asked] OR (swept AND after_rank = -2147483648);
      after_rank := -2147483648;
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT 'turn', 0, spare_to_hosts::integer::bigint, NULL::text, NULL::bigint, NULL::bigint, NULL::text,
    NULL::text, NULL::text, NULL::text, NULL::text, after_host, 0, 0, 0, NULL::text, NULL::text, NULL::text,
    NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint, NULL::bigint;
END $$;
