"""The record's one writer: what it writes, and in which order."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.small_record import SHA, TS, fetched, lines_of, obtained, record_in, rows_of

from DocsToKG.ContentDownload.api.types import (
    AttemptStatus,
    DownloadOutcome,
    Hop,
    Reason,
    Role,
    SourceAttempt,
    SourceOutcome,
    Verb,
    WorkArtifact,
)
from DocsToKG.ContentDownload.telemetry import Counts, ManifestRecord, RunTelemetry
from DocsToKG.ContentDownload.telemetry import record as record_module
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.ContentDownload.telemetry.text import csv_line, csv_lines, json_lines, one_line
from DocsToKG.core.clock import ManualClock


def test_attempts_csv_has_the_twelve_columns_and_exactly_these_bytes(tmp_path: Path) -> None:
    """TEST-09, TEL-01, TEL-05, TEL-06: the first run of the worked example, to the byte."""
    with record_in(tmp_path) as record:
        known = {"http_status": 200, "content_type": "application/pdf", "url": "https://cdn.p.org/a,b.pdf"}
        record.attempt(fetched(verb=Verb.HEAD, status=AttemptStatus.HTTP_HEAD, elapsed_ms=92, **known))
        record.attempt(fetched(status=AttemptStatus.HTTP_GET, elapsed_ms=145, **known))
        size = {"bytes_written": 1245721, "content_length_hdr": 1245721}
        record.attempt(fetched(verb=Verb.STREAM, status=AttemptStatus.HTTP_200, reason=Reason.OK, **known, **size))
    assert (tmp_path / "attempts.csv").read_bytes() == (
        b"ts,run_id,resolver,url,verb,status,http_status,content_type,elapsed_ms,bytes_written,content_length_hdr,reason\n"
        b'2025-06-15T15:06:40.000Z,01JRUN,unpaywall,"https://cdn.p.org/a,b.pdf",HEAD,http-head,200,application/pdf,92,,,\n'
        b'2025-06-15T15:06:40.000Z,01JRUN,unpaywall,"https://cdn.p.org/a,b.pdf",GET,http-get,200,application/pdf,145,,,\n'
        b'2025-06-15T15:06:40.000Z,01JRUN,unpaywall,"https://cdn.p.org/a,b.pdf",STREAM,http-200,200,application/pdf,'
        b",1245721,1245721,ok\n"
    )


def test_a_manifest_line_is_exactly_these_bytes(tmp_path: Path) -> None:
    """TEST-09, CAT-05, CAT-06."""
    with record_in(tmp_path) as record:
        record.finish(
            obtained(
                url="https://a.org/x.pdf",
                http_status=200,
                size_bytes=9,
                hops=[Hop("https://doi.org/10.1/a", 302)],
                fallback_chain=["unpaywall", "arxiv"],
                lease_id="lease_1",
                candidates=[{"url": "https://b.org", "source": "arxiv", "reason": "challenge", "http_status": 403}],
            )
        )
    assert (tmp_path / "manifest.jsonl").read_bytes() == (
        b'{"run_id":"01JRUN","doc_id":"doi:10.1/a","stage":"fetch","url":"https://a.org/x.pdf","canonical_url":null,'
        b'"role":"artifact","status":"ok","http_status":200,"mime":null,"size_bytes":9,"sha256":"'
        + SHA.encode()
        + b'",'
        b'"path":"PDF/a.pdf","attempt":1,"duration_ms":null,"retry_after_s":null,"cache_hit":false,"resolver":null,'
        b'"tier":null,"fallback_chain":["unpaywall","arxiv"],"created_at":"2025-06-15T15:06:40.000Z",'
        b'"config_hash":"sha256:c0","worker_id":"w1","outcome":"success","reason":null,"bytes":9,"title":null,'
        b'"year":null,"license":null,"oa_status":null,"version":null,"host_type":null,"evidence":null,'
        b'"hops":[{"url":"https://doi.org/10.1/a","status":302}],"dedupe":null,"ttfp_ms":null,"waited_ms":null,'
        b'"lease_id":"lease_1","candidates":[{"url":"https://b.org","source":"arxiv","reason":"challenge",'
        b'"http_status":403,"evidence":null,"is_guess":false}],"license_raw":null,"doi_seen":null,"is_retracted":null,'
        b'"is_guess":false,"cause":null,"explanation":null,'
        b'"proof":null,"damaged":false,"validation":null,"doi":null,"version_doi":null,"supplements":[]}\n'
    )


def test_csv_and_database_get_the_same_attempts(tmp_path: Path) -> None:
    """TEL-09."""
    with record_in(tmp_path) as record:
        for number in range(20):
            record.attempt(fetched(url=f"https://a.org/{number}", role=Role.ARTIFACT, work_id="doi:10.1/a"))
    urls = [f"https://a.org/{number}" for number in range(20)]
    assert [row[0] for row in rows_of(tmp_path, "SELECT url FROM http_events ORDER BY id")] == urls
    assert [line.split(",")[3] for line in (tmp_path / "attempts.csv").read_text().splitlines()[1:]] == urls


def test_every_table_is_filled_by_its_method(tmp_path: Path) -> None:
    """CAT-11."""
    with record_in(tmp_path) as record:
        record.source_attempt(
            SourceAttempt(TS, "doi:10.1/a", "direct_oa", "arxiv", SourceOutcome.NO_PDF, "no_arxiv_id")
        )
        record.rate_wait("host:a.org", 350, why="rate", work_id="doi:10.1/a")
        record.breaker_transition("host:a.org", "closed", "open", reason="5xx", reset_timeout_s=60)
        record.attempt(fetched())
        record.finish(obtained())
    assert rows_of(tmp_path, "SELECT work_id, tier, source, outcome, reason FROM fallback_attempts") == [
        ("doi:10.1/a", "direct_oa", "arxiv", "no_pdf", "no_arxiv_id")
    ]
    assert rows_of(tmp_path, "SELECT key, why, delay_ms, run_id FROM rate_events") == [
        ("host:a.org", "rate", 350, "01JRUN")
    ]
    assert rows_of(tmp_path, "SELECT key, old_state, new_state FROM breaker_transitions") == [
        ("host:a.org", "closed", "open")
    ]
    assert rows_of(tmp_path, "SELECT host FROM http_events") == [("a.org",)]
    assert rows_of(tmp_path, "SELECT doc_id, sha256, path FROM downloads") == [("doi:10.1/a", SHA, "PDF/a.pdf")]
    assert rows_of(tmp_path, "SELECT artifacts_success, finished_at FROM run_summary") == [
        (1, "2025-06-15T15:06:40.000Z")
    ]
    assert json.loads(rows_of(tmp_path, "SELECT payload FROM summaries")[0][0])["obtained"] == 1


def test_a_callback_runs_only_when_the_row_can_be_read_by_another_connection(tmp_path: Path) -> None:
    seen: list[int] = []
    told = threading.Event()

    def then() -> None:
        seen.append(rows_of(tmp_path, "SELECT COUNT(*) FROM manifests WHERE doc_id = 'doi:10.1/a'")[0][0])
        seen.append(len(lines_of(tmp_path / "manifest.jsonl")))
        told.set()

    with record_in(tmp_path) as record:
        record.finish(obtained(), then=then)
        assert told.wait(10)
    assert seen == [1, 1]


def test_works_that_end_in_one_commit_are_told_of_together(tmp_path: Path) -> None:
    told: list[tuple[int, list[int]]] = []
    over = threading.Event()

    def together(numbers: Sequence[int]) -> None:
        told.append((rows_of(tmp_path, "SELECT COUNT(*) FROM manifests")[0][0], list(numbers)))
        if numbers[-1] == 49:
            over.set()

    with record_in(tmp_path, batch_window_s=0.2) as record:
        for number in range(50):
            record.finish_together(obtained(f"doi:10.1/{number}"), together, number)
        assert over.wait(10)
    assert [number for _, numbers in told for number in numbers] == list(range(50))
    assert len(told) < 25
    assert [count for count, _ in told] == list(accumulate(len(numbers) for _, numbers in told))


def test_the_last_work_of_a_run_waits_for_no_company(tmp_path: Path) -> None:
    written = threading.Event()
    with record_in(tmp_path, batch_window_s=3600.0) as record:
        record.finish(obtained(), then=written.set)
        assert not written.wait(0.05)
        record.hurry()
        assert written.wait(10)


def test_a_lease_is_recorded_once_and_its_callback_still_runs(tmp_path: Path) -> None:
    """The ledger's acknowledgement may have been lost after the commit; saying it again must not double the line."""
    told: list[str] = []
    with record_in(tmp_path) as record:
        record.finish(obtained(lease_id="lease_1"), then=lambda: told.append("first"))
        record.finish(obtained(lease_id="lease_1"), then=lambda: told.append("same batch"))
    with record_in(tmp_path, run_id="01JTWO") as record:
        record.finish(obtained(lease_id="lease_1"), then=lambda: told.append("next run"))
        record.finish(obtained(lease_id="lease_2"), then=lambda: told.append("other lease"))
    assert told == ["first", "same batch", "next run", "other lease"]
    assert [line["lease_id"] for line in lines_of(tmp_path / "manifest.jsonl")] == ["lease_1", "lease_2"]
    assert rows_of(tmp_path, "SELECT COUNT(*) FROM downloads") == [(1,)]


