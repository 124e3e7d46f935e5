"""The rules of a job's life: states and delays. Pure; no I/O."""
