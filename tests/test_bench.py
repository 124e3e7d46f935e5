"""The measurements run, and their figures hang together. With tiny numbers: nothing here says how fast anything is."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def bench(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *words], capture_output=True, text=True, cwd=ROOT, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done


def figures(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


@pytest.mark.slow
def test_the_ledger_is_measured_against_the_floor_at_each_size(tmp_path: Path) -> None:
    out = tmp_path / "ledger.json"
    done = bench("ledger", "--rows=50,200", "--jobs=60", "--batch=20", "--rounds=2", f"--out={out}")
    found = figures(out)
    kinds = {(row["what"], row["rows"], row["beside"]) for row in found["rows"]}
    assert len(kinds) == len(found["rows"]) == 8
    assert all(row["ratio"] > 0 and row["cpu_ratio"] > 0 for row in found["rows"])
    assert {"cpu", "cores", "load_1m", "python", "sqlite"} <= set(found["machine"])
    assert "peers: left out" in done.stderr
    assert "lease and finish" in done.stdout


@pytest.mark.slow
def test_a_run_over_hosts_is_measured_against_what_the_caps_allow(tmp_path: Path) -> None:
    out = tmp_path / "hosts.json"
    words = ("--items=60", "--hosts=6", "--workers=12", "--per_host=3", "--delay=0.02", f"--out={out}")
    bench("hosts", *words)
    (row,) = figures(out)["rows"]
    assert row["done"] == row["items"] == 60
    assert row["most_per_host"] <= 3
    assert 0 < row["share"] <= 1


@pytest.mark.slow
def test_a_bundle_is_measured_when_written_and_when_proved(tmp_path: Path) -> None:
    out = tmp_path / "export.json"
    bench("export", "--rows=300", f"--out={out}")
    written, proved = figures(out)["rows"]
    assert (written["what"], proved["what"]) == ("export", "verify")
    assert written["rows"] == proved["rows"] == 300
    assert proved["rows_per_second"] > 0
    assert proved["most_mb"] < 300


@pytest.mark.slow
def test_downloads_are_measured_beside_other_programs(tmp_path: Path) -> None:
    from bench.programs import find

    if find("nginx") is None:
        pytest.skip("no nginx: fetch it with ./dev servers, or put it on the PATH")
    out = tmp_path / "download.json"
    words = ("--small=40", "--large=0", "--rounds=1", "--processes=1", "--only=DocsToKG,httpx2", f"--out={out}")
    done = bench("download", *words)
    found = figures(out)
    assert [row["name"] for row in found["rows"]] == ["DocsToKG", "httpx2, threads"]
    assert all(row["per_s"] > 0 and row["cpu_ms_each"] > 0 and row["most_mb"] > 0 for row in found["rows"])
    assert "Scrapy: left out" in done.stderr


@pytest.mark.slow
def test_a_pull_over_the_small_web_is_measured_beside_an_oracle(tmp_path: Path) -> None:
    out = tmp_path / "web.json"
    bench("web", "--works=30", f"--out={out}")
    row = figures(out)["row"]
    assert row["works"] == 30
    assert row["violations"] == 0
    assert 0 < row["obtained"] <= 30
    assert 0 <= row["share"] <= 1


def test_the_oracle_is_done_when_the_slowest_host_is() -> None:
    from bench.web import oracle_s

    from DocsToKG.Sandbox.limits import Limits

    limits = Limits(rate_factor=1.0)  # doi.org: ten a second after twenty at once; Unpaywall the same
    assert oracle_s({"doi.org": 120, "api.unpaywall.org": 40}, limits, {}) == (10.0, "doi.org")
    assert oracle_s({"doi.org": 120, "api.unpaywall.org": 40}, limits, {"api.unpaywall.org": 9}) == (
        11.0,
        "api.unpaywall.org",
    )


@pytest.mark.slow
def test_hashing_is_measured_beside_the_plainest_way(tmp_path: Path) -> None:
    bench("verify", "--papers=3", "--rounds=1", f"--out={tmp_path / 'verify.json'}")
    assert [row["what"] for row in figures(tmp_path / "verify.json")["rows"]][1] == "openssl dgst -sha256"


@pytest.mark.long
def test_starting_is_measured_beside_an_interpreter_that_does_nothing(tmp_path: Path) -> None:
    bench("starting", "--rounds=1", f"--out={tmp_path / 'starting.json'}")
    assert all(row["took_s"] > 0 for row in figures(tmp_path / "starting.json")["rows"])


@pytest.mark.slow
def test_an_aim_is_met_by_more_papers_or_by_less_processor_time() -> None:
    from bench.download import judged

    def row(name: str, per_s: float, cpu_ms: float) -> dict[str, Any]:
        return {"set": "small", "name": name, "per_s": per_s, "cpu_ms_each": cpu_ms}

    aims = judged([row("DocsToKG", 100, 2.2), row("DocsToKG, 2 processes", 170, 2.2), row("Scrapy", 100, 2.0)])
    assert [(aim["ratio of"], aim["found"], aim["met"]) for aim in aims] == [
        ("per_s", 1.0, "yes"),
        ("cpu_ms_each", 1.1, "no"),
        ("per_s", 1.7, "yes"),
    ]


@pytest.mark.slow
def test_watching_is_measured_against_not_watching(tmp_path: Path) -> None:
    """TRC-09: what an unwatched job pays for the places where a watcher could stand is less than a hundredth of it."""
    out = tmp_path / "watching.json"
    bench("watching", "--jobs=150", "--rounds=2", f"--out={out}")
    rows = {row["watched"]: row for row in figures(out)["rows"]}
    assert rows.keys() == {"none", "figures", "log", "spans"}
    assert rows["none"]["ratio"] == 1
    assert rows["none"]["calls_share"] < 0.01


@pytest.mark.slow
def test_the_ledger_on_postgres_is_measured_against_the_floor(tmp_path: Path) -> None:
    out = tmp_path / "postgres.json"
    parts = ("--only=floor", "--only=peers")
    done = bench("postgres", *parts, "--rows=50", "--jobs=40", "--batch=20", "--rounds=1", f"--out={out}")
    found = figures(out)
    assert len(found["rows"]) == 4
    assert all(row["ratio"] > 0 for row in found["rows"])
    assert found.keys().isdisjoint({"nodes", "pages", "singly"})
    assert "peers: left out" in done.stderr


@pytest.mark.long
def test_four_nodes_on_postgres_are_measured_beside_one(tmp_path: Path) -> None:
    out = tmp_path / "postgres.json"
    bench("postgres", "--only=nodes", "--waits=16", "--rows=50", "--jobs=40", "--rounds=1", f"--out={out}")
    assert [(row["nodes"], row["jobs"]) for row in figures(out)["nodes"]] == [(1, 16), (4, 64)] * 2


def rows_of(path: Path) -> dict[str, list[Any]]:
    """What a file holds when all is done, but for times, names that are drawn, and hashes."""
    with closing(sqlite3.connect(path)) as db:
        jobs = "SELECT artifact_id, artifact_json, payload_digest, state, due, attempts, fence, outcome, result_json"
        history = "SELECT link, job_id, event, from_state, to_state, fence, attempts, reason, length(hash)"
        return {
            "jobs": db.execute(f"{jobs} FROM jobs ORDER BY id").fetchall(),
            "history": db.execute(f"{history} FROM job_history ORDER BY seq").fetchall(),
            "counts": db.execute("SELECT state, n FROM job_counts WHERE n > 0 ORDER BY state").fetchall(),
            "heads": db.execute("SELECT tenant, shard, link FROM history_heads").fetchall(),
        }


def test_the_floor_writes_the_rows_of_the_ledger(tmp_path: Path) -> None:
    """Else it would be no floor."""
    from bench.ledger import FLOOR, LEDGER, Bench

    written = []
    for side in (LEDGER, FLOOR):
        path = tmp_path / f"{side}.sqlite"
        measured = Bench(path, jobs=5, batch=5)
        measured.enqueue(side)
        measured.work_off(side)
        written.append(rows_of(path))
    assert len(written[0]["history"]) == 15
    assert written[0] == written[1]


def test_the_shortest_run_is_that_of_the_largest_host_or_of_the_workers() -> None:
    from bench.hosts import shares, shortest_s

    assert shortest_s([9, 1], workers=100, per_host=4, delay_s=1.0) == 3.0
    assert shortest_s([4] * 40, workers=8, per_host=4, delay_s=1.0) == 20.0
    counts = shares(5000, 40)
    assert sum(counts) == 5000
    assert 640 < 5000 / shortest_s(counts, workers=160, per_host=4, delay_s=0.05) < 660


def test_the_papers_of_the_origin_differ_and_open() -> None:
    import io

    import pikepdf
    from bench.origin import Papers

    papers = Papers(20_000)
    first, second = papers.paper(1), papers.paper(2)
    assert first != second
    assert len(first) == len(second)
    with pikepdf.open(io.BytesIO(second)) as pdf:
        assert len(pdf.pages) == 2


@pytest.mark.slow
def test_events_are_measured_by_what_they_cost_and_how_fast_they_go(tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    bench("events", "--jobs=60", "--rounds=1", f"--out={out}")
    rows = figures(out)["rows"]
    assert [row["what"] for row in rows] == ["changes, nobody to tell", "changes, one target", "deliveries"]
    assert {row["events"] for row in rows} == {180}


@pytest.mark.slow
def test_the_service_is_measured_under_load_and_beside_a_bare_one(tmp_path: Path) -> None:
    out = tmp_path / "api.json"
    bench("api", "--rows=300", "--seconds=1", "--per-second=20", "--count=5", "--rounds=1", f"--out={out}")
    found = figures(out)
    kinds = {"list", "detail", "dashboard", "why", "lease"}
    assert {row["kind"] for row in found["rows"]} == {row["kind"] for row in found["costs"]} == kinds
    assert sum(row["requests"] for row in found["rows"]) == 20
    assert all(row["refused"] == 0 and row["p99_ms"] >= row["p50_ms"] > 0 for row in found["rows"])
    assert all(row["ms"] > 0 and row["bare_ms"] > 0 for row in found["costs"])
