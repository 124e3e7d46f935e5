"""Hosts and sources that keep failing are left alone, over real sockets; the record and the asker learn why."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.contentdownload.polite_rig import HastyClock, HastyGates, reach

from DocsToKG.ContentDownload.api.gates import NotYet
from DocsToKG.ContentDownload.api.ports import Call, NullSink
from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import CandidateRejected, ConfigError, TransientFailure
from DocsToKG.ContentDownload.fallback.budget import WorkBudget
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits.breakers import Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.policy import UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.breaker import BreakerSettings, BreakerState
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import ManualClock
from DocsToKG.Sandbox.pdf import Paper, make_pdf

T = TypeVar("T")
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
ONCE = RetryPolicy(max_attempts=1)
PUBLIC = ["93.184.215.14"]

Mood = Callable[[str], tuple[int, dict[str, str]]]


class Site(BaseHTTPRequestHandler):
    """Every host of the test. `moods` say how each answers; requests are counted by host."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    moods: dict[str, Mood]
    counts: Counter[str]

    def do_GET(self) -> None:
        host = self.headers["Host"]
        if self.path == "/robots.txt":
            return self._send(404, b"", {})
        type(self).counts[host] += 1
        status, headers = type(self).moods.get(host, lambda path: (200, {}))(self.path)
        if status == 0:
            self.close_connection = True
            return None
        return self._send(status, _paper(self.path) if status == 200 else b"sorry", headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        kind = "application/pdf" if status == 200 else "text/plain"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return None


def _paper(path: str) -> bytes:
    paper = Paper(title=f"On {path}", doi=None, year=2020, authors=("A. Author",))
    return make_pdf(paper, size_bytes=4000, key=path)


def always(status: int, **headers: str) -> Mood:
    return lambda path: (status, {name.replace("_", "-"): value for name, value in headers.items()})


class Told(NullSink):
    """Remembers the changes of state."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str, str | None, float | None]] = []

    def breaker_transition(
        self,
        key: str,
        old_state: str,
        new_state: str,
        *,
        reason: str | None = None,
        reset_timeout_s: float | None = None,
    ) -> None:
        self.changes.append((key, old_state, new_state, reason, reset_timeout_s))


class World:
    """A loopback web, a clock that whoever waits moves, and a source's client with breakers."""

    def __init__(self, port: int, site: type[Site]) -> None:
        self.port = port
        self.site = site
        self.clock = HastyClock()
        self.told = Told()
        self.limits = HostLimits(clock=self.clock, default_host=HostLimit(4))
        self.gates = HastyGates(lambda: self.limits, self.clock)
        self.runner = asyncio.Runner()
        self.stacks: list[HttpStack] = []
        self.breakers = Breakers(clock=self.clock, settings=BreakerSettings(), sink=self.told)

    def client(self, *, retry: RetryPolicy = ONCE, robots: bool = False, wait_s: float = 5.0) -> RateRetryClient:
        stack = build_http_stack(reach(self.port), user_agent="DocsToKG/test")
        self.stacks.append(stack)
        common: dict[str, Any] = {
            "http": stack.http,
            "gates": self.gates,
            "limits": self.limits,
            "url_policy": UrlPolicy(),
            "attempts": self.told,
            "clock": self.clock,
            "random": lambda: 0.5,
            "breakers": self.breakers,
        }
        policy = SourcePolicy("unpaywall", retry=retry, wait_s=wait_s)
        rules = Robots(**common) if robots else None
        return RateRetryClient("unpaywall", robots=rules, policy=policy, **common)

    def ask(self, client: RateRetryClient, url: str, role: Role = Role.ARTIFACT, call: Call | None = None) -> Any:
        """A word for how it ended: the status, or the reason."""
        try:
            return self.run(client.fetch(url, role, call or Call("doi:10.1/x"))).status
        except (CandidateRejected, TransientFailure) as problem:
            return problem.reason

    def refused(self, client: RateRetryClient, url: str, role: Role = Role.ARTIFACT) -> TransientFailure:
        with pytest.raises(TransientFailure) as caught:
            self.run(client.fetch(url, role, Call("doi:10.1/x")))
        assert caught.value.reason == Reason.BREAKER_OPEN
        return caught.value

    def state(self, key: str) -> BreakerState:
        return self.breakers.get(key).state

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)


