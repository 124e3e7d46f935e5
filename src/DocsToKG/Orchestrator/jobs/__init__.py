"""The rules: states and retries of a job, shares and limits, eligibility. Pure; no I/O."""