def test_many_threads_lose_no_row_and_tear_no_line(tmp_path: Path) -> None:
    """TEST-11, CAT-09, CAT-22: with a buffer far smaller than the load, so that producers wait."""
    acknowledged: list[str] = []

    def work(record: RunTelemetry, name: int) -> None:
        for number in range(100):
            doc_id = f"doi:10.{name}/{number}"
            record.attempt(fetched(work_id=doc_id, url=f"https://a.org/{name}/{number}"))
            record.finish(obtained(doc_id, lease_id=doc_id), then=lambda doc_id=doc_id: acknowledged.append(doc_id))

    with record_in(tmp_path, capacity=16) as record:
        threads = [threading.Thread(target=work, args=(record, name)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wanted = {f"doi:10.{name}/{number}": 1 for name in range(8) for number in range(100)}
    lines = lines_of(tmp_path / "manifest.jsonl")
    assert Counter(line["doc_id"] for line in lines) == wanted
    assert Counter(row[0] for row in rows_of(tmp_path, "SELECT work_id FROM http_events")) == wanted
    assert Counter(acknowledged) == wanted
    assert len((tmp_path / "attempts.csv").read_text().splitlines()) == 801


def test_lines_stand_in_time_order_when_the_clock_steps_back(tmp_path: Path) -> None:
    """CAT-09."""
    clock = ManualClock(TS)
    with record_in(tmp_path, clock=clock) as record:
        for step in (0, 5, -60, 1):
            clock.advance(step)
            record.finish(obtained(f"doi:10.1/{step}"))
            record.flush()
    with record_in(tmp_path, clock=ManualClock(TS - 3600)) as record:
        record.finish(obtained("doi:10.1/later"))
    times = [line["created_at"] for line in lines_of(tmp_path / "manifest.jsonl")]
    assert times == sorted(times)
    assert times[-1] == "2025-06-15T15:06:45.000Z"


@pytest.mark.parametrize("said", ["zzzz", "9999", "", "2025-06-15 tomorrow", "\u0661"])
def test_a_line_of_somebody_else_does_not_set_the_time(tmp_path: Path, said: str) -> None:
    """One such line, read back when the database was lost, would have stamped every later one."""
    line = {"doc_id": "doi:10.1/odd", "outcome": "error", "reason": "timeout", "created_at": said}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(line) + "\n")
    with record_in(tmp_path, clock=ManualClock(TS)) as record:
        record.finish(obtained("doi:10.1/next"))
    assert lines_of(tmp_path / "manifest.jsonl")[-1]["created_at"] == "2025-06-15T15:06:40.000Z"


def test_a_reader_sees_committed_rows_while_the_run_goes_on(tmp_path: Path) -> None:
    """TEST-11"""
    with record_in(tmp_path) as record:
        reader = sqlite3.connect(tmp_path / "manifest.sqlite")
        reader.execute("BEGIN")
        before = reader.execute("SELECT COUNT(*) FROM manifests").fetchone()
        record.finish(obtained())
        record.flush()
        assert reader.execute("SELECT COUNT(*) FROM manifests").fetchone() == before == (0,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT COUNT(*) FROM manifests").fetchone() == (1,)
        reader.close()


def test_another_program_that_locks_the_database_for_a_while_goes_unnoticed(tmp_path: Path) -> None:
    """FAIL-12."""
    with record_in(tmp_path) as record:
        other = sqlite3.connect(tmp_path / "manifest.sqlite", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        record.finish(obtained())
        threading.Timer(0.2, lambda: other.execute("ROLLBACK")).start()
        record.flush()
        other.close()
    assert len(lines_of(tmp_path / "manifest.jsonl")) == 1


def test_counts_follow_the_commits_and_a_late_success_is_no_failure(tmp_path: Path) -> None:
    with record_in(tmp_path) as record:
        assert record.counts() == Counts()
        record.attempt(fetched(status=AttemptStatus.HTTP_GET, http_status=200))
        record.attempt(fetched(status=AttemptStatus.HTTP_200, http_status=200))
        record.attempt(fetched(status=AttemptStatus.RETRY, http_status=429))
        record.attempt(fetched(status=AttemptStatus.HTTP_GET, from_cache=True))
        record.attempt(fetched(status=AttemptStatus.CACHE_HIT, from_cache=True))
        record.finish(ManifestRecord(doc_id="doi:10.1/a", outcome="error", reason="timeout"))
        record.finish(ManifestRecord(doc_id="doi:10.1/b", outcome="error", reason="robots"))
        record.finish(ManifestRecord(doc_id="doi:10.1/c", outcome="skip", reason="already-present"))
        record.finish(obtained("doi:10.1/a", size_bytes=70))
        record.flush()
        assert record.counts() == Counts(done=1, skipped=1, failed=1, bytes=70, requests=2, http_429=1)


def test_secrets_in_urls_are_masked_everywhere(tmp_path: Path) -> None:
    """LOG-07 for the record: keys, addresses and signatures in any URL field."""
    secret = "https://u:hunter2@a.org/x?api_key=hunter2&X-Amz-Signature=hunter2&page=1"
    with record_in(tmp_path) as record:
        record.attempt(fetched(url=secret))
        record.finish(
            obtained(
                url=secret,
                canonical_url=secret,
                hops=[Hop(secret, 302)],
                candidates=[{"url": secret, "source": "a", "reason": "b", "http_status": None}],
            )
        )
    for path in tmp_path.iterdir():
        assert b"hunter2" not in path.read_bytes(), path.name
    assert "page=1" in (tmp_path / "manifest.jsonl").read_text()


HOSTILE = '\ud800 \n\r\0\x1b[31m, "quoted", \u2028 ' + "x" * 50_000


def test_hostile_values_neither_stop_the_writer_nor_break_a_line(tmp_path: Path) -> None:
    with record_in(tmp_path) as record:
        record.attempt(fetched(content_type=HOSTILE, url=HOSTILE, content_length_hdr=10**30, elapsed_ms=-(10**30)))
        record.finish(obtained(title=HOSTILE, evidence=HOSTILE, retry_after_s=float("inf"), size_bytes=10**40))
        record.finish(obtained("doi:10.1/b", candidates=[{"url": HOSTILE}] * 5_000, hops=[Hop(HOSTILE, 1)] * 900))
    csv_lines = (tmp_path / "attempts.csv").read_bytes().split(b"\n")
    assert len(csv_lines) == 3
    assert len(lines_of(tmp_path / "manifest.jsonl")) == 2
    assert lines_of(tmp_path / "manifest.jsonl")[0]["size_bytes"] is None
    assert max(map(len, csv_lines)) < 40_000
    with record_in(tmp_path) as record:
        assert record.repairs == ()


def test_a_success_without_proof_is_refused() -> None:
    with pytest.raises(ValueError, match="sha256"):
        ManifestRecord(doc_id="doi:10.1/a", outcome="success", path="a.pdf")
    with pytest.raises(ValueError, match="not an outcome"):
        ManifestRecord(doc_id="doi:10.1/a", outcome="ok")


def test_a_record_is_made_from_work_and_outcome() -> None:
    work = WorkArtifact("doi:10.1/a", title="On A", publication_year=2020, license="cc-by", oa_status="gold")
    meta = {"sha256": SHA, "size_bytes": 5, "resolver": "arxiv", "license": "cc0", "retryable": False, "tier": None}
    made = ManifestRecord.of(work, DownloadOutcome(True, "success", "/x/a.pdf", None, meta), path="a.pdf", attempt=2)
    assert (made.doc_id, made.status, made.path, made.attempt) == ("doi:10.1/a", "ok", "a.pdf", 2)
    assert (made.title, made.year, made.license, made.oa_status) == ("On A", 2020, "cc0", "gold")


def test_sinks_choose_the_files(tmp_path: Path) -> None:
    """CAT-01."""
    for sinks, wanted in {
        ("sqlite",): {"manifest.sqlite"},
        ("csv",): {"attempts.csv", "last.csv"},
        ("jsonl",): {"manifest.jsonl"},
    }.items():
        root = tmp_path / sinks[0]
        with record_in(root, sinks=sinks) as record:
            record.attempt(fetched())
            record.finish(obtained())
        always = {".record.lock", "summary.json", "index.json"}
        assert {path.name for path in root.iterdir()} == wanted | always
    with pytest.raises(ValueError, match="parquet"):
        record_in(tmp_path, sinks=["parquet"])


def test_without_a_database_the_text_files_still_carry_earlier_runs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with record_in(tmp_path, sinks=("csv", "jsonl")) as record:
            record.finish(obtained(f"doi:10.1/{name}", canonical_url=f"https://a.org/{name}"))
    assert [line["doc_id"] for line in lines_of(tmp_path / "manifest.jsonl")] == ["doi:10.1/a", "doi:10.1/b"]
    assert [line.split(",")[0] for line in (tmp_path / "last.csv").read_text().splitlines()[1:]] == [
        "doi:10.1/a",
        "doi:10.1/b",
    ]
    assert set(json.loads((tmp_path / "index.json").read_text())) == {"https://a.org/a", "https://a.org/b"}


def test_the_database_can_live_elsewhere(tmp_path: Path) -> None:
    with record_in(tmp_path / "run", database=tmp_path / "deep" / "catalog.db") as record:
        record.finish(obtained())
    assert (tmp_path / "deep" / "catalog.db").exists()
    assert not (tmp_path / "run" / "manifest.sqlite").exists()


def test_last_csv_and_index_json_show_the_latest_success(tmp_path: Path) -> None:
    """CAT-15, CAT-16."""
    with record_in(tmp_path) as record:
        record.finish(obtained("doi:10.1/a", canonical_url="https://a.org/a", path="old.pdf"))
        record.finish(obtained("doi:10.1/b", canonical_url="https://a.org/b", title="Ä, b\nc"))
        record.finish(obtained("doi:10.1/a", canonical_url="https://a.org/a", path="new.pdf"))
        record.finish(ManifestRecord(doc_id="doi:10.1/a", outcome="error", reason="timeout"))
        record.finish(ManifestRecord(doc_id="doi:10.1/c", outcome="error", reason="timeout"))
    assert (tmp_path / "last.csv").read_text() == (
        "doc_id,run_id,title,year,resolver,tier,url,canonical_url,path,sha256,size_bytes,mime,license,oa_status,version,"
        "created_at\n"
        f'doi:10.1/b,01JRUN,"Ä, b c",,,,,https://a.org/b,PDF/a.pdf,{SHA},,,,,,2025-06-15T15:06:40.000Z\n'
        f"doi:10.1/a,01JRUN,,,,,,https://a.org/a,new.pdf,{SHA},,,,,,2025-06-15T15:06:40.000Z\n"
    )
    index = json.loads((tmp_path / "index.json").read_text())
    assert {url: entry["path"] for url, entry in index.items()} == {
        "https://a.org/a": "new.pdf",
        "https://a.org/b": "PDF/a.pdf",
    }


def test_the_summary_agrees_with_the_manifest(tmp_path: Path) -> None:
    """CAT-16."""
    with record_in(tmp_path) as record:
        for number in range(6):
            record.finish(obtained(f"doi:10.1/{number}", size_bytes=10, resolver="arxiv"))
        record.finish(ManifestRecord(doc_id="doi:10.1/x", outcome="error", reason="timeout"))
    summary = json.loads((tmp_path / "summary.json").read_text())
    lines = lines_of(tmp_path / "manifest.jsonl")
    assert summary["obtained"] == sum(line["status"] == "ok" for line in lines) == 6
    assert summary["bytes"] == sum(line["bytes"] or 0 for line in lines) == 60
    assert summary["failed_by_reason"] == {"timeout": 1}
    assert [gate["gate"] for gate in summary["gates"] if not gate["ok"]] == []


@pytest.fixture
def databases(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The databases that records have opened."""
    opened: list[sqlite3.Connection] = []

    def opening(path: Path | None) -> sqlite3.Connection:
        opened.append(open_database(path))
        return opened[-1]

    monkeypatch.setattr(record_module, "open_database", opening)
    return opened


def test_only_a_batch_with_a_finished_file_pays_for_a_full_sync(
    tmp_path: Path, databases: list[sqlite3.Connection]
) -> None:
    """What is acknowledged survives a power cut: seen from the callback, the level its commit was made with."""
    levels: list[int] = []
    with record_in(tmp_path) as record:

        def level() -> None:
            levels.append(databases[0].execute("PRAGMA synchronous").fetchone()[0])

        for ended in (ManifestRecord(doc_id="doi:a", outcome="error"), obtained(), obtained("doi:b")):
            record.finish(ended, then=level)
            record.flush()
        record.finish(ManifestRecord(doc_id="doi:c", outcome="error"), then=level)
    normal, full = 1, 2
    assert levels == [normal, full, full, normal]


def test_the_tokens_are_pinned() -> None:
    """TEL-02, TEL-03, TEL-04, TEL-08: records and users' scripts rest on these words; a change needs a version note."""
    assert " ".join(AttemptStatus) == (
        "http-head http-get http-200 http-304 cache-hit retry robots-fetch robots-disallowed size-mismatch "
        "content-policy-skip download-error"
    )
    assert " ".join(Verb) == "HEAD GET STREAM ROBOTS FINALIZE"
    promised = (
        "ok not-modified already-present retry-after backoff conn-error robots policy-type policy-size timeout "
        "tls-error too-large unexpected-ct size-mismatch download-error path-policy security-policy"
    )
    assert " ".join(Reason).startswith(promised)


def test_rows_that_nobody_waits_for_share_a_commit(tmp_path: Path, databases: list[sqlite3.Connection]) -> None:
    """CACHE-19: each commit writes whole pages, so a paper's attempts wait a moment for its end."""
    commits: list[str] = []
    with record_in(tmp_path, patience_s=3600.0) as record:
        databases[0].set_trace_callback(lambda words: commits.append(words) if words == "COMMIT" else None)
        for number in range(20):
            record.rate_wait("host:a.org", number, why="rate")
            time.sleep(0.002)
        assert not commits
        told = threading.Event()
        record.finish(ManifestRecord(doc_id="doi:1", outcome="error", reason="timeout"), then=told.set)
        assert told.wait(30), "whoever waits for the commit must not wait for others"
        assert len(commits) == 1
        record.rate_wait("host:a.org", 1, why="rate")
        record.flush()
        assert len(commits) == 2
        record.rate_wait("host:a.org", 1, why="rate")
    assert rows_of(tmp_path, "SELECT COUNT(*) FROM rate_events") == [(22,)]


def test_a_full_intake_does_not_wait_for_others(tmp_path: Path) -> None:
    with record_in(tmp_path, capacity=10, patience_s=3600.0) as record:
        begun = time.monotonic()
        for number in range(50):
            record.rate_wait("host:a.org", number, why="rate")
        assert time.monotonic() - begun < 600


_ODD = st.sampled_from(['"', ",", "a,b", "\r\n", "\u2028", " x", ""])
_CELLS = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6), _ODD)


def _table(width: int) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(_CELLS, min_size=width, max_size=width), max_size=4)


@given(rows=st.integers(1, 5).flatmap(_table))
def test_rows_joined_quickly_are_as_the_csv_module_writes_them(rows: list[list[Any]]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [one_line(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    assert csv_lines(rows).decode() == out.getvalue()
    assert b"".join(csv_line(row) for row in rows) == csv_lines(rows)


_WORDS = st.one_of(
    st.none(), st.booleans(), st.integers(0, 9), st.sampled_from(["a,\n,b", "\n", ",", "}", "]", "é", ""])
)


@given(items=st.lists(st.dictionaries(st.sampled_from("abc"), st.one_of(_WORDS, st.lists(_WORDS, max_size=3)))))
def test_lines_written_together_are_as_each_alone(items: list[dict[str, Any]]) -> None:
    assert json_lines(items) == b"".join(orjson.dumps(item) + b"\n" for item in items)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 21, 63, 64, 65, 200])
def test_any_number_of_rows_goes_in_once_and_in_order(tmp_path: Path, count: int) -> None:
    """Rows go in by the dozen; of leases that are known already, also within one batch, nothing is added."""
    told: list[str] = []
    with record_in(tmp_path, patience_s=30.0, batch_window_s=0.2) as record:
        record.finish(ManifestRecord(doc_id="doi:known", outcome="error", lease_id="l0"))
        record.flush()
        for number in range(count):
            record.attempt(fetched(url=f"https://a.org/{number}"))
            ended = obtained(f"doi:{number}", lease_id=f"l{number}", sha256=f"{number:064x}")
            record.finish(ended, then=lambda number=number: told.append(f"doi:{number}"))
        again = ManifestRecord(doc_id="doi:known", outcome="error", lease_id="l0")
        record.finish(again, then=lambda: told.append("again"))
        record.finish(obtained("doi:0", lease_id="l0"), then=lambda: told.append("twice"))
    ids = [f"doi:{number}" for number in range(count)]
    assert told == [*ids, "again", "twice"]
    assert [line["doc_id"] for line in lines_of(tmp_path / "manifest.jsonl")] == ["doi:known", *ids]
    assert rows_of(tmp_path, "SELECT doc_id FROM manifests ORDER BY id") == [("doi:known",), *((i,) for i in ids)]
    held = (
        "SELECT d.doc_id FROM downloads d JOIN manifests m ON m.id = d.manifest_id AND m.doc_id = d.doc_id ORDER BY 1"
    )
    assert rows_of(tmp_path, held) == sorted((i,) for i in ids)
    urls = [row[0] for row in rows_of(tmp_path, "SELECT url FROM http_events ORDER BY id")]
    assert urls == [f"https://a.org/{number}" for number in range(count)]


def test_tries_are_counted_on_when_a_work_is_done_again(tmp_path: Path) -> None:
    """A job that is repeated counts its tries from one; the record tells which try of the work it was."""

    def tries(run_id: str, *told: int) -> list[int]:
        with RunTelemetry(tmp_path, run_id=run_id, config_hash="c", clock=ManualClock(TS)) as record:
            for number in told:
                record.finish(ManifestRecord(doc_id="doi:10.1/a", outcome="error", reason="timeout", attempt=number))
                record.flush()
        lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
        return [line["attempt"] for line in lines if line["run_id"] == run_id]

    assert tries("r1", 1, 2) == [1, 2]
    assert tries("r2", 3) == [3]  # the same job goes on
    assert tries("r3", 1, 2) == [4, 5]  # it was queued anew
    assert tries("r4", 1) == [6]
