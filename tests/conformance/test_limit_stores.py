"""What every store of limits promises: in memory (one process), SQLite (one machine), Redis (many machines).

What only shared stores promise is in test_net_shared.py, which test_limits_redis.py runs too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contentdownload.asked_limits import gate, granted, refused

from DocsToKG.ContentDownload.api.gates import NotYet
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.state import LimitState
from DocsToKG.ContentDownload.net.limits.stores.base import LimitStore, MemoryLimitStore
from DocsToKG.ContentDownload.net.limits.stores.sqlite import SqliteLimitStore
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import ManualClock

Open = Callable[..., HostLimits]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[LimitStore]:
    opened = _opened(request, tmp_path, clock)
    yield opened
    opened.close()


def _opened(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> LimitStore:
    if request.param == "memory":
        return MemoryLimitStore()
    if request.param == "sqlite":
        return SqliteLimitStore(tmp_path / "limits.sqlite", clock=clock, boot_id="b1")
    from tests.conformance.test_limits_redis import StandingTime

    from DocsToKG.ContentDownload.net.limits.stores.redis import RedisLimitStore

    url = request.getfixturevalue("redis_url")
    return RedisLimitStore(url, clock=clock, space=uuid.uuid4().hex, soon_s=0.0, times=StandingTime())


@pytest.fixture
def limits(store: LimitStore, clock: ManualClock) -> Callable[..., HostLimits]:
    def made(slots: int = 9, rates: dict[str, tuple[Rate, ...]] | None = None, **more: object) -> HostLimits:
        return HostLimits(clock=clock, default_host=HostLimit(slots, rates or {}), store=store, **more)  # type: ignore[arg-type]

    return made


def test_a_change_sees_what_the_one_before_has_written(store: LimitStore) -> None:
    def slow(records: list[LimitState]) -> tuple[str, bool]:
        records[0].crawl_delay_s, records[1].hold_why = 4.0, "busy"
        return "done", True

    def look(records: list[LimitState]) -> tuple[tuple[float, str, float], bool]:
        return (records[0].crawl_delay_s, records[1].hold_why, records[2].crawl_delay_s), False

    assert store.change(["host:a.org", "host:b.org"], slow) == "done"
    assert store.change(["host:a.org", "host:b.org", "host:c.org"], look) == (4.0, "busy", 0.0)


def test_a_posted_change_is_seen_by_the_next(store: LimitStore) -> None:
    def hold(records: list[LimitState]) -> tuple[None, bool]:
        records[0].hold_why = "posted"
        return None, True

    store.post(["host:a.org"], hold)
    assert store.change(["host:a.org"], lambda records: (records[0].hold_why, False)) == "posted"


def test_a_change_that_fails_changes_nothing(store: LimitStore) -> None:
    def fail(records: list[LimitState]) -> tuple[None, bool]:
        raise LookupError("a fault of the caller")

    with pytest.raises(LookupError):
        store.change(["host:a.org"], fail)
    assert store.change(["host:a.org"], lambda records: (records[0] == LimitState(), False))


def test_slots_bound_what_runs_and_are_free_again(limits: Open) -> None:
    """LIM-06"""
    one = limits(slots=2)
    held = [granted(one.ask(gate())) for _ in range(2)]
    assert refused(one.ask(gate())).key == "host:a.org"
    granted(one.ask(gate("b.org"))).release()
    for permit in held:
        permit.release()
        permit.release()
    held = [granted(one.ask(gate())) for _ in range(2)]
    refused(one.ask(gate()))


def test_slots_are_shared_by_the_sources_of_a_host(limits: Open) -> None:
    one = limits(slots=1)
    held = granted(one.ask(gate(resolver="openalex")))
    refused(one.ask(gate(resolver="crossref")))
    held.release()
    granted(one.ask(gate(resolver="crossref")))


def test_an_interval_is_kept_and_a_refund_gives_it_back(limits: Open, clock: ManualClock) -> None:
    """LIM-10, LIM-13, LIM-14"""
    one = limits(rates={"*": (Rate(1, 3),)})
    first = granted(one.ask(gate()))
    assert refused(one.ask(gate())).at == pytest.approx(clock.monotonic() + 3)
    first.refund()
    first.release()
    granted(one.ask(gate())).release()
    clock.advance(2.9)
    refused(one.ask(gate()))
    clock.advance(0.2)
    granted(one.ask(gate())).release()


def test_a_rate_of_one_role_does_not_refuse_another(limits: Open) -> None:
    """LIM-13"""
    one = limits(rates={Role.LANDING: (Rate(1, 60),)})
    granted(one.ask(gate(role=Role.LANDING)))
    refused(one.ask(gate(role=Role.LANDING)))
    granted(one.ask(gate(role=Role.ARTIFACT)))


def test_a_pause_holds_every_request_to_its_host(limits: Open, clock: ManualClock) -> None:
    one = limits()
    granted(one.ask(gate())).release()
    one.hold("a.org", clock.monotonic() + 30, "Retry-After")
    wait = refused(one.ask(gate()))
    assert (wait.kind, wait.at) == ("hold", clock.monotonic() + 30)
    assert "Retry-After" in wait.why
    one.hold("a.org", clock.monotonic() + 5, "shorter")
    clock.advance(29)
    refused(one.ask(gate(role=Role.LANDING)))
    clock.advance(1.1)
    granted(one.ask(gate()))


def test_a_crawl_delay_lengthens_the_interval(limits: Open, clock: ManualClock) -> None:
    """LIM-16, ROB-05"""
    one = limits(rates={"*": (Rate(1, 1),)})
    granted(one.ask(gate())).release()
    one.set_crawl_delay("a.org", 10.0)
    clock.advance(5)
    refused(one.ask(gate()))
    clock.advance(5.1)
    granted(one.ask(gate())).release()
    clock.advance(9)
    refused(one.ask(gate()))


def test_what_a_host_announces_and_its_weakness_are_kept(limits: Open, clock: ManualClock) -> None:
    one = limits(slots=4)
    granted(one.ask(gate())).release()
    one.on_answer("a.org", 200, {"x-concurrency-limit": "1"}, 0.1)
    held = granted(one.ask(gate()))
    refused(one.ask(gate()))
    held.release()
    for _ in range(6):
        one.on_answer("b.org", 429, {}, 0.1)
        clock.advance(2)
    permits = [one.ask(gate("b.org")) for _ in range(4)]
    assert sum(not isinstance(permit, NotYet) for permit in permits) < 4


def test_a_slot_goes_from_one_request_to_the_next_while_nothing_was_posted(limits: Open, clock: ManualClock) -> None:
    """Also where the store was not looked at: what it learned meanwhile is seen by the next request."""
    one = limits(slots=1)
    for number in range(50):
        granted(one.ask(gate())).release()
        clock.advance(0.01)
        if number == 25:
            one.on_answer("a.org", 200, {"x-rate-limit-limit": "1", "x-rate-limit-interval": "5s"}, 0.1)
            granted(one.ask(gate())).release()
            break
    refused(one.ask(gate()))
    clock.advance(5.1)
    granted(one.ask(gate())).release()