@pytest.fixture
def world() -> Iterator[World]:
    site = type("Here", (Site,), {"moods": {}, "counts": Counter()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    world = World(server.server_address[1], site)
    yield world
    for stack in world.stacks:
        world.run(stack.aclose())
    world.runner.close()
    server.shutdown()
    server.server_close()
    thread.join(5)


# what trips a breaker


def test_a_failing_host_is_left_alone_and_the_others_go_on(world: World) -> None:
    """FAIL-06: the number of requests a broken host gets is bounded."""
    world.site.moods["down.org"] = always(503)
    client = world.client()
    ends = Counter(world.ask(client, f"https://down.org/{n}") for n in range(60))
    assert ends == {Reason.HTTP_STATUS: 10, Reason.BREAKER_OPEN: 50}
    assert world.site.counts["down.org"] == 10
    assert [world.ask(client, f"https://well.org/{n}") for n in range(5)] == [200] * 5
    assert world.told.changes == [("host:down.org", "closed", "open", "10 of 10 failed", 30.0)]


def test_the_asker_learns_which_breaker_is_open_and_for_how_long(world: World) -> None:
    """RES-27."""
    world.site.moods["down.org"] = always(500)
    client = world.client()
    for n in range(10):
        world.ask(client, f"https://down.org/{n}")
    world.clock.advance(2)
    refusal = world.refused(client, "https://down.org/paper?api_key=secret")
    assert str(refusal) == "breaker_open: breaker of host down.org is open for 28 s"
    assert refusal.retry_after_s == pytest.approx(28)
    assert "secret" not in (refusal.url or "")


def test_a_refused_request_takes_no_token_no_slot_and_no_attempt(world: World) -> None:
    class Spent:
        attempts = 0

        def take_attempt(self, role: str = "artifact") -> None:
            self.attempts += 1

        def seconds_left(self) -> float:
            return 100.0

        def spend(self, seconds: float) -> None:
            return None

    world.breakers.get("host:down.org").force_open("test")
    budget, client = Spent(), world.client(robots=True)
    with pytest.raises(TransientFailure, match=r"breaker of host down\.org is forced open"):
        world.run(client.fetch("https://down.org/a", Role.ARTIFACT, Call("w", budget=budget)))
    assert world.gates.asked == []  # neither for robots.txt nor for itself
    assert (budget.attempts, world.site.counts["down.org"]) == (0, 0)


def test_a_breaker_that_opens_while_a_request_stands_before_its_gate_still_stops_it(world: World) -> None:
    client = world.client()
    assert world.ask(client, "https://down.org/first") == 200
    world.gates.granted = lambda: world.breakers.get("host:down.org").force_open("meanwhile")
    with pytest.raises(TransientFailure, match="forced open"):
        world.run(client.fetch("https://down.org/a", Role.ARTIFACT, Call("w")))
    assert world.site.counts["down.org"] == 1
    # The slot is free again: as many as ever may run.
    permits = [world.limits.ask(world.gates.asked[-1]) for _ in range(5)]
    assert [isinstance(permit, NotYet) for permit in permits] == [False] * 4 + [True]


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 524, 429, 0])
def test_broken_answers_and_none_at_all_trip_it(world: World, status: int) -> None:
    """0: the connection is closed without an answer. A 429 that names no time counts, since nothing else holds it."""
    world.site.moods["down.org"] = always(status)
    client = world.client()
    for n in range(10):
        world.ask(client, f"https://down.org/{n}")
    assert world.state("host:down.org") is OPEN


SHORT = {"Content-Length": "999999", "Connection": "close"}
STALLED = {"Content-Length": "999999"}


@pytest.mark.parametrize("headers", [SHORT, STALLED])
def test_bodies_that_end_short_or_stall_trip_it(world: World, headers: dict[str, str]) -> None:
    """Many a broken server sends a good head and then nothing."""
    world.breakers = Breakers(clock=world.clock, settings=BreakerSettings(min_samples=3), sink=world.told)
    world.site.moods["down.org"] = lambda path: (200, headers)
    client = world.client(wait_s=0.15)
    for n in range(3):
        assert world.ask(client, f"https://down.org/{n}") in (Reason.SIZE_MISMATCH, Reason.TIMEOUT)
    assert world.state("host:down.org") is OPEN


