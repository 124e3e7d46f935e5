"""URL-08: works that name one address share one fetch, and each proves the bytes for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    DownloadPlan,
    Hop,
    Reason,
    Role,
    StoredCopy,
    Verb,
    WorkArtifact,
)
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.download_execution import CandidateDownload, DownloadRules
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.in_flight import DeduplicatedDownload
from DocsToKG.ContentDownload.storage.cas import cas_path
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread, called_off_by
from DocsToKG.Sandbox.pdf import Paper, make_pdf

URL = "https://a.org/x.pdf?b=1&a=2"
FILE = make_pdf(Paper("On sharing", ("A. Author",), 2020, "10.1234/one"), size_bytes=20_000, key="k")


@dataclass
class Body:
    url: str
    held: asyncio.Event
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/pdf"})
    hops: tuple[Hop, ...] = (Hop("https://a.org/x.pdf", 200),)
    from_cache: bool = False
    revalidated: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        await asyncio.wait_for(self.held.wait(), 20)
        yield FILE

    async def aclose(self) -> None:
        return None

    def confirm(self, sha256: str) -> None:
        return None

    def reject(self) -> None:
        return None


@dataclass
class Origin:
    """Counts what is asked of it; `held` keeps the body back until it is set."""

    held: asyncio.Event = field(default_factory=asyncio.Event)
    failures: list[Exception] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    async def open(
        self,
        url: str,
        role: Role,
        call: Call,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> Body:
        self.opened.append(url)
        if self.failures:
            raise self.failures.pop(0)
        return Body(url, self.held)


@dataclass
class Bench:
    store: LocalStore
    shared: DeduplicatedDownload
    loop: LoopThread
    origin: Origin
    endings: list[StoredCopy | BaseException | None] = field(default_factory=list)
    cancels: list[CancelToken] = field(default_factory=list)
    told: list[Attempt] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def submit(self, work_id: str, url: str = URL, **plan: str) -> None:
        self.cancels.append(CancelToken())
        self.loop.call(self._start, work_id, DownloadPlan(url, "t", **plan), self.cancels[-1])  # type: ignore[arg-type]

    def _start(self, work_id: str, plan: DownloadPlan, cancel: CancelToken) -> None:
        work = WorkArtifact(work_id, doi=work_id.removeprefix("doi:"))
        download = self.shared(plan, work, self.origin, Call(work_id, cancel), lambda: True)  # type: ignore[arg-type]
        self._tasks.add(asyncio.ensure_future(self._ends(called_off_by(cancel, download))))

    async def _ends(self, download: Coroutine[Any, Any, StoredCopy | None]) -> None:
        try:
            self.endings.append(await download)
        except Exception as error:
            self.endings.append(error)

    def let_go(self) -> None:
        """Bodies come from now on."""
        self.loop.call(self.origin.held.set)

    def wait(self, count: int) -> None:
        eventually(lambda: len(self.endings) >= count)
        assert len(self.endings) == count

    def wait_until_asked(self) -> None:
        eventually(lambda: self.origin.opened)


class Lines(NullSink):
    def __init__(self) -> None:
        self.told: list[Attempt] = []

    def attempt(self, attempt: Attempt) -> None:
        self.told.append(attempt)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    clock = SystemClock()
    store = LocalStore(tmp_path, min_free_bytes=0)
    store.prepare()
    lines = Lines()
    shared = DeduplicatedDownload(
        CandidateDownload(store, DownloadRules(), clock), open_stored=store.open, clock=clock, attempts=lines
    )
    with LoopThread() as loop:
        yield Bench(store, shared, loop, Origin(), told=lines.told)


def copies(bench: Bench) -> list[StoredCopy]:
    assert all(isinstance(ended, StoredCopy) for ended in bench.endings)
    return bench.endings  # type: ignore[return-value]


def test_works_that_name_one_address_at_once_fetch_it_once(bench: Bench) -> None:
    """URL-08: the others wait, then get the bytes from the store."""
    for number in range(6):
        bench.submit("doi:10.1234/one", URL if number % 2 else "https://a.org/x.pdf?a=2&b=1&utm_source=q")
    bench.submit("doi:10.1234/one", "https://b.org/other.pdf")
    bench.wait_until_asked()
    bench.let_go()
    bench.wait(7)
    assert sorted(url.partition("?")[0] for url in bench.origin.opened) == [
        "https://a.org/x.pdf",
        "https://b.org/other.pdf",
    ]
    assert {copy.sha256 for copy in copies(bench)} == {copies(bench)[0].sha256}
    assert sum(copy.stream.from_cache for copy in copies(bench)) == 5
    assert all(copy.stream.http_status == 200 and copy.stream.hops for copy in copies(bench))


def test_each_work_proves_the_bytes_for_itself(bench: Bench) -> None:
    """The same file is one work's paper and another's wrong article."""
    bench.let_go()
    bench.submit("doi:10.1234/one")
    bench.wait(1)
    bench.submit("doi:10.1234/two")
    bench.wait(2)
    assert len(bench.origin.opened) == 1
    assert isinstance(bench.endings[0], StoredCopy)
    error = bench.endings[1]
    assert isinstance(error, CandidateRejected)
    assert error.reason == Reason.WRONG_ARTICLE


def test_a_fetch_that_failed_is_the_next_one_s_to_try(bench: Bench) -> None:
    bench.let_go()
    bench.origin.failures = [TransientFailure(Reason.TIMEOUT), CandidateRejected(Reason.HTTP_STATUS, http_status=404)]
    for number in range(4):
        bench.submit("doi:10.1234/one")
        bench.wait(number + 1)
    assert len(bench.origin.opened) == 3
    assert [type(ended).__name__ for ended in bench.endings[:2]] == ["TransientFailure", "CandidateRejected"]
    copy = bench.endings[3]
    assert isinstance(copy, StoredCopy)
    assert copy.stream.from_cache


def test_bytes_that_left_the_store_are_fetched_again(bench: Bench) -> None:
    bench.let_go()
    bench.submit("doi:10.1234/one")
    bench.wait(1)
    cas_path(bench.store.root, copies(bench)[0].sha256).unlink()
    bench.submit("doi:10.1234/one")
    bench.wait(2)
    assert len(bench.origin.opened) == 2


def test_another_form_of_the_same_address_is_another_fetch(bench: Bench) -> None:
    bench.let_go()
    bench.submit("doi:10.1234/one")
    bench.wait(1)
    bench.submit("doi:10.1234/one", expected_mime="application/xml")
    bench.wait(2)
    assert isinstance(bench.endings[1], CandidateRejected)


def test_a_checksum_that_does_not_fit_sends_the_next_one_to_the_network(bench: Bench) -> None:
    bench.let_go()
    bench.submit("doi:10.1234/one")
    bench.wait(1)
    bench.submit("doi:10.1234/one", checksum="md5:" + "0" * 32)
    bench.wait(2)
    assert isinstance(bench.endings[1], TransientFailure)
    assert len(bench.origin.opened) == 2, "kept bytes prove nothing against the server, so it was asked at once"
    bench.submit("doi:10.1234/one")
    bench.wait(3)
    assert len(bench.origin.opened) == 3


def test_a_body_served_from_the_store_leaves_its_line(bench: Bench) -> None:
    """TEL-07"""
    bench.let_go()
    bench.submit("doi:10.1234/one")
    bench.wait(1)
    assert bench.told == []
    bench.submit("doi:10.1234/two")
    bench.wait(2)
    assert [(line.verb, line.status, line.reason) for line in bench.told] == [
        (Verb.GET, AttemptStatus.HTTP_GET, None),
        (Verb.GET, AttemptStatus.CACHE_HIT, Reason.OK),
    ]
    for line in bench.told:
        assert (line.work_id, line.url, line.host, line.from_cache) == ("doi:10.1234/two", URL, "a.org", True)


def test_a_body_served_from_the_store_is_no_request_and_one_answer_of_the_cache(bench: Bench, tmp_path: Path) -> None:
    """SLO-05: whatever share of a run is served this way, its requests are those that were sent."""
    bench.let_go()
    for number in range(4):
        bench.submit("doi:10.1234/one")
        bench.wait(number + 1)
    with RunTelemetry(tmp_path / "run", run_id="r", config_hash="c", clock=SystemClock()) as record:
        for line in bench.told:
            record.attempt(line)
        record.flush()
        assert record.counts().requests == 0
    with Catalog(tmp_path / "run" / "manifest.sqlite") as catalog:
        told = catalog.figures()
    assert (told.requests, told.cache_hits, told.cache_hit_ratio) == (0, 3, 1.0)


def test_a_work_called_off_while_it_waits_leaves_and_one_called_off_while_it_fetches_makes_room(bench: Bench) -> None:
    bench.submit("doi:10.1234/one")
    bench.wait_until_asked()
    bench.submit("doi:10.1234/one")
    bench.cancels[1].cancel()
    bench.wait(1)
    assert isinstance(bench.endings[0], Cancelled)
    bench.cancels[0].cancel()
    bench.let_go()
    bench.wait(2)
    assert isinstance(bench.endings[1], Cancelled)
    bench.submit("doi:10.1234/one")
    bench.wait(3)
    assert isinstance(bench.endings[2], StoredCopy)
    assert len(bench.origin.opened) == 2


def test_the_memory_of_addresses_is_bounded(tmp_path: Path) -> None:
    clock = SystemClock()
    store = LocalStore(tmp_path, min_free_bytes=0)
    store.prepare()
    origin = Origin()
    origin.held.set()
    shared = DeduplicatedDownload(
        CandidateDownload(store, DownloadRules(), clock), open_stored=store.open, clock=clock, remembered=2
    )
    work = WorkArtifact("doi:10.1234/one", doi="10.1234/one")
    with LoopThread() as loop:
        for name in "abcab":
            plan = DownloadPlan(f"https://{name}.org/x.pdf", "t")
            loop.run(shared(plan, work, origin, Call("w"), lambda: True))  # type: ignore[arg-type]
    assert len(origin.opened) == 5, "a was forgotten when c came, b when a came again"
