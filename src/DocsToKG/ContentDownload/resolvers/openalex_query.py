"""Works that match an OpenAlex filter or search, page by page.

`key:value[,key:value]` is a filter, anything else is searched for. Cursor paging, so that no result lies beyond reach.
The caller takes pages as it needs works; nothing is held back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.steps import Steps
from DocsToKG.ContentDownload.api.types import Reason, Role, WorkArtifact
from DocsToKG.ContentDownload.errors import InputError, TransientFailure
from DocsToKG.ContentDownload.resolvers.answers import object_of, objects_of, read_object, text_of
from DocsToKG.ContentDownload.resolvers.base import refuse_busy
from DocsToKG.ContentDownload.resolvers.openalex_record import DEFAULT_BASE_URL, FIELDS, work_of_record

MAX_PER_PAGE = 100
_CONDITION = re.compile(r"[a-z][a-z_]*(?:\.[a-z_]+)*:\S[^,]*")


@dataclass(frozen=True, slots=True)
class QueryPage:
    """`next_cursor` is None on the last page; `total` is what the service counts, None when it does not say."""

    works: tuple[WorkArtifact, ...]
    next_cursor: str | None
    total: int | None


def is_filter(query: str) -> bool:
    """`publication_year:2024,is_oa:true` is one; `deep learning: a review` is not."""
    return all(_CONDITION.fullmatch(part.strip()) for part in query.split(","))


def page_of_works(
    query: str,
    cursor: str | None,
    per_page: int,
    client: Client,
    call: Call,
    *,
    base_url: str = DEFAULT_BASE_URL,
) -> Steps[QueryPage]:
    """One page; `cursor` None asks for the first. A query the service refuses is an `InputError`."""
    address = _address(query, cursor or "*", per_page, base_url)
    page = yield from client.fetch(address, Role.METADATA, call)
    refuse_busy(page)
    answer = read_object(page)
    if page.status in (401, 403):
        raise InputError(f"OpenAlex answered {page.status}; check resolvers.openalex.api_key, or leave it unset")
    if page.status != 200:
        said = text_of(answer, "message") if answer is not None else None
        raise InputError(f"OpenAlex refuses the query {query[:200]!r}: {said or f'status {page.status}'}")
    if answer is None or not isinstance(answer.get("results"), list):
        raise TransientFailure(Reason.DOWNLOAD_ERROR, "OpenAlex answered without results", url=page.url)
    records = objects_of(answer, "results", at_most=MAX_PER_PAGE * 2)
    works = tuple(work for record in records if (work := work_of_record(record)) is not None)
    meta = object_of(answer, "meta")
    total = meta.get("count")
    more = text_of(meta, "next_cursor") if records else None
    return QueryPage(works, more if more != cursor else None, total if isinstance(total, int) else None)


def search_works(
    query: str, *, client: Client, call: Call, max_results: int, base_url: str = DEFAULT_BASE_URL
) -> Steps[tuple[WorkArtifact, ...]]:
    """Up to `max_results` works, each once, in the service's order."""
    found: dict[str, WorkArtifact] = {}
    cursor: str | None = None
    while len(found) < max_results:
        # A full page even when fewer are wanted: the service charges by request, not by result.
        page = yield from page_of_works(query, cursor, MAX_PER_PAGE, client, call, base_url=base_url)
        for work in page.works:
            found.setdefault(work.work_id, work)
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(found.values())[:max_results]


def _address(query: str, cursor: str, per_page: int, base_url: str) -> str:
    if not query.strip() or len(query) > 4000:
        raise InputError(
            "the query is empty or longer than 4000 characters; write a filter such as is_oa:true or words"
        )
    kind = "filter" if is_filter(query) else "search"
    size = max(1, min(per_page, MAX_PER_PAGE))
    text = quote(query.strip(), safe=":,|!<>")
    return (
        f"{base_url.rstrip('/')}/works?{kind}={text}&per_page={size}&cursor={quote(cursor, safe='*')}&select={FIELDS}"
    )
