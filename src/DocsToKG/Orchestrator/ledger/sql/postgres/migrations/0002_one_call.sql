-- oldest program: 1
-- Ends and leases with all that is written along, in one call: a small transaction took most of its time for being asked
-- three times, and for the number of its statements. Programs of the version before go on with their own functions.

-- The oldest program that may still use the schema, told by the number of migrations it knows.
ALTER TABLE orchestrator.schema_version ADD COLUMN oldest_program integer NOT NULL DEFAULT 1;

-- A text as JSON has it in ASCII, which is the form that the history hashes (ledger/chain.py).
CREATE FUNCTION orchestrator.escaped_v2(said text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg(
    CASE
      WHEN c.code < 127 THEN c.sign
      WHEN c.code < 65536 THEN '\u' || lpad(to_hex(c.code), 4, '0')
      ELSE '\u' || to_hex(55296 + ((c.code - 65536) >> 10)) || '\u' || to_hex(56320 + ((c.code - 65536) & 1023))
    END, '' ORDER BY c.place
  )
  FROM (
    SELECT s.sign, s.place, ascii(s.sign) AS code
    FROM regexp_split_to_table(to_json(said)::text, '') WITH ORDINALITY AS s (sign, place)
  ) AS c
$$;

CREATE FUNCTION orchestrator.quoted_v2(said text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN said IS NULL THEN 'null'
    WHEN said ~ '^[ !#-\[\]-~]*$' THEN '"' || said || '"'
    ELSE orchestrator.escaped_v2(said)
  END
$$;

-- A job's change of state, as the history keeps it.
CREATE TYPE orchestrator.move_v2 AS (
  job_id bigint, tenant text, job_type text, event text, from_state text, to_state text, fence bigint,
  attempts integer, actor text, reason text
);

CREATE TYPE orchestrator.link_v2 AS (
  tenant text, shard integer, link bigint, job_id bigint, at bigint, event text, from_state text, to_state text,
  fence bigint, attempts integer, actor text, reason text, prev_hash bytea, hash bytea
);

-- What `lease_v1` gives.
CREATE TYPE orchestrator.leased_v2 AS (
  kind text, request integer, place bigint, said text, id bigint, fence bigint, lease_id text, artifact_id text,
  artifact_json text, payload_digest text, resolver_hint text, host_key text, priority integer, attempts integer,
  max_attempts integer, tenant text, project text, job_type text, source text, idempotency_key text,
  correlation_id text, trace_context text, replay_of bigint, next_eligible_at bigint
);

-- The end of a chain of this tenant that nobody else writes to, locked; a new one where all are taken.
CREATE FUNCTION orchestrator.head_v2(
  of_tenant text, this_moment bigint, OUT shard integer, OUT link bigint, OUT hash bytea, OUT at bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  LOOP
    SELECT c.shard, c.link, c.hash, greatest(c.at, this_moment) INTO shard, link, hash, at
    FROM orchestrator.history_heads AS c
    WHERE c.tenant = of_tenant ORDER BY c.shard LIMIT 1 FOR UPDATE SKIP LOCKED;
    EXIT WHEN FOUND;
    INSERT INTO orchestrator.history_heads (tenant, shard, link, hash)
    SELECT
      of_tenant,
      CASE
        WHEN EXISTS (SELECT FROM orchestrator.history_heads AS c WHERE c.tenant = of_tenant)
        THEN nextval('orchestrator.history_shards') ELSE 0
      END,
      0, decode(repeat('00', 32), 'hex')
    ON CONFLICT DO NOTHING;
  END LOOP;
END $$;

-- Write changes of jobs into the history and the counts. Each tenant's go to the first chain that nobody writes to at
-- this moment. The answer is the last link, which proves that the transaction was committed.
CREATE FUNCTION orchestrator.record_v2(moves orchestrator.move_v2[], this_moment bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  move orchestrator.move_v2;
  head record;
  tenant text;
  words text;
  digest bytea;
  links orchestrator.link_v2[] := '{}';
BEGIN
  FOREACH move IN ARRAY moves LOOP
    IF tenant IS DISTINCT FROM move.tenant THEN
      IF cardinality(links) > 0 THEN
        PERFORM orchestrator.keep_v2(links);
        links := '{}';
      END IF;
      tenant := move.tenant;
      words := '[' || orchestrator.quoted_v2(tenant) || ',';
      head := orchestrator.head_v2(tenant, this_moment);
    END IF;
    head.link := head.link + 1;
    digest := sha256(head.hash || convert_to(
      words || head.shard || ',' || head.link || ',' || move.job_id || ',' || head.at || ',"' || move.event || '","'
      || move.from_state || '","' || move.to_state || '",' || move.fence || ',' || move.attempts || ','
      || orchestrator.quoted_v2(move.actor) || ',' || orchestrator.quoted_v2(move.reason) || ',null,null]', 'UTF8'
    ));
    links := links || (
      tenant, head.shard, head.link, move.job_id, head.at, move.event, move.from_state, move.to_state, move.fence,
      move.attempts, move.actor, move.reason, head.hash, digest
    )::orchestrator.link_v2;
    head.hash := digest;
  END LOOP;
  PERFORM orchestrator.keep_v2(links);
  INSERT INTO orchestrator.count_changes (tenant, job_type, state, n)
  SELECT m.tenant, m.job_type, s.state, sum(s.n)
  FROM unnest(moves) AS m, LATERAL (VALUES (m.from_state, -1), (m.to_state, 1)) AS s (state, n)
  GROUP BY m.tenant, m.job_type, s.state HAVING sum(s.n) <> 0;
  RETURN json_build_array(tenant, head.shard, head.link, encode(head.hash, 'hex'))::text;
END $$;

-- Write links of one chain, whose end moves on.
CREATE FUNCTION orchestrator.keep_v2(links orchestrator.link_v2[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  newest orchestrator.link_v2 := links[cardinality(links)];
BEGIN
  WITH moved AS (
    UPDATE orchestrator.history_heads AS h SET link = newest.link, hash = newest.hash, at = newest.at
    WHERE h.tenant = newest.tenant AND h.shard = newest.shard
  )
  INSERT INTO orchestrator.job_history (
    tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor, reason, prev_hash, hash
  )
  SELECT * FROM unnest(links);
END $$;

-- One small transaction of a worker's process but for its commit: end jobs, then lease. The rows are the jobs ('leased')
-- and the place in the round ('turn') of `lease_v1`, and one ('done') with what the process must know: whether it looked
-- for leases that ran out, the time, the proof, whether jobs wait to be moved on, the number of the transaction, the job
-- types that have work again, and the jobs that were ended.
-- `mark_ms` is the latest time that the process knows and `onward_ms` how far its own clock has run on from there, for
-- the day when the database's clock was set back; `own_ms` is a time that counts instead of the database's. Settings:
-- every statement goes by index, with a plan that is kept.
CREATE FUNCTION orchestrator.work_v2(
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
        WHERE j.id = ANY (ARRAY(
          SELECT c.id FROM orchestrator.jobs AS c
          WHERE c.state = 'queued' AND c.due AND c.host_key IS NULL AND (-c.priority, c.id) > (after_rank, after_id)
            AND (wanted_type IS NULL OR c.job_type = wanted_type)
          ORDER BY -c.priority, c.id LIMIT limits[1] FOR UPDATE SKIP LOCKED
        ))
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
