-- The tables of the control plane. A program that does not know them would lease against the rules in them.
-- include: control.sql

-- How many jobs there are, with what is not folded in yet, in the one form that both databases have.
CREATE VIEW orchestrator.job_totals AS
SELECT tenant, job_type, state, n FROM orchestrator.job_counts
UNION ALL
SELECT tenant, job_type, state, n FROM orchestrator.count_changes;
