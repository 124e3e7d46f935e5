"""What an answer says beyond its body: here it is, come back later, go away, or look elsewhere.

Knows statuses, Retry-After, redirects and bot checks. Tells the record of each answer, and the host's gate of a pause
it asked for. Does not ask anybody anything.
"""

from __future__ import annotations

from collections.abc import Collection

from DocsToKG.ContentDownload.api.types import Hop, Reason, Verb
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.body import StreamedBody
from DocsToKG.ContentDownload.net.faults import Retryable, asked_pause_s
from DocsToKG.ContentDownload.net.journal import About, Journal
from DocsToKG.ContentDownload.net.journey import Journey, Moved
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimits
from DocsToKG.ContentDownload.net.limits.retry_after import RetryAfterRules
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import BadUrl, host_key, join_url, mask_url

_NOT_NOW = frozenset({408, 425, 429})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Answers to HEAD that may only mean that the server does not like HEAD.
NO_HEAD = frozenset({403, 405, 501})


class Answers:
    """Reads the answers to one source; `retried` are the statuses that are worth another try."""

    def __init__(
        self,
        *,
        retried: Collection[int],
        journal: Journal,
        limits: HostLimits,
        retry_after_rules: RetryAfterRules,
        clock: Clock,
    ) -> None:
        self._retried = retried
        self._journal = journal
        self._limits = limits
        self._retry_after_rules = retry_after_rules
        self._clock = clock

    async def settle(self, journey: Journey, opened: StreamedBody) -> None:
        """Returns where the answer is for whoever asked; raises what else it says: not now, not for us, elsewhere."""
        final = opened.is_challenge or opened.is_replay or (journey.verb is Verb.HEAD and opened.status in NO_HEAD)
        if opened.status in self._retried and not final:
            raise self._busy(opened, Retryable)
        self._tell_answer(journey.about(opened.url), opened)
        if opened.is_challenge:
            raise rejected(Reason.CHALLENGE, opened)
        if _may_pass(opened) and not final:
            raise self._busy(opened, TransientFailure)
        if opened.is_replay and opened.status >= 400:
            raise rejected(Reason.HTTP_STATUS, opened)
        opened.hops = (*journey.hops, Hop(opened.url, opened.status))
        await self._leave_if_moved(opened)

    def _tell_answer(self, about: About, opened: StreamedBody) -> None:
        status = 304 if opened.revalidated else opened.status
        kind = opened.content_type
        kept = opened.from_cache and status != 304
        self._journal.handshake(
            about, http_status=status, content_type=kind, elapsed_s=opened.elapsed_s, from_cache=kept
        )
        if status == 304:
            self._journal.not_modified(about, content_type=kind, from_cache=opened.from_cache)
        elif opened.from_cache:
            self._journal.cache_hit(about, http_status=status, content_type=kind)

    def _busy(self, opened: StreamedBody, kind: type[TransientFailure]) -> TransientFailure:
        """What to raise for an answer that may be another one soon; the host's gate is told about Retry-After."""
        asked_s = self.asked_s(opened)
        if asked_s is not None:
            until = self._clock.monotonic() + asked_s
            self._limits.hold(host_key(opened.url), until, f"pause of {asked_s:g} s after status {opened.status}")
        failure = kind(
            Reason.HTTP_STATUS if asked_s is None else Reason.RETRY_AFTER,
            f"status {opened.status}",
            url=mask_url(opened.url),
            http_status=opened.status,
            retry_after_s=asked_s,
        )
        if isinstance(failure, Retryable):
            failure.elapsed_s, failure.content_type = opened.elapsed_s, opened.content_type
        return failure

    def asked_s(self, opened: StreamedBody) -> float | None:
        """The pause that an answer asks for, or that its host is known to want."""
        asked_s = asked_pause_s(opened.headers.get("retry-after"), now=self._clock.now())
        return self._retry_after_rules.after(opened.url, opened.status, asked_s)

    async def _leave_if_moved(self, opened: StreamedBody) -> None:
        places = opened.locations if opened.status in _REDIRECTS else ()
        if not places:
            return
        if len(places) > 1:
            raise CandidateRejected(Reason.BAD_URL, "redirect to several places", url=mask_url(opened.url))
        try:
            target = join_url(opened.url, places[0])
        except BadUrl as error:
            raise CandidateRejected(Reason.BAD_URL, "redirect to no usable URL", url=mask_url(opened.url)) from error
        if await opened.drain():
            opened.publish()
        raise Moved(opened.hops[-1], target)


def rejected(reason: Reason, opened: StreamedBody) -> CandidateRejected:
    return CandidateRejected(reason, f"status {opened.status}", url=mask_url(opened.url), http_status=opened.status)


def _may_pass(opened: StreamedBody) -> bool:
    """The answer is about now, not about the document: too early, too busy, or it names a time to come back."""
    status = opened.status
    asks_back = "retry-after" in opened.headers and (status == 202 or status >= 400)
    return status in _NOT_NOW or status >= 500 or asks_back
