"""Where jobs are kept and ownership is granted. The SQL ledger is the only source of truth."""
