-- The tables of the control plane.
-- include: control.sql

-- How many jobs there are, in the one form that both databases have.
CREATE VIEW job_totals AS SELECT tenant, job_type, state, n FROM job_counts;

-- For the lists of a tenant. The tenant of a single machine is left out: its jobs are the whole ledger, and it need not
-- pay for one more index.
CREATE INDEX jobs_of_tenants ON jobs (tenant, state, id) WHERE tenant <> 'default';