def test_a_test_of_the_host_is_over_with_its_body(world: World) -> None:
    """BRK-04: a head alone does not close a breaker."""
    world.site.moods["down.org"] = always(503)
    client = world.client()
    for n in range(10):
        world.ask(client, f"https://down.org/{n}")
    world.site.moods["down.org"] = lambda path: (200, SHORT)
    world.clock.advance(30)
    assert world.ask(client, "https://down.org/test") == Reason.SIZE_MISMATCH
    assert world.refused(client, "https://down.org/x").retry_after_s == pytest.approx(60)


def test_a_body_that_we_let_go_of_is_no_failure(world: World) -> None:
    world.breakers = Breakers(clock=world.clock, settings=BreakerSettings(min_samples=3), sink=world.told)
    client = world.client()
    for n in range(3):
        world.run(world.run(client.open(f"https://well.org/{n}", Role.ARTIFACT, Call("w"))).aclose())
    assert world.breakers.get("host:well.org").look().failure_rate == 0.0
    assert not world.breakers.get("host:well.org").is_idle()  # and yet each was counted


def test_our_own_time_being_up_is_no_failure_of_a_server_that_sends(world: World) -> None:
    world.breakers = Breakers(clock=world.clock, settings=BreakerSettings(min_samples=1), sink=world.told)
    world.site.moods["slow.org"] = lambda path: (200, STALLED)

    class Short:
        def take_attempt(self, role: str = "artifact") -> None:
            return None

        def seconds_left(self) -> float:
            return 0.2

        def spend(self, seconds: float) -> None:
            return None

    call = Call("doi:10.1/x", budget=Short())
    assert world.ask(world.client(), "https://slow.org/a", Role.ARTIFACT, call) == Reason.TIMEOUT
    assert world.state("host:slow.org") is CLOSED


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_an_archive_replays_speaks_for_the_archive(world: World, status: int) -> None:
    world.site.moods["web.archive.org"] = always(status, Memento_Datetime="Wed, 01 Jan 2020 00:00:00 GMT")
    client = world.client()
    for n in range(12):
        assert world.ask(client, f"https://web.archive.org/web/2020id_/{n}") == Reason.HTTP_STATUS
    assert world.state("host:web.archive.org") is CLOSED
    assert world.site.counts["web.archive.org"] == 12


def test_one_failure_that_opens_two_breakers_says_so(world: World) -> None:
    """The record has a line for each; the second names the first, so that the opening can be counted once."""
    world.site.moods["api.org"] = always(503)
    client = world.client()
    for n in range(10):
        world.ask(client, f"https://api.org/{n}", Role.METADATA)
    openings = [(key, why) for key, _, new, why, _ in world.told.changes if new == "open"]
    assert openings == [
        ("host:api.org", "10 of 10 failed"),
        ("resolver:unpaywall", "10 of 10 failed; together with host:api.org"),
    ]
    world.site.moods["other.org"] = always(503)
    for n in range(10):
        world.ask(client, f"https://other.org/{n}", Role.ARTIFACT)
    assert world.told.changes[-1][:4] == ("host:other.org", "closed", "open", "10 of 10 failed")


@pytest.mark.parametrize(("status", "rate"), [(404, 0.0), (403, 0.0), (410, 0.0), (200, 0.0), (408, 0.0), (501, 0.0)])
def test_an_answer_about_the_document_is_no_failure_of_the_host(world: World, status: int, rate: float) -> None:
    world.site.moods["busy.org"] = always(status)
    client = world.client()
    for n in range(15):
        world.ask(client, f"https://busy.org/{n}")
    result = world.breakers.get("host:busy.org").look()
    assert (result.state, result.failure_rate) == (CLOSED, rate)
    assert world.site.counts["busy.org"] == 15


def test_pages_that_are_not_there_speak_for_the_host(world: World) -> None:
    """An index that knows few of the papers is not taken for broken because of a few errors."""
    ends = iter([404] * 40 + [503] * 12 + [404] * 8)
    world.site.moods["index.org"] = lambda path: (next(ends), {})
    client = world.client()
    for n in range(60):
        world.ask(client, f"https://index.org/{n}")
    assert world.state("host:index.org") is CLOSED


def test_a_429_that_names_a_time_is_left_to_the_hold(world: World) -> None:
    world.site.moods["busy.org"] = always(429, Retry_After="2")
    client = world.client()
    for n in range(15):
        world.ask(client, f"https://busy.org/{n}")
    assert world.site.counts["busy.org"] == 15
    assert world.state("host:busy.org") is CLOSED


