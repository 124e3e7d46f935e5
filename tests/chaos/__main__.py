"""Everything that fails, for as long as one likes: `./dev chaos --minutes 30 --seed 7`.

The fault suites take turns, each turn with a seed of its own that follows from the one given: pulls that are killed,
stopped and interrupted; worker processes killed at any moment; two machines whose servers and wires fail in turn;
instances of the service killed while workers lease through them; then pulls beside one of the others, for these slow
each other down. Longer runs have somewhat longer turns. Then the scorecard. Ends with 1 when anything was lost,
doubled, stuck, impolite or wrong, or a suite could not run; such a turn says why, and names its command.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from tests.chaos.scores import BAD, WHERE

ROOT = Path(__file__).parents[2]
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider")


class Suite(NamedTuple):
    """What is run, with how much of it, and how the seed reaches it."""

    name: str
    tests: str
    amounts: Mapping[str, int]
    seed: str

    def settings(self, seed: int, share: float) -> dict[str, str]:
        return {name: str(round(share * amount)) for name, amount in self.amounts.items()} | {self.seed: str(seed)}


PULLS = "tests/chaos/test_faults_of_pulls.py"
SUITES = (
    Suite("pulls", f"{PULLS}::test_a_pull_that_is_killed_and_begun_again_has_every_paper_once",
          {"CHAOS_WORKS": 300, "CHAOS_FAULTS": 12}, "CHAOS_SEED"),
    Suite("processes", "tests/chaos/test_faults_of_processes.py", {"CHAOS_KILLS": 50}, "CHAOS_SEED"),
    Suite("machines", "tests/many_machines/test_many_machines.py::test_two_nodes_store_every_paper_once_whatever_fails",
          {}, "FLEET_SEED"),
    Suite("instances", "tests/conformance/test_web_killed.py::test_twenty_thousand_leases_while_instances_are_killed",
          {"KILLED_JOBS": 4000, "KILLED_TIMES": 12}, "KILLED_SEED"),
)  # fmt: skip
TOGETHER = "together"
# What pulls run beside, by turns.
BESIDE = ("processes", "machines")
SCORES, OUTPUT = "scores.jsonl", "output.txt"
# The last words of a turn that failed.
_MOST_SAID = 25


class Turn(NamedTuple):
    """How one turn went, and what it said. One that was passed over, for want of a server, has judged nothing."""

    suite: str
    seed: int
    took_s: float
    went: str
    command: str
    said: str = ""

    @property
    def passed(self) -> bool:
        return self.went == "held"


def plan(number: int, seed: int, only: str | None = None) -> tuple[str, Sequence[Suite], int]:
    """The name, the suites and the seed of a turn: each suite by itself, then two side by side, then with the next
    seed."""
    names = [only] if only else [*(suite.name for suite in SUITES), TOGETHER]
    name, seed = names[number % len(names)], seed + number // len(names)
    chosen = ("pulls", BESIDE[seed % len(BESIDE)]) if name == TOGETHER else (name,)
    return name, [suite for suite in SUITES if suite.name in chosen], seed


def share_of(minutes: float) -> float:
    """How long a turn is: there are more of them in an hour, and each has more faults too."""
    return 0.2 if minutes < 2 else min(3.0, max(1.0, minutes / 30))


def take_turn(name: str, suites: Sequence[Suite], seed: int, share: float, folder: Path) -> Turn:
    """All of the suites begin at once. `folder` is for what they score and say, each by itself until it has ended."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(Run(suite, seed, share, folder)) for suite in suites]
        went = [run.end() for run in runs]
        said = "\n".join(run.last_words() for run, each in zip(runs, went, strict=True) if each == "FAILED")
    worst = next((each for each in ("FAILED", "LEFT OUT") if each in went), "held")
    command = " & ".join(run.command for run in runs) + (" & wait" if len(runs) > 1 else "")
    return Turn(name, seed, time.monotonic() - began, worst, command, said)


class Run:
    """One suite at work."""

    def __init__(self, suite: Suite, seed: int, share: float, folder: Path) -> None:
        settings = suite.settings(seed, share)
        shown = " ".join(f"{name}={value}" for name, value in settings.items())
        self.command = f"{shown} ./dev run python -m pytest {suite.tests}"
        self._folder = folder
        self._scores, self._output = folder / f"{suite.name}.jsonl", folder / f"{suite.name}.txt"
        self._scores.write_bytes(b"")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [*_PYTEST, suite.tests], cwd=ROOT, env={**os.environ, **settings, WHERE: str(self._scores)},
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    def end(self) -> str:
        code = self._process.wait(3600)
        return "FAILED" if code else "held" if self._scores.stat().st_size else "LEFT OUT"

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ctrl+C reaches us alone, and we pass it on once: the tests have servers and processes to end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(60)
            self._process.kill()
            self._process.wait()
        for own, all_of_them in ((self._scores, SCORES), (self._output, OUTPUT)):
            with (self._folder / all_of_them).open("ab") as file:
                file.write(own.read_bytes())
            own.unlink()

    def last_words(self) -> str:
        """What went wrong, in the words of the command or the test."""
        lines = self._output.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if line.startswith(("E  ", "FAILED", "ERROR"))][-_MOST_SAID:])


