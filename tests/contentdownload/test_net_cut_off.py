"""An exchange whose slots may soon be another's is cut: nobody is blamed, nothing is counted, it is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from tests.contentdownload.polite_rig import PDF, URL, Rig, given_rig, pdf  # noqa: F401
from tests.contentdownload.test_storage_away import A, Source, bench

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import LimitsAway
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.stores.base import MemoryLimitStore
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.tasks import called_off_by


class Leased(MemoryLimitStore):
    """Slots that are ours for a term; ended by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.term: CancelToken | None = CancelToken()  # type: ignore[assignment]

    def end_term(self) -> None:
        assert self.term is not None
        self.term, over = CancelToken(), self.term
        over.cancel()


class Wire(httpx2.AsyncByteStream):
    """Half of a file; the rest never comes."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield PDF[:3000]
        self._meanwhile()
        await asyncio.sleep(20)
        raise AssertionError("it was not cut")


@pytest.fixture
def store(rig: Rig) -> Leased:
    store = Leased()
    rig.limits = HostLimits(clock=rig.clock, default_host=HostLimit(1), store=store)
    return store


def half(meanwhile: Callable[[], object]) -> httpx2.Response:
    headers = {"content-type": "application/pdf", "content-length": str(len(PDF))}
    return httpx2.Response(200, headers=headers, stream=Wire(meanwhile))


def test_a_file_that_is_cut_puts_the_work_off(rig: Rig, store: Leased) -> None:
    rig.site = lambda request: half(store.end_term)
    with pytest.raises(LimitsAway) as cut:
        rig.download(rig.client())
    assert cut.value.reason == Reason.BACKOFF
    assert rig.tokens()[-1] == ("retry", None, "backoff")
    assert rig.slots_are_free()
    rig.site = lambda request: pdf()
    assert rig.download(rig.client()) == PDF


def test_a_page_that_is_cut_is_asked_for_again_and_uses_up_no_try(rig: Rig, store: Leased) -> None:
    async def silent() -> httpx2.Response:
        store.end_term()
        await asyncio.sleep(20)
        raise AssertionError("it was not cut")

    def site(request: httpx2.Request) -> Any:
        if len(rig.requests) > 3:
            return httpx2.Response(200, json={})
        # The first is cut before the head has come.
        return silent() if len(rig.requests) == 1 else half(store.end_term)

    rig.site = site
    client = rig.client(retry=RetryPolicy(max_attempts=1))
    assert rig.fetch(client).status == 200
    assert len(rig.requests) == 4
    assert rig.tokens().count(("retry", None, "backoff")) == 3
    assert rig.slots_are_free()


def test_robots_txt_that_is_cut_is_asked_for_again(rig: Rig, store: Leased) -> None:
    def site(request: httpx2.Request) -> Any:
        if request.url.path != "/robots.txt":
            return pdf()
        return httpx2.Response(404) if len(rig.requests) > 1 else half(store.end_term)

    rig.site = site
    assert rig.download(rig.client(robots=True)) == PDF
    assert [request.url.path for request in rig.requests] == ["/robots.txt", "/robots.txt", "/article/abcd5678.pdf"]


def test_a_work_that_is_called_off_is_not_taken_for_cut(rig: Rig, store: Leased) -> None:
    cancel = CancelToken()
    rig.site = lambda request: half(cancel.cancel)
    client = rig.client()

    async def read() -> None:
        opened = await client.open(URL, Role.ARTIFACT, Call("doi:10.1/x", cancel))
        try:
            async for _ in opened.chunks():
                pass
        finally:
            await opened.aclose()

    with pytest.raises(Cancelled):
        rig.run(called_off_by(cancel, read()))
    assert ("retry", None, "backoff") not in rig.tokens()
    assert rig.slots_are_free()


def test_a_task_that_is_cancelled_in_the_moment_of_the_cut_is_cancelled(rig: Rig, store: Leased) -> None:
    async def cancel_it() -> None:
        def both() -> None:
            task.cancel()
            store.end_term()

        rig.site = lambda request: half(both)
        task = asyncio.create_task(client.fetch(URL, Role.METADATA, Call("w")))
        with pytest.raises(asyncio.CancelledError):
            await task

    client = rig.client()
    rig.run(cancel_it())
    assert len(rig.requests) == 1
    assert rig.slots_are_free()


def test_an_exchange_that_is_over_is_reached_by_no_end_of_a_term(rig: Rig, store: Leased) -> None:
    rig.site = lambda request: pdf()
    cancel = CancelToken()

    async def download_and_go_on() -> None:
        client = rig.client()
        opened = await client.open(URL, Role.ARTIFACT, Call("doi:10.1/x", cancel))
        assert b"".join([block async for block in opened.chunks()]) == PDF
        await opened.aclose()
        store.end_term()
        await asyncio.sleep(0.01)

    rig.run(called_off_by(cancel, download_and_go_on()))
    assert rig.tokens()[-1] == ("http-200", 200, None)


def test_a_work_whose_transfer_was_cut_comes_back_as_if_it_had_not_been_tried() -> None:
    cut = LimitsAway(Reason.BACKOFF, "the server of the shared limits was out of reach for too long", retry_after_s=5.0)
    run = bench(Source("a", (A,)), good=A, errors={A: cut})
    tries = run.run_again(2)
    outcome = next(tries)
    assert (outcome.reason, outcome.meta["only_waited"], outcome.meta["retry_after_s"]) == (Reason.BACKOFF, True, 5.0)
    assert outcome.meta["explanation"].startswith("The transfer was cut: the server of the shared limits")
    run.downloads.errors.clear()
    assert next(tries).ok
