"""Jobs for tenants and operators: one job, lists of jobs, and bulk actions."""
