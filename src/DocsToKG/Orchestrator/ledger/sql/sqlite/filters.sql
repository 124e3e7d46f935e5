-- What a `JobFilter` asks for, each as a condition on the columns of `jobs`.

-- name: states
state IN (SELECT value FROM json_each(:states));

-- name: many_states
-- The sign keeps SQLite from gathering and sorting all jobs of several states for one page by id.
+state IN (SELECT value FROM json_each(:states));

-- name: host
host_key = :host;

-- name: reason
instr(lower(last_error), lower(:words)) > 0;

-- name: since
updated_at >= :since;

-- name: tenant
tenant = :of_tenant;

-- name: job_type
job_type = :of_type;

-- name: job_ids
id IN (SELECT value FROM json_each(:wanted_ids));
