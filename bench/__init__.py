"""Measurements of the queue and of a whole run: `./dev bench`, or one by `python -m bench.ledger`, `bench.hosts`."""
