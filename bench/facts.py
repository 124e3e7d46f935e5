"""What a figure was measured on, and how figures are shown: a table for people, JSON for programs.

Knows the machine and the shape of a result. Does not know what is measured.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """What a reader needs to judge a figure. The load is that of the minute before."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def rss_mb() -> float:
    """Memory this process holds now; the most it ever held, where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    except OSError:
        import resource

        scale = 1 if sys.platform == "darwin" else 1024
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6, 1)


def spread(values: Sequence[float]) -> dict[str, float]:
    """The best, the middle and the number of runs. The best is the one least disturbed by others on the machine."""
    return {"best": max(values), "median": statistics.median(values), "runs": len(values)}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys, as columns; numbers to the right."""
    if not rows:
        return "(nothing)"
    names = list(rows[0])
    cells = [[_shown(row.get(name)) for name in names] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *cells, strict=True)]
    is_text = [isinstance(rows[0].get(name), str) for name in names]
    return "\n".join(_line(line, widths, is_text) for line in (names, ["-" * width for width in widths], *cells))


def _line(cells: Sequence[str], widths: Sequence[int], is_text: Sequence[bool]) -> str:
    padded = [
        cell.ljust(width) if left else cell.rjust(width)
        for cell, width, left in zip(cells, widths, is_text, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def report(title: str, rows: Sequence[Mapping[str, Any]], *, out: Path | None, **more: Any) -> None:
    """Print the table; with `out`, write everything there as JSON."""
    words = ", ".join(f"{key} {value}" for key, value in machine().items())
    print(f"{title}\n{words}\n\n{table(rows)}\n", flush=True)
    if out is not None:
        write(out, title, rows, **more)


def write(out: Path, title: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"title": title, "machine": machine(), "rows": list(rows), **more}, indent=2) + "\n")
