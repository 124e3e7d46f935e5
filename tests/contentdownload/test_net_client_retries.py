"""The polite client and patience: retries, budgets, waits, and being called off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from email.utils import formatdate
from typing import Any

import httpx2
import pytest
from tests.contentdownload.polite_rig import PDF, URL, Answer, Budget, Rig, Stream, given_rig, in_turn, pdf  # noqa: F401

from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.bucket import Rate
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.transport.errors import DeadlineExceeded

# retries


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_waited_for_in_full_and_holds_the_host(rig: Rig, form: str) -> None:
    """NET-05, NET-07: both forms, not cut by the longest backoff."""
    value = "30" if form == "seconds" else formatdate(rig.clock.now() + 30, usegmt=True)
    rig.site = in_turn(lambda: httpx2.Response(429, headers={"retry-after": value}), pdf)
    began = rig.clock.monotonic()
    assert rig.download(rig.client()) == PDF
    assert rig.clock.monotonic() - began >= 30
    assert rig.tokens() == [("retry", 429, "retry-after"), ("http-get", 200, None), ("http-200", 200, None)]
    assert rig.holds[0] == {"cdn.publisher.org": pytest.approx(30)}


def test_a_host_that_asks_for_a_second_gets_it_and_one_line_says_so(rig: Rig) -> None:
    """TEST-07"""
    rig.site = in_turn(lambda: httpx2.Response(429, headers={"retry-after": "1"}), pdf)
    began = rig.clock.monotonic()
    assert rig.download(rig.client()) == PDF
    assert 1.0 <= rig.clock.monotonic() - began < 1.2
    [retry] = [line for line in rig.attempts if line.status == "retry"]
    assert (retry.reason, retry.retry_after_s, retry.http_status) == ("retry-after", 1.0, 429)


def test_a_long_retry_after_goes_back_to_the_ledger(rig: Rig) -> None:
    """NET-06"""
    rig.site = lambda request: httpx2.Response(503, headers={"retry-after": "3600"})
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert (caught.value.reason, caught.value.retry_after_s) == (Reason.RETRY_AFTER, 3600.0)
    assert len(rig.requests) == 1
    assert rig.tokens() == [("http-get", 503, None)]
    assert isinstance(rig.limits.ask(Gate(URL, "other", Role.ARTIFACT)), NotYet)


def test_server_errors_are_retried_with_backoff_and_then_given_up(rig: Rig) -> None:
    """NET-03, NET-04"""
    rig.site = lambda request: httpx2.Response(503)
    with pytest.raises(TransientFailure) as caught:
        rig.fetch(rig.client(retry=RetryPolicy(max_attempts=4, base_s=1.0, cap_s=3.0, jitter_s=0.0)))
    assert caught.value.http_status == 503
    assert rig.waits == pytest.approx([1.0, 2.0, 3.0])
    assert rig.tokens() == [("retry", 503, "backoff")] * 3 + [("http-get", 503, None)]


def test_a_status_outside_the_list_is_final_at_the_first_answer(rig: Rig) -> None:
    """NET-03"""
    rig.site = lambda request: httpx2.Response(501)
    with pytest.raises(TransientFailure):
        rig.fetch(rig.client())
    assert len(rig.requests) == 1
    rig.site = lambda request: httpx2.Response(403)
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client())
    assert (caught.value.reason, caught.value.http_status) == (Reason.HTTP_STATUS, 403)


def test_a_challenge_is_not_retried(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(503, headers={"cf-mitigated": "challenge"})
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client())
    assert caught.value.reason == Reason.CHALLENGE
    assert len(rig.requests) == 1


@pytest.mark.parametrize(
    ("error", "reason"), [(httpx2.ConnectError("x"), "conn-error"), (httpx2.ReadTimeout("x"), "timeout")]
)
def test_a_broken_connection_is_retried_and_named_when_it_stays_broken(rig: Rig, error: Exception, reason: str) -> None:
    """NET-08"""
    rig.site = lambda request: error
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client())
    assert caught.value.reason == reason
    assert {attempt.elapsed_ms for attempt in rig.attempts} == {0}
    assert rig.tokens() == [("retry", None, "conn-error")] * 3 + [("download-error", None, reason)]
    assert rig.slots_are_free()


def test_every_try_asks_for_its_own_permit(rig: Rig) -> None:
    """LIM-11"""
    rig.limits = HostLimits(clock=rig.clock, default_host=HostLimit(1))
    rig.site = in_turn(lambda: httpx2.Response(500), lambda: httpx2.ReadError("cut"), pdf)
    rig.download(rig.client())
    assert len(rig.gates) == 3


def test_retries_spread_out(rig: Rig) -> None:
    """NET-18: the wait is longer than asked by a random part."""
    rig.site = in_turn(lambda: httpx2.Response(429, headers={"retry-after": "2"}), pdf)
    rig.download(rig.client(retry=RetryPolicy(jitter_s=1.0)))
    assert rig.waits[0] == pytest.approx(2.5)


# budgets and cancelling


def test_tries_end_with_the_budget(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(500)
    with pytest.raises(CandidateRejected) as caught:
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(2))))
    assert caught.value.reason == Reason.BUDGET_EXHAUSTED
    assert len(rig.requests) == 2


def test_no_request_starts_without_time(rig: Rig) -> None:
    with pytest.raises(CandidateRejected) as caught:
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(9, seconds=0.0))))
    assert caught.value.reason == Reason.BUDGET_EXHAUSTED
    assert rig.requests == []


def test_a_host_that_is_held_back_costs_no_attempt(rig: Rig) -> None:
    """RES-26: only what is sent is counted; a pause longer than we wait for is none of it."""
    budget = Budget(3)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 500, "Retry-After")

    rig.waiting.longest_s = 60.0
    for number in range(4):
        with pytest.raises(TransientFailure) as caught:
            rig.open(rig.client(), f"{URL}?{number}", Call("w", budget=budget))
        assert (caught.value.reason, caught.value.retry_after_s) == (Reason.RETRY_AFTER, 500.0)
    assert (budget.attempts, rig.requests) == (3, [])


def test_a_budget_that_is_used_up_gives_the_place_back(rig: Rig) -> None:
    rig.limits = HostLimits(clock=rig.clock, default_host=HostLimit(1, {"*": (Rate(1, 30),)}))
    with pytest.raises(CandidateRejected):
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(0))))
    rig.site = lambda request: pdf()
    rig.download(rig.client())
    assert rig.rate_waits == []


def test_time_is_spent_in_exchanges_and_not_while_parked(rig: Rig) -> None:
    def slow(answer: Callable[[], Answer]) -> Callable[[], Answer]:
        def site() -> Answer:
            rig.clock.advance(3)
            return answer()

        return site

    rig.site = in_turn(slow(lambda: httpx2.Response(429, headers={"retry-after": "20"})), slow(pdf))
    budget = Budget(9)
    rig.close(rig.open(rig.client(), call=Call("w", budget=budget)))
    assert budget.left == pytest.approx(94.0)


@pytest.mark.parametrize(
    ("role", "policy_s", "shared_s", "budget_s", "wait_s", "whole_s"),
    [
        (Role.METADATA, 10.0, 60.0, None, 10.0, 10.0),
        (Role.LANDING, 100.0, 60.0, None, 100.0, 100.0),
        (Role.ARTIFACT, 10.0, 60.0, None, 10.0, 900.0),
        (Role.ARTIFACT, 100.0, 7.0, None, 100.0, 900.0),
        (Role.METADATA, 10.0, 60.0, 4.0, 10.0, 4.0),
        (Role.ARTIFACT, 10.0, 60.0, 40.0, 10.0, 40.0),
    ],
)
def test_a_request_carries_the_wait_of_its_policy_and_the_time_of_its_role(
    rig: Rig, role: Role, policy_s: float, shared_s: float, budget_s: float | None, wait_s: float, whole_s: float
) -> None:
    """CFG-14, CFG-23, NET-16: the policy wins over the shared client's wait; only a connection takes the shorter."""
    rig.site = lambda request: pdf()
    client = rig.client(timeout_s=policy_s, timeout_read_s=shared_s)
    budget = None if budget_s is None else Budget(9, budget_s)
    before = time.monotonic()
    rig.run(client.fetch(URL, role, Call("w", budget=budget)))
    after = time.monotonic()
    [request] = rig.requests
    assert request.extensions["timeout"]["read"] == wait_s
    assert request.extensions["timeout"]["connect"] == min(policy_s, 10.0)
    assert before <= request.extensions["deadline"] - whole_s <= after


