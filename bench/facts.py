"""What a figure was measured on, and how figures are shown: a table for people, JSON for programs, one page of all.

Knows the machine, the shape of a result and how an aim is judged. Does not know what is measured.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import programs

PAGE = "report.md"
_PEERS = ("Scrapy", "dramatiq", "huey", "persist-queue", "pgqueuer", "procrastinate")


def machine() -> dict[str, Any]:
    """What a reader needs to judge a figure. The load is that of the minute before."""
    return {**_moment(), **_lasting()}


def _moment() -> dict[str, Any]:
    return {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load_1m": round(os.getloadavg()[0], 2)}


@functools.cache
def _lasting() -> Mapping[str, Any]:
    """What is the same for every part of a run; what is not known here is left out."""
    found = {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "ram_gb": _ram_gb(),
        "system": f"{platform.system()} {platform.release()}",
        "scratch": _file_system(Path(tempfile.gettempdir()).resolve()),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": _version_told(programs.postgres()),
        "nginx": _version_told(programs.find("nginx")),
        "others": _versions_of_peers(),
    }
    return {name: value for name, value in found.items() if value is not None}


def _ram_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    except (OSError, ValueError):
        return None


def _file_system(folder: Path) -> str | None:
    """That of the mount which holds the folder: the longest path above it, and the last one mounted there."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return None
    above = [(len(at), number, kind) for number, (_, at, kind, *_) in enumerate(mounts) if folder.is_relative_to(at)]
    return max(above)[2] if above else None


def _version_told(program: str | None) -> str | None:
    """The number in the answer to -V or -v, wherever the program writes it."""
    if program is None:
        return None
    word = "-v" if Path(program).name == "nginx" else "-V"
    done = subprocess.run(
        [program, word],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=programs.environment(program), check=False,
    )  # fmt: skip
    number = re.search(r"\d+(\.\d+)+", done.stdout)
    return number[0] if number else None


def _versions_of_peers() -> str | None:
    if not programs.PEERS.is_file():
        return None
    ask = (
        "import sys\nfrom importlib.metadata import distributions\n"
        "have = {one.name: one.version for one in distributions()}\n"
        "print(', '.join(f'{name} {have[name]}' for name in sys.argv[1:] if name in have))"
    )
    done = subprocess.run([programs.PEERS, "-c", ask, *_PEERS], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() or None


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
        return _ever_mb()


def most_mb() -> float:
    """The most memory that this process ever held."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return _ever_mb()
    [held] = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return round(int(held) * 1024 / 1e6, 1)


def _ever_mb() -> float:
    """Only where there is no /proc: on Linux this begins with the size of the process that started this one."""
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


def aim(what: str, found: float | None, *, least: float | None = None, most: float | None = None) -> dict[str, Any]:
    """One aim with what was found: `least` is wanted at least, or `most` at most. Nothing found is no aim met."""
    bound, words = (least, "at least") if least is not None else (most, "at most")
    if bound is None:
        raise ValueError(f"{what}: an aim is at least or at most something")
    is_met = found is not None and (found >= bound if least is not None else found <= bound)
    return {"aim": what, "wanted": f"{words} {bound:g}", "found": found, "met": "yes" if is_met else "no"}


def report(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    out: Path | None,
    aims: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> None:
    """Show the table, and what was aimed at below it; with `out`, write everything there as JSON."""
    show(title, rows, out=out)
    if aims:
        show(f"{title}: what was aimed at", aims, out=out)
    if out is not None:
        write(out, title, rows, aims=aims, **more)


def show(title: str, rows: Sequence[Mapping[str, Any]], *, out: Path | None) -> None:
    """Print the table; with `out`, add it to the page beside that file."""
    words = ", ".join(f"{key} {value}" for key, value in machine().items())
    print(f"{title}\n{words}\n\n{table(rows)}\n", flush=True)
    if out is not None:
        _add_to_page(out.parent / PAGE, title, rows)


def _add_to_page(page: Path, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """The machine's facts stand once, at the top; the time and the load with each table."""
    page.parent.mkdir(parents=True, exist_ok=True)
    moment = "{at}, load of the last minute {load_1m}".format(**_moment())
    with page.open("a", encoding="utf-8") as file:
        if not file.tell():
            file.write("# Measured\n\n" + "".join(f"- {key}: {value}\n" for key, value in _lasting().items()))
        file.write(f"\n## {title}\n\n{moment}\n\n{_markdown(rows)}\n")


def _markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "(nothing)"
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_shown(row.get(name)) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def write(out: Path, title: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    told = {"title": title, "machine": machine(), "rows": list(rows), **more}
    out.write_text(json.dumps(told, indent=2) + "\n")
