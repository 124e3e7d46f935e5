"""Papers from nginx on loopback, by this project and by others, one after another on the same machine.

Ours goes the whole way: queue, policy, robots, limits, cache, stream, hash, proof, flush, store, record, ledger. The
others fetch and write; what each does beside that is said in the table. Papers a second are counted with start-up, from
the start of the process to its end, and without, from the first request to the last file. What start-up costs is what
the same program takes for a single paper. They take turns, and the best of the rounds counts, which is the one least
disturbed by others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.download_ours import HOSTS, START, Set
from bench.facts import aim, report
from bench.nginx import Nginx, host_address
from bench.origin import Papers
from bench.programs import are_there, environment, find, peers_option
from bench.scratch import fresh_folder
from bench.watched import watch

OURS = "DocsToKG"
_PEERS = Path(__file__).with_name("download_peers.py")


class Job(NamedTuple):
    """Where the papers of one set are, and where they go."""

    papers: Set
    port: int
    listed: Path
    folder: Path


class Contender(NamedTuple):
    """One way to obtain the papers; a command per step, the last of which may tell its own times."""

    name: str
    does: str
    commands: Callable[[Job], list[list[str]]]
    tells: bool = False


def publish(root: Path, papers: Set) -> None:
    """The files nginx serves. They differ in one number."""
    folder, made = root / papers.name, Papers(papers.size_bytes)
    folder.mkdir(parents=True)
    for number in range(papers.items):
        (folder / f"{number}.pdf").write_bytes(made.paper(number))
    os.sync()


def addresses(papers: Set, port: int) -> Iterator[str]:
    for number in range(papers.items):
        yield f"http://{host_address(number % HOSTS)}:{port}/{papers.name}/{number}.pdf"


# the contenders


def ours(processes: int, workers: int) -> Contender:
    def commands(job: Job) -> list[list[str]]:
        numbers = map(str, (job.papers.items, job.papers.size_bytes, job.port, workers, processes))
        return [[sys.executable, "-c", START, str(job.folder), job.papers.name, *numbers]]

    name = OURS if processes == 1 else f"{OURS}, {processes} processes"
    return Contender(name, "all of it, sha256, flush", commands, tells=True)


def script(name: str, does: str, python: Path | str, way: str, at_once: int) -> Contender:
    def commands(job: Job) -> list[list[str]]:
        return [[str(python), str(_PEERS), way, str(job.listed), str(job.folder), str(at_once)]]

    return Contender(name, does, commands, tells=True)


def aria2(program: str) -> Contender:
    def commands(job: Job) -> list[list[str]]:
        fetch = [program, "--no-conf", "-q", "-j16", f"--dir={job.folder}", f"--input-file={job.listed}"]
        return [fetch, hashed(job.folder)]

    return Contender("aria2c -j16", "sha256", commands)


def hashed(folder: Path) -> list[str]:
    """The step of those who do not hash on the way."""
    return ["sh", "-c", 'find "$0" -type f -print0 | xargs -0 sha256sum > "$0.sums"', str(folder)]


def curl(program: str) -> Contender:
    def commands(job: Job) -> list[list[str]]:
        told = job.listed.with_suffix(".curl")
        lines = [f'url="{url}"\noutput="{job.folder}/{n}"' for n, url in enumerate(job.listed.read_text().split())]
        told.write_text("\n".join(lines))
        return [[program, "-q", "-s", "--parallel", "--parallel-max", "64", "--config", str(told)], hashed(job.folder)]

    return Contender("curl --parallel", "sha256", commands)


def wget2(program: str) -> Contender:
    def commands(job: Job) -> list[list[str]]:
        how = ["--no-config", "-q", "--no-robots", "--max-threads=16", "--force-directories"]
        return [[program, *how, f"--directory-prefix={job.folder}", f"--input-file={job.listed}"]]

    return Contender("wget2", "", commands)


def contenders(peers: Path, *, workers: int, processes: Sequence[int]) -> list[Contender]:
    found = [ours(count, workers) for count in processes]
    if are_there(peers, "Scrapy"):
        found.append(script("Scrapy", "md5", peers, "scrapy", 64))
    found.append(script("httpx2, threads", "sha256, flush", sys.executable, "pool", 16))
    for program, make in (("aria2c", aria2), ("curl", curl), ("wget2", wget2)):
        path = find(program)
        if path is None:
            _left_out(program, "not installed")
        else:
            found.append(make(path))
    return found


def _left_out(name: str, why: str) -> None:
    print(f"{name}: left out, {why}", file=sys.stderr)


# one run


def measure(contender: Contender, papers: Set, nginx: Nginx, home: Path) -> dict[str, Any]:
    """The papers and, after them, a single one, which shows what it costs to start."""
    whole = _run(contender, papers, nginx, home)
    start = _run(contender, papers._replace(items=1), nginx, home)
    return {
        "name": contender.name,
        "does": contender.does,
        "took_s": round(whole.took_s, 3),
        "per_s": round(papers.items / whole.took_s, 1),
        "mb_per_s": round(papers.items * papers.size_bytes / whole.took_s / 1e6, 1),
        "per_s_apart": round(papers.items / whole.work_s, 1),
        "items": papers.items,
        "cpu_s": round(whole.cpu_s, 3),
        "start_cpu_s": round(start.cpu_s, 3),
        "start_mb": start.most_mb,
        "half_mb": whole.half_mb,
        "most_mb": whole.most_mb,
    }


class Run(NamedTuple):
    """What one run took from the start of its first process to the end of its last; `work_s` leaves start-up out."""

    took_s: float
    work_s: float
    cpu_s: float
    half_mb: float
    most_mb: float


def _run(contender: Contender, papers: Set, nginx: Nginx, home: Path) -> Run:
    """One run into an empty folder, which is removed when it is over."""
    listed = home / "list"
    listed.write_text("\n".join(addresses(papers, nginx.port)) + "\n")
    with fresh_folder() as folder:
        commands = contender.commands(Job(papers, nginx.port, listed, folder))
        before, began = nginx.requests(), time.time()
        seen = [watch(command, env=environment(command[0])) for command in commands]
        if _files(folder, papers) < papers.items:
            raise RuntimeError(f"{contender.name} has not all the files")
    told = json.loads(seen[-1].output.splitlines()[-1]) if contender.tells else {}
    work_s = told.get("ended", seen[-1].ended) - (told.get("began") or nginx.first_at(before))
    half_mb, most_mb = max(one.half_mb for one in seen), max(one.most_mb for one in seen)
    return Run(seen[-1].ended - began, work_s, sum(one.cpu_s for one in seen), half_mb, most_mb)


def _files(folder: Path, papers: Set) -> int:
    """Files that have at least the size of a paper: the others are records and parts."""
    found = (Path(base) / name for base, _, names in os.walk(folder) for name in names)
    return len({path.stat().st_ino for path in found if path.stat().st_size >= 0.9 * papers.size_bytes})


# all of them


def rounds(papers: Set, entrants: Sequence[Contender], *, count: int, home: Path) -> list[dict[str, Any]]:
    publish(home / "www", papers)
    runs = []
    with Nginx(home / "nginx", root=home / "www", hosts=HOSTS) as nginx:
        for turn in range(count):
            for contender in entrants if turn % 2 == 0 else list(reversed(entrants)):
                run = {"set": papers.name, **measure(contender, papers, nginx, home)}
                print(f"{papers.name}: {contender.name}: {run['per_s']} a second", file=sys.stderr, flush=True)
                runs.append(run)
    return runs


def best(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each contender its quickest run and the least that it took to start and to work, beside Scrapy's."""
    found = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        quickest = max(own, key=lambda run: float(run["per_s"]))
        least = {name: min(run[name] for run in own) for name in ("cpu_s", "start_cpu_s", "start_mb")}
        each_s = max(0.0, least["cpu_s"] - least["start_cpu_s"]) / max(1, quickest["items"] - 1)
        found.append({**quickest, **least, "cpu_ms_each": round(1000 * each_s, 3)})
    base = next((row for row in found if row["name"] == "Scrapy"), None)
    for row in found:
        row["x_scrapy"] = round(row["per_s"] / base["per_s"], 2) if base else None
        row["cpu_x_scrapy"] = (
            round(row["cpu_ms_each"] / base["cpu_ms_each"], 2) if base and base["cpu_ms_each"] else None
        )
    return found


