-- Every row of the history goes into the outbox of each target that wants it, in the transaction that writes it. The
-- word for the type is the one that events/envelope.py gives. A renewed lease is no change of anything.
CREATE TRIGGER IF NOT EXISTS job_history_fills_outbox AFTER INSERT ON job_history WHEN NEW.event <> 'renewed'
BEGIN
  INSERT INTO events_outbox (
    target, event_type, lane, tenant, shard, link, job_id, at, event, from_state, to_state, fence, attempts, actor,
    reason, ticket, detail_json, hash
  )
  SELECT
    t.name, e.event_type, coalesce(NEW.job_id, 0), NEW.tenant, NEW.shard, NEW.link, NEW.job_id, NEW.at, NEW.event,
    NEW.from_state, NEW.to_state, NEW.fence, NEW.attempts, NEW.actor, NEW.reason, NEW.ticket, NEW.detail_json, NEW.hash
  FROM (
    SELECT CASE
      WHEN substr(NEW.event, 1, 9) = 'pack_run_' THEN 'pack_run.' || substr(NEW.event, 10)
      WHEN NEW.job_id IS NULL THEN 'control.' || NEW.event
      WHEN NEW.to_state IS NULL OR NEW.to_state = NEW.from_state THEN 'job.' || NEW.event
      WHEN NEW.to_state IN ('done', 'skipped') THEN 'job.completed'
      WHEN NEW.to_state = 'error' THEN 'job.failed'
      WHEN NEW.to_state IN ('canceled', 'timed_out') THEN 'job.' || NEW.to_state
      ELSE 'job.' || NEW.event
    END AS event_type
  ) AS e
  CROSS JOIN event_targets AS t
  WHERE t.tenant IN ('*', NEW.tenant) AND (t.types IS NULL OR instr(t.types, ',' || e.event_type || ',') > 0);
END;
