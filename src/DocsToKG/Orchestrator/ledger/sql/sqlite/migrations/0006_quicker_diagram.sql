-- The same rule in another order: a lease and its end, which every job has, are found right before any list of states is
-- looked into. SQLite builds such a list anew for every row that a trigger is asked about.

DROP TRIGGER jobs_keep_to_the_diagram;

CREATE TRIGGER jobs_keep_to_the_diagram AFTER UPDATE OF state, fence ON jobs
WHEN NEW.fence < OLD.fence OR OLD.state <> NEW.state AND OLD.state <> 'in_progress'
AND NOT (OLD.state = 'queued' AND NEW.state = 'in_progress') AND NOT (
  (OLD.state = 'queued' AND NEW.state IN ('pending', 'canceled'))
  OR (OLD.state = 'pending' AND NEW.state IN ('queued', 'error', 'canceled'))
  OR (OLD.state IN ('done', 'skipped', 'error', 'canceled', 'timed_out') AND NEW.state IN ('queued', 'pending'))
)
BEGIN
  SELECT CASE
    WHEN NEW.fence < OLD.fence THEN RAISE(ABORT, 'a fence only grows')
    ELSE RAISE(ABORT, 'a job cannot change its state this way')
  END;
END;
