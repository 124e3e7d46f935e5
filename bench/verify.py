"""Hashing a corpus again: `content catalog verify` beside `openssl dgst -sha256` on the same files.

Both are timed as commands, and once more on next to nothing, so that start-up can be left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.download_ours import Set, run_ours
from bench.facts import report
from bench.origin import Origin
from bench.watched import watch


def timed(command: Sequence[str], folder: Path) -> tuple[float, float]:
    began = time.time()
    seen = watch(command, cwd=folder)
    return seen.ended - began, seen.cpu_s


def best(command: Sequence[str], folder: Path, rounds: int) -> tuple[float, float]:
    runs = [timed(command, folder) for _ in range(rounds)]
    return min(took for took, _ in runs), min(cpu for _, cpu in runs)


def measure(papers: Set, rounds: int) -> list[dict[str, Any]]:
    content = str(Path(sys.executable).parent / "content")
    with tempfile.TemporaryDirectory() as name, Origin(delay_s=0.0, size_bytes=papers.size_bytes) as origin:
        root = Path(name) / "corpus"
        run_ours(root, papers, port=origin.port, workers=16, processes=1)
        files = sorted(str(path) for path in (root / "files").rglob("*") if path.is_file() and not path.is_symlink())
        large = list({Path(path).stat().st_ino: path for path in files}.values())
        total = sum(Path(path).stat().st_size for path in large)
        one = Path(name) / "one"
        run_ours(one, papers._replace(items=1), port=origin.port, workers=1, processes=1)
        verify = [content, "catalog", "verify", "--config"]
        ways = {
            "content catalog verify": ([*verify, str(_settings(root))], [*verify, str(_settings(one))]),
            "openssl dgst -sha256": (["openssl", "dgst", "-sha256", *large], ["openssl", "version"]),
        }
        rows = []
        for what, (command, nothing) in ways.items():
            took_s, used_s = best(command, root, rounds)
            start_s, start_cpu_s = best(nothing, root, rounds)
            rows.append({
                "what": what, "files": len(large), "took_s": round(took_s, 3), "start_s": round(start_s, 3),
                "gb_per_s": round(total / max(1e-6, took_s - start_s) / 1e9, 3),
                "cpu_s_per_gb": round((used_s - start_cpu_s) / total * 1e9, 2),
            })  # fmt: skip
    for row in rows:
        row["ratio"] = round(row["gb_per_s"] / rows[-1]["gb_per_s"], 2)
    return rows


def _settings(root: Path) -> Path:
    path = root / "verify.json"
    told = {"storage": {"root_dir": str(root / "files")}, "telemetry": {"manifest_path": str(root / "manifest.jsonl")}}
    path.write_text(json.dumps({"contact": "bench@sandbox.invalid", **told}))
    return path


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.verify", description=__doc__)
    words.add_argument("--papers", type=int, default=200, help="papers of about 1.2 MB")
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if shutil.which("openssl") is None:
        print("verify: left out, there is no openssl", file=sys.stderr)
        return 0
    report("Hashing a corpus again", measure(Set("large", given.papers, 1_200_000), given.rounds), out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
