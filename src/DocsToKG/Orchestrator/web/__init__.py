"""The ledger over HTTP: who may come in, what they may ask, and how it is answered. Needs the `server` extra."""
