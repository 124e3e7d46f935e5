"""`python -m DocsToKG.Sandbox`: serve the sandbox web on loopback until a signal.

With `--ready-json` one line of JSON names the port, and the end of standard input stops it, so that it never outlives
the program that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
from collections.abc import Callable, Sequence

from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.limits import Limits
from DocsToKG.Sandbox.router import Router
from DocsToKG.Sandbox.running import run_until_stopped
from DocsToKG.Sandbox.world import World


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        base = Faults.none() if options.no_faults else Faults()
        faults = base.with_settings(options.fault)
        files = (Files.plain() if options.plain else Files()).with_settings(options.rendering)
        world = World(seed=options.seed, count=options.works, size_bytes=options.size, faults=faults, files=files)
        if not (math.isfinite(options.rate_factor) and options.rate_factor > 0):
            raise ValueError(f"--rate-factor {options.rate_factor} is not a number above 0")
        limits = Limits(rate_factor=options.rate_factor)
    except ValueError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2
    router = Router(world=world, limits=limits, slow_s=options.slow, stall_s=options.stall)
    ready, follow = _announce(options.ready_json), options.ready_json
    asyncio.run(run_until_stopped(router, port=options.port, ready=ready, follow_stdin=follow))
    return 0


def _announce(as_json: bool) -> Callable[[int], None]:
    def announce(port: int) -> None:
        line = json.dumps({"port": port, "pid": os.getpid()}) if as_json else f"sandbox: http://127.0.0.1:{port}/"
        print(line, flush=True)

    return announce


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m DocsToKG.Sandbox", description="A scholarly web on loopback.")
    parser.add_argument("--works", type=int, default=500, help="how many works there are")
    parser.add_argument("--seed", type=int, default=7, help="equal seeds make equal worlds")
    parser.add_argument("--size", type=int, default=60_000, help="mean size of a PDF in bytes")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--rate-factor", type=float, default=20.0, help="how much faster than outside one may ask")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=SHARE", help="may be given again")
    parser.add_argument("--no-faults", action="store_true", help="start from no faults at all")
    parser.add_argument("--rendering", action="append", default=[], metavar="NAME=SHARE", help="may be given again")
    parser.add_argument("--plain", action="store_true", help="start from plain files without covers")
    parser.add_argument("--slow", type=float, default=2.0, help="seconds a slow body takes")
    parser.add_argument("--stall", type=float, default=30.0, help="seconds a stalled body stands still")
    parser.add_argument("--ready-json", action="store_true", help="say where in JSON, and stop when stdin ends")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
