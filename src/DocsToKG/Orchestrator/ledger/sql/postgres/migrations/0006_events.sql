-- oldest program: 3
-- Events for others: who wants them, and what was not delivered yet. While nobody wants any, nothing is written here:
-- the trigger that fills the outbox is enabled with the first target and disabled with the last. Programs of the version
-- before fill it as well, without knowing.

CREATE TABLE orchestrator.event_targets (
  name text PRIMARY KEY,
  kind text NOT NULL,
  tenant text NOT NULL,
  types text,
  registered_at bigint NOT NULL,
  sent bigint NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0,
  next_at bigint NOT NULL DEFAULT 0,
  last_sent_at bigint,
  last_error text
);

CREATE TABLE orchestrator.events_outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  target text NOT NULL,
  event_type text NOT NULL,
  lane bigint NOT NULL,
  tenant text NOT NULL,
  shard integer NOT NULL,
  link bigint NOT NULL,
  job_id bigint,
  at bigint NOT NULL,
  event text NOT NULL,
  from_state text,
  to_state text,
  fence bigint,
  attempts integer,
  actor text NOT NULL,
  reason text,
  ticket text,
  detail_json text,
  hash bytea NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  next_at bigint NOT NULL DEFAULT 0,
  claimed_by text,
  dead_at bigint,
  last_error text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE INDEX events_outbox_waiting ON orchestrator.events_outbox (target, id) WHERE dead_at IS NULL;
CREATE INDEX events_outbox_tried ON orchestrator.events_outbox (target, tenant, lane, id)
WHERE dead_at IS NULL AND tries > 0;
CREATE INDEX events_outbox_dead ON orchestrator.events_outbox (target, id) WHERE dead_at IS NOT NULL;

-- Every row of the history goes into the outbox of each target that wants it, in the transaction that writes it. The
-- word for the type is the one that events/envelope.py gives. A renewed lease is no change of anything. Those who work
-- jobs need no rights on the outbox.
CREATE FUNCTION orchestrator.fill_outbox_v1() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
BEGIN
  INSERT INTO orchestrator.events_outbox (
    target, event_type, lane, tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor,
    reason, ticket, detail_json, hash
  )
  SELECT
    t.name, e.event_type, coalesce(h.job_id, 0), h.tenant, h.shard, h.link, h.job_id, h.at, h.event, h.from_state,
    h.to_state, h.fence, h.attempts, h.actor, h.reason, h.ticket, h.detail_json, h.hash
  FROM added AS h
  CROSS JOIN LATERAL (
    SELECT CASE
      WHEN left(h.event, 9) = 'pack_run_' THEN 'pack_run.' || substr(h.event, 10)
      WHEN h.job_id IS NULL THEN 'control.' || h.event
      WHEN h.to_state IS NULL OR h.to_state = h.from_state THEN 'job.' || h.event
      WHEN h.to_state IN ('done', 'skipped') THEN 'job.completed'
      WHEN h.to_state = 'error' THEN 'job.failed'
      WHEN h.to_state IN ('canceled', 'timed_out') THEN 'job.' || h.to_state
      ELSE 'job.' || h.event
    END AS event_type
  ) AS e
  CROSS JOIN orchestrator.event_targets AS t
  WHERE h.event <> 'renewed' AND t.tenant IN ('*', h.tenant)
    AND (t.types IS NULL OR strpos(t.types, ',' || e.event_type || ',') > 0)
  ORDER BY h.seq;
  RETURN NULL;
END $$;

CREATE TRIGGER job_history_fills_outbox AFTER INSERT ON orchestrator.job_history
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION orchestrator.fill_outbox_v1();
ALTER TABLE orchestrator.job_history DISABLE TRIGGER job_history_fills_outbox;

-- Only the owner of a table may switch its triggers; whoever runs the notifier need not be.
CREATE FUNCTION orchestrator.switch_outbox_v1() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
DECLARE
  wanted boolean := EXISTS (SELECT FROM orchestrator.event_targets);
  enabled boolean := (
    SELECT g.tgenabled <> 'D' FROM pg_trigger AS g
    WHERE g.tgrelid = 'orchestrator.job_history'::regclass AND g.tgname = 'job_history_fills_outbox'
  );
BEGIN
  IF wanted AND NOT enabled THEN
    ALTER TABLE orchestrator.job_history ENABLE TRIGGER job_history_fills_outbox;
  ELSIF enabled AND NOT wanted THEN
    ALTER TABLE orchestrator.job_history DISABLE TRIGGER job_history_fills_outbox;
  END IF;
END $$;
