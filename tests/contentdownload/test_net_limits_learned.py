"""What a host tells about its limits makes us slower, never faster, and is forgotten in time."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.asked_limits import gate

from DocsToKG.ContentDownload.api.gates import NotYet
from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.bootstrap import open_parts
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.net.build import build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient
from DocsToKG.ContentDownload.net.limits.adaptive import AdaptiveThrottle, Announced, LatencyWatch, announced
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.policy import SourcePolicy, UrlPolicy
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import ManualClock

NOW = 1_750_000_000.0
CROSSREF = {"x-rate-limit-limit": "5", "x-rate-limit-interval": "1s", "x-concurrency-limit": "1"}


def scale_of(limits: HostLimits, host: str = "a.org") -> float:
    """The share of its configured rates that the host is asked at now."""
    return limits.statuses([host])[host].limits["rateScale"]


def limits_at(clock: ManualClock, rate: str = "10/second", *, slots: int = 9, **more) -> HostLimits:
    return HostLimits(clock=clock, default_host=HostLimit(slots, {"*": (Rate.parse(rate),)}), **more)


def wait_s(limits: HostLimits, clock: ManualClock, host: str = "a.org") -> float:
    """Seconds from one grant to the next."""
    while isinstance(answer := limits.ask(gate(host)), NotYet):
        assert answer.at is not None
        clock.advance(max(1e-6, answer.at - clock.monotonic()))
    answer.release()
    answer = limits.ask(gate(host))
    assert isinstance(answer, NotYet)
    assert answer.at is not None
    return answer.at - clock.monotonic()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (CROSSREF, Announced(Rate(5, 1), 1)),
        ({"x-rate-limit-limit": "50", "x-rate-limit-interval": "2m"}, Announced(Rate(50, 120))),
        ({"ratelimit-policy": "100;w=60"}, Announced(Rate(100, 60))),
        ({"ratelimit-policy": '"burst";q=100;w=60, "daily";q=1000;w=86400'}, Announced(Rate(1000, 86400))),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"}, Announced(pause_s=7)),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 90)}, Announced(pause_s=90)),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str((int(NOW) + 90) * 1000)}, Announced(pause_s=90)),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "999999"}, Announced(pause_s=3600)),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "5"}, Announced(pause_s=5)),
        ({"ratelimit": "limit=10, remaining=0, reset=4"}, Announced(pause_s=4)),
        ({"ratelimit": '"default";r=0;t=12'}, Announced(pause_s=12)),
    ],
)
def test_headers_of_several_kinds_are_understood(headers: dict[str, str], expected: Announced) -> None:
    assert announced(headers, now=NOW) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-limit": "100", "x-ratelimit-remaining": "99", "x-ratelimit-reset": "1"},
        {"x-ratelimit-remaining": "0"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) - 5)},
        {"x-rate-limit-limit": "0", "x-rate-limit-interval": "1s"},
        {"x-rate-limit-limit": "5", "x-rate-limit-interval": "0s"},
        {"x-rate-limit-limit": "nan", "x-rate-limit-interval": "inf", "x-concurrency-limit": "-4"},
        {"ratelimit-policy": "1;w=0"},
        {"ratelimit": '"default";r=3;t=12'},
    ],
)
def test_nonsense_and_plenty_teach_nothing(headers: dict[str, str]) -> None:
    assert announced(headers, now=NOW) is None


HEADER_NAMES = (
    "x-rate-limit-limit",
    "x-rate-limit-interval",
    "x-concurrency-limit",
    "ratelimit",
    "ratelimit-policy",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
)


@pytest.mark.slow
@given(headers=st.dictionaries(st.sampled_from(HEADER_NAMES), st.text(max_size=60) | st.from_regex(r"[0-9=;wqrt,s]*")))
def test_whatever_a_header_says_the_lesson_is_bounded(headers: dict[str, str]) -> None:
    found = announced(headers, now=NOW) or Announced()
    assert found.pause_s is None or 0 < found.pause_s <= 3600
    assert found.at_once is None or 1 <= found.at_once <= 1000
    assert found.rate is None or 0 < found.rate.per_s <= 86400


def test_an_announced_rate_holds_at_once_and_only_downwards(clock: ManualClock) -> None:
    limits = limits_at(clock, "10/second")
    limits.on_answer("a.org", 200, CROSSREF, 0.1)
    assert wait_s(limits, clock) == pytest.approx(0.2)
    limits.on_answer("b.org", 200, {"x-rate-limit-limit": "500", "x-rate-limit-interval": "1s"}, 0.1)
    assert wait_s(limits, clock, "b.org") == pytest.approx(0.1)


def test_an_announced_number_at_once_holds_at_once_and_only_downwards(clock: ManualClock) -> None:
    """EXT-04"""
    limits = limits_at(clock, "1000000/second", slots=2)
    limits.on_answer("a.org", 200, {"x-concurrency-limit": "1"}, 0.1)
    limits.on_answer("b.org", 200, {"x-concurrency-limit": "50"}, 0.1)
    for host, most in (("a.org", 1), ("b.org", 2)):
        answers = []
        for _ in range(4):
            clock.advance(0.1)
            answers.append(limits.ask(gate(host)))
        assert sum(isinstance(answer, HostPermit) for answer in answers) == most


def test_what_was_announced_is_believed_for_an_hour(clock: ManualClock) -> None:
    limits = limits_at(clock, "10/second")
    limits.on_answer("a.org", 200, CROSSREF, 0.1)
    clock.advance(3599)
    assert wait_s(limits, clock) == pytest.approx(0.2)
    clock.advance(2)
    assert wait_s(limits, clock) == pytest.approx(0.1)


def test_a_host_with_nothing_left_is_left_alone_until_it_has(clock: ManualClock) -> None:
    limits = limits_at(clock)
    limits.on_answer("a.org", 200, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "45"}, 0.1)
    answer = limits.ask(gate())
    assert isinstance(answer, NotYet)
    assert answer.at == clock.monotonic() + 45
    assert "nothing is left" in answer.why


def overwhelm(limits: HostLimits, clock: ManualClock, host: str = "a.org", times: int = 3) -> None:
    """Refused again and again, each time after a while."""
    for _ in range(times):
        limits.on_answer(host, 429, {}, 0.1)
        clock.advance(2)


@pytest.mark.parametrize("status", [429, 503])
def test_an_overwhelmed_host_is_asked_half_as_often_down_to_a_floor(clock: ManualClock, status: int) -> None:
    """EXT-04"""
    limits = limits_at(clock)
    shares = []
    for _ in range(6):
        limits.on_answer("a.org", status, {}, 0.1)
        shares.append(scale_of(limits))
        clock.advance(2)
    assert shares == [1.0, 0.75, 0.375, 0.188, 0.1, 0.1]
    assert wait_s(limits, clock) == pytest.approx(1.0)
    assert wait_s(limits, clock, "b.org") == pytest.approx(0.1)


def test_an_overwhelmed_host_gets_fewer_connections_and_has_them_back_later(clock: ManualClock) -> None:
    """EXT-04: the concurrency drops with the rate, to one at least, and recovers with good answers."""
    limits = limits_at(clock, "1000000/second", slots=4)

    def at_once() -> int:
        answers = []
        for _ in range(6):
            clock.advance(0.1)
            answers.append(limits.ask(gate("a.org")))
        permits = [answer for answer in answers if isinstance(answer, HostPermit)]
        for permit in permits:
            permit.release()
        return len(permits)

    seen = [at_once()]
    for _ in range(5):
        clock.advance(2)
        limits.on_answer("a.org", 429, {}, 0.1)
        seen.append(at_once())
    assert seen == [4, 4, 3, 2, 1, 1]
    for _ in range(600):
        clock.advance(1)
        limits.on_answer("a.org", 200, {}, 0.1)
    assert at_once() == 4


def test_requests_refused_together_count_once(clock: ManualClock) -> None:
    limits = limits_at(clock)
    for share in (1.0, 0.75):
        for _ in range(8):
            limits.on_answer("a.org", 429, {}, 0.1)
        assert scale_of(limits) == share
        clock.advance(2)


def test_one_refusal_among_many_answers_changes_nothing(clock: ManualClock) -> None:
    """Some services refuse one request in a hundred however slowly they are asked; the pause they ask for is enough."""
    limits = limits_at(clock)
    for _ in range(10):
        limits.on_answer("a.org", 429, {}, 0.1)
        for _ in range(20):
            clock.advance(0.1)
            limits.on_answer("a.org", 200, {}, 0.1)
        assert scale_of(limits) == 1.0


def test_the_rate_comes_back_in_small_steps_with_good_answers(clock: ManualClock) -> None:
    """EXT-04"""
    limits = limits_at(clock)
    overwhelm(limits, clock)
    for _ in range(19):
        limits.on_answer("a.org", 200, {}, 0.1)
    assert scale_of(limits) == 0.375
    limits.on_answer("a.org", 200, {}, 0.1)
    assert scale_of(limits) == pytest.approx(0.475)
    clock.advance(10)
    limits.on_answer("a.org", 200, {}, 0.1)
    assert scale_of(limits) == pytest.approx(0.575)
    for _ in range(400):
        limits.on_answer("a.org", 200, {}, 0.1)
    assert scale_of(limits) == 1.0


@pytest.mark.parametrize("status", [400, 403, 404, 500, 502])
def test_error_answers_never_raise_the_rate(clock: ManualClock, status: int) -> None:
    limits = limits_at(clock)
    overwhelm(limits, clock)
    for _ in range(100):
        clock.advance(1)
        limits.on_answer("a.org", status, {}, 0.1)
    assert scale_of(limits) == 0.375


def test_a_host_that_becomes_slow_is_asked_less(clock: ManualClock) -> None:
    limits = limits_at(clock)
    for _ in range(20):
        limits.on_answer("a.org", 200, {}, 0.3)
    for _ in range(19):
        limits.on_answer("a.org", 200, {}, 1.2)
    assert scale_of(limits) == 1.0
    limits.on_answer("a.org", 200, {}, 1.2)
    assert scale_of(limits) == 0.5


@pytest.mark.parametrize("latencies_s", [(0.1, 0.9), (1.0, 2.9), (3.0, 3.0)])
def test_fast_enough_or_always_slow_is_no_reason(latencies_s: tuple[float, float]) -> None:
    pulse = LatencyWatch()
    beats = [pulse.observe(200, latency, 0.0) for latency in latencies_s for _ in range(20)]
    assert min(beats) == 0


@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_a_rate_comes_back_as_fast_as_the_world_runs(factor: float) -> None:
    pulse = LatencyWatch(factor)
    assert pulse.observe(429, 0.1, 100.0) == 0
    assert pulse.observe(200, 0.1, 100.0 + 9.9 / factor) == 0
    assert pulse.observe(200, 0.1, 100.0 + 10.1 / factor) == 1


def test_a_long_allowance_is_reduced_too(clock: ManualClock) -> None:
    limits = limits_at(clock, "4/hour")
    overwhelm(limits, clock, times=2)
    limits.on_answer("a.org", 503, {}, 0.1)
    answer = limits.ask(gate())
    assert isinstance(answer, HostPermit)
    answer.release()
    assert isinstance(limits.ask(gate()), NotYet)


def test_adapting_can_be_tuned_and_switched_off(clock: ManualClock) -> None:
    off = limits_at(clock, adaptive=AdaptiveThrottle(enabled=False))
    overwhelm(off, clock)
    assert scale_of(off) == 1.0
    tuned = limits_at(clock, adaptive=AdaptiveThrottle(decrease=0.8, floor=0.7))
    overwhelm(tuned, clock, times=2)
    assert scale_of(tuned) == 0.9
    overwhelm(tuned, clock, times=2)
    assert scale_of(tuned) == 0.7


def test_a_group_caps_its_hosts_together_beside_their_own_limits(clock: ManualClock) -> None:
    limits = limits_at(clock, slots=1, groups={"*.example.org": HostLimit(2, {"*": (Rate.parse("1/second"),)})})
    first = limits.ask(gate("a.example.org"))
    assert isinstance(first, HostPermit)
    spaced = limits.ask(gate("b.example.org"))
    assert isinstance(spaced, NotYet)
    assert (spaced.key, spaced.at) == ("group:*.example.org", clock.monotonic() + 1.0)
    clock.advance(1.0)
    assert isinstance(own := limits.ask(gate("a.example.org")), NotYet)
    assert own.key == "host:a.example.org"
    assert isinstance(limits.ask(gate("example.org")), HostPermit)
    clock.advance(1.0)
    full = limits.ask(gate("b.c.example.org"))
    assert isinstance(full, NotYet)
    assert (full.key, full.at) == ("group:*.example.org", None)
    assert isinstance(limits.ask(gate("notexample.org")), HostPermit)
    told: list[str] = []
    limits.on_free(told.append)
    first.release()
    assert "group:*.example.org" in told
    assert isinstance(limits.ask(gate("b.c.example.org")), HostPermit)


def test_a_host_may_be_in_several_groups(clock: ManualClock) -> None:
    groups = {"*.org": HostLimit(1), "*.a.org": HostLimit(5)}
    limits = limits_at(clock, groups=groups)
    assert isinstance(limits.ask(gate("x.a.org")), HostPermit)
    wait = limits.ask(gate("y.b.org"))
    assert isinstance(wait, NotYet)
    assert wait.key == "group:*.org"


def test_a_second_and_a_day_hold_together(clock: ManualClock) -> None:
    """Multi-window rates: ten a second, and a hundred a day."""
    both = HostLimit(9, {"*": (Rate.parse("10/second"), Rate.parse("100/day"))})
    limits = HostLimits(clock=clock, default_host=both, resolver_rates={})
    grants, began = 0, clock.monotonic()
    while clock.monotonic() - began < 60:
        answer = limits.ask(gate())
        if isinstance(answer, HostPermit):
            answer.release()
            grants += 1
            assert grants <= (clock.monotonic() - began) * 10 + 1.001
        clock.advance(0.05)
    assert grants == 100


def test_a_client_tells_what_the_network_said_and_not_what_the_cache_repeats(
    clock: ManualClock, tmp_path: Path
) -> None:
    sent: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(str(request.url))
        return httpx2.Response(200, headers={**CROSSREF, "cache-control": "max-age=600"}, text="{}")

    stack = build_http_stack(
        httpx2.MockTransport(answer), user_agent="x", cache=CacheSettings(tmp_path), open_cas=lambda sha: None
    )
    limits = limits_at(clock, "10/second")
    heard: list[int] = []
    listen = limits.on_answer
    limits.on_answer = lambda host, status, *more: (heard.append(status), listen(host, status, *more))[1]  # type: ignore[method-assign]
    client = RateRetryClient(
        "crossref",
        http=stack.http,
        cache=stack.cache,
        gates=PermitQueues(limits, clock=clock),
        limits=limits,
        robots=None,
        url_policy=UrlPolicy(),
        policy=SourcePolicy("crossref"),
        attempts=NullSink(),
        clock=clock,
        random=lambda: 0.0,
    )

    async def ask() -> None:
        async with contextlib.aclosing(stack):
            for _ in range(3):
                assert (await client.fetch("https://a.org/works", Role.METADATA, Call("w"))).status == 200

    asyncio.run(ask())
    assert (len(sent), heard) == (1, [200])
    clock.advance(1)
    assert wait_s(limits, clock) == pytest.approx(0.2)


def test_every_knob_of_the_limits_reaches_them(tmp_path: Path) -> None:
    knobs = {
        "groups": {"*.Example.org": {"max_concurrent": 1}},
        "adaptive": {"decrease": 0.25},
        "store_path": str(tmp_path / "shared" / "limits.sqlite"),
    }
    where = {"telemetry": {"manifest_path": str(tmp_path / "manifest.jsonl")}, "storage": {"root_dir": str(tmp_path)}}
    paths = {"hishel": {"base_path": str(tmp_path / "cache")}, "queue": {"path": str(tmp_path / "ledger.sqlite")}}
    given = {"contact": "me@example.org", "limits": knobs, **where, **paths}
    with open_parts(load_config(None, given, environ={}, user_file=tmp_path / "none")) as parts:
        limits = parts.network.limits
        assert (tmp_path / "shared" / "limits.sqlite").exists()
        assert limits.notes == ()
        permit = limits.ask(gate("a.example.org"))
        assert isinstance(permit, HostPermit)
        full = limits.ask(gate("b.example.org"))
        assert isinstance(full, NotYet)
        assert full.key == "group:*.example.org"
        permit.release()
        for _ in range(20):
            limits.on_answer("c.org", 200, {}, 0.1)
        for _ in range(20):
            limits.on_answer("c.org", 200, {}, 5.0)
        assert scale_of(limits, "c.org") == 0.25
    given["limits"] = {"shared": False}
    with open_parts(load_config(None, given, environ={}, user_file=tmp_path / "none")) as parts:
        assert parts.network.limits.notes == ("limits held for this process only: limits.shared is off",)
