"""The databases that may hold the ledger: what one of them does in its own way, and nothing of what a job is."""
