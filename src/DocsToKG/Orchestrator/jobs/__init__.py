"""The rules: a job's states and delays, who may have how much, what holds a job back and why. Pure; no I/O."""
