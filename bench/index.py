"""How fast is an index of open copies built, beside DuckDB alone doing the same projection and sorted write?

    ./dev run python -m bench.index --works 1000000

The works are synthetic OpenAlex records (JSON lines, gzip), 200,000 in a file, made by DuckDB. DuckDB alone reads them
with the same statement, sorts, and writes Parquet partitioned by the hash of the identifier; both have the same memory
and threads. Then a list is joined. Printed: seconds, works a second, the ratio, and the most memory a process took.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

_EACH = 200_000
_WORKS = Path(__file__).with_name("index_works.sql")


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    folder = Path(options.folder)
    source = folder / f"works-{options.works}"
    if not source.exists():
        _timed("making the works", lambda: make_works(source, options.works))
    size = sum(file.stat().st_size for file in source.glob("*.gz"))
    print(f"{options.works:,} works in {len(list(source.glob('*.gz')))} files, {size / 1e6:,.0f} MB gzip", flush=True)
    limits = {"memory": options.memory_mb, "threads": options.threads}
    ratios = list[tuple[float, float]]()
    for _ in range(options.rounds):
        ours = _alone("ours", source, folder, options.works, **limits)
        bare = _alone("bare", source, folder, options.works, **limits)
        ratios.append((bare["seconds"] / ours["seconds"], bare["cpu"] / ours["cpu"]))
    by_time, by_cpu = (sorted(each[n] for each in ratios)[len(ratios) // 2] for n in (0, 1))
    print(f"of bare DuckDB's speed: {by_time:.2f} by time, {by_cpu:.2f} by processor seconds", flush=True)
    if options.asked:
        _alone("join", source, folder, options.works, asked=options.asked, **limits)
    return 0


def make_works(target: Path, works: int) -> None:
    from DocsToKG.ContentDownload.index.engine import connect, filled, quoted

    beside = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    with connect() as db:
        for number, first in enumerate(range(0, works, _EACH)):
            rows = filled(_WORKS.read_text(), first=str(first), last=str(min(works, first + _EACH)))
            out = quoted(beside / f"part_{number:04}.gz")
            db.execute(f"COPY ({rows}) TO {out} (FORMAT json, COMPRESSION gzip)")
    beside.rename(target)


def run_ours(source: Path, out: Path, *, memory_mb: int, threads: int) -> None:
    from DocsToKG.ContentDownload.index.build import Wanted, build
    from DocsToKG.ContentDownload.index.engine import Limits

    def watch(progress: object) -> None:
        if sys.stderr.isatty():
            print(progress, file=sys.stderr)

    build(out, Wanted([("openalex", str(source))]), limits=Limits(memory_mb << 20, threads), watch=watch)


def run_bare(source: Path, out: Path, *, memory_mb: int, threads: int) -> None:
    """One statement: read, project, sort, write."""
    from DocsToKG.ContentDownload.index.build import _files_for
    from DocsToKG.ContentDownload.index.engine import Limits, connect, quoted
    from DocsToKG.ContentDownload.index.parts import find_parts
    from DocsToKG.ContentDownload.index.sources import SOURCES, relation_of, rows_of

    out.mkdir(parents=True)
    parts = find_parts("openalex", str(source))
    with connect(Limits(memory_mb << 20, threads, out / "spill")) as db:
        relation = relation_of(db, SOURCES["openalex"], [Path(part.address) for part in parts], "jsonl")
        rows = rows_of(SOURCES["openalex"], relation, buckets=_files_for(parts), today=date(2026, 11, 19))
        db.execute(
            f"COPY (SELECT * EXCLUDE (bad_in, said) FROM ({rows}) ORDER BY bucket, key, source, record) "
            f"TO {quoted(out / 'works')} "
            "(FORMAT parquet, PARTITION_BY (bucket), COMPRESSION zstd, ROW_GROUP_SIZE 24576)"
        )


def run_join(source: Path, out: Path, *, memory_mb: int, threads: int, asked: int, works: int) -> None:
    """A list of which nine in ten are works of the index, read, joined and planned."""
    from DocsToKG.ContentDownload.index.engine import Limits, connect, quoted
    from DocsToKG.ContentDownload.index.planning import plan_list

    ids = out.parent / f"ids-{asked}.parquet"
    with connect() as db:
        numbers = f"SELECT range AS n FROM range({works // 10}, {works // 10 + asked})"
        doi = "'10.' || (1000 + n % 4000) || '/bench.' || n AS doi"
        db.execute(f"COPY (SELECT {doi} FROM ({numbers})) TO {quoted(ids)} (FORMAT parquet)")
    began, spill = time.monotonic(), out.parent / "spill"
    limits = Limits(memory_mb << 20, threads, spill)
    plan = plan_list(out, [str(ids)], limits=limits, spill=spill, asks_services=True)
    told = f"{plan.open:,} open, {plan.closed:,} closed, {plan.unknown:,} unknown"
    print(f"planned in {time.monotonic() - began:.1f} s: {told}", file=sys.stderr)


def _alone(
    what: str, source: Path, folder: Path, works: int, *, memory: int, threads: int, asked: int = 0
) -> dict[str, float]:
    """One side in a process of its own, so that its memory is its own."""
    out = folder / f"{what}-{works}"
    if what != "join":
        shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "bench.index", "--side", what, "--works", str(works), "--folder", str(folder)]
    command += ["--memory-mb", str(memory), "--threads", str(threads), "--asked", str(asked)]
    began = time.monotonic()
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
    told["wall"] = time.monotonic() - began
    rate, used = works / told["seconds"], f"{told['cpu']:.1f} s of processors, {told['memory_mb']:,.0f} MB at most"
    print(f"{what}: {told['seconds']:.1f} s, {rate:,.0f} works/s, {used}", flush=True)
    return dict(told)


def _side(options: argparse.Namespace) -> int:
    folder = Path(options.folder)
    source, out = folder / f"works-{options.works}", folder / f"{options.side}-{options.works}"
    limits = {"memory_mb": options.memory_mb, "threads": options.threads}
    began = time.monotonic()
    if options.side == "ours":
        run_ours(source, out, **limits)
    elif options.side == "bare":
        run_bare(source, out, **limits)
    else:
        run_join(source, folder / f"ours-{options.works}", asked=options.asked, works=options.works, **limits)
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "seconds": time.monotonic() - began,
        "cpu": used.ru_utime + used.ru_stime,
        "memory_mb": used.ru_maxrss / 1024,
    }
    print(json.dumps(told))
    return 0


def _timed(what: str, act: Callable[[], None]) -> None:
    began = time.monotonic()
    act()
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.index", description=__doc__)
    words.add_argument("--works", type=int, default=1_000_000)
    words.add_argument("--asked", type=int, default=0, help="works of a list that is joined with the index")
    words.add_argument("--rounds", type=int, default=1)
    words.add_argument("--memory-mb", type=int, default=2048)
    words.add_argument("--threads", type=int, default=2)
    words.add_argument("--folder", default="/tmp/docstokg-bench-index")
    words.add_argument("--side", choices=("ours", "bare", "join"))
    return words


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen = parser().parse_args(given)
    sys.exit(_side(chosen) if chosen.side else main(given))