def test_retry_after_on_a_503_lengthens_the_open_time(world: World) -> None:
    """BRK-13."""
    answers = iter([*([always(503)] * 9), always(503, Retry_After="200")])
    world.site.moods["down.org"] = lambda path: next(answers)(path)
    client = world.client()
    for n in range(10):
        world.ask(client, f"https://down.org/{n}")
    assert world.refused(client, "https://down.org/x").retry_after_s == pytest.approx(200)


def test_a_challenge_is_not_the_hosts_ill_health(world: World) -> None:
    world.site.moods["guarded.org"] = always(503, cf_mitigated="challenge")
    client = world.client()
    assert {world.ask(client, f"https://guarded.org/{n}") for n in range(15)} == {Reason.CHALLENGE}
    assert world.state("host:guarded.org") is CLOSED


def test_a_cancelled_request_says_nothing(world: World) -> None:
    client = world.client()
    assert world.ask(client, "https://slow.org/first") == 200
    cancel = CancelToken()

    def stopped_meanwhile(path: str) -> tuple[int, dict[str, str]]:
        cancel.cancel()
        return 0, {}

    world.site.moods["slow.org"] = stopped_meanwhile
    with pytest.raises(Cancelled):
        world.ask(client, "https://slow.org/second", call=Call("w", cancel=cancel))
    assert world.breakers.get("host:slow.org").look().failure_rate == 0.0


def test_a_retry_inside_one_request_stops_when_the_breaker_opens(world: World) -> None:
    world.site.moods["down.org"] = always(503)
    client = world.client(retry=RetryPolicy(max_attempts=4))
    ends = [world.ask(client, f"https://down.org/{n}") for n in range(4)]
    assert ends == [Reason.HTTP_STATUS, Reason.HTTP_STATUS, Reason.BREAKER_OPEN, Reason.BREAKER_OPEN]
    assert world.site.counts["down.org"] == 10


# whose breaker


def test_the_source_answers_for_its_own_service_alone(world: World) -> None:
    """Files on a broken publisher's host do not speak against the index that named them."""
    world.site.moods["down.org"] = always(503)
    world.site.moods["api.org"] = always(503)
    client = world.client()
    for n in range(10):
        world.ask(client, f"https://down.org/{n}", Role.ARTIFACT)
    assert world.state("resolver:unpaywall") is CLOSED
    for n in range(10):
        world.ask(client, f"https://api.org/{n}", Role.METADATA)
    assert world.state("resolver:unpaywall") is OPEN
    assert world.ask(client, "https://mirror.org/a", Role.METADATA) == Reason.BREAKER_OPEN
    assert world.ask(client, "https://mirror.org/a", Role.ARTIFACT) == 200


def test_a_redirect_into_an_open_breaker_is_refused_at_the_hop(world: World) -> None:
    world.site.moods["doi.org"] = always(302, Location="https://down.org/paper")
    world.breakers.get("host:down.org").force_open("test")
    assert world.ask(world.client(), "https://doi.org/10.1/x") == Reason.BREAKER_OPEN
    assert (world.site.counts["doi.org"], world.site.counts["down.org"]) == (1, 0)
    assert world.state("host:doi.org") is CLOSED


def test_a_link_tried_over_tls_in_vain_is_not_held_against_a_host_that_has_none(world: World) -> None:
    """SEC: http links are asked as https first; where plain http is allowed, that finds out, no more."""
    with_trial = world.breakers.enter("https://old.org/", trial=True)
    with_trial.unanswered(Reason.TLS_ERROR)
    assert world.breakers.get("host:old.org").look().failure_rate == 0.0
    without = world.breakers.enter("https://old.org/")
    without.unanswered(Reason.TLS_ERROR)
    assert world.breakers.get("host:old.org").look().failure_rate == 1.0


# recovery


def test_a_host_that_recovers_is_tested_and_opened_to_all(world: World) -> None:
    """FAIL-06, BRK-04."""
    world.site.moods["down.org"] = always(503)
    client = world.client()
    for n in range(12):
        world.ask(client, f"https://down.org/{n}")
    world.clock.advance(30)
    assert world.ask(client, "https://down.org/test") == Reason.HTTP_STATUS
    assert world.refused(client, "https://down.org/x").retry_after_s == pytest.approx(60)
    world.site.moods["down.org"] = always(200)
    world.clock.advance(60)
    assert [world.ask(client, f"https://down.org/{n}") for n in range(12)] == [200] * 12
    assert [(old, new) for _, old, new, *_ in world.told.changes] == [
        ("closed", "open"),
        ("open", "half-open"),
        ("half-open", "open"),
        ("open", "half-open"),
        ("half-open", "closed"),
    ]