def test_a_timeout_that_used_up_the_budget_is_still_a_timeout(rig: Rig) -> None:
    budget = Budget(9, 1.0)

    def site(request: httpx2.Request) -> Answer:
        rig.clock.advance(1.0)
        return DeadlineExceeded("over")

    rig.site = site
    with pytest.raises(TransientFailure) as caught:
        rig.run(rig.client().fetch(URL, Role.METADATA, Call("w", budget=budget)))
    assert caught.value.reason == Reason.TIMEOUT
    assert len(rig.requests) == 1


def test_waits_for_a_rate_an_interval_or_a_pause_are_recorded(rig: Rig) -> None:
    """LIM-12, CAT-11: with the work, the source and the role; a gate that is open leaves nothing."""
    host_rate = HostLimit(2, {"*": (Rate(1, 3),)})
    rig.limits = HostLimits(clock=rig.clock, default_host=host_rate, resolver_rates={"unpaywall": Rate(1, 10)})
    rig.site = lambda request: httpx2.Response(200)
    client = rig.client()
    rig.fetch(client)
    assert rig.rate_waits == []
    rig.fetch(client)
    about = {"work_id": "doi:10.1/x", "resolver": "unpaywall", "role": "metadata"}
    assert rig.rate_waits == [("resolver:unpaywall", 10_000, "rate", about)]
    rig.clock.advance(10)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 7, "Retry-After")
    rig.fetch(client, role=Role.LANDING)
    assert rig.rate_waits[1:] == [("host:cdn.publisher.org", 7_000, "hold", about | {"role": "landing"})]
    rig.limits.set_crawl_delay("cdn.publisher.org", 20.0)
    rig.fetch(client)
    assert rig.rate_waits[2:] == [("host:cdn.publisher.org", 20_000, "interval", about)]


