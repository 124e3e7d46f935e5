"""Every question to a record has the same answer whether the record is a file or on a PostgreSQL server. CAT-23."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from tests.contentdownload.big_record import RUNS, write_big_record

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, SourceAttempt, SourceOutcome, Verb
from DocsToKG.ContentDownload.catalog.selection import Selection, read_selection
from DocsToKG.ContentDownload.catalog.shared.catalog import SharedCatalog
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.catalog.store import GROUPS, Catalog
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.maintenance.tombstones import add_line, tombstone
from DocsToKG.ContentDownload.telemetry import ManifestRecord, ResumeController, RunTelemetry
from DocsToKG.ContentDownload.telemetry.resume import SharedResumeLookup
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection

pytestmark = pytest.mark.slow  # a server is started; part of `make test`

A, B = "aa" * 32, "bb" * 32
_COPIES = [
    {"url": "https://Closed.example.org:8443/x", "source": "core", "reason": "paywall", "evidence": "index"},
    {"url": "https://deep.repo.example.net/y", "source": "hal", "reason": "http-status", "http_status": 404},
]


class Both(NamedTuple):
    file: Catalog
    server: Catalog


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("record")


@pytest.fixture(scope="module")
def shared(postgres_url: str) -> SharedRecord:
    return SharedRecord(postgres_url, schema=f"t_{uuid4().hex[:16]}", patience_s=30)


@pytest.fixture(scope="module")
def both(postgres_url: str, folder: Path, shared: SharedRecord) -> Iterator[Both]:
    write_big_record(folder, works=1_500)
    with _record(folder, shared) as record:
        _fill(record)
    _take_down(folder)
    with _record(folder, shared):
        pass  # what was written meanwhile is sent by whoever opens the record next
    with Catalog(folder / "manifest.sqlite") as file, SharedCatalog(shared) as server:
        yield Both(file, server)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {shared.schema} CASCADE")


def _record(folder: Path, shared: SharedRecord | None) -> RunTelemetry:
    clock = ManualClock(1_800_000_000.0)
    return RunTelemetry(folder, run_id="r-last", config_hash="c", clock=clock, shared=shared, node="here")


def _fill(record: RunTelemetry) -> None:
    """What a large record of one kind of work lacks."""
    seen: dict[str, Any] = {"work_id": "doi:a", "host": "a.org", "role": "artifact", "elapsed_ms": 20}
    for number, status in enumerate((AttemptStatus.HTTP_GET, AttemptStatus.CACHE_HIT, AttemptStatus.RETRY)):
        at = 1_800_000_000.0 + number
        record.attempt(Attempt(at, "unpaywall", "https://a.org/?token=1", Verb.GET, status, http_status=200, **seen))
    late = {"http_status": 429, "retry_after_s": 30.0, "work_id": "doi:a", "host": "a.org"}
    for at in (1_800_000_010.0, 1_800_000_015.0):
        record.attempt(Attempt(at, "unpaywall", "https://a.org", Verb.GET, AttemptStatus.HTTP_GET, **late))
    record.rate_wait("host:a.org", 250, why="interval", work_id="doi:a")
    record.breaker_transition("host:a.org", "closed", "open", reason="5 x 503")
    record.source_attempt(SourceAttempt(1.0, "doi:a", "direct_oa", "unpaywall", SourceOutcome.SUCCESS))
    refused = "refused: CORE answered 401; check resolvers.core.api_key"
    record.source_attempt(SourceAttempt(1.0, "doi:a", "archive", "core", SourceOutcome.ERROR, reason=refused))
    same = {"outcome": "success", "sha256": A, "size_bytes": 10, "url": "https://a.org/f.pdf", "license": "CC-BY-4.0"}
    record.finish(ManifestRecord(doc_id="doi:a", path="PDFs/a.pdf", lease_id="l1", year=2020, **same))
    record.finish(ManifestRecord(doc_id="doi:b", path="PDFs/b.pdf", lease_id="l2", dedupe="duplicate", **same))
    record.finish(ManifestRecord(doc_id="doi:a", path="PDFs/a2.pdf", lease_id="l3", **same | {"sha256": B}))
    miss = {"outcome": "error", "reason": "no_candidates", "cause": "http-status", "candidates": _COPIES}
    record.finish(ManifestRecord(doc_id="doi:miss", title="Ärger mit 100% der Größe", oa_status="gold", **miss))
    record.finish(ManifestRecord(doc_id="doi:robots", outcome="skip", reason="robots", license_raw="cc by 4.0"))
    record.finish(ManifestRecord(doc_id="doi:gone", path="PDFs/g.pdf", lease_id="l4", **same))
    record.verified(B, False)
    record.flush()
    # What only text can hold, and no server's text.
    record.finish(ManifestRecord(doc_id="doi:nul", outcome="error", reason="timeout", title="before\0behind"))


def _take_down(folder: Path) -> None:
    line = tombstone(
        "doi:gone", run_id="r-t", cause="taken-down", explanation="Gone.", sha256=A, lease_id="taken-down-1"
    )
    add_line(folder, line, database=folder / "manifest.sqlite", sinks=("jsonl", "sqlite"), clock=ManualClock(1.9e9))


SELECTIONS = {
    "all": Selection(),
    "source": Selection(sources=("core", "arxiv")),
    "tier": Selection(tiers=("direct_oa",)),
    "host": Selection(hosts=("a.org",)),
    "hosts-below": Selection(hosts=(".example.net", ".example.org")),
    "host-of-a-miss": Selection(hosts=("closed.example.org",)),
    "years": Selection(years=(2019, None)),
    "licence-family": Selection(licences=("cc-by",)),
    "licence-version": Selection(licences=("CC-BY-NC-4.0",)),
    "licence-none": Selection(licences=("none",)),
    "licence-unheard": Selection(licences=("gpl",)),
    "states": Selection(states=("failed", "robots", "taken-down")),
    "since": read_selection(since="2027-01-01"),
    "until": read_selection(until="2026-12-31"),
    "run": Selection(run_id=RUNS[1]),
    "text": Selection(text="STRUCTURE number 7"),
    "text-with-signs": Selection(text="100% GRößE"),
}
QUESTIONS: dict[str, Callable[[Catalog], Any]] = {
    "runs": lambda c: c.runs(),
    "run_times": lambda c: c.run_times(),
    "obtained": lambda c: c.obtained(RUNS[0]),
    "files": lambda c: list(c.files()),
    "files-of-a-shard": lambda c: list(c.files("a")),
    "earlier_names": lambda c: sorted(c.earlier_names()),
    "earlier_names-of-one": lambda c: c.earlier_names("doi:a"),
    "damaged": lambda c: list(c.damaged()),
    "downloads_of": lambda c: c.downloads_of("doi:a"),
    "find_files": lambda c: c.find_files("aaaaaa"),
    "find_download": lambda c: c.find_download("doi:b"),
    "find_damaged": lambda c: c.find_damaged("doi:a"),
    "find-taken-down": lambda c: c.find_download("doi:gone"),
    "holders": lambda c: c.holders(A),
    "duplicates": lambda c: c.duplicates(),
    "ends": lambda c: sorted(c.ends_without_file(["doi:miss", "doi:a", "doi:robots"]), key=lambda end: end["doc_id"]),
    "sql": lambda c: c.query("SELECT doc_id, status FROM catalog_entries WHERE doc_id LIKE 'doi:%' ORDER BY 1").rows,
    "sql-cut": lambda c: c.query("SELECT doc_id FROM manifests ORDER BY doc_id", max_rows=3),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_answer_alike(both: Both, question: str) -> None:
    ask = QUESTIONS[question]
    assert _plain(ask(both.server)) == _plain(ask(both.file))


def test_both_call_the_same_works_finished(both: Both, folder: Path, shared: SharedRecord) -> None:
    file, server = ResumeController(folder), ResumeController(folder, shared=shared)
    assert (file.source, server.source) == ("sqlite", "postgres")
    assert server.completed_ids == file.completed_ids
    assert "doi:a" in server.completed_ids
    assert "doi:gone" not in server.completed_ids


@pytest.mark.parametrize("group", [None, *GROUPS])
def test_both_count_alike(both: Both, group: str | None) -> None:
    assert both.server.stats(group) == both.file.stats(group)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", SELECTIONS)
def test_both_choose_alike(both: Both, chosen: str) -> None:
    wanted = SELECTIONS[chosen]
    listed = list(both.file.each(wanted))
    assert _plain(list(both.server.each(wanted))) == _plain(listed)
    assert both.server.stats("state", wanted) == both.file.stats("state", wanted)
    assert _plain(_paged(both.server, wanted)) == _plain(listed[:300])
    if chosen not in ("licence-unheard", "licence-version", "host-of-a-miss"):
        assert listed


@pytest.mark.slow
@pytest.mark.parametrize("run_id", [None, *RUNS, "r-last"])
@pytest.mark.parametrize("since", [None, "2026-01-01T00:00:30.000Z"])
def test_both_come_to_the_same_figures(both: Both, run_id: str | None, since: str | None) -> None:
    file, server = (c.figures(run_id, since=since).to_dict() for c in both)
    assert server.pop("progress")[-1:] == file.pop("progress")[-1:]
    assert server == file


@pytest.mark.parametrize("key", ["doi:a", "doi:miss", "aaaaaa", "nobody"])
def test_both_tell_the_same_history(both: Both, key: str) -> None:
    file, server = (c.show(key) for c in both)
    assert (file is None) == (server is None)
    for name in ("lines", "downloads", "sources", "attempts") if file is not None else ():
        ours, theirs = ([_told(row) for row in getattr(history, name)] for history in (file, server))
        assert theirs == ours


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM manifests",
        "SELECT 1; DELETE FROM manifests",
        "COMMIT; DELETE FROM manifests",
        "WITH gone AS (DELETE FROM manifests RETURNING 1) SELECT * FROM gone",
        "SELECT set_config('transaction_read_only', 'off', true), nextval('nothing')",
        "",
        "SELECT nonsense",
    ],
)
def test_a_question_of_ones_own_cannot_write(both: Both, sql: str) -> None:
    before = both.server.stats()
    with pytest.raises(RecordError) as refused:
        both.server.query(sql)
    assert "postgres@" not in str(refused.value)
    assert both.server.stats() == before


def test_a_question_without_end_is_cut_off(both: Both) -> None:
    with pytest.raises(RecordError, match="longer than"):
        both.server.query("SELECT pg_sleep(60)", max_seconds=0.2)


def _paged(catalog: Catalog, wanted: Selection) -> list[Any]:
    works: list[Any] = []
    after: int | None = 0
    while after is not None and len(works) < 300:
        page = catalog.page(wanted, after=after, limit=100)
        works, after = works + page.works, page.after
    return works


def _told(row: dict[str, Any]) -> Any:
    """A row without the numbers that each record gives by itself."""
    return _plain({name: value for name, value in row.items() if name not in ("id", "manifest_id")})


def _plain(value: Any) -> Any:
    """The server cannot hold the character zero."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_plain(item) for item in value]
    return value


class Restarting(SharedRecord):
    """A record whose server ends the first connections right after they were made, as one does that is restarted."""

    ends = 0

    def connect(self) -> Connection:
        connection = super().connect()
        if self.ends:
            self.ends -= 1
            with super().connect() as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", (connection.info.backend_pid,))
        return connection


@pytest.mark.parametrize("ends", [1, 3])
def test_a_server_that_restarts_is_asked_again(postgres_url: str, shared: SharedRecord, both: Both, ends: int) -> None:
    """The first question of a process may come in that moment, and would end its run."""
    record = Restarting(postgres_url, schema=shared.schema, patience_s=30)
    with SharedCatalog(record) as server:
        for ask in (
            lambda: server.downloads_of("doi:a"),
            lambda: server.stats(),
            SharedResumeLookup(record).completed_ids,
        ):
            record.ends = ends
            assert ask()
            assert record.ends == 0