def test_of_a_crowd_only_the_tests_reach_the_host(world: World) -> None:
    """BRK-07: the tests take long, and everybody else is told when to come back."""
    arrived, go_on = threading.Semaphore(0), threading.Event()

    def slow(path: str) -> tuple[int, dict[str, str]]:
        arrived.release()
        go_on.wait(10)
        return 200, {}

    client = world.client()
    assert world.ask(client, "https://down.org/first") == 200
    breaker = world.breakers.get("host:down.org")
    breaker.force_open("outage")
    breaker.unforce("over")
    world.site.moods["down.org"] = slow

    async def crowd() -> list[int]:
        asked = [client.fetch(f"https://down.org/{n}", Role.ARTIFACT, Call("w")) for n in range(3)]
        tests = [asyncio.create_task(each) for each in asked]
        for _ in tests:
            assert await asyncio.to_thread(arrived.acquire, timeout=10)
        with pytest.raises(TransientFailure, match="half-open and its tests are running") as refusal:
            await client.fetch("https://down.org/x", Role.ARTIFACT, Call("w"))
        assert refusal.value.retry_after_s == pytest.approx(30)
        go_on.set()
        return [(await test).status for test in tests]

    assert world.run(crowd()) == [200] * 3
    assert breaker.state is CLOSED
    assert world.site.counts["down.org"] == 4


def test_robots_txt_is_an_exchange_like_any_other(world: World) -> None:
    """A host whose breaker is tested gets no more requests because its rules were forgotten."""
    breaker = world.breakers.get("host:down.org")
    assert world.ask(world.client(robots=True), "https://down.org/x") == 200
    breaker.force_open("outage")
    breaker.unforce("over")
    assert world.ask(world.client(robots=True), "https://down.org/x") == 200
    assert [breaker.check().allowed for _ in range(2)] == [True, False], "rules and page were two tests of three"
    refusal = world.refused(world.client(robots=True), "https://down.org/x")
    assert "tests are running" in str(refusal)


# the collection


def test_when_one_of_two_refuses_the_other_keeps_its_places(world: World) -> None:
    host, source = world.breakers.get("host:a.org"), world.breakers.get("resolver:unpaywall")
    host.force_open("x")
    host.unforce("x")
    source.force_open("x")
    for _ in range(5):
        with pytest.raises(TransientFailure, match="resolver unpaywall"):
            world.breakers.enter("https://a.org/", "unpaywall")
    assert [host.check().allowed for _ in range(4)] == [True, True, True, False]


def test_an_exchange_is_counted_once(world: World) -> None:
    watched = world.breakers.enter("https://a.org/")
    watched.answered(200)
    watched.raised(TransientFailure(Reason.CONN_ERROR))
    assert world.breakers.get("host:a.org").look().failure_rate == 0.0


def test_the_list_can_be_narrowed_to_a_state(world: World) -> None:
    """BRK-09."""
    world.breakers.get("host:a.org")
    world.breakers.get("host:b.org").force_open("x")
    assert [status.key for status in world.breakers.statuses()] == ["host:a.org", "host:b.org"]
    [status] = world.breakers.statuses(OPEN)
    assert (status.key, status.forced, status.retry_in_s) == ("host:b.org", True, None)


def test_a_flood_of_names_is_bounded_and_forgets_neither_open_nor_forced_breakers() -> None:
    breakers = Breakers(clock=ManualClock(), settings=BreakerSettings(min_samples=1), sink=NullSink(), most_keys=20)
    breakers.get("host:forced.org").force_closed("ours")
    breakers.enter("https://down.org/").answered(503)
    for n in range(500):
        breakers.enter(f"https://h{n}.org/").answered(200)
        assert len(breakers.statuses()) <= 20
    assert breakers.get("host:forced.org").forced
    assert breakers.get("host:down.org").state is OPEN


