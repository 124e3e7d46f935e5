-- oldest program: 3
-- A tenant's leases by one call where rules were written too, as long as they limit nothing: this is what the service asks
-- for, and every further statement of a lease is one more wait for the processor. Programs of the version before go on
-- with `work_v3`.

-- As `work_v3`, with these differences. Where rules were written and `known_rules` is not their number, or jobs end, there
-- is no row and nothing is done: the rules are to be read, or their breakers told. With `only_tenant` jobs are leased by
-- priority and age over all lanes of the tenant, whoever else waits, to as many workers as ask. There is one row ('apart')
-- and nothing is done while the queue is paused, with more than a hundred lanes, and for everyone where rules were written
-- and several tenants wait, since turns between them are taken elsewhere.
CREATE FUNCTION orchestrator.work_v4(
  idle_timeout text, mark_ms bigint, onward_ms bigint, own_ms bigint, ends json,
  workers text[], limits integer[], tokens text[], ttl_ms bigint, begun boolean, wanted_type text,
  swept_ms bigint, after_rank integer, after_id bigint, after_host text, spare_to_hosts boolean, only_tenant text,
  known_rules bigint
) RETURNS SETOF orchestrator.leased_v2 LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan SET lock_timeout = '5s'
AS $$
DECLARE
  begin_of record;
  this_moment bigint := extract(epoch FROM clock_timestamp()) * 1000;
  moves orchestrator.move_v2[] := '{}';
  leased orchestrator.leased_v2[] := '{}';
  job orchestrator.leased_v2;
  done orchestrator.leased_v2;
  lanes text[] := '{}';
  ended bigint[];
  failed bigint[] := '{}';
  sweeps boolean := false;
  places integer := 0;
  got integer := 0;
  swept boolean := false;
  found orchestrator.leased_v2[];
  owners integer[];
  types text[];
  sources text[];
