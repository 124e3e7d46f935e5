-- What a `JobFilter` asks for, each as a condition on the columns of `jobs`.

-- name: states
state = ANY (%(states)s::text[])

-- name: many_states
state = ANY (%(states)s::text[])

-- name: host
host_key = %(host)s

-- name: reason
strpos(lower(last_error COLLATE "C"), lower(%(words)s::text COLLATE "C")) > 0

-- name: since
updated_at >= %(since)s

-- name: tenant
tenant = %(of_tenant)s

-- name: job_type
job_type = %(of_type)s

-- name: job_ids
id = ANY (%(wanted_ids)s::bigint[])
