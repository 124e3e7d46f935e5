"""From a candidate to a proved file in the store, in three stages: prepare, stream, finalize.

Knows the order of the stages and that nothing unproved is kept. Does not know tiers, jobs or how requests are paced.
Promises: slots are held only while bytes flow; a temporary file never outlives a failure; a file is stored only after
its proof and only by the branch that claimed the work; the cache entry becomes visible only after that; what came in
parts and does not pass is no judgment on the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call, Client, NullSink, OpenBody
from DocsToKG.ContentDownload.api.ranges import Rest
from DocsToKG.ContentDownload.api.stages import FETCH, HEAD_CHECK, STORE, VERIFY
from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    DownloadPlan,
    DownloadStreamResult,
    Reason,
    Role,
    StoredCopy,
    Verb,
    WorkArtifact,
)
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.faults import Retryable
from DocsToKG.ContentDownload.storage.local import LocalStore, TempFile
from DocsToKG.ContentDownload.storage.paths import human_path, quarantine_path
from DocsToKG.ContentDownload.validation.forms import (
    HTML,
    MIN_PDF_BYTES,
    PDF,
    Form,
    foreign_kind,
    form_of,
    has_pdf_header,
)
from DocsToKG.ContentDownload.validation.page_kinds import classify_body
from DocsToKG.ContentDownload.validation.policy import Decision, ValidationRules
from DocsToKG.ContentDownload.validation.source import Source
from DocsToKG.core.clock import Clock
from DocsToKG.core.tasks import loaded
from DocsToKG.core.urls import BadUrl, host_key, mask_url, request_url

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.validation.candidate import ReceivedFile

MAX_BYTES = 128 * 1024 * 1024
Barred = Callable[[str, str], tuple[Reason, str] | None]  # digest and work: why these bytes may not be kept for it

_SNIFF_BYTES = 64 * 1024
_HEADER_BYTES = 1024
_HEAD_INTERVAL_S = 1.0  # where requests are dearer than this, none is spent on a question (LIM-05)
_GONE = frozenset({403, 404, 410})
# How a server that does not know HEAD may answer it; any other failure says that it wants to be left alone.
_NO_ANSWER = frozenset({Reason.CONN_ERROR, Reason.TIMEOUT, Reason.SIZE_MISMATCH, Reason.DOWNLOAD_ERROR})
# Bytes that are good for no work. Kept ones may come from two places: this run's own store and the cache.
_DAMAGED = frozenset(
    {Reason.CHECKSUM_MISMATCH, Reason.TRUNCATED, Reason.CORRUPT_PDF, Reason.EMPTY_BODY, Reason.TOO_SMALL}
)
_STALE_COPIES = 2
_VALIDATION = ValidationRules()
_PROOFS = "DocsToKG.ContentDownload.validation.candidate"  # a tenth of a second, which no start has to wait for
_NEVER_A_PAPER = ("image/", "video/", "audio/", "font/")


@dataclass(frozen=True, slots=True)
class DownloadRules:
    """What a body may cost and must be. `formats` are the forms that are taken."""

    max_bytes: int = MAX_BYTES
    min_pdf_bytes: int = MIN_PDF_BYTES
    head_enabled: bool = False
    formats: tuple[str, ...] = (PDF.name,)
    validation: ValidationRules = _VALIDATION


@dataclass(frozen=True, slots=True)
class CandidateDownload:
    """The three stages over one store."""

    store: LocalStore
    rules: DownloadRules
    clock: Clock
    attempts: AttemptSink = field(default_factory=NullSink)
    barred: Barred = lambda sha256, work_id: None
    keeping: Callable[[], AbstractContextManager[None]] = nullcontext  # entered while a file waits for its proof

    async def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> StoredCopy | None:
        """Fetch, prove and store one candidate; None when a rival has claimed the work in the meantime."""
        plan = prepare_candidate_download(plan, formats=self.rules.formats)
        max_bytes = plan.max_bytes_override or self.rules.max_bytes
        try:
            is_here = plan.url in call.received
            if self.rules.head_enabled and not is_here and client.interval_s(plan.url) <= _HEAD_INTERVAL_S:
                call.at(HEAD_CHECK, plan.url)
                await probe_candidate(plan, client, call, max_bytes)
            for asks_left in range(_STALE_COPIES, -1, -1):
                call.at(FETCH, plan.url)
                headers = _request_headers(plan)
                body = await client.open(plan.url, Role.ARTIFACT, call, headers=headers, max_bytes=max_bytes)
                try:
                    return await self._take(body, plan, work, client, call, claim, max_bytes)
                except (CandidateRejected, TransientFailure) as problem:
                    # What we kept is damaged, which says nothing about what the server has.
                    if not (body.from_cache and problem.reason in _DAMAGED and asks_left):
                        raise
            raise AssertionError("the last try returns or raises")
        finally:
            call.leave()

    async def _take(
        self,
        body: OpenBody,
        plan: DownloadPlan,
        work: WorkArtifact,
        client: Client,
        call: Call,
        claim: Callable[[], bool],
        max_bytes: int,
    ) -> StoredCopy | None:
        """Read, prove and store the body."""
        is_spliced = False
        with self.store.temp() as temp:
            try:
                try:
                    streamed = await stream_candidate_payload(body, temp, form=form_of(plan))
                except Retryable as broken:
                    first = body
                    body, streamed = await going_on(broken, first, temp, plan, client, call, max_bytes)
                    is_spliced = body is first
                finally:
                    await body.aclose()  # the host's slot is free again; proving costs it nothing
                call.at(VERIFY)
                finishing = finalize_candidate_download(
                    plan,
                    work,
                    streamed,
                    body,
                    temp,
                    self.store,
                    call,
                    claim,
                    min_bytes=self.rules.min_pdf_bytes,
                    max_bytes=max_bytes,
                    formats=self.rules.formats,
                    barred=self.barred,
                    validation=self.rules.validation,
                )
                with self.keeping():
                    return await finishing
            except CandidateRejected as rejected:
                self._refused(plan, rejected, body, call, temp.size)
                if is_spliced and rejected.reason != Reason.TAKEN_DOWN:
                    # Perhaps the parts do not belong together: only what came in one piece is judged for good.
                    raise TransientFailure(rejected.reason, rejected.detail, url=rejected.url) from None
                raise
            except TransientFailure as failure:
                # A body that broke off has left its line where it was read.
                if failure.reason == Reason.CHECKSUM_MISMATCH:
                    self._refused(plan, failure, body, call, temp.size)
                raise

    def _refused(
        self, plan: DownloadPlan, problem: CandidateRejected | TransientFailure, body: OpenBody, call: Call, size: int
    ) -> None:
        """The bytes did not pass: the record says so, and a cache that gave them forgets them (DL-11)."""
        # Who reads the record wants to know whose file it was.
        problem.url = problem.url or mask_url(plan.url)
        # A whole file that is another work's stays: it was proved for that one.
        if body.from_cache and problem.reason in _DAMAGED:
            body.reject()
        self._tell(plan, problem.reason, call, size)

    def _tell(self, plan: DownloadPlan, reason: str, call: Call, size: int) -> None:
        self.attempts.attempt(
            Attempt(
                ts=self.clock.now(),
                resolver=plan.resolver_name,
                url=mask_url(plan.url),
                verb=Verb.FINALIZE,
                status=AttemptStatus.CONTENT_POLICY_SKIP,
                bytes_written=size,
                reason=Reason(reason),
                work_id=call.work_id,
                host=host_key(plan.url),
                role=Role.ARTIFACT,
            )
        )


def prepare_candidate_download(plan: DownloadPlan, *, formats: Sequence[str] | None = None) -> DownloadPlan:
    """The plan, once nothing speaks against asking for it; refuses what needs no request to be refused."""
    try:
        request_url(plan.url)
    except BadUrl as error:
        raise CandidateRejected(Reason.BAD_URL, str(error), url=plan.url) from error
    if formats is not None and (form := form_of(plan)).name not in formats:
        detail = f"{form.name} is not among the formats asked for ({', '.join(formats)})"
        raise CandidateRejected(Reason.POLICY_TYPE, detail, url=plan.url)
    return plan


async def probe_candidate(plan: DownloadPlan, client: Client, call: Call, max_bytes: int) -> None:
    """Ask with HEAD first, and refuse what is gone, forbidden, too large or surely no text. Who is busy is left alone
    (RES-21); a host that answers HEAD with nonsense loses nothing by it."""
    try:
        page = await client.head(plan.url, Role.ARTIFACT, call, headers=_request_headers(plan))
    except TransientFailure as failure:
        if failure.http_status is None and failure.reason in _NO_ANSWER:
            return
        raise
    if page.status in _GONE:
        raise CandidateRejected(Reason.HTTP_STATUS, f"status {page.status}", url=page.url, http_status=page.status)
    length, kind = _length(page.headers), page.headers.get("content-type", "").strip().lower()
    if page.status == 200 and length is not None and length > max_bytes:
        raise CandidateRejected(Reason.POLICY_SIZE, f"{length} bytes are announced", url=page.url)
    # `image/pdf` and the like are slips for a PDF.
    if page.status == 200 and kind.startswith(_NEVER_A_PAPER) and "pdf" not in kind:
        raise CandidateRejected(Reason.POLICY_TYPE, f"{kind[:80]} is announced", url=page.url)


async def stream_candidate_payload(body: OpenBody, temp: TempFile, *, form: Form = PDF) -> DownloadStreamResult:
    """Write the body to the temporary file; what is surely no paper is cut off as soon as that shows."""
    # Of a file that goes on, the beginning has been looked at.
    head, may_be_it = b"", temp.size > 0
    async for chunk in body.chunks():
        await temp.wait_for_room(len(chunk))
        temp.write(chunk)
        if not may_be_it and len(head) < _SNIFF_BYTES:
            head += chunk[: _SNIFF_BYTES - len(head)]
            may_be_it = _refuse_early(head, body, form, ended=False)
    if not may_be_it:
        _refuse_early(head, body, form, ended=True)
    return _stream_result(body, temp)


async def going_on(
    broken: Retryable,
    body: OpenBody,
    temp: TempFile,
    plan: DownloadPlan,
    client: Client,
    call: Call,
    max_bytes: int,
) -> tuple[OpenBody, DownloadStreamResult]:
    """Ask for the rest of a body that broke off, as often as each answer brings a good deal more; raises what broke it
    off when it cannot be had. Returns the answer whose headers speak of the whole file: the first, or a later one that
    began anew."""
    more = body
    while broken.whole is not None:
        await more.aclose()
        rest, headers = Rest(broken.whole, temp.size), _request_headers(plan)
        try:
            more = await client.open(plan.url, Role.ARTIFACT, call, headers=headers, max_bytes=max_bytes, rest=rest)
        except CandidateRejected:
            break  # this way of asking is refused, which says nothing of the file
        try:
            if more.status == 200:
                temp.restart()
            streamed = await stream_candidate_payload(more, temp, form=form_of(plan))
            return (more, streamed) if more.status == 200 else (body, _stream_result(body, temp))
        except Retryable as again:
            # Who sent all of it anew would do so each time.
            if more.status == 200:
                raise
            broken = again
        except CandidateRejected:
            if more.status == 200:
                raise
            break  # a rest that never ends
        finally:
            await more.aclose()
    raise broken


async def finalize_candidate_download(
    plan: DownloadPlan,
    work: WorkArtifact,
    streamed: DownloadStreamResult,
    body: OpenBody,
    temp: TempFile,
    store: LocalStore,
    call: Call,
    claim: Callable[[], bool],
    *,
    min_bytes: int,
    max_bytes: int = MAX_BYTES,
    formats: Sequence[str] = (PDF.name,),
    barred: Barred = lambda sha256, work_id: None,
    validation: ValidationRules = _VALIDATION,
) -> StoredCopy | None:
    """Prove the bytes, claim the work, confirm the cache entry, store the file; in this order. Once the work is claimed
    nothing calls it off. A file for the quarantine is stored there, and claims nothing.

    The entry stands before the file does, and is a miss until then: whoever dies after storing and before the record
    finds the file by it, without asking the server again."""
    await loaded(_PROOFS)
    from DocsToKG.ContentDownload.validation.articles.identity import doi_in
    from DocsToKG.ContentDownload.validation.candidate import actual_form, proving
    from DocsToKG.ContentDownload.validation.pdf.structure import is_gzip

    came = _came(temp, body)
    inner = _unwrapped(temp, max_bytes) if is_gzip(came.file) else None
    try:
        proved = came if inner is None else _came(inner, body)
        _check_digests(plan, came, None if inner is None else proved)
        form = actual_form(form_of(plan), proved.file, formats=formats)
        if (why := barred(proved.sha256, work.work_id)) is not None:
            raise CandidateRejected(*why, url=plan.url)
        facts = await proving(form, plan, work, proved, min_pdf_bytes=min_bytes, rules=validation)
        call.cancel.raise_if_cancelled()
        is_kept = facts.decision is Decision.KEEP
        if is_kept and not claim():
            return None
        call.at(STORE)
        human = (human_path if is_kept else quarantine_path)(work, kind=form.name)
        # The cache would answer with the stored file, under headers that speak of the wrapped one.
        if inner is None:
            body.confirm(proved.sha256)
        stored = await store.storing(inner or temp, human=human)
    finally:
        if inner is not None:
            inner.discard()
    return StoredCopy(
        path=stored.place,
        sha256=stored.sha256,
        size_bytes=stored.size,
        mime=form.mime,
        stream=streamed,
        duplicate=stored.duplicate,
        link=stored.link,
        facts=facts.record() | {"doi_seen": doi_in(facts, work), "unwrapped": None if inner is None else "gzip"},
        quarantined=None if is_kept else store.relative(stored.place),
    )


def _check_digests(plan: DownloadPlan, came: ReceivedFile, inner: ReceivedFile | None) -> None:
    from DocsToKG.ContentDownload.validation.candidate import check_digests

    try:
        check_digests(plan, came, inner)
    except CandidateRejected as mismatch:
        # The right file exists and these bytes are not it: damaged on the way, so another try may bring it whole.
        raise TransientFailure(mismatch.reason, mismatch.detail, url=plan.url) from None


def _unwrapped(temp: TempFile, max_bytes: int) -> TempFile:
    """The file inside, for a server that compressed it and forgot to say so."""
    from DocsToKG.ContentDownload.validation.pdf.structure import unwrap_gzip

    inner = temp.another()
    try:
        for piece in unwrap_gzip(_source(temp), max_bytes=max_bytes):
            inner.write(piece)
    except BaseException:
        inner.discard()
        raise
    return inner


def _came(temp: TempFile, body: OpenBody) -> ReceivedFile:
    from DocsToKG.ContentDownload.validation.candidate import ReceivedFile

    return ReceivedFile(file=_source(temp), md5="", sha256=temp.sha256, url=body.url, headers=body.headers)


def _source(temp: TempFile) -> Source:
    data = temp.data
    return temp.path if data is None else data


def _refuse_early(head: bytes, body: OpenBody, form: Form, *, ended: bool) -> bool:
    """Whether more of the body would change nothing. Some pages are told apart by how long they are, so they are judged
    once enough of them has come."""
    if not ended and len(head) < _HEADER_BYTES:
        return False
    kind = foreign_kind(head)
    if kind is not None:
        raise CandidateRejected(Reason.UNEXPECTED_CT, kind, url=body.url, http_status=body.status)
    # Markup before a PDF's header may be junk before a whole file; the proof decides.
    if form is HTML or has_pdf_header(head):
        return True
    if not (ended or len(head) >= _SNIFF_BYTES):
        return False
    said = body.headers.get("content-type") if form is PDF else None
    reason = classify_body(head, content_type=said, url=body.url, status=body.status, headers=body.headers)
    if reason is not None:
        raise CandidateRejected(reason, "the answer is a page, not a file", url=body.url, http_status=body.status)
    return True


def _request_headers(plan: DownloadPlan) -> dict[str, str] | None:
    headers = {"Referer": _referer(plan)} if plan.referer else {}
    if accept := form_of(plan).accept:
        headers["Accept"] = accept
    return headers or None


def _referer(plan: DownloadPlan) -> str:
    """The page that named the file; another host learns only whose page it was, as with browsers."""
    page = plan.referer or ""
    return page if host_key(page) == host_key(plan.url) else f"{page.partition('://')[0]}://{host_key(page)}/"


def _stream_result(body: OpenBody, temp: TempFile) -> DownloadStreamResult:
    headers = body.headers
    return DownloadStreamResult(
        None if temp.data is not None else temp.path,
        temp.size,
        body.status,
        headers.get("content-type"),
        temp.sha256,
        None,
        body.url,
        body.hops,
        headers.get("etag"),
        headers.get("last-modified"),
        _length(headers),
        body.from_cache,
        body.revalidated,
    )


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