class Aim(NamedTuple):
    """What this project should reach; beside another one as a ratio, else as it is."""

    papers: str
    ours: str
    column: str
    other: str | None = None
    least: float | None = None
    most: float | None = None


TWO = f"{OURS}, 2 processes"
AIMS = (
    Aim("small", OURS, "per_s", "Scrapy", least=2.0),
    Aim("small", TWO, "per_s", "Scrapy", least=3.0),
    Aim("small", OURS, "cpu_ms_each", most=0.40),
    Aim("small", OURS, "start_cpu_s", most=0.30),
    Aim("small", TWO, "start_cpu_s", most=0.50),
    Aim("small", TWO, "start_mb", most=180),
    Aim("small", TWO, "per_s", "aria2c -j16", least=1.0),
    Aim("large", OURS, "per_s", "Scrapy", least=2.0),
    Aim("large", OURS, "mb_per_s", "curl --parallel", least=0.5),
    Aim("large", TWO, "per_s", "aria2c -j16", least=1.0),
    Aim("large", OURS, "per_s", "httpx2, threads", least=1.0),
)


def judged(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each aim with what was found, where both were measured."""
    by = {(row["set"], row["name"]): row for row in rows}
    found = []
    for one in AIMS:
        mine, other = by.get((one.papers, one.ours)), by.get((one.papers, one.other or one.ours))
        if mine is None or other is None:
            continue
        value = mine[one.column] if one.other is None else round(mine[one.column] / other[one.column], 2)
        beside = "" if one.other is None else f" beside {one.other}"
        found.append(aim(f"{one.papers}: {one.ours}{beside}: {one.column}", value, least=one.least, most=one.most))
    return found


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.download", description=__doc__)
    words.add_argument("--small", type=int, default=5000, help="papers of 20 KB; 0 leaves the set out")
    words.add_argument("--large", type=int, default=500, help="papers of about 1.2 MB; 0 leaves the set out")
    words.add_argument("--rounds", type=int, default=3, help="turns of every contender; the best counts")
    words.add_argument("--workers", type=int, default=64, help="of ours, all processes together; Scrapy has as many")
    words.add_argument("--only", default="", help="contenders whose names begin so, commas between")
    peers_option(words, "Scrapy")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    words.add_argument("--processes", default="1,2", help="of ours, a contender for each number")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if find("nginx") is None:
        _left_out("download", "there is no nginx; ./dev bench fetches it where there is apt-get")
        return 0
    names, processes = tuple(given.only.split(",")), [int(word) for word in given.processes.split(",")]
    entrants = contenders(given.peers, workers=given.workers, processes=processes)
    entrants = [one for one in entrants if one.name.startswith(names)]
    sets = [Set("small", given.small, 20_000), Set("large", given.large, 1_200_000)]
    runs, rows = [], []
    for papers in (one for one in sets if one.items):
        with fresh_folder() as folder:
            runs += rounds(papers, entrants, count=given.rounds, home=folder)
        rows += best([run for run in runs if run["set"] == papers.name])
    aims = judged(rows)
    report("Papers from nginx on loopback, beside other programs", rows, out=given.out, aims=aims, runs=runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
