DROP TRIGGER IF EXISTS job_history_fills_outbox;
