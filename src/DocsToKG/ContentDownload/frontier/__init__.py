"""Runs thousands of half-done works on a few threads: per-host queues and next-allowed times."""
