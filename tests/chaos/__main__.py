"""Everything that fails, for as long as one likes: `./dev chaos --minutes 30 --seed 7`.

The fault suites take turns, each turn with a seed of its own that follows from the one given: pulls that are killed,
stopped and interrupted; worker processes killed at any moment; two machines whose servers and wires fail in turn;
instances of the service killed while workers lease through them. Then the scorecard. Ends with 1 when anything was
lost, doubled, stuck, impolite or wrong, or a suite could not run; such a turn names its command.
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
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.chaos.scores import WHERE

ROOT = Path(__file__).parents[2]
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider")


class Suite(NamedTuple):
    """One turn: what is run, and how the seed reaches it."""

    name: str
    tests: str
    settings: Mapping[str, str]
    seed: str


SUITES = (
    Suite("pulls", "tests/chaos/test_faults_of_pulls.py", {"CHAOS_WORKS": "300", "CHAOS_FAULTS": "12"}, "CHAOS_SEED"),
    Suite("processes", "tests/chaos/test_faults_of_processes.py", {"CHAOS_KILLS": "50"}, "CHAOS_SEED"),
    Suite("machines", "tests/many_machines/test_many_machines.py::test_two_nodes_store_every_paper_once_whatever_fails",
          {}, "FLEET_SEED"),
    Suite("instances", "tests/conformance/test_web_killed.py::test_twenty_thousand_leases_while_instances_are_killed",
          {"KILLED_JOBS": "4000"}, "KILLED_SEED"),
)  # fmt: skip
BAD = ("lost", "doubled", "stuck", "impolite", "wrong")


class Turn(NamedTuple):
    """How one turn went. One that was passed over, for want of a server, has judged nothing."""

    suite: str
    seed: int
    took_s: float
    went: str
    command: str

    @property
    def passed(self) -> bool:
        return self.went == "held"


def take_turn(suite: Suite, seed: int, scores: Path, log: Path) -> Turn:
    settings = {**suite.settings, suite.seed: str(seed)}
    began, told = time.monotonic(), scores.stat().st_size
    with log.open("ab") as output:
        code = _run([*_PYTEST, suite.tests], {**os.environ, **settings, WHERE: str(scores)}, output)
    shown = " ".join(f"{name}={value}" for name, value in settings.items())
    command = f"{shown} ./dev run python -m pytest {suite.tests}"
    went = "FAILED" if code else "held" if scores.stat().st_size > told else "LEFT OUT"
    return Turn(suite.name, seed, time.monotonic() - began, went, command)


def _run(command: Sequence[str], env: Mapping[str, str], output: IO[bytes]) -> int:
    """Ctrl+C reaches us alone, and we pass it on once: the tests have servers and processes to end."""
    turn = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output, start_new_session=True)
    try:
        return turn.wait(3600)
    except BaseException:
        turn.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            turn.wait(60)
        turn.kill()
        raise


def scorecard(turns: Sequence[Turn], lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One sum of everything. A turn that failed counts by itself: what it had counted may be missing."""
    faults: Counter[str] = Counter()
    for line in lines:
        faults.update(line["faults"])
    recovery = sorted(second for line in lines for second in line["recovery_s"])
    return {
        "turns": dict(Counter(turn.suite for turn in turns if turn.went != "LEFT OUT")),
        "failed_turns": [turn.command for turn in turns if not turn.passed],
        "jobs": sum(line["jobs"] for line in lines),
        "faults": dict(faults.most_common()),
        **{name: sum(line[name] for line in lines) for name in BAD},
        "recovery_s": {
            "count": len(recovery),
            "median": round(statistics.median(recovery), 2) if recovery else None,
            "most": recovery[-1] if recovery else None,
        },
    }


def show(card: Mapping[str, Any], took_s: float, seed: int) -> None:
    turns = ", ".join(f"{count} x {name}" for name, count in card["turns"].items())
    print(f"\n{took_s / 60:.1f} minutes, seed {seed}: {turns}\n")
    print(f"{'jobs':<34}{card['jobs']:>10,}\n{'faults':<34}{sum(card['faults'].values()):>10,}")
    for name, count in card["faults"].items():
        print(f"  {name:<32}{count:>10,}")
    for name in BAD:
        print(f"{name:<34}{card[name]:>10,}")
    recovery = card["recovery_s"]
    if recovery["count"]:
        print(f"{'recovery: median, most (seconds)':<34}{recovery['median']:>10} {recovery['most']}")
    for command in card["failed_turns"]:
        print(f"failed or left out: {command}")


def main() -> int:
    words = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    words.add_argument("--minutes", type=float, default=30.0, help="no new turn begins after that")
    words.add_argument("--seed", type=int, default=7, help="the same seed makes the same turns")
    words.add_argument("--only", help="one suite: " + ", ".join(suite.name for suite in SUITES))
    words.add_argument("--out", type=Path, default=ROOT / ".cache" / "chaos", help="folder for scorecard and output")
    given = words.parse_args()
    suites = [suite for suite in SUITES if given.only in (None, suite.name)]
    if not suites:
        words.error(f"there is no suite {given.only!r}")
    given.out.mkdir(parents=True, exist_ok=True)
    log = given.out / "output.txt"
    log.write_bytes(b"")
    turns: list[Turn] = []
    is_cut_short = False
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        scores = Path(folder) / "scores.jsonl"
        scores.touch()
        try:
            while not turns or time.monotonic() - began < 60 * given.minutes:
                turn = take_turn(suites[len(turns) % len(suites)], given.seed + len(turns) // len(suites), scores, log)
                turns.append(turn)
                print(f"{turn.suite} {turn.seed}: {turn.went}, {turn.took_s:.0f} s", flush=True)
        except KeyboardInterrupt:
            is_cut_short = True
            print("interrupted; so far:", flush=True)
        lines = [json.loads(line) for line in scores.read_text().splitlines()]
    card = scorecard(turns, lines)
    show(card, time.monotonic() - began, given.seed)
    (given.out / "scorecard.json").write_text(json.dumps(card, indent=2) + "\n")
    if card["failed_turns"] or any(card[name] for name in BAD):
        return 1
    return 130 if is_cut_short else 0


if __name__ == "__main__":
    sys.exit(main())
