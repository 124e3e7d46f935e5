"""Fetch and store the files beside a paper, once the paper itself is stored.

Nothing is known to prove them but their length and a published digest; a web page in their place is refused. Knows
neither tiers nor jobs. Promises: whatever happens to them, the paper stays obtained; a bounded number of files of
bounded size is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.ContentDownload.api.ports import Call, Client, OpenBody
from DocsToKG.ContentDownload.api.types import Reason, Role, Supplement, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, PutOff, TransientFailure
from DocsToKG.ContentDownload.storage.local import LocalStore, TempFile
from DocsToKG.ContentDownload.storage.paths import supplement_path
from DocsToKG.ContentDownload.validation.checksum import check_headers, check_published
from DocsToKG.ContentDownload.validation.forms import PDF, has_pdf_header
from DocsToKG.ContentDownload.validation.page_kinds import classify_body

_HEAD_BYTES = 64 * 1024
_PAGES = (".html", ".htm", ".xhtml")


@dataclass(frozen=True, slots=True)
class SupplementDownload:
    """`most` files of at most `max_bytes` each. `barred` says why bytes may not be kept for a work, or None."""

    store: LocalStore
    max_bytes: int
    most: int
    barred: Callable[[str, str], tuple[Reason, str] | None] = lambda sha256, work_id: None

    async def __call__(
        self, files: Sequence[Supplement], work: WorkArtifact, client_of: Callable[[str], Client], call: Call
    ) -> list[dict[str, Any]]:
        """What became of each, as the record tells it."""
        told = []
        for file in files[: self.most]:
            call.cancel.raise_if_cancelled()
            line: dict[str, Any] = {"name": file.name, "url": file.url, "source": file.source}
            try:
                told.append(line | await self._obtain(file, work, client_of(file.source), call))
            except (CandidateRejected, TransientFailure, PutOff) as problem:
                told.append(line | {"reason": problem.reason})
                if isinstance(problem, PutOff) or problem.reason == Reason.BUDGET_EXHAUSTED:
                    break
        return told

    async def _obtain(self, file: Supplement, work: WorkArtifact, client: Client, call: Call) -> dict[str, Any]:
        headers = {"Referer": file.referer} if file.referer is not None else None
        body = await client.open(file.url, Role.ARTIFACT, call, headers=headers, max_bytes=self.max_bytes)
        with self.store.temp() as temp:
            try:
                head = await _read(body, temp)
            finally:
                await body.aclose()
            self._check(file, body, temp, head, work)
            stored = await self.store.storing(temp, human=supplement_path(work, file.name))
        body.confirm(stored.sha256)
        said = (body.headers.get("content-type") or "").partition(";")[0].strip().lower()
        return {
            "path": self.store.relative(stored.place),
            "sha256": stored.sha256,
            "size_bytes": stored.size,
            "mime": PDF.mime if has_pdf_header(head) else said or None,
        }

    def _check(self, file: Supplement, body: OpenBody, temp: TempFile, head: bytes, work: WorkArtifact) -> None:
        if not head:
            raise CandidateRejected(Reason.EMPTY_BODY, "no bytes came", url=file.url)
        kind = body.headers.get("content-type")
        why = classify_body(head, content_type=kind, url=body.url, status=body.status, headers=body.headers)
        if why is not None and not (why == Reason.HTML_INSTEAD_OF_PDF and file.name.lower().endswith(_PAGES)):
            raise CandidateRejected(why, "the answer is a page, not a file", url=file.url)
        source = temp.path if temp.data is None else temp.data
        check_published(file.checksum, md5="", sha256=temp.sha256, file=source)
        check_headers(body.headers, md5="", sha256=temp.sha256, url=body.url, file=source)
        if (barred := self.barred(temp.sha256, work.work_id)) is not None:
            raise CandidateRejected(barred[0], barred[1], url=file.url)


async def _read(body: OpenBody, temp: TempFile) -> bytes:
    """All of the body into the temporary file; its beginning."""
    head = b""
    async for chunk in body.chunks():
        await temp.wait_for_room(len(chunk))
        temp.write(chunk)
        if len(head) < _HEAD_BYTES:
            head += chunk[: _HEAD_BYTES - len(head)]
    return head
