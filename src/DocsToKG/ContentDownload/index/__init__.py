"""The offline index of open copies: what snapshots say of works, joined with a list before any service is queried.

`build` makes it from public files, `Index` reads it. Rows lie in Parquet files by a hash of the identifier, sorted by
it: one row for what a source says of a work, under the work's strongest name, and one under each other name that
points to it. Needs the extra `docstokg[bulk]`; nothing here is loaded by a run without an index.
"""
