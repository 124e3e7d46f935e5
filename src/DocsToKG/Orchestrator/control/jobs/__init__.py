"""Jobs as their tenants and operators see them: one job, lists of jobs, and decisions for many at once."""
