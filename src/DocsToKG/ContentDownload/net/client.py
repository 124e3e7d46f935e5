"""Asks the network for one source, politely.

Per hop: URL policy, cache, robots, gate, send; a redirect is a hop of its own, a passing failure is tried
again after a wait. Knows the order of these, not how any of them is done.
Promises: permits are released on every way out; every exchange leaves its line in the attempts record.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

import httpx2

from DocsToKG.ContentDownload.api.gates import Gates, Permit
from DocsToKG.ContentDownload.api.ports import AttemptSink, Call, OpenBody, Page, ReceivedBody
from DocsToKG.ContentDownload.api.ranges import Rest
from DocsToKG.ContentDownload.api.types import Reason, Role, Verb
from DocsToKG.ContentDownload.errors import CandidateRejected, ContentDownloadError, LimitsAway, TransientFailure
from DocsToKG.ContentDownload.net.answers import NO_HEAD, Answers, rejected
from DocsToKG.ContentDownload.net.body import StreamedBody
from DocsToKG.ContentDownload.net.cache import ARTIFACT, CachedTransport
from DocsToKG.ContentDownload.net.cutting import unless_cut
from DocsToKG.ContentDownload.net.faults import (
    WIRE_ERRORS,
    WIRE_ERRORS_OR_CUT,
    OutOfTime,
    Retryable,
    cut_off,
    describe,
    fault_of,
)
from DocsToKG.ContentDownload.net.guards import is_bot_check
from DocsToKG.ContentDownload.net.journal import About, Journal
from DocsToKG.ContentDownload.net.journey import Journey, Moved
from DocsToKG.ContentDownload.net.limits.admission import Admission
from DocsToKG.ContentDownload.net.limits.blocklist import HostBlocklist
from DocsToKG.ContentDownload.net.limits.breakers import BreakerReport, Breakers
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimits, HostPermit
from DocsToKG.ContentDownload.net.limits.retry_after import RetryAfterRules
from DocsToKG.ContentDownload.net.policy import (
    Admitted,
    SourcePolicy,
    UrlPolicy,
    portable_headers,
    role_headers,
)
from DocsToKG.ContentDownload.net.retries import Retries
from DocsToKG.ContentDownload.net.rewording import ABOUT_WORK
from DocsToKG.ContentDownload.net.robots.check import Robots, RobotsVerdict
from DocsToKG.core.cancel import CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key, mask_url
from DocsToKG.transport.client import PlainAsyncClient
from DocsToKG.transport.errors import DeadlineExceeded
from DocsToKG.transport.fields import Fields
from DocsToKG.transport.messages import LightRequest
from DocsToKG.transport.places import url_of

__all__ = ["RateRetryClient", "SourcePolicy"]

T = TypeVar("T")
Finish: TypeAlias = Callable[[StreamedBody], Awaitable[T]]  # makes of the answer what was asked for

_HEAD_BYTES = 1024
# What an https attempt on an http link may fail with while plain http would work.
_NO_HTTPS = frozenset({Reason.TLS_ERROR, Reason.CONN_ERROR, Reason.TIMEOUT})


class RateRetryClient:
    """Implements `api.ports.Client` for one source."""

    def __init__(
        self,
        name: str,
        *,
        http: PlainAsyncClient,
        gates: Gates,
        limits: HostLimits,
        robots: Robots | None,
        url_policy: UrlPolicy,
        policy: SourcePolicy,
        attempts: AttemptSink,
        clock: Clock,
        random: Callable[[], float],
        cache: CachedTransport | None = None,
        breakers: Breakers | None = None,
        max_redirects: int = 10,
        retry_after_rules: RetryAfterRules | None = None,
        blocklist: HostBlocklist | None = None,
    ) -> None:
        self.name = name
        self._http = http
        self._agent = http.headers["user-agent"]
        self._limits = limits
        self._robots = robots
        self._url_policy = url_policy
        self._policy = policy
        self._attempts = attempts
        self._journal = Journal(name, sink=attempts, clock=clock)
        self._clock = clock
        self._tries_again = policy.retry.max_attempts > 1
        self._retries = Retries(policy.retry, random=random, longest_asked_s=policy.inline_cap_s)
        self._cache = cache
        self._max_redirects = max_redirects
        self._retry_after_rules = retry_after_rules or RetryAfterRules()
        self._blocklist = blocklist or HostBlocklist()
        self._admission = Admission(
            gates=gates, clock=clock, attempts=attempts, breakers=breakers, blocklist=self._blocklist
        )
        self._answers = Answers(
            retried=policy.retry.statuses,
            journal=self._journal,
            limits=limits,
            retry_after_rules=self._retry_after_rules,
            clock=clock,
        )
        self._headers = {role: role_headers(role, self._agent, policy.headers) for role in Role}
        # The longest single waits: what the source's policy says; for a connection the shared client's, if shorter.
        wait_s = policy.wait_s or policy.timeout_s
        connect_s = min(wait_s, http.timeout.connect or math.inf)
        self._timeouts = {"read": wait_s, "write": wait_s, "pool": wait_s, "connect": connect_s}
        self._timeouts["silence"] = policy.trickle_s

    async def fetch(self, url: str, role: Role, call: Call, *, headers: Mapping[str, str] | None = None) -> Page:
        journey = self._journey(Verb.GET, url, role, call, headers)
        return await self._travel(journey, lambda opened: self._read_page(journey, opened))

    async def head(self, url: str, role: Role, call: Call, *, headers: Mapping[str, str] | None = None) -> Page:
        """Status and headers only; never from the cache. Who does not answer HEAD is asked for a few bytes instead."""
        journey = self._journey(Verb.HEAD, url, role, call, headers)
        page = await self._travel(journey, lambda opened: self._read_page(journey, opened))
        if page.status not in NO_HEAD:
            return page
        probe = self._journey(Verb.GET, url, role, call, {**(headers or {}), "Range": f"bytes=0-{_HEAD_BYTES - 1}"})
        probe.is_probe = True
        return as_head(await self._travel(probe, lambda opened: self._read_page(probe, opened)))

    async def open(
        self,
        url: str,
        role: Role,
        call: Call,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
        rest: Rest | None = None,
    ) -> OpenBody:
        if rest is None and (received := call.received.pop(url, None)) is not None:
            return _kept(received, max_bytes)
        journey = self._journey(Verb.GET, url, role, call, headers)
        journey.artifact = True
        if rest is not None:
            # As after any failure: not at once, and from the address that was given, so that each hop is asked anew.
            await call.pause(self._retries.delay_s(1), self._clock)
            journey.rest = rest
        return await self._travel(journey, lambda opened: self._hand_over(opened, max_bytes, rest))

    def interval_s(self, url: str) -> float:
        """The least seconds between two requests for files to the host of `url`, as far as it is known."""
        return self._limits.interval_s(host_key(url), Role.ARTIFACT)

    def _journey(self, verb: Verb, url: str, role: Role, call: Call, headers: Mapping[str, str] | None) -> Journey:
        own = self._headers[role]
        if headers:
            own = role_headers(role, self._agent, {**self._policy.headers, **headers})
        return Journey(verb, url, role, call, own, self.name if role is Role.METADATA else None)

    async def _travel(self, journey: Journey, finish: Finish[T]) -> T:
        while True:
            admitted = self._enter(journey)
            try:
                return await self._hop(journey, admitted, finish)
            except Moved as moved:
                journey.hops.append(moved.hop)
                if host_key(moved.hop.url) != host_key(moved.url):
                    journey.headers = portable_headers(journey.headers)
                journey.url = self._url_policy.leave(moved.hop.url, moved.url)

    def _enter(self, journey: Journey) -> Admitted:
        """The journey's next place, which must be one we may go to and have not been at."""
        admitted = self._url_policy.admit(journey.url)
        if len(journey.hops) > self._max_redirects:
            detail = f"over {self._max_redirects}"
            raise CandidateRejected(Reason.TOO_MANY_REDIRECTS, detail, url=mask_url(admitted.url))
        if not journey.is_new(admitted.url):
            # A site that answers https with a redirect to http leads back here, because http is asked as https.
            if admitted.was_http and admitted.fallback is None:
                raise CandidateRejected(
                    Reason.SECURITY_POLICY, "the site insists on plain http", url=mask_url(admitted.url)
                )
            if admitted.fallback is None or not journey.is_new(admitted.fallback):
                raise CandidateRejected(Reason.REDIRECT_LOOP, "the same URL again", url=mask_url(admitted.url))
            admitted = Admitted(admitted.fallback)
        return admitted

    async def _hop(self, journey: Journey, admitted: Admitted, finish: Finish[T]) -> T:
        if not admitted.was_http:
            return await self._tries(journey, admitted.url, finish, self._policy.retry.max_attempts)
        return await self._upgraded_hop(journey, admitted, finish)

    async def _upgraded_hop(self, journey: Journey, admitted: Admitted, finish: Finish[T]) -> T:
        """An http link is asked as https first."""
        try:
            tries = self._policy.retry.max_attempts if admitted.fallback is None else 1
            return await self._tries(journey, admitted.url, finish, tries)
        except (CandidateRejected, TransientFailure) as failure:
            if failure.reason not in _NO_HTTPS:
                raise
            if admitted.fallback is None and failure.reason != Reason.TIMEOUT:
                detail = f"https failed ({failure.reason}) and plain http is not allowed for this host"
                raise CandidateRejected(Reason.SECURITY_POLICY, detail, url=mask_url(journey.url)) from failure
            if admitted.fallback is None:
                raise
        return await self._tries(journey, admitted.fallback, finish, self._policy.retry.max_attempts)

    async def _tries(self, journey: Journey, url: str, finish: Finish[T], most: int) -> T:
        attempt = 1
        while True:
            try:
                opened = await self._exchange(journey, url)
                try:
                    await self._answers.settle(journey, opened)
                    return await finish(opened)
                except BaseException:
                    await opened.aclose()
                    raise
            except LimitsAway:
                continue  # no try of ours is used up, and the gate opens when the limits are back
            except Retryable as failure:
                budget, asked_s = journey.call.budget, failure.retry_after_s
                left_s = budget.seconds_left() if budget is not None else math.inf
                pause_s = self._retries.pause_s(attempt, most=most, asked_s=asked_s, left_s=left_s)
                if pause_s is None or isinstance(failure, OutOfTime):
                    self._give_up(journey.about(url), failure)
                    raise
                self._journal.retry(journey.about(url), failure)
            attempt += 1
            await journey.call.pause(pause_s, self._clock)

    def _give_up(self, about: About, failure: Retryable) -> None:
        if failure.http_status is not None:
            elapsed_s = failure.elapsed_s or 0.0
            self._journal.handshake(
                about, http_status=failure.http_status, content_type=failure.content_type, elapsed_s=elapsed_s
            )
        elif failure.reason != Reason.SIZE_MISMATCH:
            self._journal.failed(about, failure.reason, elapsed_s=failure.elapsed_s)

    async def _exchange(self, journey: Journey, url: str) -> StreamedBody:
        call = journey.call
        call.cancel.raise_if_cancelled()
        request = self._request(journey, url)
        held = await self._peek(journey, request, url)
        if held is not None:
            return held
        await self._admission.look(url, journey.index)
        if self._robots is not None and self._heeds_robots(journey, url, self._robots):
            verdict = self._robots.look(url) or (await self._robots.check(url, call))
            if not verdict.allowed:
                raise self._disallowed(journey, url, verdict)
        # Whether a host speaks TLS at all is what an upgraded http link finds out; silence is no sign of ill health.
        upgraded = journey.url.lower().startswith("http:") and url.startswith("https:")
        permit = await self._admission.enter(url, self.name, journey.role, call, index=journey.index, trial=upgraded)
        try:
            self._take_attempt(journey, permit)
            opened = await self._send(journey, request, url, permit)
            self._tell_breakers(permit.report, opened)
            return opened
        except BaseException as error:
            permit.report.raised(error)
            permit.release()
            raise

    def _tell_breakers(self, watched: BreakerReport, opened: StreamedBody) -> None:
        from_store = opened.from_cache and not opened.revalidated
        if from_store or opened.is_challenge:
            watched.says_nothing()
        elif opened.status < 400 or opened.is_replay:
            # The head alone proves little: many a broken server sends it and then stalls.
            opened.watched = watched
        else:
            watched.answered(opened.status, retry_after_s=self._answers.asked_s(opened))

    def _take_attempt(self, journey: Journey, permit: Permit) -> None:
        """The last thing before sending: who stands before a shut gate or an open breaker has used up nothing."""
        if journey.call.budget is None:
            return
        try:
            journey.call.budget.take_attempt(journey.role)
        except ContentDownloadError:
            permit.refund()
            raise

    def _request(self, journey: Journey, url: str) -> httpx2.Request:
        extensions: dict[str, object] = {"timeout": self._timeouts, ARTIFACT: journey.artifact}
        if journey.role is Role.METADATA:
            extensions[ABOUT_WORK] = journey.call.work_id
        try:
            named = journey.headers
            # Who only leads to the file knows nothing of what it is known by.
            if journey.rest is not None and journey.rest.lies_at(url):
                named = {**named, **journey.rest.wishes()}
            request = LightRequest(journey.method, url_of(url), Fields.sent(named), extensions)
        except WIRE_ERRORS as error:
            raise fault_of(error).failure(url, describe(error)) from None
        if journey.cookies is not None:
            journey.cookies.set_cookie_header(request)
        return request

    def _allowed_s(self, journey: Journey) -> float:
        """For one exchange from the first byte to the last. Only a file may be so large that it needs long."""
        return self._policy.deadline_s if journey.role is Role.ARTIFACT else self._policy.timeout_s

    async def _peek(self, journey: Journey, request: httpx2.Request, url: str) -> StreamedBody | None:
        """What the cache may answer by itself: no permit, no robots, no try is spent on it."""
        began = self._clock.monotonic()
        response = await self._cache.peek(request) if self._cache is not None else None
        if response is None:
            return None
        return self._opened(journey, response, url, permit=None, began=began)

    def _heeds_robots(self, journey: Journey, url: str, robots: Robots) -> bool:
        # An API is published for programs and may opt out; the files and pages it names lie on other people's hosts.
        if journey.role is not Role.METADATA or self._policy.obey_robots:
            return True
        robots.excuse(url)
        return False

    def _disallowed(self, journey: Journey, url: str, verdict: RobotsVerdict) -> ContentDownloadError:
        self._journal.disallowed(journey.about(url))
        if verdict.transient_s is None:
            return CandidateRejected(Reason.ROBOTS, "robots.txt disallows it", url=mask_url(url))
        # Where robots.txt cannot be reached, nothing else can; the cause says more than the rule.
        return TransientFailure(
            verdict.cause or Reason.ROBOTS,
            f"robots.txt: {verdict.state}",
            url=mask_url(url),
            retry_after_s=verdict.transient_s,
        )

    async def _send(self, journey: Journey, request: httpx2.Request, url: str, permit: HostPermit) -> StreamedBody:
        call, began = journey.call, self._clock.monotonic()
        allowed_s, left_s = self._allowed_s(journey), call.budget.seconds_left() if call.budget else math.inf
        # The transport's deadline is in the machine's own time, whatever clock the waiting goes by.
        request.extensions["deadline"] = time.monotonic() + min(allowed_s, left_s)
        request.extensions["goes_out"] = permit.before_send
        request.extensions["sent"] = permit.on_sent
        cancel = permit.cancelled_with(call.cancel)
        try:
            response = await unless_cut(cancel, call.cancel, self._http.exchange(request))
        except WIRE_ERRORS_OR_CUT as error:
            call.cancel.raise_if_cancelled()
            if cancel.cancelled:
                self._journal.cut(journey.about(url))
                raise cut_off(url) from None
            elapsed_s = self._clock.monotonic() - began
            if isinstance(error, DeadlineExceeded) and left_s < allowed_s:
                raise self._out_of_time(url, elapsed_s) from None
            raise self._unanswered(journey, url, error, elapsed_s) from None
        finally:
            if call.budget is not None:
                call.budget.spend(self._clock.monotonic() - began)
        opened = self._opened(journey, response, url, permit=permit, began=began, cancel=cancel)
        try:
            if opened.from_cache and not opened.revalidated:
                permit.refund()
            elif not opened.from_cache and not opened.is_replay:
                self._limits.on_answer(host_key(url), opened.status, opened.headers, opened.elapsed_s)
                # To HEAD, 403 may only mean that the server does not like HEAD.
                if journey.verb is not Verb.HEAD or opened.status not in NO_HEAD:
                    self._blocklist.on_answer(url, opened.status)
            journey.take_cookies(response)
            if not opened.is_challenge and journey.verb is not Verb.HEAD:
                opened.is_challenge = await is_bot_check(opened)
        except BaseException:
            await opened.aclose()
            raise
        return opened

    def _unanswered(self, journey: Journey, url: str, error: BaseException, elapsed_s: float) -> ContentDownloadError:
        failure = fault_of(error, role=journey.role).failure(url, describe(error))
        if isinstance(failure, Retryable):
            failure.elapsed_s = elapsed_s
        return failure

    def _out_of_time(self, url: str, elapsed_s: float) -> OutOfTime:
        failure = OutOfTime(Reason.TIMEOUT, "the time left for this work was up", url=mask_url(url))
        failure.elapsed_s = elapsed_s
        return failure

    def _opened(
        self,
        journey: Journey,
        response: httpx2.Response,
        url: str,
        *,
        permit: Permit | None,
        began: float,
        cancel: CancelToken | None = None,
    ) -> StreamedBody:
        # In their order, as for all that is made for each exchange: names cost more than twice as much.
        return StreamedBody(
            response,
            journey.about(url),
            permit,
            self._journal,
            self._clock,
            response.request.extensions.get("deadline", math.inf),
            self._clock.monotonic() - began,
            self._policy.trickle_s,
            self._policy.chunk_bytes if journey.artifact or journey.role is Role.LANDING else None,
            self._retry_after_rules.is_replay(url, response),
            cancel,
        )

    async def _hand_over(self, opened: StreamedBody, max_bytes: int | None, rest: Rest | None) -> StreamedBody:
        if opened.status != 200:
            if rest is None or not rest.is_in(opened.url, opened.status, opened.headers):
                raise rejected(Reason.NOT_MODIFIED if opened.status == 304 else Reason.HTTP_STATUS, opened)
            # In chunks it has no length of its own.
            opened.whole, opened.content_length = rest.whole, rest.length
            max_bytes = None if max_bytes is None else max_bytes - rest.start
        opened.max_bytes = max_bytes
        opened.tells_failures = True
        opened.may_go_on = self._tries_again
        return opened

    async def _read_page(self, journey: Journey, opened: StreamedBody) -> Page:
        opened.max_bytes = self._policy.max_page_bytes
        body, is_pdf = bytearray(), False
        try:
            if journey.wants_body:
                async for chunk in opened.chunks():
                    body += chunk
                    if not is_pdf and journey.role is Role.LANDING and b"%PDF-" in body[:_HEAD_BYTES]:
                        is_pdf = True
                        if opened.status != 200:
                            break
                        opened.becomes_file()
                if is_pdf and opened.status == 200:
                    # Whoever opens its address is given it without another request.
                    journey.call.received[opened.url] = ReceivedBody(opened, bytes(body))
                elif opened.status < 400:
                    opened.publish()
        except (CandidateRejected, TransientFailure):
            if not is_pdf:
                raise
            # Too large or too slow for a page: it is asked for again, as a file.
        await opened.aclose()
        return Page(
            url=opened.url,
            status=opened.status,
            headers=opened.headers,
            body=b"" if is_pdf else bytes(body),
            hops=opened.hops,
            is_pdf=is_pdf,
            from_cache=opened.from_cache,
        )


def _kept(received: ReceivedBody, max_bytes: int | None) -> ReceivedBody:
    if max_bytes is not None and received.size > max_bytes:
        raise CandidateRejected(Reason.TOO_LARGE, f"more than {max_bytes} bytes", url=mask_url(received.url))
    return received


def as_head(page: Page) -> Page:
    """A probe's answer as HEAD would have given it: the whole file's length, and 200 for a part that can be had."""
    if page.status != 206:
        return page
    whole = page.headers.get("content-range", "").rpartition("/")[2].strip()
    headers = {name: value for name, value in page.headers.items() if name not in ("content-range", "content-length")}
    return replace(page, status=200, headers=headers | ({"content-length": whole} if whole.isdecimal() else {}))
