-- oldest program: 3
-- A job's end and the next lease by one statement, for a tenant's leases too, and without a second way around the call:
-- a transaction for one job took most of its time for the number of its statements. Programs of the version before go on
-- with `work_v2`.

-- As `record_v2`, with a statement less for each tenant: history, the end of its chain and the counts are written together.
CREATE FUNCTION orchestrator.record_v3(moves orchestrator.move_v2[], this_moment bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  move orchestrator.move_v2;
  mine orchestrator.move_v2[] := '{}';
  head record;
  words text;
  digest bytea;
  links orchestrator.link_v2[] := '{}';
  place integer := 0;
BEGIN
  FOREACH move IN ARRAY moves LOOP
    place := place + 1;
    IF cardinality(links) = 0 THEN
      words := '[' || orchestrator.quoted_v2(move.tenant) || ',';
      SELECT c.shard, c.link, c.hash, greatest(c.at, this_moment) AS at INTO head
      FROM orchestrator.history_heads AS c
      WHERE c.tenant = move.tenant ORDER BY c.shard LIMIT 1 FOR UPDATE SKIP LOCKED;
      IF NOT FOUND THEN
        head := orchestrator.head_v2(move.tenant, this_moment);
      END IF;
    END IF;
    head.link := head.link + 1;
    digest := sha256(head.hash || convert_to(
      words || head.shard || ',' || head.link || ',' || move.job_id || ',' || head.at || ',"' || move.event || '","'
      || move.from_state || '","' || move.to_state || '",' || move.fence || ',' || move.attempts || ','
      || orchestrator.quoted_v2(move.actor) || ',' || orchestrator.quoted_v2(move.reason) || ',null,null]', 'UTF8'
    ));
    links := links || (
      move.tenant, head.shard, head.link, move.job_id, head.at, move.event, move.from_state, move.to_state, move.fence,
      move.attempts, move.actor, move.reason, head.hash, digest
    )::orchestrator.link_v2;
    mine := mine || move;
    head.hash := digest;
    IF place = cardinality(moves) OR moves[place + 1].tenant <> move.tenant THEN
      WITH moved AS (
        UPDATE orchestrator.history_heads AS h SET link = head.link, hash = head.hash, at = head.at
        WHERE h.tenant = move.tenant AND h.shard = head.shard
      ), counted AS (
        INSERT INTO orchestrator.count_changes (tenant, job_type, state, n)
        SELECT move.tenant, m.job_type, s.state, sum(s.n)
        FROM unnest(mine) AS m, LATERAL (VALUES (m.from_state, -1), (m.to_state, 1)) AS s (state, n)
        GROUP BY m.job_type, s.state HAVING sum(s.n) <> 0
      )
      INSERT INTO orchestrator.job_history (
        tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, prev_hash, hash
      )
      SELECT * FROM unnest(links);
      links := '{}';
      mine := '{}';
    END IF;
  END LOOP;
  RETURN json_build_array(move.tenant, head.shard, head.link, encode(head.hash, 'hex'))::text;
END $$;

-- As `work_v2`, with these differences: where rules were written there is no row at all, and nothing is done. With
-- `only_tenant` jobs of this tenant are leased; where others' jobs wait too, or jobs of hosts, there is one row ('apart')
-- and nothing is done, since turns between them are taken elsewhere.
CREATE FUNCTION orchestrator.work_v3(
  idle_timeout text, mark_ms bigint, onward_ms bigint, own_ms bigint, ends json,
  workers text[], limits integer[], tokens text[], ttl_ms bigint, begun boolean, wanted_type text,
  swept_ms bigint, after_rank integer, after_id bigint, after_host text, spare_to_hosts boolean, only_tenant text
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
BEGIN
  SELECT
    t.high_water_ms, set_config('idle_in_transaction_session_timeout', idle_timeout, true),
    EXISTS (SELECT FROM orchestrator.dependency_changes) AS unsettled,
    EXISTS (SELECT FROM orchestrator.settings AS s WHERE s.name = 'paused' AND s.value = '1')
    OR EXISTS (SELECT FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due AND j.host_key IS NOT NULL)
      AS is_special,
    EXISTS (SELECT FROM orchestrator.settings AS s WHERE s.name = 'control_version') AS is_governed
  INTO begin_of FROM orchestrator.ledger_time AS t;
  IF begin_of.is_governed THEN
    RETURN;
  END IF;
  IF only_tenant IS NOT NULL AND (begin_of.is_special OR EXISTS (
    SELECT FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due AND j.tenant < only_tenant COLLATE "C"
  ) OR EXISTS (
    SELECT FROM orchestrator.jobs AS j WHERE j.state = 'queued' AND j.due AND j.tenant > only_tenant COLLATE "C"
  )) THEN
    done.kind := 'apart';
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
    IF NOT sweeps AND NOT begin_of.is_special AND cardinality(workers) = 1 THEN
      places := limits[1];
    END IF;
  END IF;
  LOOP
    IF ends IS NOT NULL OR places > 0 THEN
      -- Ends and, in the plain case, the next jobs by one statement: to begin one on a table with so many indexes takes
      -- longer than to change a row of it. The plain case are jobs without a host, for one worker; and for one tenant
      -- where nobody else's wait.
      WITH told AS (
        SELECT v.i, v.f, v.l, v.s, v.o, v.e, v.r
        FROM json_to_recordset(ends) AS v (i bigint, f bigint, l text, s text, o text, e text, r text)
        UNION ALL
        SELECT c.id, NULL, NULL, 'in_progress', NULL, NULL, NULL
        FROM unnest(CASE WHEN places = 0 THEN '{}' WHEN wanted_type IS NULL THEN ARRAY(
          SELECT q.id FROM orchestrator.jobs AS q
          WHERE q.state = 'queued' AND q.due AND q.host_key IS NULL AND (-q.priority, q.id) > (after_rank, after_id)
            AND (only_tenant IS NULL OR q.tenant = only_tenant)
          ORDER BY -q.priority, q.id LIMIT places FOR UPDATE SKIP LOCKED
        ) ELSE ARRAY(
          SELECT q.id FROM orchestrator.jobs AS q
          WHERE q.state = 'queued' AND q.due AND q.host_key IS NULL AND (-q.priority, q.id) > (after_rank, after_id)
            AND q.job_type = wanted_type AND (only_tenant IS NULL OR q.tenant = only_tenant)
          ORDER BY -q.priority, q.id LIMIT places FOR UPDATE SKIP LOCKED
        ) END) AS c (id)
      ), changed AS (
        UPDATE orchestrator.jobs AS j SET
          state = t.s,
          stage = CASE WHEN t.f IS NULL THEN 'scheduled' END,
          fence = CASE WHEN t.f IS NULL THEN j.fence + 1 ELSE j.fence END,
          lease_until = CASE WHEN t.f IS NULL THEN this_moment + ttl_ms END,
          worker_id = CASE WHEN t.f IS NULL THEN workers[1] END,
          lease_id = CASE WHEN t.f IS NULL THEN tokens[1] || j.id ELSE j.lease_id END,
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
          'leased', 1, 0, NULL, j.id, j.fence, j.lease_id, j.artifact_id, j.artifact_json, j.payload_digest,
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
        this_moment, this_moment, NULL, wanted_type, workers, ARRAY[0], tokens, true, after_rank, after_id, after_host,
        spare_to_hosts
      ) AS l
    );
    swept := true;
    ends := NULL;
    places := limits[1];
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
