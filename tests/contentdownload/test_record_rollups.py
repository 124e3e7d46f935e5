"""Blocks of the record are counted once, while it grows; no figure may differ for that."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.big_record import write_big_record
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, SourceAttempt, SourceOutcome, Verb
from DocsToKG.ContentDownload.catalog import aggregates, rollups
from DocsToKG.ContentDownload.catalog.store import GROUPS, Catalog
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry, rollup
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.core.clock import ManualClock

BLOCK = 16
COPIES = [{"url": "https://Closed.org:8443/x", "source": "core", "reason": "paywall", "evidence": "index"}]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """So that some hundred rows are many blocks."""
    with pytest.MonkeyPatch.context() as patch:
        for room in (rollups, rollup):
            patch.setattr(room, "BLOCK", BLOCK)
        patch.setattr(rollup, "LOOK_EVERY_S", 0.0)
        yield


@pytest.fixture(scope="module")
def known(small_blocks: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A record that is only read, and all that it tells."""
    root = tmp_path_factory.mktemp("known")
    write(root, 2)
    return root, told(root)


@pytest.fixture
def copied(known: tuple[Path, dict[str, Any]], tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Its copy, to be spoiled, and what it told before."""
    root, before = known
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    return tmp_path, before


@contextlib.contextmanager
def database(root: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(root / "manifest.sqlite", isolation_level=None)) as db:
        yield db


def told(root: Path) -> dict[str, Any]:
    """Every figure and every statistic, of all runs and of each, from the beginning and from some moments on."""
    with Catalog(root / "manifest.sqlite") as catalog:
        (*runs, last), (early, late) = catalog.runs(), ("1970-01-01T00:01:40.000Z", "1970-01-01T00:05:00.000Z")
        asked = [(None, None), (None, early), (None, late), *((run, None) for run in runs), (last, None), (last, early)]
        figures = {f"{run} {at}": catalog.figures(run, since=at).to_dict() for run, at in asked}
        return {**figures, **{str(group): catalog.stats(group) for group in (None, *GROUPS)}}


def blocks(root: Path) -> dict[str, int]:
    with database(root) as db:
        return dict(db.execute("SELECT name, COUNT(*) FROM folds WHERE rules = ? GROUP BY name", (rollups.RULES,)))


def any_line(chance: random.Random, number: int) -> ManifestRecord:
    """One of a few works; what became of it this time, whatever came before."""
    fields: dict[str, Any] = {
        "doc_id": f"doi:{chance.randrange(60)}",
        "lease_id": f"l{number}",
        "year": chance.choice((None, 1999, 2020)),
        "license": chance.choice((None, "CC-BY-4.0")),
        "version": chance.choice((None, "publishedVersion")),
        "waited_ms": chance.randrange(50),
        "duration_ms": chance.randrange(900),
    }
    found = {"sha256": f"{chance.randrange(40):064x}", "size_bytes": chance.randrange(9_000), "path": "a.pdf"}
    site = {"url": f"https://h{chance.randrange(4)}.org/x.pdf", "resolver": "core", "tier": "archive"}
    kinds: list[dict[str, Any]] = [
        {"outcome": "success", "dedupe": chance.choice(("new", "duplicate")), "ttfp_ms": 7, **found, **site},
        {"outcome": "error", "reason": "all_tiers_exhausted", "cause": "paywall", "candidates": COPIES},
        {"outcome": "error", "reason": "timeout", "oa_status": "gold", "explanation": "Temporary: too slow."},
        {"outcome": "skip", "reason": chance.choice(("robots", "already-present", "filtered"))},
        {"outcome": "skip", "stage": "takedown", "cause": chance.choice(("taken-down", "takedown-undone"))},
    ]
    return ManifestRecord(**fields, **chance.choices(kinds, (5, 2, 2, 3, 1))[0])


def add_rows(record: RunTelemetry, clock: ManualClock, chance: random.Random, count: int) -> None:
    for number in range(count):
        clock.advance(chance.random() * 2)
        record.finish(any_line(chance, chance.randrange(1 << 40)))
        seen = {"host": f"h{chance.randrange(3)}.org", "elapsed_ms": chance.randrange(90), "work_id": "doi:1"}
        status = chance.choice((AttemptStatus.HTTP_GET, AttemptStatus.CACHE_HIT, AttemptStatus.RETRY))
        answer = {"http_status": 429, "retry_after_s": 3.0} if chance.random() < 0.1 else {"http_status": 200}
        record.attempt(Attempt(clock.now(), "core", "https://h.org", Verb.GET, status, **answer, **seen))
        said = chance.choice((None, "refused: CORE answered 401; check it", f"timeout: {number}"))
        outcome = chance.choice((SourceOutcome.SUCCESS, SourceOutcome.ERROR))
        record.source_attempt(SourceAttempt(clock.now(), "doi:1", "archive", "core", outcome, reason=said))
        record.rate_wait(f"host:h{chance.randrange(3)}.org", chance.randrange(99), why=chance.choice(("rate", "hold")))
        if number % 5 == 0:
            record.flush()


def write(root: Path, seed: int, *, runs: int = 3, count: int = 70) -> None:
    """Several runs, whose works overlap; the clock goes on from one to the next."""
    chance, clock = random.Random(seed), ManualClock()
    for run in range(runs):
        with RunTelemetry(root, run_id=f"r{run}", config_hash="c", clock=clock, worker_id="w") as record:
            add_rows(record, clock, chance, count)


def forget(root: Path) -> None:
    with database(root) as db:
        db.execute("DELETE FROM folds")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_figures_are_the_same_with_and_without_what_was_counted_before(tmp_path: Path, seed: int) -> None:
    write(tmp_path, seed)
    assert blocks(tmp_path) == dict.fromkeys((question.name for question in aggregates.QUESTIONS), 210 // BLOCK)
    folded = told(tmp_path)
    assert folded["None None"]["obtained"] > 0
    with database(tmp_path) as db:
        db.execute("DELETE FROM folds WHERE first_id / ? % 3 = 1", (BLOCK,))
    assert told(tmp_path) == folded
    forget(tmp_path)
    assert told(tmp_path) == folded


def test_what_was_counted_is_used(copied: tuple[Path, dict[str, Any]]) -> None:
    """Else all the other tests would show nothing."""
    root, _ = copied
    with database(root) as db:
        [text] = db.execute("SELECT counted FROM folds WHERE name = 'works' AND first_id = 1").fetchone()
        counted = json.loads(text)
        counted["sums"][1][0] += 1_000
        db.execute("UPDATE folds SET counted = ? WHERE name = 'works' AND first_id = 1", (json.dumps(counted),))
    with Catalog(root / "manifest.sqlite") as catalog:
        assert catalog.figures().obtained > 1_000
        assert catalog.figures("r2").obtained < 1_000


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE manifests SET status = 'ok', size_bytes = 77, year = 1066 WHERE id = 20",
        "DELETE FROM manifests WHERE id IN (20, 21, 60)",
        "UPDATE http_events SET host = 'other.org' WHERE id < 40",
        "DELETE FROM fallback_attempts",
        "UPDATE rate_events SET delay_ms = 1000000 WHERE id % 2 = 0",
    ],
)
def test_a_changed_row_is_counted_anew(copied: tuple[Path, dict[str, Any]], change: str) -> None:
    root, before = copied
    known = blocks(root)
    with database(root) as db:
        db.execute(change)
    assert sum(blocks(root).values()) < sum(known.values())
    changed = told(root)
    assert changed != before
    forget(root)
    assert told(root) == changed


def test_the_next_run_counts_what_was_not(tmp_path: Path) -> None:
    write(tmp_path, 3)
    known = blocks(tmp_path)
    with database(tmp_path) as db:
        db.execute("UPDATE folds SET rules = rules - 1 WHERE name <> 'waits'")  # by an earlier program
        db.execute("DELETE FROM folds WHERE name = 'waits'")
    assert blocks(tmp_path) == {}
    figures = told(tmp_path)
    with RunTelemetry(tmp_path, run_id="r2", config_hash="c", clock=ManualClock(900.0)):
        pass
    assert blocks(tmp_path) == known
    after = told(tmp_path)
    assert {key: after[key] for key in GROUPS} == {key: figures[key] for key in GROUPS}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"sums": 3}', "null"])
def test_what_cannot_be_read_is_counted_anew(copied: tuple[Path, dict[str, Any]], text: str) -> None:
    root, before = copied
    with database(root) as db:
        db.execute("UPDATE folds SET counted = ?", (text,))
    assert told(root) == before


def test_a_record_that_was_never_counted_is_read(copied: tuple[Path, dict[str, Any]]) -> None:
    root, before = copied
    with database(root) as db:
        db.execute("DROP TABLE folds")
    assert told(root) == before


def test_a_row_that_cannot_be_counted_ends_no_run(tmp_path: Path) -> None:
    clock, chance = ManualClock(), random.Random(6)
    with RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=clock) as record:
        add_rows(record, clock, chance, 10)
        record.flush()
        with database(tmp_path) as db:
            db.execute("UPDATE http_events SET host = x'ff00' WHERE id = 3")
            db.execute("UPDATE manifests SET year = 'long ago' WHERE id = 3")
        add_rows(record, clock, chance, 40)
    assert "exchanges" not in blocks(tmp_path)
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        assert sum(row["works"] for row in catalog.stats("state")) > 10


_KILLED = """
import os, random, sys
from pathlib import Path
from DocsToKG.ContentDownload.catalog import rollups
from DocsToKG.ContentDownload.telemetry import RunTelemetry, rollup
from DocsToKG.core.clock import ManualClock
from tests.contentdownload.test_record_rollups import add_rows
rollups.BLOCK = rollup.BLOCK = 16
rollup.LOOK_EVERY_S = 0.0
clock, chance = ManualClock(), random.Random(7)
with RunTelemetry(Path(sys.argv[1]), run_id="r0", config_hash="c", clock=clock) as record:
    add_rows(record, clock, chance, 75)
    record.flush()
    os._exit(9)
"""


def test_a_run_that_was_killed_leaves_what_it_counted_and_the_next_goes_on(warm: WarmPrograms, tmp_path: Path) -> None:
    ended = subprocess.run([*warm.words("python"), "-c", _KILLED, str(tmp_path)], timeout=60, check=False)
    assert ended.returncode == 9
    counted = blocks(tmp_path)
    assert counted.get("works", 0) > 0
    figures = told(tmp_path)
    forget(tmp_path)
    assert told(tmp_path) == figures
    with RunTelemetry(tmp_path, run_id="r0", config_hash="c", clock=ManualClock(900.0)):
        pass
    assert blocks(tmp_path)["works"] == 75 // BLOCK


def test_what_guests_write_is_counted_by_the_host(tmp_path: Path) -> None:
    """Several processes keep one record: numbers are given in the order of commits, so a block is full when its last
    number is."""
    clock, chance = ManualClock(), random.Random(8)
    given: dict[str, Any] = {"run_id": "r", "config_hash": "c", "clock": clock}
    with RunTelemetry(tmp_path, share="host", **given) as host:
        with (
            RunTelemetry(tmp_path, share="guest", **given) as one,
            RunTelemetry(tmp_path, share="guest", **given) as two,
        ):
            for guest in (one, two, host, one):
                add_rows(guest, clock, chance, 20)
        host.follow()
        host.flush()
    assert blocks(tmp_path)["works"] == 80 // BLOCK
    figures = told(tmp_path)
    forget(tmp_path)
    assert told(tmp_path) == figures


def test_every_block_says_whose_rows_it_has(tmp_path: Path) -> None:
    """A block of one run serves a report of that run; a block of several is looked into."""
    write(tmp_path, 9, runs=2, count=20)
    with database(tmp_path) as db:
        runs = [
            json.loads(row[0]) for row in db.execute("SELECT runs FROM folds WHERE name = 'works' ORDER BY first_id")
        ]
    assert [sorted(each) for each in runs] == [["r0"], ["r0", "r1"]]


def test_rules_and_their_number_change_together(tmp_path: Path) -> None:
    """When this fails because something else is counted now, raise `rollups.RULES` and put the new digest here: what
    earlier programs counted must not be added to what this one counts."""
    write_big_record(tmp_path, works=300)
    with contextlib.closing(open_database(tmp_path / "manifest.sqlite")) as db:
        rows = db.execute("SELECT name, first_id, counted FROM folds WHERE rules = ? ORDER BY 1, 2", (rollups.RULES,))
        plain = [
            (*block, {key: sorted(map(str, one.items())) for key, one in aggregates.read(text).items()})
            for *block, text in rows
        ]
    assert sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16] == "a886b90a745c889d"