def test_a_pause_asked_for_between_grant_and_sending_is_recorded(rig: Rig) -> None:
    """LIM-12"""
    rig.site = lambda request: httpx2.Response(200)

    def hold() -> None:
        rig.waiting.granted = lambda: None
        rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 7, "Retry-After")

    rig.waiting.granted = hold
    rig.fetch(rig.client())
    assert len(rig.gates) == 2
    assert [(key, delay_ms) for key, delay_ms, *_ in rig.rate_waits] == [("host:cdn.publisher.org", 7_000)]


def test_a_wait_of_a_millisecond_is_not_worth_a_line(rig: Rig) -> None:
    rig.site = lambda request: httpx2.Response(200)
    rig.limits.hold("cdn.publisher.org", rig.clock.monotonic() + 0.001, "Retry-After")
    rig.fetch(rig.client())
    assert rig.rate_waits == []


@pytest.mark.parametrize(("asked_s", "left_s"), [(20, 10.0), (61, 10_000.0)])
def test_a_retry_after_beyond_the_budget_or_the_cap_is_not_waited_for(rig: Rig, asked_s: int, left_s: float) -> None:
    """NET-06"""
    rig.site = lambda request: httpx2.Response(429, headers={"retry-after": str(asked_s)})
    with pytest.raises(TransientFailure):
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", budget=Budget(9, seconds=left_s))))
    assert rig.waits == []


def test_a_cancelled_call_sends_nothing(rig: Rig) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        rig.run(rig.client().open(URL, Role.ARTIFACT, Call("w", cancel)))
    assert rig.requests == []


def test_cancelling_during_the_wait_for_the_gate_gives_the_permit_back(rig: Rig) -> None:
    cancel = CancelToken()
    rig.waiting.granted = cancel.cancel
    with pytest.raises(Cancelled):
        rig.open(rig.client(), call=Call("w", cancel))
    assert len(rig.gates) == 1
    assert rig.slots_are_free()


async def cancelled_once(begun: asyncio.Event, work: Coroutine[Any, Any, object]) -> None:
    task = asyncio.create_task(work)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_task_that_is_cancelled_between_two_tries_keeps_no_slot(rig: Rig) -> None:
    rig.site = in_turn(lambda: httpx2.Response(500))
    sleeps = rig.clock.stands = asyncio.Event()
    rig.run(cancelled_once(sleeps, rig.client().open(URL, Role.ARTIFACT, Call("w"))))
    assert len(rig.requests) == 1
    assert rig.slots_are_free()


def test_a_task_that_is_cancelled_inside_a_body_gives_its_slot_back_when_it_is_closed(rig: Rig) -> None:
    began = asyncio.Event()

    class Stalled(Stream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield PDF[:10]
            began.set()
            await asyncio.sleep(60)

    stream = Stalled([])
    rig.site = lambda request: httpx2.Response(200, stream=stream)
    opened = rig.open(rig.client())

    async def read() -> None:
        try:
            async for _ in opened.chunks():
                pass
        finally:
            await opened.aclose()

    rig.run(cancelled_once(began, read()))
    assert stream.closed
    assert rig.slots_are_free()


def test_the_slot_is_held_until_the_body_is_closed(rig: Rig) -> None:
    rig.site = lambda request: pdf()
    opened = rig.open(rig.client())
    assert not rig.slots_are_free()
    rig.close(opened)
    rig.close(opened)
    assert rig.slots_are_free()
