"""The ledger on PostgreSQL, for workers on many machines."""
