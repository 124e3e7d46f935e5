"""The measurements run, and their figures hang together. With tiny numbers: nothing here says how fast anything is."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests import needs
from tests.browsing import opened_browser
from tests.warm import WarmPrograms

ROOT = Path(__file__).parent.parent
NO_PEERS = "--peers=/no/such/python"


Bench = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def bench(warm: WarmPrograms) -> Bench:
    """Run a part of the measurements, in a process of its own."""

    def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*warm.words("python"), "-m", f"bench.{name}", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200)
        assert done.returncode == 0, done.stderr
        return done

    return run


def figures(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_the_memory_of_a_part_is_not_that_of_whoever_began_it() -> None:
    assert len(b"x" * (200 << 20))
    told = subprocess.run(
        [sys.executable, "-c", "from bench.facts import most_mb; assert len(b'x' * (64 << 20)); print(most_mb())"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1], timeout=60,
    )  # fmt: skip
    assert 64 < float(told.stdout) < 150


@pytest.mark.slow
def test_the_ledger_is_measured_against_the_floor_at_each_size(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "ledger.json"
    done = bench("ledger", "--rows=50,200", "--jobs=60", "--batch=20", "--rounds=2", NO_PEERS, f"--out={out}")
    found = figures(out)
    kinds = {(row["what"], row["rows"], row["beside"]) for row in found["rows"]}
    assert len(kinds) == len(found["rows"]) == 8
    assert all(row["ratio"] > 0 and row["cpu_ratio"] > 0 for row in found["rows"])
    assert {"cpu", "cores", "ram_gb", "load_1m", "system", "scratch", "python", "sqlite"} <= set(found["machine"])
    assert {row["with"] for row in found["growth"]} == {"waiting", "finished"}
    assert all(row["spread"] >= 1 for row in found["growth"])
    assert [aim["aim"] for aim in found["aims"]][-1] == "spread of the ratio"
    assert "peers: left out" in done.stderr
    assert "lease and finish" in done.stdout


@pytest.mark.slow
def test_a_run_over_hosts_is_measured_against_what_the_caps_allow(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "hosts.json"
    words = ("--items=60", "--hosts=6", "--workers=12", "--per_host=3", "--delay=0.02", f"--out={out}")
    bench("hosts", *words)
    rows = figures(out)["rows"]
    assert [row["order"] for row in rows] == ["sorted", "shuffled"]
    for row in rows:
        assert row["done"] == row["items"] == 60
        assert row["most_per_host"] <= 3
        assert 0 < row["share"] <= 1


@pytest.mark.slow
def test_a_bundle_is_measured_when_written_and_when_proved(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "export.json"
    bench("export", "--rows=300", f"--out={out}")
    written, proved = figures(out)["rows"]
    assert (written["what"], proved["what"]) == ("export", "verify")
    assert written["rows"] == proved["rows"] == 300
    assert proved["rows_per_second"] > 0
    assert proved["most_mb"] < 300


@pytest.mark.slow
def test_downloads_are_measured_beside_other_programs(bench: Bench, tmp_path: Path) -> None:
    needs.program("nginx")
    out = tmp_path / "download.json"
    words = (
        "--small=40",
        "--large=0",
        "--rounds=1",
        "--processes=1",
        "--only=DocsToKG,httpx2",
        NO_PEERS,
        f"--out={out}",
    )
    done = bench("download", *words)
    found = figures(out)
    assert [row["name"] for row in found["rows"]] == ["DocsToKG", "httpx2, threads"]
    for row in found["rows"]:
        assert 0 < row["per_s"] < row["per_s_apart"], "start-up is included, and apart"
        assert min(row[name] for name in ("cpu_s", "start_cpu_s", "most_mb", "start_mb")) > 0
    assert "Scrapy: left out" in done.stderr


@pytest.mark.slow
def test_a_pull_over_the_small_web_is_measured_beside_an_oracle(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "web.json"
    bench("web", "--works=30", f"--out={out}")
    row = figures(out)["row"]
    assert row["works"] == 30
    assert row["violations"] == row["wrong"] == 0
    assert 0 < row["obtained"] <= 30
    assert 0 <= row["share"] <= 1
    assert row["catalog_write_p95_ms"] > 0
    assert {aim["aim"]: aim["met"] for aim in figures(out)["aims"]}["wrong"] == "yes"


def test_the_oracle_is_done_when_the_slowest_host_is() -> None:
    from bench.web import oracle_s

    from DocsToKG.Sandbox.limits import Limits

    limits = Limits(rate_factor=1.0)  # doi.org: ten a second after twenty at once; Unpaywall the same
    assert oracle_s({"doi.org": 120, "api.unpaywall.org": 40}, limits, {}) == (10.0, "doi.org")
    assert oracle_s({"doi.org": 120, "api.unpaywall.org": 40}, limits, {"api.unpaywall.org": 9}) == (
        11.0,
        "api.unpaywall.org",
    )


def test_a_kept_file_that_is_not_the_paper_is_wrong(tmp_path: Path) -> None:
    from bench.web import wrong_files

    good, bad = tmp_path / "good.pdf", tmp_path / "bad.pdf"
    good.write_bytes(b"the paper")
    bad.write_bytes(b"another")
    digests = [hashlib.sha256(b"the paper").hexdigest()]
    truth = [
        {"spelling": "https://doi.org/10.5555/A", "sha256": digests},
        {"spelling": "10.5555/b", "sha256": digests},
    ]
    assert wrong_files({"doi:10.5555/a": good}, truth) == []
    assert wrong_files({"doi:10.5555/a": good, "doi:10.5555/b": bad}, truth) == ["doi:10.5555/b"]
    assert wrong_files({"doi:10.5555/unknown": good}, truth) == ["doi:10.5555/unknown"]


def test_the_hosts_are_asked_what_they_counted_right_after_the_latest_paper() -> None:
    """Few questions for many papers, and the last one is never before the last paper."""
    from bench.web import Latest

    papers: list[int] = []
    asked: list[int] = []

    def counters() -> dict[str, int]:
        asked.append(len(papers))
        return {"papers": len(papers)}

    with Latest(counters) as latest:
        for number in range(40):
            papers.append(number)
            latest.paper()
    assert latest.moment is not None
    assert latest.moment.seen == {"papers": 40}
    assert len(asked) <= 10

    with Latest(counters) as nothing:
        papers.append(41)  # not told of
    assert nothing.moment is None


def test_what_a_host_asked_for_after_the_last_paper_is_not_the_oracles(tmp_path: Path) -> None:
    from bench.web import announced_pauses

    with closing(sqlite3.connect(tmp_path / "record.sqlite")) as db, db:
        db.execute("CREATE TABLE http_events (host, ts, retry_after_s)")
        told = [("a", "1970-01-01T00:00:10+00:00", 4.0), ("a", "1970-01-01T00:00:20+00:00", 4.0)]
        db.executemany("INSERT INTO http_events VALUES (?, ?, ?)", told)
    pauses = [announced_pauses(tmp_path / "record.sqlite", until_s) for until_s in (13.0, 19.0, 30.0)]
    assert pauses == [{"a": 3.0}, {"a": 4.0}, {"a": 8.0}]


@pytest.mark.slow
def test_hashing_is_measured_beside_the_plainest_way(bench: Bench, tmp_path: Path) -> None:
    bench("verify", "--papers=3", "--rounds=1", f"--out={tmp_path / 'verify.json'}")
    assert [row["what"] for row in figures(tmp_path / "verify.json")["rows"]][1] == "openssl dgst -sha256"


@pytest.mark.long
def test_starting_is_measured_beside_an_interpreter_that_does_nothing(bench: Bench, tmp_path: Path) -> None:
    bench("starting", "--rounds=1", f"--out={tmp_path / 'starting.json'}")
    assert all(row["took_s"] > 0 for row in figures(tmp_path / "starting.json")["rows"])


def test_an_aim_is_met_by_more_papers_or_by_less_processor_time() -> None:
    from bench.download import judged

    def row(name: str, per_s: float, cpu_ms: float, start_cpu_s: float) -> dict[str, Any]:
        start = {"start_cpu_s": start_cpu_s, "start_mb": 170.0}
        return {"set": "small", "name": name, "per_s": per_s, "cpu_ms_each": cpu_ms, **start}

    two = row("DocsToKG, 2 processes", 290, 0.5, 0.6)
    aims = judged([row("DocsToKG", 200, 0.4, 0.31), two, row("Scrapy", 100, 2.0, 0.5)])
    assert [(aim["wanted"], aim["found"], aim["met"]) for aim in aims] == [
        ("at least 2", 2.0, "yes"),
        ("at least 3", 2.9, "no"),
        ("at most 0.4", 0.4, "yes"),
        ("at most 0.3", 0.31, "no"),
        ("at most 0.5", 0.6, "no"),
        ("at most 180", 170.0, "yes"),
    ]


def test_an_aim_of_which_nothing_was_found_is_not_met() -> None:
    from bench.facts import aim

    assert aim("x", None, least=0)["met"] == aim("x", None, most=1)["met"] == "no"
    assert [aim("x", found, most=3)["met"] for found in (2.9, 3, 3.1)] == ["yes", "yes", "no"]


def test_a_job_that_costs_more_beside_a_longer_queue_is_seen() -> None:
    from bench.ledger import growth

    def row(rows: int, jobs_per_s: float) -> dict[str, Any]:
        at = {"what": "enqueue", "beside": "waiting", "rows": rows}
        return {**at, "jobs_per_s": jobs_per_s, "ratio": 0.5, "cpu_ratio": 0.5}

    moved = {line["of"]: line for line in growth([row(1000, 5_000), row(10, 20_000), row(100, 10_000)])}
    assert (moved["us_each"]["fewest"], moved["us_each"]["most"], moved["us_each"]["spread"]) == (50, 200, 4)
    assert moved["ratio"]["spread"] == 1


def test_a_peer_is_compared_with_ours_beside_as_many_waiting_jobs() -> None:
    from bench.ledger import beside_ours

    names = ("queue", "waiting", "jobs_per_s")
    given = [("ours", 10, 100), ("ours", 20, 50), ("other", 10, 20), ("other", 20, 20)]
    rows = beside_ours([dict(zip(names, line, strict=True)) for line in given], "ours")
    assert [row["x_ours"] for row in rows] == [1, 1, 0.2, 0.4]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["peers", "postgres_peers"])
def test_peers_take_as_many_jobs_while_others_wait(script: str) -> None:
    from bench.postgres import server
    from bench.programs import valkey

    peers = needs.peers()
    with ExitStack() as stack:
        where = (
            [] if script == "peers" else [stack.enter_context(server(os.environ.get("TEST_POSTGRES_URL"))), "30", "10"]
        )
        words = [str(peers), str(ROOT / "bench" / f"{script}.py"), *(where or ["30"]), "0", "200"]
        env = {**os.environ, "VALKEY_SERVER": valkey() or ""}
        done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=100)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    left_out = {"VALKEY_SERVER" in done.stderr and "dramatiq on valkey"}
    queues = {"huey", "persist-queue", "dramatiq on valkey"} if script == "peers" else {"procrastinate", "pgqueuer"}
    assert {(row["queue"], row["waiting"]) for row in rows} == {(q, w) for q in queues - left_out for w in (0, 200)}
    assert all(row["jobs"] == 30 and row["jobs_per_s"] > 0 and row["enqueue_per_s"] > 0 for row in rows)


@pytest.mark.slow
def test_a_whole_run_writes_one_page_of_all_its_tables(warm: WarmPrograms, tmp_path: Path) -> None:
    """As `./dev bench` calls it, with next to nothing to do."""
    sizes = ["--items=40", "--history=60", f"--out={tmp_path}"]
    command = [*warm.words("python"), "-m", "bench", "--only=export,hosts-2", *sizes]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=250)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.md").read_text()
    assert page.count("# Measured\n") == 1
    assert re.search(r"^- ram_gb: \d", page, re.MULTILINE)
    hosts = "A run over many hosts, as a share of what the caps allow; processes: 2"
    titles = ["A bundle written and proved, by the length of its history", hosts, f"{hosts}: what was aimed at"]
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == titles
    assert re.search(
        r"^\| share with 160 workers, (?:sorted|shuffled) \| at least 0.85 \| [\d.]+ \| (yes|no) \|$",
        page,
        re.MULTILINE,
    )
    assert [figures(tmp_path / f"{part}.json")["title"] for part in ("export", "hosts-2")] == titles[:2]


def test_a_run_of_some_parts_adds_to_the_page(tmp_path: Path) -> None:
    from bench.facts import report

    report("First", [{"x": 1}], out=tmp_path / "first.json")
    report("Second", [{"x|y": 2000}], out=tmp_path / "second.json")
    page = (tmp_path / "report.md").read_text()
    assert page.startswith("# Measured\n\n- cpu: ")
    assert page.count("- cpu: ") == 1
    assert "## First" in page
    assert page.endswith("| x/y |\n| --- |\n| 2,000 |\n")


@pytest.mark.slow
def test_the_memory_of_a_run_is_measured_beside_short_and_long_queues(bench: Bench, tmp_path: Path) -> None:
    bench("memory", "--rows=40,80", "--papers=30", f"--out={tmp_path / 'memory.json'}")
    found = figures(tmp_path / "memory.json")
    assert [(row["queue"], row["papers"] >= 30) for row in found["rows"]] == [(40, True), (80, True)]
    assert all(10 < row["start_mb"] <= row["most_mb"] for row in found["rows"])
    [aim] = found["aims"]
    assert aim["found"] == round(found["rows"][1]["most_mb"] - found["rows"][0]["most_mb"], 1)


def test_a_run_is_not_asked_for_more_papers_than_wait(capsys: pytest.CaptureFixture[str]) -> None:
    from bench import memory

    with pytest.raises(SystemExit):
        memory.main(["--rows=1000,10000", "--papers=1500"])
    assert "at least --papers (1500) must wait" in capsys.readouterr().err


@pytest.mark.slow
def test_watching_is_measured_against_not_watching(bench: Bench, tmp_path: Path) -> None:
    """TRC-09: what an unwatched job pays for the places where a watcher could stand is less than a hundredth of it."""
    out = tmp_path / "watching.json"
    bench("watching", "--jobs=150", "--rounds=2", f"--out={out}")
    rows = {row["watched"]: row for row in figures(out)["rows"]}
    assert rows.keys() == {"none", "figures", "log", "spans"}
    assert rows["none"]["ratio"] == 1
    assert rows["none"]["calls_share"] < 0.01


@pytest.mark.slow
def test_the_ledger_on_postgres_is_measured_against_the_floor(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "postgres.json"
    parts = ("--only=floor", "--only=peers")
    done = bench("postgres", *parts, "--rows=50", "--jobs=40", "--batch=20", "--rounds=1", NO_PEERS, f"--out={out}")
    found = figures(out)
    assert len(found["rows"]) == 4
    assert all(row["ratio"] > 0 for row in found["rows"])
    assert found.keys().isdisjoint({"nodes", "pages", "singly"})
    assert "peers: left out" in done.stderr


@pytest.mark.long
def test_four_nodes_on_postgres_are_measured_beside_one(bench: Bench, tmp_path: Path) -> None:
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
    from bench.ledger import Bench
    from bench.sides import FLOOR, LEDGER

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
        assert len(pdf.pages) > 1


@pytest.mark.slow
def test_events_are_measured_by_what_they_cost_and_how_fast_they_go(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    bench("events", "--jobs=60", "--rounds=1", f"--out={out}")
    rows = figures(out)["rows"]
    assert [row["what"] for row in rows] == ["changes, nobody to tell", "changes, one target", "deliveries"]
    assert {row["events"] for row in rows} == {180}


@pytest.mark.slow
def test_the_service_is_measured_under_load_and_beside_a_bare_one(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "api.json"
    bench("api", "--rows=300", "--seconds=1", "--per-second=20", "--count=5", "--rounds=1", f"--out={out}")
    found = figures(out)
    kinds = {"list", "detail", "dashboard", "why", "lease"}
    assert {aim["aim"] for aim in found["aims"]} == {f"{k}: {of}" for k in kinds for of in ("p99_ms", "cpu_ratio")}
    assert {row["kind"] for row in found["rows"]} == {row["kind"] for row in found["costs"]} == kinds
    assert sum(row["requests"] for row in found["rows"]) == 20
    assert all(row["refused"] == 0 and row["p99_ms"] >= row["p50_ms"] > 0 for row in found["rows"])
    assert all(row["ms"] > 0 and row["bare_ms"] > 0 for row in found["costs"])


@pytest.mark.slow
def test_every_view_of_the_console_is_measured_in_a_browser(bench: Bench, tmp_path: Path) -> None:
    from bench.console import VIEWS

    with opened_browser():
        bench("console", "--rows=200", "--rounds=1", f"--out={tmp_path / 'console.json'}")
    found = figures(tmp_path / "console.json")
    assert tuple(row["view"] for row in found["rows"]) == VIEWS
    assert all(row["calls"] >= 1 and 0 < row["median ms"] <= row["slowest ms"] for row in found["rows"])
    assert [aim["found"] > 0 for aim in found["aims"]] == [True, True]


@pytest.mark.slow
def test_verdicts_are_counted_by_rendering(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "identity.json"
    bench("identity", "--cases=3", "--rounds=1", "--tries=1", f"--out={out}")
    found = figures(out)
    assert found["rows"][-1]["files"] == "all"
    assert found["rows"][-1]["impostors"] == found["rows"][-1]["right"] == 12
    assert [aim["wanted"] for aim in found["aims"]][3:6] == ["at most 5", "at most 40", "at least 0.98"]
    assert [row["damage"] for row in found["damage"]][-1] == "none"
    assert found["damage"][-1]["told"] == 0
    assert [row["decoded_mb"] for row in found["streams"]] == [1, 5, 20]
