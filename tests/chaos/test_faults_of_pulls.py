"""`content pull` as a user starts it, killed, stopped and interrupted at moments that a seed decides, and begun again.

The web it asks has faults of its own. Judged by what the web knows: every paper that is reachable is there, none is
another's, none was ended twice, nothing is left open or lying about, ledger, record and store are whole, and no host
was asked sooner than it may be.
`CHAOS_SEED` decides the world and the moments, `CHAOS_WORKS` and `CHAOS_FAULTS` how many there are.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.scores import bad_of, met_in_the_web, note
from tests.politeness import complaints

from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

SEED = int(os.environ.get("CHAOS_SEED", "7"))
WORKS = int(os.environ.get("CHAOS_WORKS", "60"))
FAULTS = int(os.environ.get("CHAOS_FAULTS", "3"))
# What passes with time, so that every reachable paper must be there in the end.
WORLD = replace(Faults.none(), rate_limited=0.02, server_error=0.02, truncated_length=0.02, reset=0.02, duplicate=0.02)
# Files of somebody who was at work: half a paper, half a summary, signs of life.
LEFT = ("part-*", "*.tmp", "ledger.sqlite.workers/*")
KINDS = ("killed", "one process killed", "stopped", "interrupted")
PATIENCE_S = 240.0
PROGRAM = str(Path(sys.executable).parent / "content")


class Pull:
    """One corpus, and the command that gathers it."""

    def __init__(self, folder: Path, sandbox: SandboxServer) -> None:
        self.run = folder / "run"
        self._listed = folder / "ids.txt"
        self._listed.write_text("\n".join(sandbox.identifiers(sandbox.world.count, mix=False)) + "\n")
        self._settings = folder / "settings.json"
        self._settings.write_text(json.dumps(self._configured(sandbox)))
        self._env = {**os.environ, "HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "machine")}
        self._log = (folder / "output.txt").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def _configured(self, sandbox: SandboxServer) -> dict[str, Any]:
        return {
            **sandbox.profile(),
            "orchestrator": {"max_workers": 8, "processes": 2, "retry_backoff_seconds": 1, "jitter_seconds": 0},
            "robots": {"unreachable_seconds": 1},
            "storage": {"min_free_bytes": 0},
        }

    def start(self) -> None:
        words = ["pull", str(self._listed), "--config", str(self._settings), "--out", str(self.run), "--quiet"]
        # Begun by a script in the background we would pass on that Ctrl+C is none of its business.
        ours = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            [PROGRAM, *words], stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL, env=self._env,
            start_new_session=True,
        )  # fmt: skip
        signal.signal(signal.SIGINT, ours)

    def end(self, within_s: float = PATIENCE_S) -> int:
        assert self.process is not None
        return self.process.wait(within_s)

    def done(self) -> int:
        with suppress(sqlite3.OperationalError), closing(self._ledger()) as db:
            return int(db.execute("SELECT COUNT(*) FROM jobs WHERE state IN ('done', 'skipped')").fetchone()[0])
        return 0

    def states(self) -> Counter[str]:
        with suppress(sqlite3.OperationalError), closing(self._ledger()) as db:
            return Counter(dict(db.execute("SELECT state, COUNT(*) FROM jobs GROUP BY 1").fetchall()))
        return Counter()

    def ended_twice(self) -> int:
        """Works that were obtained more than once, by two owners."""
        sql = """SELECT COUNT(*) FROM (SELECT job_id FROM job_history WHERE event = 'finished' AND to_state = 'done'
                 GROUP BY job_id HAVING COUNT(*) > 1)"""
        with suppress(sqlite3.OperationalError), closing(self._ledger()) as db:
            return int(db.execute(sql).fetchone()[0])
        return 0

    def saved(self) -> dict[str, str]:
        """By what was asked for: the digest of the file, as it lies there."""
        if not (self.run / "results.csv").exists():
            return {}
        with (self.run / "results.csv").open(newline="") as rows:
            paths = {row["input"]: self.run / row["path"] for row in csv.DictReader(rows) if row["path"]}
        return {line: hashlib.sha256(path.read_bytes()).hexdigest() for line, path in paths.items() if path.exists()}

    def broken(self) -> list[str]:
        """What is not whole, or lies about though nobody has it any more."""
        found = [f"{path}: {told}" for path in self._databases() if (told := _integrity(path)) != "ok"]
        found += [str(path) for name in LEFT for path in self.run.rglob(name) if path.is_file()]
        with WorkQueue(self.run / "state" / "ledger.sqlite") as queue:
            if not queue.ledger.verify_history():
                found.append("the chain of the history is not whole")
        words = [PROGRAM, "catalog", "verify", "--run", str(self.run), "--json"]
        told = subprocess.run(words, capture_output=True, text=True, env=self._env, timeout=PATIENCE_S, check=False)
        if told.returncode:
            found.append(f"catalog verify: {told.returncode} {told.stdout[-1000:]} {told.stderr[-1000:]}")
        return found

    def said(self) -> str:
        """The last words to its user, of every time it was begun."""
        return (self.run.parent / "output.txt").read_text(errors="replace")[-2000:]

    def _databases(self) -> list[Path]:
        found = sorted(self.run.rglob("*.sqlite"))
        assert {"ledger.sqlite", "manifest.sqlite"} <= {path.name for path in found}, self.said()
        return found

    def members(self) -> list[int]:
        """The processes that work for it, itself left out."""
        assert self.process is not None
        with suppress(OSError):
            tasks = Path(f"/proc/{self.process.pid}/task")
            return [int(pid) for task in tasks.glob("*/children") for pid in task.read_text().split()]
        return []

    def _ledger(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.run / 'state' / 'ledger.sqlite'}?mode=ro", uri=True, timeout=10)

    # what befalls it

    def befall(self, kind: str, chance: random.Random) -> str:
        """Whether it must be begun again is seen by its end. Says what really happened."""
        assert self.process is not None
        if kind == "one process killed":
            members = self.members()
            if not members:
                return self.befall("killed", chance)
            with suppress(ProcessLookupError):
                os.kill(chance.choice(members), signal.SIGKILL)
        elif kind == "stopped":
            self._signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0.5, 3.0))
            self._signal(signal.SIGCONT)
        elif kind == "interrupted":
            self.process.send_signal(signal.SIGINT)
            self.end()
        else:
            self._signal(signal.SIGKILL)
            self.end()
        return kind

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGKILL)
            self.end()
        self._log.close()


def _integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        return "; ".join(row[0] for row in db.execute("PRAGMA integrity_check"))


def more_than(pull: Pull, count: int) -> bool:
    """Wait until more works are done, or the pull is over."""
    until = time.monotonic() + PATIENCE_S
    while pull.done() <= count:
        assert time.monotonic() < until, f"it stands still: {pull.said()}"
        if pull.process is None or pull.process.poll() is not None:
            return False
        time.sleep(0.02)
    return True


def suffer(pull: Pull, chance: random.Random, works: int) -> tuple[Counter[str], list[float]]:
    """Each fault comes after some more works are done; how long the next took to be done, after each new start."""
    met: Counter[str] = Counter()
    recovery_s: list[float] = []
    pull.start()
    for number in range(FAULTS):
        if not more_than(pull, min(works - 2, pull.done() + chance.randrange(0, max(1, works // (FAULTS + 2))))):
            break
        met[pull.befall(KINDS[number % len(KINDS)], chance)] += 1
        if pull.process is None or pull.process.poll() is not None:
            before, began = pull.done(), time.monotonic()
            pull.start()
            if more_than(pull, before):
                recovery_s.append(round(time.monotonic() - began, 2))
    return met, recovery_s


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_pull_that_is_killed_and_begun_again_has_every_paper_once(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with SandboxServer(works=WORKS, seed=SEED, faults=WORLD, size_bytes=20_000) as sandbox:
        pull = Pull(tmp_path, sandbox)
        try:
            met, recovery_s = suffer(pull, chance, WORKS)
            code = pull.end()
            for _ in range(2):
                if code not in (0, 3):
                    break
                pull.start()  # the same command again: what failed for a while is tried again
                code = pull.end()
            found, broken = judged(pull, sandbox, met, recovery_s)
            said = pull.said()
        finally:
            pull.close()
    assert code in (0, 3), f"it ended with {code} and said: {said}"
    assert sum(met.values()) >= min(2, FAULTS), f"it was over before anything befell it: {said}"
    assert bad_of(found) == {}, (broken, said)


def judged(
    pull: Pull, sandbox: SandboxServer, met: Counter[str], recovery_s: list[float]
) -> tuple[dict[str, Any], list[str]]:
    """The counts, and what is not whole. A paper that cannot be read is lost."""
    truth, saved = {work["doi"]: work for work in sandbox.truth()["works"]}, pull.saved()
    asked = {line: truth[line] for line in sandbox.identifiers(WORKS, mix=False)}
    broken = pull.broken()
    found = note(
        "pulls", jobs=len(asked), faults={**met, **met_in_the_web(sandbox.counters())}, recovery_s=recovery_s,
        lost=sum(work["reachable"] and line not in saved for line, work in asked.items()),
        wrong=sum(digest not in asked[line]["sha256"] for line, digest in saved.items()) + len(broken),
        doubled=pull.ended_twice(),
        stuck=sum(pull.states()[state] for state in ("pending", "queued", "in_progress")),
        impolite=len(complaints(sandbox.violations(), [pull.run / "manifest.sqlite"])),
    )  # fmt: skip
    return found, broken


@pytest.mark.slow
def test_what_lies_about_or_is_damaged_is_named(tmp_path: Path) -> None:
    """Planted, for nothing of it is there wherever all is well."""
    with SandboxServer(works=6, seed=SEED, faults=Faults.none(), size_bytes=20_000) as sandbox:
        pull = Pull(tmp_path, sandbox)
        try:
            pull.start()
            assert pull.end() in (0, 3), pull.said()
            assert pull.broken() == []
            (pull.run / ".tmp" / "part-dead.pdf").write_bytes(b"half")
            stored = next(path for path in (pull.run / "cas").rglob("*") if path.is_file())
            stored.chmod(0o644)
            stored.write_bytes(b"rubbish")
            left, damaged = pull.broken()
        finally:
            pull.close()
    assert left.endswith("part-dead.pdf")
    assert damaged.startswith("catalog verify: 1")
