"""Where jobs are kept and ownership is granted. The SQL ledger is the only source of truth.

`ledger` has all calls; `changes`, `complete`, `enqueue`, `leasing` and `dependencies` are what it does; `drivers` are
the databases that may hold it, and `sql` has their statements. `base` says what any ledger promises.
"""