BEGIN
  SELECT
    t.high_water_ms, set_config('idle_in_transaction_session_timeout', idle_timeout, true),
    EXISTS (SELECT FROM orchestrator.dependency_changes) AS unsettled,
    EXISTS (SELECT FROM orchestrator.settings AS s WHERE s.name = 'paused' AND s.value = '1') AS is_paused,
    only_tenant IS NULL
    AND EXISTS (SELECT FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due AND j.host_key IS NOT NULL)
      AS has_hosts,
    (SELECT s.value::bigint FROM orchestrator.settings AS s WHERE s.name = 'control_version') AS rules
  INTO begin_of FROM orchestrator.ledger_time AS t;
  IF begin_of.rules IS NOT NULL AND (ends IS NOT NULL OR known_rules IS DISTINCT FROM begin_of.rules) THEN
    RETURN;
  END IF;
  done.kind := 'apart';
  IF only_tenant IS NOT NULL THEN
    IF begin_of.is_paused THEN
      RETURN NEXT done;
      RETURN;
    END IF;
    IF cardinality(workers) > 1 THEN
      owners := ARRAY(
        SELECT w.request FROM unnest(limits) WITH ORDINALITY AS w (places, request), generate_series(1, w.places)
        ORDER BY w.request
      );
    END IF;
  ELSIF begin_of.rules IS NOT NULL AND (
    SELECT j.tenant FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due
    ORDER BY j.tenant COLLATE "C" LIMIT 1
  ) <> (
    SELECT j.tenant FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due
    ORDER BY j.tenant COLLATE "C" DESC LIMIT 1
  ) THEN
    RETURN NEXT done;
    RETURN;
  END IF;
  IF own_ms IS NOT NULL THEN
    this_moment := greatest(own_ms, begin_of.high_water_ms);
  ELSIF this_moment < greatest(mark_ms, begin_of.high_water_ms) THEN
    this_moment := greatest(onward_ms, begin_of.high_water_ms);
  END IF;
  done.id := begin_of.unsettled::integer;
  IF workers IS NOT NULL THEN
    sweeps := this_moment - swept_ms >= 100;
    IF only_tenant IS NOT NULL THEN
      places := CASE WHEN sweeps THEN 0 ELSE coalesce(cardinality(owners), limits[1]) END;
    ELSIF NOT sweeps AND NOT begin_of.is_paused AND NOT begin_of.has_hosts AND cardinality(workers) = 1 THEN
      places := limits[1];
    END IF;
  END IF;
  LOOP
    IF only_tenant IS NOT NULL AND places > 0 THEN
      -- The lanes of the tenant that have a due job: one step in the index for each.
      WITH RECURSIVE lane (job_type, source, place) AS (
        (
          SELECT j.job_type, coalesce(j.source, ''), 1 FROM orchestrator.jobs AS j
          WHERE j.state = 'queued' AND j.due AND j.tenant COLLATE "C" = only_tenant
            AND j.job_type COLLATE "C" >= coalesce(wanted_type, '')
          ORDER BY j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C" LIMIT 1
        )
        UNION ALL
        SELECT n.job_type, n.source, lane.place + 1 FROM lane
        CROSS JOIN LATERAL (
          SELECT j.job_type, coalesce(j.source, '') AS source FROM orchestrator.jobs AS j
          WHERE j.state = 'queued' AND j.due AND j.tenant COLLATE "C" = only_tenant
            AND (j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C") > (lane.job_type, lane.source)
          ORDER BY j.job_type COLLATE "C", coalesce(j.source, '') COLLATE "C" LIMIT 1
        ) AS n
        WHERE lane.place < 101 AND (wanted_type IS NULL OR lane.job_type = wanted_type)
      )
      SELECT array_agg(l.job_type), array_agg(l.source) INTO types, sources FROM lane AS l
      WHERE wanted_type IS NULL OR l.job_type = wanted_type;
      IF cardinality(types) > 100 THEN
        RETURN NEXT done;
        RETURN;
      END IF;
    END IF;
    IF ends IS NOT NULL OR places > 0 THEN
      -- Ends and, in the plain case, the next jobs by one statement: to begin one on a table with so many indexes takes
      -- longer than to change a row of it. The plain case are jobs without a host, for one worker; and those of one tenant,
      -- which go by priority and age over all of its lanes.
      WITH told AS (
        SELECT v.i, v.f, v.l, v.s, v.o, v.e, v.r, NULL::integer AS w
        FROM json_to_recordset(ends) AS v (i bigint, f bigint, l text, s text, o text, e text, r text)
        UNION ALL
        SELECT c.id, NULL, NULL, 'in_progress', NULL, NULL, NULL, coalesce(owners[c.place], 1)
        FROM unnest(CASE WHEN places = 0 THEN '{}' WHEN only_tenant IS NOT NULL THEN ARRAY(
          SELECT q.id FROM unnest(types, sources) AS l (job_type, source)
          CROSS JOIN LATERAL (
            SELECT j.id, -j.priority AS rank FROM orchestrator.jobs AS j
            WHERE j.state = 'queued' AND j.due AND j.tenant COLLATE "C" = only_tenant
              AND j.job_type COLLATE "C" = l.job_type AND coalesce(j.source, '') COLLATE "C" = l.source
            ORDER BY -j.priority, j.id LIMIT places FOR UPDATE SKIP LOCKED
          ) AS q
          ORDER BY q.rank, q.id LIMIT places
        ) WHEN wanted_type IS NULL THEN ARRAY(
          SELECT q.id FROM orchestrator.jobs AS q
          WHERE q.state = 'queued' AND q.due AND q.host_key IS NULL AND (-q.priority, q.id) > (after_rank, after_id)
          ORDER BY -q.priority, q.id LIMIT places FOR UPDATE SKIP LOCKED
        ) ELSE ARRAY(
          SELECT q.id FROM orchestrator.jobs AS q
          WHERE q.state = 'queued' AND q.due AND q.host_key IS NULL AND (-q.priority, q.id) > (after_rank, after_id)
            AND q.job_type = wanted_type
          ORDER BY -q.priority, q.id LIMIT places FOR UPDATE SKIP LOCKED
        ) END) WITH ORDINALITY AS c (id, place)
      ), changed AS (
        UPDATE orchestrator.jobs AS j SET
          state = t.s,
          stage = CASE WHEN t.f IS NULL THEN 'scheduled' END,
          fence = CASE WHEN t.f IS NULL THEN j.fence + 1 ELSE j.fence END,
          lease_until = CASE WHEN t.f IS NULL THEN this_moment + ttl_ms END,
          worker_id = CASE WHEN t.f IS NULL THEN workers[t.w] END,
          lease_id = CASE WHEN t.f IS NULL THEN tokens[t.w] || j.id ELSE j.lease_id END,
          started_at = CASE WHEN t.f IS NOT NULL THEN j.started_at WHEN begun THEN this_moment END,
          outcome = CASE WHEN t.f IS NULL THEN j.outcome ELSE t.o END,
          last_error = CASE WHEN t.f IS NULL THEN j.last_error ELSE t.e END,
          result_json = CASE WHEN t.f IS NULL THEN j.result_json ELSE t.r END,
          finished_at = CASE WHEN t.f IS NULL THEN j.finished_at ELSE this_moment END,
          updated_at = this_moment
        FROM told AS t
        WHERE j.id = t.i
          AND (t.f IS NULL OR (j.fence = t.f AND j.lease_id = t.l AND j.state || '' = 'in_progress'))
        RETURNING CASE WHEN t.f IS NULL THEN (
          'leased', t.w, 0, NULL, j.id, j.fence, j.lease_id, j.artifact_id, j.artifact_json, j.payload_digest,
          j.resolver_hint, j.host_key, j.priority, j.attempts, j.max_attempts, j.tenant, j.project, j.job_type,
          j.source, j.idempotency_key, j.correlation_id, j.trace_context, j.replay_of, j.next_eligible_at
        )::orchestrator.leased_v2 ELSE (
          'ended', 0, 0, j.state, j.id, j.fence, j.lease_id, NULL, j.last_error, NULL, NULL, NULL, j.priority,
          j.attempts, NULL, j.tenant, NULL, j.job_type, NULL, NULL, NULL, NULL, NULL, NULL
        )::orchestrator.leased_v2 END AS job
      )
      -- What was ended comes first, and so it does in the history.
      SELECT
        coalesce(array_agg(c.job ORDER BY (c.job).request, -(c.job).priority, (c.job).id), '{}'),
        count(*) FILTER (WHERE (c.job).kind = 'leased')
      INTO found, got FROM changed AS c;
      leased := leased || found;
    END IF;
    EXIT WHEN only_tenant IS NULL OR NOT sweeps OR swept;
    -- A lease of nothing: what it does beside is to look for leases that ran out and for jobs whose time has come.
    leased := leased || ARRAY(
      SELECT ROW(l.*)::orchestrator.leased_v2
      FROM orchestrator.lease_v1(
        this_moment, this_moment, NULL, wanted_type, workers, array_fill(0, ARRAY[cardinality(workers)]), tokens, true, after_rank, after_id, after_host,
        spare_to_hosts
      ) AS l
    );
    swept := true;
    ends := NULL;
    places := coalesce(cardinality(owners), limits[1]);
  END LOOP;
  IF workers IS NOT NULL AND only_tenant IS NULL THEN
    limits[1] := limits[1] - got;
    IF cardinality(workers) > 1 OR limits[1] > 0 THEN
      leased := leased || ARRAY(
        SELECT ROW(l.*)::orchestrator.leased_v2
        FROM orchestrator.lease_v1(
          this_moment, this_moment + ttl_ms, CASE WHEN begun THEN this_moment END, wanted_type, workers, limits, tokens,
          sweeps, after_rank, after_id, after_host, spare_to_hosts
        ) AS l
        ORDER BY l.request, l.place
      );
    END IF;
  END IF;
  IF cardinality(leased) > 0 THEN
    FOREACH job IN ARRAY leased LOOP
      IF job.kind = 'ended' THEN
        moves := moves || (
          job.id, job.tenant, job.job_type, 'finished', 'in_progress', job.said, job.fence, job.attempts, job.lease_id,
          job.artifact_json
        )::orchestrator.move_v2;
        ended := ended || job.id;
      ELSIF job.kind = 'expired' THEN
        moves := moves || (
          job.id, job.tenant, job.job_type, 'lease_expired', 'in_progress', job.said, job.fence, job.attempts, 'ledger',
          job.artifact_json
        )::orchestrator.move_v2;
        IF job.said = 'queued' THEN
          lanes := lanes || job.job_type;
        ELSE
          failed := failed || job.id;
        END IF;
      ELSE
        RETURN NEXT job;
        IF job.kind = 'leased' THEN
          moves := moves || (
            job.id, job.tenant, job.job_type, 'leased', 'queued', 'in_progress', job.fence, job.attempts,
            workers[job.request], NULL
          )::orchestrator.move_v2;
        END IF;
      END IF;
    END LOOP;
  END IF;
  IF this_moment - begin_of.high_water_ms >= 1000 THEN
    UPDATE orchestrator.ledger_time AS t SET high_water_ms = this_moment
    WHERE t.only_row IN (
      SELECT w.only_row FROM orchestrator.ledger_time AS w WHERE w.high_water_ms < this_moment FOR UPDATE SKIP LOCKED
    );
  END IF;
  IF cardinality(moves) > 0 THEN
    done.said := orchestrator.record_v3(moves, this_moment);
  END IF;
  -- A statement of its own: whoever adds a job that needs one of these waits for the end of the other transaction.
  IF (ended IS NOT NULL OR cardinality(failed) > 0) AND EXISTS (
    SELECT FROM orchestrator.job_dependencies AS d WHERE d.needs_job_id = ANY (ended || failed)
  ) THEN
    INSERT INTO orchestrator.dependency_changes (needs_job_id, after_job_id)
    SELECT DISTINCT e.id, 0 FROM unnest(ended || failed) AS e (id)
    WHERE EXISTS (SELECT FROM orchestrator.job_dependencies AS d WHERE d.needs_job_id = e.id)
    ON CONFLICT (needs_job_id) DO UPDATE SET after_job_id = 0;
    done.id := 1;
  END IF;
  done.kind := 'done';
  done.request := sweeps::integer;
  done.place := this_moment;
  done.lease_id := pg_current_xact_id()::text;
  done.artifact_id := CASE WHEN cardinality(lanes) > 0 THEN to_json(lanes)::text END;
  done.artifact_json := to_json(ended)::text;
  RETURN NEXT done;
END $$;