@pytest.mark.parametrize(
    "wrong",
    [{"failure_threshold": 1.5}, {"minimum_samples": 0}, {"open_seconds": 900}, {"half_open_tests": 0}, {"window": 1}],
)
def test_settings_without_sense_are_refused_by_name(wrong: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="breakers"):
        load_config(None, {"breakers": wrong}, environ={}, user_file=tmp_path / "none")


# a whole run


def run_settings(world: World, root: Path, **breakers: Any) -> dict[str, Any]:
    return {
        "contact": "me@example.org",
        "http": {"connect_to": {"*": f"plain://127.0.0.1:{world.port}"}, "names": {"*": PUBLIC}},
        "limits": {"rate_factor": 1000.0, "shared": False},
        "orchestrator": {"retry_backoff_seconds": 1, "jitter_seconds": 0, "max_job_attempts": 6},
        "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
        "storage": {"root_dir": str(root), "min_free_bytes": 0},
        "queue": {"path": str(root / "state" / "ledger.sqlite")},
        "hishel": {"base_path": str(root / "state" / "cache")},
        "breakers": breakers,
    }


@pytest.mark.slow
def test_works_of_a_broken_host_succeed_once_it_is_back(world: World, tmp_path: Path) -> None:
    """FAIL-06, RES-27: bounded requests while it is down, other hosts undisturbed, every paper in the end."""
    began: list[float] = []
    failed: list[str] = []
    up: list[str] = []

    def down_for_a_while(path: str) -> tuple[int, dict[str, str]]:
        """Back when it has been left alone for a while, and not before it has failed often enough for that."""
        began.append(time.monotonic())
        if len(failed) >= 5 and (up or began[-1] - began[-2] > 0.6):
            up.append(path)
            return 200, {}
        failed.append(path)
        return 503, {}

    world.site.moods["down.org"] = down_for_a_while
    settings = run_settings(world, tmp_path, minimum_samples=6, open_seconds=1.0, half_open_tests=2)
    urls = [f"https://{host}/paper-{host[0]}{n}.pdf" for n in range(12) for host in ("down.org", "well.org")]
    with DownloadRun(load_config(None, settings, environ={}, user_file=tmp_path / "none")) as run:
        result = run.process_artifacts(urls)
    assert (result.successful, result.failed, result.pending) == (24, 0, 0)
    # robots.txt was a sample, too; and those on the way when it opened arrive: four at once may be with a host.
    assert 5 <= len(failed) <= 5 + 4
    with sqlite3.connect(tmp_path / "manifest.sqlite") as db:
        changes = db.execute("SELECT key, old_state, new_state FROM breaker_transitions ORDER BY rowid").fetchall()
        passed_over = db.execute("SELECT COUNT(*) FROM fallback_attempts WHERE reason = 'breaker_open'").fetchone()[0]
    db.close()
    assert ("host:down.org", "closed", "open") in changes
    assert changes[-1] == ("host:down.org", "half-open", "closed")
    assert {key for key, *_ in changes} == {"host:down.org"}
    assert passed_over > 0


def test_switched_off_nothing_is_left_alone(world: World, tmp_path: Path) -> None:
    world.site.moods["down.org"] = always(503)
    settings = run_settings(world, tmp_path, enabled=False, minimum_samples=1)
    settings["orchestrator"]["max_job_attempts"] = 1
    urls = [f"https://down.org/{n}.pdf" for n in range(6)]
    with DownloadRun(load_config(None, settings, environ={}, user_file=tmp_path / "none")) as run:
        run.process_artifacts(urls)
    assert world.site.counts["down.org"] >= 6


@pytest.mark.parametrize("role", [Role.METADATA, Role.ARTIFACT])
def test_our_own_time_running_out_is_no_failure_of_a_host_that_is_only_slow(world: World, role: Role) -> None:
    """BRK-02: what a work has left says nothing about the server."""
    world.breakers = Breakers(clock=world.clock, settings=BreakerSettings(min_samples=1), sink=world.told)

    def slow(path: str) -> tuple[int, dict[str, str]]:
        time.sleep(0.3)
        return 200, {}

    world.site.moods["slow.org"] = slow
    client = world.client()
    for n in range(3):
        call = Call("w", budget=WorkBudget(total_s=0.1, attempts=9))
        assert world.ask(client, f"https://slow.org/{n}", role, call) == Reason.TIMEOUT
    assert [status.failure_rate for status in world.breakers.statuses()] == [0.0] * len(world.breakers.statuses())
    assert world.told.changes == []
