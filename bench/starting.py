"""How long until there is an answer: `--help` of each program, and the first request of a pull.

Each is started anew several times; the best counts. The first request is noted by the origin.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.facts import report
from bench.origin import Origin
from bench.settings import config
from bench.watched import watch

PROGRAMS = ("content", "contentdownload", "docstokg-orchestrator")


def helped(program: str) -> dict[str, Any]:
    began = time.time()
    seen = watch([str(Path(sys.executable).parent / program), "--help"])
    return {"what": f"{program} --help", "took_s": round(seen.ended - began, 3), "cpu_s": round(seen.cpu_s, 3)}


def bare() -> dict[str, Any]:
    """The floor: an interpreter that does nothing."""
    began = time.time()
    seen = watch([sys.executable, "-c", "pass"])
    return {"what": "python -c pass", "took_s": round(seen.ended - began, 3), "cpu_s": round(seen.cpu_s, 3)}


def first_byte() -> dict[str, Any]:
    """From the start of `content pull` to the first request that reaches a host."""
    with tempfile.TemporaryDirectory() as folder, Origin(delay_s=0.0, size_bytes=20_000) as origin:
        settings = config(Path(folder), port=origin.port, workers=8, processes=1, per_host=4)
        written = settings.model_dump(mode="json", exclude_unset=True)
        for section in ("telemetry", "queue", "hishel", "storage"):
            written.pop(section, None)
        (Path(folder) / "settings.json").write_text(json.dumps(written))
        url = "https://host-000.bench.test/papers/1.pdf"
        command = [str(Path(sys.executable).parent / "content"), "pull", url, "--quiet", "--config", "settings.json"]
        began = time.monotonic()
        subprocess.run([*command, "--out", "papers"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        whole_s, first_at = time.monotonic() - began, origin.counts()["first_at"]
    return {"what": "content pull, first request", "took_s": round(first_at - began, 3), "cpu_s": None, "end": whole_s}


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.starting", description=__doc__)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    runs = [run for _ in range(given.rounds) for run in (bare(), *map(helped, PROGRAMS), first_byte())]
    names = dict.fromkeys(run["what"] for run in runs)
    rows = [min((run for run in runs if run["what"] == name), key=lambda run: float(run["took_s"])) for name in names]
    shown = [{name: row[name] for name in ("what", "took_s", "cpu_s")} for row in rows]
    report("Until there is an answer", shown, out=given.out, runs=runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
