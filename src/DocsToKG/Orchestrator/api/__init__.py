"""The ledger over HTTP: authentication, routes, schemas and event streams. Needs the `server` extra."""
