"""May a robot ask for this URL? robots.txt by RFC 9309, fetched once per origin and shared by all.

Knows protego, the RFC's reading of status codes, and how long an answer is kept. Fetching is an exchange like
any other: with a permit, redirects followed hop by hop. Promises: nothing is allowed while the rules could not be
read (429, 5xx, no answer), and one origin is fetched by one asker at a time while the others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol, TypeAlias, cast

import httpx2
from protego import Protego

from DocsToKG.ContentDownload.api.gates import Gates
from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Reason, Role, Verb
from DocsToKG.ContentDownload.errors import ContentDownloadError, LimitsAway
from DocsToKG.ContentDownload.net.cache import UNCACHED
from DocsToKG.ContentDownload.net.cutting import unless_cut
from DocsToKG.ContentDownload.net.faults import WIRE_ERRORS_OR_CUT, asked_pause_s, cut_off, describe, fault_of
from DocsToKG.ContentDownload.net.limits.admission import Admission
from DocsToKG.ContentDownload.net.limits.breakers import BreakerReport, Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.retry_after import RetryAfterRules
from DocsToKG.ContentDownload.net.policy import UrlPolicy, role_headers
from DocsToKG.ContentDownload.net.retries import Retries
from DocsToKG.ContentDownload.net.robots.parse import PRODUCT, allows, host_of_origin, names_of, plain_rules
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import finished
from DocsToKG.core.urls import BadUrl, host_key, join_url, mask_url
from DocsToKG.core.values import lean_dataclass
from DocsToKG.transport.client import PlainAsyncClient

log = logging.getLogger(__name__)

SOURCE = "robots"
_LARGEST_BYTES = 500 * 1024
_SHORT_BYTES = 16 * 1024
_MOST_HOPS = 5
_MOST_ORIGINS = 10_000
MOST_BYTES = 96 * 1024 * 1024
# What a parsed rule takes in memory, measured: one with a wildcard is kept as a pattern too.
_PLAIN_RULE_BYTES = 350
_WILD_RULE_BYTES = 800
_FACTS = frozenset({Reason.SECURITY_POLICY, Reason.TLS_ERROR})
# How soon to look again whether another node has read the rules.
_ANOTHER_READS_S = 0.2
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

State: TypeAlias = Literal["allowed", "exempt", "blocked", "timeout", "unreachable", "parse error"]


@lean_dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """`transient_s` is set when the rules could not be read: seconds until it is worth asking again.

    `cause` then says what broke, when there was no answer at all.
    """

    allowed: bool
    crawl_delay_s: float | None
    state: State
    transient_s: float | None = None
    cause: Reason | None = None


_EXEMPT = RobotsVerdict(True, None, "exempt")


@dataclass(frozen=True, slots=True)
class _Rules:
    """What is known of one origin until `expires` (monotonic): `verdict` on whatever `parsed` does not forbid."""

    verdict: RobotsVerdict
    expires: float
    parsed: Protego | None = None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer to a request for robots.txt; `status` is None when there was none."""

    status: int | None
    state: State = "unreachable"
    body: bytes = b""
    location: str = ""
    retry_after_s: float | None = None
    cause: Reason | None = None
    final: ContentDownloadError | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def worth_another_try(self) -> bool:
        return self.status is None or self.status >= 500


class CachedAnswer(NamedTuple):
    """What another must know of an answer to come to the same rules."""

    status: int | None
    state: str
    body: bytes
    cause: str | None


class SharedRobotsCache(Protocol):
    """Where machines keep the answers they got, so that each origin is asked once for all."""

    def find(self, origin: str) -> tuple[CachedAnswer, float] | None:
        """The answer kept, and for how many seconds it is good."""

    def claim(self, origin: str) -> bool:
        """May this node fetch it?"""

    def put(self, origin: str, kept: CachedAnswer, keep_s: float) -> None: ...

    def let_go(self, origin: str) -> None:
        """Fetched or not, others need not wait any more."""


