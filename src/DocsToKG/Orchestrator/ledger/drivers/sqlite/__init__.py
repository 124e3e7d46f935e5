"""The ledger in one SQLite file: connections, statements for many rows, and the choice of jobs by host."""