class Given(NamedTuple):
    """What the run was asked for, and when."""

    seed: int
    minutes: float
    began: datetime
    took_s: float


def scorecard(turns: Sequence[Turn], lines: Sequence[Mapping[str, Any]], given: Given) -> dict[str, Any]:
    """One sum of everything. A turn that failed counts by itself: what it had counted may be missing."""
    faults: Counter[str] = Counter()
    for line in lines:
        faults.update(line["faults"])
    return {
        "seed": given.seed,
        "minutes": given.minutes,
        "began": given.began.isoformat(timespec="seconds"),
        "took_s": round(given.took_s, 1),
        "turns": dict(Counter(turn.suite for turn in turns if turn.went != "LEFT OUT")),
        "failed_turns": [turn.command for turn in turns if not turn.passed],
        "jobs": sum(line["jobs"] for line in lines),
        "faults": dict(faults.most_common()),
        **{name: sum(line[name] for line in lines) for name in BAD},
        "recovery_s": {
            "all": _times(lines),
            **{suite: _times(line for line in lines if line["suite"] == suite) for suite in _suites_of(lines)},
        },
    }


def _suites_of(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(line["suite"] for line in lines if line["recovery_s"]))


def _times(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    seconds = sorted(second for line in lines for second in line["recovery_s"])
    median, most = (round(statistics.median(seconds), 2), seconds[-1]) if seconds else (None, None)
    return {"count": len(seconds), "median": median, "most": most}


def show(card: Mapping[str, Any]) -> None:
    turns = ", ".join(f"{count} x {name}" for name, count in card["turns"].items())
    print(f"\n{card['took_s'] / 60:.1f} minutes from {card['began']}, seed {card['seed']}: {turns}\n")
    print(f"{'jobs':<34}{card['jobs']:>10,}\n{'faults':<34}{sum(card['faults'].values()):>10,}")
    for name, count in card["faults"].items():
        print(f"  {name:<32}{count:>10,}")
    for name in BAD:
        print(f"{name:<34}{card[name]:>10,}")
    if card["recovery_s"]["all"]["count"]:
        print("recovery in seconds: median, most")
        for suite, times in card["recovery_s"].items():
            if times["count"]:
                print(f"  {suite:<32}{times['median']:>10} {times['most']}")
    for command in card["failed_turns"]:
        print(f"failed or left out: {command}")


def main() -> int:
    given = _words().parse_args()
    share = share_of(given.minutes)
    given.out.mkdir(parents=True, exist_ok=True)
    turns: list[Turn] = []
    is_cut_short = False
    began, began_at = time.monotonic(), datetime.now(UTC)
    for name in (SCORES, OUTPUT):
        (given.out / name).write_bytes(b"")
    try:
        while not turns or time.monotonic() - began < 60 * given.minutes:
            turns.append(take_turn(*plan(len(turns), given.seed, given.only), share, given.out))
            tell(turns[-1])
    except KeyboardInterrupt:
        is_cut_short = True
        print("interrupted; so far:", flush=True)
    lines = [json.loads(line) for line in (given.out / SCORES).read_text().splitlines()]
    card = scorecard(turns, lines, Given(given.seed, given.minutes, began_at, time.monotonic() - began))
    show(card)
    (given.out / "scorecard.json").write_text(json.dumps(card, indent=2) + "\n")
    if card["failed_turns"] or any(card[name] for name in BAD):
        return 1
    return 130 if is_cut_short else 0


def _words() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    words.add_argument("--minutes", type=float, default=30.0, help="no new turn begins after that; below 2: short ones")
    words.add_argument("--seed", type=int, default=7, help="the same seed makes the same turns")
    words.add_argument("--only", choices=[*(suite.name for suite in SUITES), TOGETHER], help="turns of one kind")
    words.add_argument("--out", type=Path, default=ROOT / ".cache" / "chaos", help="folder for scorecard and output")
    return words


def tell(turn: Turn) -> None:
    print(f"{turn.suite} {turn.seed}: {turn.went}, {turn.took_s:.0f} s", flush=True)
    if turn.said:
        print(turn.said, flush=True)


if __name__ == "__main__":
    sys.exit(main())
