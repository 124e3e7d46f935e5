-- oldest program: 3
-- Leasing for one job type goes by the indexes of types. The names that programs call stay, so that those of the
-- version before profit too.

-- What `choose_v1` did goes on for leases of any type.
ALTER FUNCTION orchestrator.choose_v1(integer, text, integer, bigint, text, boolean) RENAME TO choose_any_v3;

CREATE FUNCTION orchestrator.choose_v1(
  places integer, wanted_type text, after_rank integer, after_id bigint,
  INOUT after_host text, INOUT spare_to_hosts boolean, OUT chosen bigint[]
) LANGUAGE plpgsql AS $$
BEGIN
  IF wanted_type IS NULL THEN
    SELECT c.after_host, c.spare_to_hosts, c.chosen INTO after_host, spare_to_hosts, chosen
    FROM orchestrator.choose_any_v3(places, NULL, after_rank, after_id, after_host, spare_to_hosts) AS c;
  ELSE
    SELECT c.after_host, c.spare_to_hosts, c.chosen INTO after_host, spare_to_hosts, chosen
    FROM orchestrator.choose_v3(places, wanted_type, after_rank, after_id, after_host, spare_to_hosts) AS c;
  END IF;
END $$;

-- The same choice among the jobs of one type: every statement names it.
CREATE FUNCTION orchestrator.choose_v3(
  places integer, wanted_type text, after_rank integer, after_id bigint,
  INOUT after_host text, INOUT spare_to_hosts boolean, OUT chosen bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
  by_host bigint[];
  by_age bigint[];
  owners text[];
  hosts text[];
  waiting text[];
  more text[];
  ids bigint[];
  host text;
  level integer;
  room integer;
  share integer;
  missing integer;
  last_ids jsonb;
BEGIN
  chosen := '{}';
  PERFORM 1 FROM orchestrator.jobs WHERE state = 'queued' AND due AND host_key IS NOT NULL AND job_type = wanted_type
  LIMIT 1;
  IF NOT FOUND THEN
    SELECT coalesce(array_agg(s.id), '{}') INTO chosen FROM (
      SELECT j.id FROM orchestrator.jobs AS j
      WHERE j.state = 'queued' AND j.due AND j.host_key IS NULL AND (-j.priority, j.id) > (after_rank, after_id)
        AND j.job_type = wanted_type
      ORDER BY -j.priority, j.id LIMIT places FOR UPDATE SKIP LOCKED
    ) AS s;
    RETURN;
  END IF;
  level := -2147483648;
  WHILE cardinality(chosen) < places LOOP
    SELECT min(rank) INTO level FROM (
      (SELECT -j.priority AS rank FROM orchestrator.jobs AS j
       WHERE j.state = 'queued' AND j.due AND j.host_key IS NULL AND j.job_type = wanted_type
         AND -j.priority > level ORDER BY -j.priority LIMIT 1)
      UNION ALL
      (SELECT -j.priority FROM orchestrator.jobs AS j
       WHERE j.state = 'queued' AND j.due AND j.host_key IS NOT NULL AND j.job_type = wanted_type
         AND -j.priority > level ORDER BY -j.priority LIMIT 1)
    ) AS levels;
    EXIT WHEN level IS NULL;
    room := places - cardinality(chosen);
    SELECT coalesce(array_agg(s.id), '{}') INTO by_age FROM (
      SELECT j.id FROM orchestrator.jobs AS j
      WHERE j.state = 'queued' AND j.due AND j.host_key IS NULL AND -j.priority = level
        AND j.job_type = wanted_type
      ORDER BY j.id LIMIT room FOR UPDATE SKIP LOCKED
    ) AS s;
    share := room / 2 + CASE WHEN spare_to_hosts THEN room % 2 ELSE 0 END;
    missing := room - least(cardinality(by_age), room - share);
    spare_to_hosts := spare_to_hosts <> (room % 2 = 1);
    by_host := '{}';
    IF missing > 0 THEN
      hosts := orchestrator.due_hosts_v3(wanted_type, level, after_host, missing);
      owners := '{}';
      waiting := hosts;
      last_ids := '{}';
      WHILE cardinality(waiting) > 0 AND missing > cardinality(by_host) LOOP
        share := ceil((missing - cardinality(by_host))::numeric / cardinality(waiting));
        more := '{}';
        FOREACH host IN ARRAY waiting LOOP
          SELECT coalesce(array_agg(s.id), '{}') INTO ids FROM (
            SELECT j.id FROM orchestrator.jobs AS j
            WHERE j.state = 'queued' AND j.due AND j.host_key IS NOT NULL AND -j.priority = level
              AND j.host_key = host COLLATE "C" AND j.id > coalesce((last_ids ->> host)::bigint, 0)
              AND j.job_type = wanted_type
            ORDER BY j.id LIMIT share FOR UPDATE SKIP LOCKED
          ) AS s;
          by_host := by_host || ids;
          owners := owners || array_fill(host, ARRAY[cardinality(ids)]);
          IF cardinality(ids) = share THEN
            more := more || host;
            last_ids := last_ids || jsonb_build_object(host, ids[share]);
          END IF;
        END LOOP;
        waiting := more;
      END LOOP;
      -- One of each host, and then again, in the order of the hosts.
      SELECT coalesce(array_agg(t.id ORDER BY t.turn, t.place), '{}'),
             coalesce((array_agg(t.owner ORDER BY t.turn DESC, t.place DESC))[1], hosts[cardinality(hosts)], after_host)
      INTO by_host, after_host
      FROM (
        SELECT p.id, p.owner, row_number() OVER (PARTITION BY p.owner ORDER BY p.id) AS turn,
               array_position(hosts, p.owner) AS place
        FROM unnest(by_host, owners) AS p (id, owner)
        ORDER BY 3, 4 LIMIT missing
      ) AS t;
    END IF;
    by_age := by_age[1:room - cardinality(by_host)];
    SELECT chosen || coalesce(array_agg(m.id ORDER BY m.place, m.kind), '{}') INTO chosen FROM (
      SELECT a.id, a.place, 0 AS kind FROM unnest(by_host) WITH ORDINALITY AS a (id, place)
      UNION ALL SELECT b.id, b.place, 1 FROM unnest(by_age) WITH ORDINALITY AS b (id, place)
    ) AS m;
  END LOOP;
END $$;

-- The next hosts with a due job of a type and level, as `due_hosts_v1`.
CREATE FUNCTION orchestrator.due_hosts_v3(
  wanted_type text, level integer, after_host text, most integer
) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  found_hosts text[] := '{}';
  host text := after_host;
  wrapped boolean := after_host = '';
BEGIN
  WHILE cardinality(found_hosts) < most LOOP
    SELECT j.host_key INTO host FROM orchestrator.jobs AS j
    WHERE j.state = 'queued' AND j.due AND j.host_key IS NOT NULL AND j.job_type = wanted_type AND -j.priority = level
      AND j.host_key > host COLLATE "C"
    ORDER BY j.host_key COLLATE "C" LIMIT 1;
    IF host IS NULL AND NOT wrapped THEN
      wrapped := true;
      host := '';
      CONTINUE;
    END IF;
    EXIT WHEN host IS NULL OR (wrapped AND after_host <> '' AND host > after_host COLLATE "C");
    found_hosts := found_hosts || host;
  END LOOP;
  RETURN found_hosts;
END $$;

-- As it was, but for the plain case: one way for any type, another for one. Only the one that is asked for is gone.
CREATE OR REPLACE FUNCTION orchestrator.work_v2(
  idle_timeout text, mark_ms bigint, onward_ms bigint, own_ms bigint, ends json,
  workers text[], limits integer[], tokens text[], ttl_ms bigint, begun boolean, wanted_type text,
  swept_ms bigint, after_rank integer, after_id bigint, after_host text, spare_to_hosts boolean
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
BEGIN
  SELECT
    t.high_water_ms, set_config('idle_in_transaction_session_timeout', idle_timeout, true),
    EXISTS (SELECT FROM orchestrator.dependency_changes) AS unsettled,
    EXISTS (SELECT FROM orchestrator.settings AS s WHERE s.name = 'paused' AND s.value = '1')
    OR EXISTS (SELECT FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due AND j.host_key IS NOT NULL)
      AS is_special
  INTO begin_of FROM orchestrator.ledger_time AS t;
  IF own_ms IS NOT NULL THEN
    this_moment := greatest(own_ms, begin_of.high_water_ms);
  ELSIF this_moment < greatest(mark_ms, begin_of.high_water_ms) THEN
    this_moment := greatest(onward_ms, begin_of.high_water_ms);
  END IF;
  done.id := begin_of.unsettled::integer;
  IF ends IS NOT NULL THEN
    WITH over AS (
      UPDATE orchestrator.jobs AS j SET
        state = v.s, outcome = v.o, last_error = v.e, result_json = v.r, stage = NULL, lease_until = NULL,
        worker_id = NULL, finished_at = this_moment, updated_at = this_moment
      FROM json_to_recordset(ends) AS v (i bigint, f bigint, l text, s text, o text, e text, r text)
      WHERE j.id = v.i AND j.fence = v.f AND j.lease_id = v.l AND j.state || '' = 'in_progress'
      RETURNING (
        j.id, j.tenant, j.job_type, 'finished', 'in_progress', j.state, j.fence, j.attempts, j.lease_id, j.last_error
      )::orchestrator.move_v2 AS move
    )
    SELECT coalesce(array_agg(o.move), '{}'), array_agg((o.move).job_id) INTO moves, ended FROM over AS o;
  END IF;
  IF workers IS NOT NULL THEN
    sweeps := this_moment - swept_ms >= 100;
    IF NOT sweeps AND NOT begin_of.is_special AND cardinality(workers) = 1 THEN
      -- The plain case, with the least statements: jobs without a host, for one worker.
      WITH taken AS (
        UPDATE orchestrator.jobs AS j SET
          state = 'in_progress', stage = 'scheduled', fence = j.fence + 1, lease_until = this_moment + ttl_ms,
          worker_id = workers[1], lease_id = tokens[1] || j.id, started_at = CASE WHEN begun THEN this_moment END,
          updated_at = this_moment
        WHERE j.id = ANY (CASE WHEN wanted_type IS NULL THEN ARRAY(
          SELECT c.id FROM orchestrator.jobs AS c
          WHERE c.state = 'queued' AND c.due AND c.host_key IS NULL AND (-c.priority, c.id) > (after_rank, after_id)
          ORDER BY -c.priority, c.id LIMIT limits[1] FOR UPDATE SKIP LOCKED
        ) ELSE ARRAY(
          SELECT c.id FROM orchestrator.jobs AS c
          WHERE c.state = 'queued' AND c.due AND c.host_key IS NULL AND (-c.priority, c.id) > (after_rank, after_id)
            AND c.job_type = wanted_type
          ORDER BY -c.priority, c.id LIMIT limits[1] FOR UPDATE SKIP LOCKED
        ) END)
        RETURNING (
          'leased', 1, 0, NULL, j.id, j.fence, j.lease_id, j.artifact_id, j.artifact_json, j.payload_digest,
          j.resolver_hint, j.host_key, j.priority, j.attempts, j.max_attempts, j.tenant, j.project, j.job_type,
          j.source, j.idempotency_key, j.correlation_id, j.trace_context, j.replay_of, j.next_eligible_at
        )::orchestrator.leased_v2 AS job
      )
      SELECT coalesce(array_agg(t.job ORDER BY -(t.job).priority, (t.job).id), '{}') INTO leased FROM taken AS t;
      limits[1] := limits[1] - cardinality(leased);
    END IF;
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
    FOREACH job IN ARRAY leased LOOP
      IF job.kind = 'expired' THEN
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
    done.said := orchestrator.record_v2(moves, this_moment);
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
