"""The turns of a fault run and the sum of them: what is counted, told and repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.__main__ import ROOT, Given, Suite, Turn, plan, scorecard, share_of, show, take_turn
from tests.chaos.scores import WHERE, Recovery, bad_of, met_in_the_web, note

GIVEN = Given(seed=5, minutes=1.5, began=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), took_s=90.04)
HELD = Turn("pulls", 5, 60.0, "held", "one")
FAILED = Turn("machines", 5, 30.0, "FAILED", "two", "E  a paper is lost")
LEFT_OUT = Turn("instances", 5, 1.0, "LEFT OUT", "three")


def lines() -> list[dict[str, Any]]:
    return [
        note("pulls", jobs=10, faults={"killed": 2, "web: reset": 1}, recovery_s=[3.0, 1.0], lost=1, impolite=2),
        note("machines", jobs=1_000, faults={"killed": 1}, recovery_s=[9.0]),
        note("instances", jobs=5, faults={}, doubled=1),
    ]


def test_a_scorecard_is_the_sum_of_all_turns_and_says_what_was_asked_for() -> None:
    card = scorecard([HELD, HELD, FAILED, LEFT_OUT], lines(), GIVEN)
    assert card == {
        "seed": 5,
        "minutes": 1.5,
        "began": "2026-01-02T03:04:05+00:00",
        "took_s": 90.0,
        "turns": {"pulls": 2, "machines": 1},
        "failed_turns": ["two", "three"],
        "jobs": 1_015,
        "faults": {"killed": 3, "web: reset": 1},
        "lost": 1,
        "doubled": 1,
        "stuck": 0,
        "impolite": 2,
        "wrong": 0,
        "recovery_s": {
            "all": {"count": 3, "median": 3.0, "most": 9.0},
            "pulls": {"count": 2, "median": 2.0, "most": 3.0},
            "machines": {"count": 1, "median": 9.0, "most": 9.0},
        },
    }


def test_a_scorecard_of_nothing_is_shown_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    card = scorecard([], [], GIVEN)
    assert card["recovery_s"] == {"all": {"count": 0, "median": None, "most": None}}
    show(card)
    assert "recovery" not in capsys.readouterr().out


def test_what_is_shown_has_every_figure_and_the_command_of_a_turn_that_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(scorecard([HELD, FAILED], lines(), GIVEN))
    shown = capsys.readouterr().out
    assert "1.5 minutes from 2026-01-02T03:04:05+00:00, seed 5: 1 x pulls, 1 x machines" in shown
    figures = [tuple(line.rsplit(maxsplit=1)) for line in shown.splitlines() if line[-1:].isdigit()]
    assert {("jobs", "1,015"), ("faults", "4"), ("  killed", "3"), ("lost", "1"), ("stuck", "0")} <= set(figures)
    assert ["machines", "9.0", "9.0"] in [line.split() for line in shown.splitlines()]
    assert "failed or left out: two" in shown


def test_what_a_suite_counts_is_kept_for_whoever_gathers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHERE, str(tmp_path / "scores"))
    told = lines()
    assert [bad_of(line) for line in told] == [{"lost": 1, "impolite": 2}, {}, {"doubled": 1}]
    assert [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()] == told
    assert met_in_the_web({"by_fault": {"reset": 3}}) == {"web: reset": 3}


def test_recovery_is_the_time_from_a_fault_to_the_next_that_is_done() -> None:
    count = 3
    with Recovery(lambda: count) as recovery:
        recovery.mark()
        time.sleep(0.1)
        assert recovery.seconds == []  # nothing came
        count += 1
    assert len(recovery.seconds) == 1
    assert recovery.seconds[0] >= 0.1


def test_a_server_that_is_away_is_not_taken_for_one_that_recovered() -> None:
    def done() -> int:
        raise ConnectionError

    with Recovery(done) as recovery:
        recovery.mark()
    assert recovery.seconds == []


def test_the_same_seed_makes_the_same_turns_and_some_are_together() -> None:
    turns = [plan(number, 6) for number in range(10)]
    assert [name for name, _, _ in turns[:5]] == ["pulls", "processes", "machines", "instances", "together"]
    assert [seed for _, _, seed in turns] == [6] * 5 + [7] * 5
    together = [[suite.name for suite in suites] for name, suites, _ in turns if name == "together"]
    assert together == [["pulls", "processes"], ["pulls", "machines"]]
    assert [plan(number, 6, "pulls")[0::2] for number in range(2)] == [("pulls", 6), ("pulls", 7)]


def test_longer_runs_have_longer_turns_within_bounds() -> None:
    suite = Suite("x", "x.py", {"KILLS": 50}, "SEED")
    assert [suite.settings(3, share_of(minutes))["KILLS"] for minutes in (0.1, 6, 30, 60, 600)] == [
        "10", "50", "50", "100", "150",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_turn_that_fails_tells_why_and_how_to_repeat_it(tmp_path: Path) -> None:
    held, bad = tmp_path / "test_held.py", tmp_path / "test_bad.py"
    held.write_text(
        "import os, pathlib\n\ndef test_x():\n    pathlib.Path(os.environ['CHAOS_SCORES']).write_text('{}\\n')\n"
    )
    bad.write_text("def test_x():\n    assert False, 'the folder is in use by process 7'\n")
    left_out = Suite("left-out", __file__ + "::test_longer_runs_have_longer_turns_within_bounds", {}, "SEED")
    suites = [Suite("held", str(held), {"N": 5}, "SEED"), Suite("bad", str(bad), {}, "SEED")]
    turn = take_turn("together", suites, 3, 2.0, tmp_path)
    assert (turn.went, turn.passed) == ("FAILED", False)
    assert "the folder is in use by process 7" in turn.said
    one, other = f"N=10 SEED=3 ./dev run python -m pytest {held}", f"SEED=3 ./dev run python -m pytest {bad}"
    assert turn.command == f"{one} & {other} & wait"
    assert (tmp_path / "scores.jsonl").read_text() == "{}\n"
    assert "the folder is in use" in (tmp_path / "output.txt").read_text()
    assert take_turn("held", suites[:1], 3, 1.0, tmp_path).passed
    assert take_turn("left-out", [left_out], 3, 1.0, tmp_path).went == "LEFT OUT"


@pytest.mark.slow
def test_a_turn_whose_second_suite_cannot_begin_leaves_no_first_one_at_work(tmp_path: Path) -> None:
    (tmp_path / "test_long.py").write_text("import time\n\ndef test_x():\n    time.sleep(600)\n")
    suites = [Suite("long", str(tmp_path / "test_long.py"), {}, "SEED"), Suite("no/such", "x.py", {}, "SEED")]
    began = time.monotonic()
    with pytest.raises(FileNotFoundError):
        take_turn("together", suites, 3, 1.0, tmp_path)
    assert time.monotonic() - began < 300
    assert not (tmp_path / "long.jsonl").exists()  # it is ended, and what it scored is gathered


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_short_run_ends_well_and_leaves_its_scorecard(tmp_path: Path) -> None:
    words = ["--minutes", "0.01", "--seed", "5", "--only", "pulls", "--out", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    card = json.loads((tmp_path / "scorecard.json").read_text())
    assert (card["seed"], card["minutes"], card["turns"], card["jobs"]) == (5, 0.01, {"pulls": 1}, 60)
    assert datetime.fromisoformat(card["began"]) <= datetime.now(UTC)
    assert card["failed_turns"] == []
    assert {name: card[name] for name in ("lost", "doubled", "stuck", "impolite", "wrong")} == dict.fromkeys(
        ("lost", "doubled", "stuck", "impolite", "wrong"), 0
    )
    assert "killed" in card["faults"]
    assert any(name.startswith("web: ") for name in card["faults"])
    assert card["recovery_s"]["pulls"]["count"] >= 1
    assert "pulls 5: held" in ran.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output.txt", "scorecard.json", "scores.jsonl"]