class Robots:
    """The rules of every origin met."""

    def __init__(
        self,
        *,
        http: PlainAsyncClient,
        gates: Gates,
        limits: HostLimits,
        url_policy: UrlPolicy,
        attempts: AttemptSink,
        clock: Clock,
        random: Callable[[], float],
        keep_s: float = 86400.0,
        deny_s: float = 300.0,
        timeout_s: float = 20.0,
        crawl_delay_cap_s: float = 30.0,
        retry: RetryPolicy | None = None,
        breakers: Breakers | None = None,
        retry_after_rules: RetryAfterRules | None = None,
        exempt: Collection[str] = (),
        shared_cache: SharedRobotsCache | None = None,
    ) -> None:
        """`exempt` are hosts, or hosts with the beginning of a path, that are published for programs."""
        self._http = http
        self._limits = limits
        self._url_policy = url_policy
        self._attempts = attempts
        self._clock = clock
        self._headers = role_headers(Role.METADATA, http.headers["user-agent"], {"accept": "text/plain, */*;q=0.5"})
        self._names = names_of(http.headers["user-agent"])
        self._keep_s = keep_s
        self._deny_s = deny_s
        self._timeout_s = timeout_s
        self._crawl_delay_cap_s = crawl_delay_cap_s
        self._retries = Retries(retry or RetryPolicy(max_attempts=2, base_s=0.5), random=random)
        self._admission = Admission(gates=gates, clock=clock, attempts=attempts, breakers=breakers)
        self._retry_after_rules = retry_after_rules or RetryAfterRules()
        self._exempt = tuple(place if "/" in place else f"{place}/" for place in map(str.lower, exempt))
        self._shared_cache = shared_cache
        self._lock = threading.Lock()
        self._known: dict[str, _Rules] = {}
        self._kept_bytes = 0
        self._fetching: dict[str, asyncio.Event] = {}  # set when its rules have been read
        self.decisions: Counter[str] = Counter()  # how often each state was the answer

    async def check(self, url: str, call: Call) -> RobotsVerdict:
        """What the origin of `url` says about it; fetches its rules when they are not known."""
        verdict = self.look(url)
        if verdict is None:
            verdict = self._judged(url, _origin(url), (await self._rules_of(_origin(url), call)))
        return verdict

    def look(self, url: str) -> RobotsVerdict | None:
        """What `check` would say, as far as it is known."""
        origin = _origin(url)
        if self._exempt and url.partition("://")[2].partition("?")[0].startswith(self._exempt):
            self._tell(origin, _EXEMPT.state)
            return _EXEMPT
        rules = self._known.get(origin)
        if rules is None or self._clock.monotonic() >= rules.expires:
            return None
        return self._judged(url, origin, rules)

    def excuse(self, url: str) -> None:
        """Note that `url` is asked for without a look at the rules, because it is published for programs."""
        self._tell(_origin(url), _EXEMPT.state)

    def _tell(self, origin: str, state: State) -> None:
        with self._lock:
            self.decisions[state] += 1
        level = logging.DEBUG if state in ("allowed", "exempt") else logging.INFO
        if log.isEnabledFor(level):
            log.log(level, "robots.txt of %s: %s", origin, state)

    def _judged(self, url: str, origin: str, rules: _Rules) -> RobotsVerdict:
        verdict = rules.verdict
        if verdict.transient_s is not None:
            verdict = replace(verdict, transient_s=max(0.0, rules.expires - self._clock.monotonic()))
        elif rules.parsed is not None and not allows(rules.parsed, url):
            verdict = RobotsVerdict(False, verdict.crawl_delay_s, "blocked")
        self._tell(origin, verdict.state)
        return verdict

    async def _rules_of(self, origin: str, call: Call) -> _Rules:
        while True:
            call.cancel.raise_if_cancelled()
            rules = self._known.get(origin)
            if rules is not None and self._clock.monotonic() < rules.expires:
                return rules
            being_read = self._fetching.get(origin)
            if being_read is None:
                return await self._learn(origin, call)
            with contextlib.nullcontext() if call.waits is None else call.waits.asleep():
                await being_read.wait()

    async def _learn(self, origin: str, call: Call) -> _Rules:
        read = self._fetching[origin] = asyncio.Event()
        try:
            if self._shared_cache is None:
                rules = await self._parsed(origin, await self._fetch(origin, call))
            else:
                rules = await self._learn_together(origin, call, self._shared_cache)
            self._keep(origin, rules)
        finally:
            # Also when the asker was called off: the next one in line takes over.
            del self._fetching[origin]
            read.set()
        if rules.verdict.crawl_delay_s:
            self._limits.set_crawl_delay(host_key(origin), rules.verdict.crawl_delay_s)
        return rules

    async def _learn_together(self, origin: str, call: Call, shared_cache: SharedRobotsCache) -> _Rules:
        """What one machine has read is good for all; one reads while the others wait."""
        # The server may take long to answer, which must not hold up the event loop.
        while (found := await asyncio.to_thread(shared_cache.find, origin)) is None:
            call.cancel.raise_if_cancelled()
            if await finished(asyncio.to_thread(shared_cache.claim, origin)):
                try:
                    _give_way_to_cancel()
                    answer = await self._fetch(origin, call)
                    rules = await self._parsed(origin, answer)
                    kept = CachedAnswer(answer.status, answer.state, answer.body, answer.cause)
                    await asyncio.to_thread(shared_cache.put, origin, kept, rules.expires - self._clock.monotonic())
                    return rules
                finally:
                    await finished(asyncio.to_thread(shared_cache.let_go, origin))
            await call.pause(_ANOTHER_READS_S, self._clock)
        (status, state, body, cause), left_s = found
        reason = Reason(cause) if cause else None
        rules = await self._parsed(origin, _Answer(status, cast("State", state), body, cause=reason))
        return replace(rules, expires=self._clock.monotonic() + min(left_s, self._keep_s))

    def _keep(self, origin: str, rules: _Rules) -> None:
        with self._lock:
            old = self._known.pop(origin, None)
            self._known[origin] = rules
            self._kept_bytes += rules.size_bytes - (old.size_bytes if old is not None else 0)
            while len(self._known) > _MOST_ORIGINS or self._kept_bytes > MOST_BYTES:
                self._kept_bytes -= self._known.pop(next(iter(self._known))).size_bytes

    async def _parsed(self, origin: str, answer: _Answer) -> _Rules:
        """A long file takes so long to read that the event loop leaves it to a thread."""
        if len(answer.body) <= _SHORT_BYTES:
            return self._read(origin, answer)
        return await asyncio.to_thread(self._read, origin, answer)

    def _read(self, origin: str, answer: _Answer) -> _Rules:
        now = self._clock.monotonic()
        if answer.status is None or answer.status == 429 or answer.status >= 500:
            denied_s = min(self._keep_s, max(self._deny_s, answer.retry_after_s or 0.0))
            verdict = RobotsVerdict(False, None, answer.state, transient_s=denied_s, cause=answer.cause)
            return _Rules(verdict, now + denied_s)
        if answer.status != 200:
            return _Rules(RobotsVerdict(True, None, "allowed"), now + self._keep_s)
        try:
            parsed = Protego.parse(plain_rules(answer.body, names=self._names, host=host_of_origin(origin)))
            delay_s = parsed.crawl_delay(PRODUCT)
        except Exception:
            log.warning("robots.txt of %s cannot be parsed; it counts as empty", origin, exc_info=True)
            return _Rules(RobotsVerdict(True, None, "parse error"), now + self._keep_s)
        verdict = RobotsVerdict(True, self._capped(origin, delay_s), "allowed")
        return _Rules(verdict, now + self._keep_s, parsed, held_bytes(answer.body))

    def _capped(self, origin: str, delay_s: float | None) -> float | None:
        if delay_s is not None and delay_s > self._crawl_delay_cap_s:
            log.warning("%s asks for a crawl-delay of %g s; %g s is kept", origin, delay_s, self._crawl_delay_cap_s)
            return self._crawl_delay_cap_s
        return delay_s

    async def _fetch(self, origin: str, call: Call) -> _Answer:
        for attempt in itertools.count(1):
            answer = await self._follow(f"{origin}/robots.txt", call)
            if not answer.worth_another_try or answer.retry_after_s or self._retries.is_over(attempt):
                return answer
            await call.pause(self._retries.delay_s(attempt), self._clock)
        raise AssertionError("unreachable")

    async def _follow(self, url: str, call: Call) -> _Answer:
        for _ in range(_MOST_HOPS + 1):
            answer = await self._ask(url, call)
            if answer.status not in _REDIRECTS or not answer.location:
                return answer
            try:
                target = self._url_policy.leave(url, join_url(url, answer.location))
                url = self._url_policy.admit(target).url
            except (BadUrl, ContentDownloadError):
                return _Answer(None)
        # RFC 9309 section 2.3.1.2: after five redirects the file may be taken as unavailable, which allows.
        return _Answer(404)

    async def _ask(self, url: str, call: Call) -> _Answer:
        while True:
            with contextlib.suppress(LimitsAway):  # the gate opens when the limits are back
                return await self._ask_once(url, call)

    async def _ask_once(self, url: str, call: Call) -> _Answer:
        await self._admission.look(url)
        permit = await self._admission.enter(url, SOURCE, Role.METADATA, call)
        began = self._clock.monotonic()
        try:
            try:
                answer, content_type = await self._exchange(url, call, permit)
            except BaseException as error:
                permit.report.raised(error)
                raise
            self._tell_breakers(permit.report, answer)
        finally:
            permit.release()
        elapsed_s = self._clock.monotonic() - began
        if answer.status is not None:
            self._limits.on_answer(host_key(url), answer.status, answer.headers, elapsed_s)
        if call.budget is not None:
            call.budget.spend(elapsed_s)
        if answer.retry_after_s:
            until = self._clock.monotonic() + answer.retry_after_s
            self._limits.hold(host_key(url), until, "Retry-After on robots.txt")
        self._attempts.attempt(self._attempt(url, call, answer, content_type, elapsed_s))
        if answer.final is not None:
            raise answer.final
        return answer

    def _tell_breakers(self, watched: BreakerReport, answer: _Answer) -> None:
        if answer.status is None:
            watched.unanswered(answer.cause)
        else:
            watched.answered(answer.status, retry_after_s=answer.retry_after_s)

    async def _exchange(self, url: str, call: Call, permit: HostPermit) -> tuple[_Answer, str | None]:
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout_s)
        deadline, cancel = time.monotonic() + self._timeout_s, permit.cancelled_with(call.cancel)
        # Mostly the first question to its host, after a look-up and a handshake: the next one keeps its distance from
        # when this one is sent.
        extensions: dict[str, object] = {"goes_out": permit.before_send, "sent": permit.on_sent}
        extensions |= {"timeout": timeouts, "deadline": deadline, UNCACHED: True}
        try:
            request = httpx2.Request("GET", url, headers=self._headers, extensions=extensions)
            return await unless_cut(cancel, call.cancel, self._asked(request, deadline))
        except WIRE_ERRORS_OR_CUT as error:
            call.cancel.raise_if_cancelled()
            if cancel.cancelled:
                raise cut_off(url) from None
            return self._unanswered(url, error), None

    async def _asked(self, request: httpx2.Request, deadline: float) -> tuple[_Answer, str | None]:
        response = await self._http.exchange(request)
        try:
            return await self._received(response, deadline), response.headers.get("content-type")
        finally:
            await response.aclose()

    def _unanswered(self, url: str, error: BaseException) -> _Answer:
        fault = fault_of(error)
        # A forbidden address or a bad certificate is a fact about the host, not about its rules.
        final = fault.failure(url, describe(error)) if fault.reason in _FACTS else None
        state: State = "timeout" if fault.reason is Reason.TIMEOUT else "unreachable"
        return _Answer(None, state, cause=fault.reason, final=final)

    async def _received(self, response: httpx2.Response, deadline: float) -> _Answer:
        body = bytearray()
        if response.status_code == 200:
            async with contextlib.aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= _LARGEST_BYTES:
                        break
                    if time.monotonic() > deadline:
                        raise httpx2.ReadTimeout("robots.txt takes too long")
        retry_after = response.headers.get("retry-after") if response.status_code >= 429 else None
        asked_s = asked_pause_s(retry_after, now=self._clock.now())
        return _Answer(
            response.status_code,
            body=bytes(body[:_LARGEST_BYTES]),
            location=response.headers.get("location", ""),
            retry_after_s=self._retry_after_rules.after(str(response.request.url), response.status_code, asked_s),
            headers={name.lower(): value for name, value in response.headers.items()},
        )

    def _attempt(self, url: str, call: Call, answer: _Answer, content_type: str | None, elapsed_s: float) -> Attempt:
        return Attempt(
            ts=self._clock.now(),
            resolver=SOURCE,
            url=mask_url(url),
            verb=Verb.ROBOTS,
            status=AttemptStatus.ROBOTS_FETCH,
            http_status=answer.status,
            content_type=content_type,
            elapsed_ms=round(elapsed_s * 1000),
            reason=answer.cause,
            work_id=call.work_id,
            host=host_key(url),
            role=Role.METADATA,
            retry_after_s=answer.retry_after_s,
        )


def _give_way_to_cancel() -> None:
    """The task may have been cancelled while something had to be finished."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _origin(url: str) -> str:
    """Where its robots.txt lies."""
    return f"{url.partition(':')[0]}://{host_key(url)}"


def held_bytes(body: bytes) -> int:
    """About what the rules of `body` take once they are parsed, which is many times their length."""
    lines, wild = body.count(b"\n") + body.count(b"\r") + 1, body.count(b"*") + body.count(b"$")
    return len(body) + lines * _PLAIN_RULE_BYTES + min(wild, lines) * (_WILD_RULE_BYTES - _PLAIN_RULE_BYTES)
