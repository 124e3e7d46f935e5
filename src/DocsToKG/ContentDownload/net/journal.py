"""One line for every decision on the wire or in the cache, in the tokens of the attempts record.

An exchange leaves exactly one of `http-get`, `http-head`, `retry` or `download-error`; a body read to its
end adds `http-200`, an answer from the cache adds `cache-hit` or `http-304`. URLs leave masked.
"""

from __future__ import annotations

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call
from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Reason, Role, Verb
from DocsToKG.ContentDownload.net.faults import Retryable
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import host_key, mask_url


class Journal:
    """The attempts of one source."""

    def __init__(self, source: str, *, sink: AttemptSink, clock: Clock) -> None:
        self._source = source
        self._sink = sink
        self._clock = clock

    def handshake(
        self,
        about: About,
        *,
        http_status: int,
        content_type: str | None,
        elapsed_s: float,
        from_cache: bool = False,
    ) -> None:
        """`from_cache`: nothing was sent for it."""
        self._tell(
            about,
            AttemptStatus.HTTP_HEAD if about.verb is Verb.HEAD else AttemptStatus.HTTP_GET,
            elapsed_s=elapsed_s,
            http_status=http_status,
            content_type=content_type,
            from_cache=from_cache,
        )

    def cache_hit(self, about: About, *, http_status: int, content_type: str | None) -> None:
        self._tell(
            about,
            AttemptStatus.CACHE_HIT,
            http_status=http_status,
            content_type=content_type,
            reason=Reason.OK,
            from_cache=True,
        )

    def not_modified(self, about: About, *, content_type: str | None, from_cache: bool) -> None:
        self._tell(
            about,
            AttemptStatus.HTTP_304,
            http_status=304,
            content_type=content_type,
            reason=Reason.NOT_MODIFIED,
            from_cache=from_cache,
            revalidated=from_cache,
        )

    def body(
        self,
        about: About,
        *,
        http_status: int,
        content_type: str | None,
        bytes_written: int,
        length_header: int | None,
        cut_by: Reason | None,
    ) -> None:
        """`cut_by`: why it is not as long as announced."""
        self._tell(
            about,
            AttemptStatus.HTTP_200 if cut_by is None else AttemptStatus.SIZE_MISMATCH,
            verb=Verb.STREAM,
            http_status=http_status,
            content_type=content_type,
            bytes_written=bytes_written,
            content_length_hdr=length_header,
            reason=cut_by,
        )

    def retry(self, about: About, failure: Retryable) -> None:
        if failure.http_status is None:
            reason = Reason.CONN_ERROR
        else:
            reason = Reason.BACKOFF if failure.retry_after_s is None else Reason.RETRY_AFTER
        self._tell(
            about,
            AttemptStatus.RETRY,
            http_status=failure.http_status,
            content_type=failure.content_type,
            elapsed_s=failure.elapsed_s,
            reason=reason,
            retry_after_s=failure.retry_after_s,
        )

    def cut(self, about: About) -> None:
        """We broke it off ourselves, and will come back."""
        self._tell(about, AttemptStatus.RETRY, reason=Reason.BACKOFF)

    def failed(self, about: About, reason: str, *, elapsed_s: float | None = None) -> None:
        self._tell(about, AttemptStatus.DOWNLOAD_ERROR, reason=Reason(reason), elapsed_s=elapsed_s)

    def disallowed(self, about: About) -> None:
        self._tell(about, AttemptStatus.ROBOTS_DISALLOWED, verb=Verb.ROBOTS, reason=Reason.ROBOTS)

    def _tell(
        self,
        about: About,
        status: AttemptStatus,
        *,
        verb: Verb | None = None,
        elapsed_s: float | None = None,
        http_status: int | None = None,
        content_type: str | None = None,
        bytes_written: int | None = None,
        content_length_hdr: int | None = None,
        reason: Reason | None = None,
        from_cache: bool = False,
        revalidated: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        url = about.url
        self._sink.attempt(
            Attempt(
                self._clock.now(),
                self._source,
                mask_url(url),
                verb or about.verb,
                status,
                http_status,
                content_type,
                None if elapsed_s is None else round(elapsed_s * 1000),
                bytes_written,
                content_length_hdr,
                reason,
                about.call.work_id,
                host_key(url),
                about.role,
                from_cache,
                revalidated,
                retry_after_s,
            )
        )


class About:
    """Which request a line is about."""

    __slots__ = ("call", "role", "url", "verb")

    def __init__(self, url: str, verb: Verb, role: Role, call: Call) -> None:
        self.url = url
        self.verb = verb
        self.role = role
        self.call = call
