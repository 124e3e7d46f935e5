"""From a candidate to a proved file in the store, in three stages: prepare, stream, finalize.

Knows the order of proof and that nothing unproved is kept. Does not know tiers, jobs or how requests are paced.
Promises: slots are held only while bytes flow; a temporary file never outlives a failure; a file is stored only after
its proof and only by the branch that claimed the work; the cache entry becomes visible only after that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from DocsToKG.ContentDownload.api.ports import AttemptSink, Call, Client, NullSink, OpenBody
from DocsToKG.ContentDownload.api.steps import Steps
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
from DocsToKG.ContentDownload.proof.checksum import check_headers, check_published
from DocsToKG.ContentDownload.proof.html import classify_body
from DocsToKG.ContentDownload.proof.identity import judge_identity
from DocsToKG.ContentDownload.proof.pdf import PdfFacts, prove_pdf
from DocsToKG.ContentDownload.storage.local import LocalStore, TempFile
from DocsToKG.ContentDownload.storage.paths import human_path
from DocsToKG.core.clock import Clock
from DocsToKG.core.urls import BadUrl, host_key, mask_url, request_url

_SNIFF_BYTES = 64 * 1024
_PDF = "application/pdf"


@dataclass(frozen=True, slots=True)
class DownloadRules:
    """What a body may cost and must be."""

    max_bytes: int = 128 * 1024 * 1024
    min_pdf_bytes: int = 1024
    head_enabled: bool = False


@dataclass(frozen=True, slots=True)
class CandidateDownload:
    """The three stages over one store."""

    store: LocalStore
    rules: DownloadRules
    clock: Clock
    attempts: AttemptSink = field(default_factory=NullSink)

    def __call__(
        self, plan: DownloadPlan, work: WorkArtifact, client: Client, call: Call, claim: Callable[[], bool]
    ) -> Steps[StoredCopy | None]:
        """Fetch, prove and store one candidate; None when a rival has claimed the work in the meantime."""
        plan = prepare_candidate_download(plan)
        max_bytes = plan.max_bytes_override or self.rules.max_bytes
        if self.rules.head_enabled:
            yield from probe_candidate(plan, client, call, max_bytes)
        body = yield from client.open(
            plan.url, Role.ARTIFACT, call, headers=_request_headers(plan), max_bytes=max_bytes
        )
        with contextlib.closing(body), self.store.temp() as temp:
            try:
                streamed = stream_candidate_payload(body, temp)
                body.close()  # the host's slot is free again; proving costs it nothing
                return finalize_candidate_download(
                    plan, work, streamed, body, temp, self.store, call, claim, min_bytes=self.rules.min_pdf_bytes
                )
            except CandidateRejected as rejected:
                self._tell(plan, rejected, call, temp.size)
                raise

    def _tell(self, plan: DownloadPlan, rejected: CandidateRejected, call: Call, size: int) -> None:
        self.attempts.attempt(
            Attempt(
                ts=self.clock.now(),
                resolver=plan.resolver_name,
                url=mask_url(plan.url),
                verb=Verb.FINALIZE,
                status=AttemptStatus.CONTENT_POLICY_SKIP,
                bytes_written=size,
                reason=Reason(rejected.reason),
                work_id=call.work_id,
                host=host_key(plan.url),
                role=Role.ARTIFACT,
            )
        )


def prepare_candidate_download(plan: DownloadPlan) -> DownloadPlan:
    """The plan with its address in request form; refuses what needs no request to be refused."""
    try:
        request_url(plan.url)
    except BadUrl as error:
        raise CandidateRejected(Reason.BAD_URL, str(error), url=plan.url) from error
    return plan


def probe_candidate(plan: DownloadPlan, client: Client, call: Call, max_bytes: int) -> Steps[None]:
    """Ask with HEAD first, and refuse what is gone or too large. A host that answers HEAD badly loses nothing by it."""
    try:
        page = yield from client.head(plan.url, Role.ARTIFACT, call, headers=_request_headers(plan))
    except TransientFailure:
        return
    if page.status in (404, 410):
        raise CandidateRejected(Reason.HTTP_STATUS, f"status {page.status}", url=page.url, http_status=page.status)
    length = _length(page.headers)
    if page.status == 200 and length is not None and length > max_bytes:
        raise CandidateRejected(Reason.POLICY_SIZE, f"{length} bytes are announced", url=page.url)


def stream_candidate_payload(body: OpenBody, temp: TempFile) -> DownloadStreamResult:
    """Write the body to the temporary file; a page in a PDF's clothes is cut off as soon as it shows."""
    head = b""
    for chunk in body.chunks():
        temp.write(chunk)
        if len(head) < _SNIFF_BYTES:
            head = (head + chunk)[:_SNIFF_BYTES]
            _refuse_pages(head, body)
    return _stream_result(body, temp)


def finalize_candidate_download(
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
) -> StoredCopy | None:
    """Prove the bytes, claim the work, store the file, confirm the cache entry; in this order."""
    facts = _prove(plan, work, streamed, body, min_bytes)
    call.cancel.raise_if_cancelled()
    if not claim():
        return None
    stored = store.store(temp, human=human_path(work))
    body.confirm(stored.sha256)
    return StoredCopy(
        path=stored.path,
        sha256=stored.sha256,
        size_bytes=stored.size,
        mime=_PDF,
        stream=streamed,
        duplicate=stored.duplicate,
        link=stored.link,
        facts=asdict(facts),
    )


def _prove(
    plan: DownloadPlan, work: WorkArtifact, streamed: DownloadStreamResult, body: OpenBody, min_bytes: int
) -> PdfFacts:
    try:
        check_published(plan.checksum, md5=streamed.md5, sha256=streamed.sha256)
        check_headers(body.headers, md5=streamed.md5, sha256=streamed.sha256, url=streamed.final_url)
    except CandidateRejected as mismatch:
        # The right file exists and these bytes are not it: damaged on the way, so another try may bring it whole.
        raise TransientFailure(mismatch.reason, mismatch.detail, url=plan.url) from None
    facts = prove_pdf(streamed.path_tmp, min_bytes=min_bytes)
    judge_identity(facts, work, page_doi=None)
    return facts


def _refuse_pages(head: bytes, body: OpenBody) -> None:
    reason = classify_body(
        head, content_type=body.headers.get("content-type"), url=body.url, status=body.status, headers=body.headers
    )
    if reason is not None:
        raise CandidateRejected(reason, "the answer is a page, not a file", url=body.url, http_status=body.status)


def _request_headers(plan: DownloadPlan) -> dict[str, str] | None:
    return {"Referer": plan.referer} if plan.referer else None


def _stream_result(body: OpenBody, temp: TempFile) -> DownloadStreamResult:
    return DownloadStreamResult(
        path_tmp=Path(temp.path),
        bytes_written=temp.size,
        http_status=body.status,
        content_type=body.headers.get("content-type"),
        sha256=temp.sha256,
        md5=temp.md5,
        final_url=body.url,
        hops=body.hops,
        etag=body.headers.get("etag"),
        last_modified=body.headers.get("last-modified"),
        content_length_hdr=_length(body.headers),
        from_cache=body.from_cache,
        revalidated=body.revalidated,
    )


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
