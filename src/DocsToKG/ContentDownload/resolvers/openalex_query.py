"""Works that match an OpenAlex filter or search, page by page.

`key:value[,key:value]` is a filter, an address copied from OpenAlex is both, anything else is searched for. Cursor
paging, so that no result lies beyond reach. One call, one page: the caller takes pages as it needs works.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from urllib.parse import parse_qs, quote, urlsplit

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import Reason, Role, WorkArtifact
from DocsToKG.ContentDownload.errors import InputError, TransientFailure
from DocsToKG.ContentDownload.resolvers.openalex import DEFAULT_BASE_URL, FIELDS, work_of_record
from DocsToKG.ContentDownload.resolvers.record import Record, read_record
from DocsToKG.core.digest import canonical_json, sha256_hex

MAX_PER_PAGE = 100
_MAX_CHARS = 4000
_CONDITION = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*:\S[^,]*")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_WORKS_ADDRESS = re.compile(r"https?://(?:api\.)?openalex\.org/works/?\?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorksQuery:
    """What is asked for, in the service's own parameters."""

    search: str | None = None
    filter: str | None = None
    sort: str | None = None

    @property
    def key(self) -> str:
        """The same for the same question, however its blanks were set."""
        return sha256_hex(canonical_json([self.search, self.filter, self.sort]))[:16]

    def __str__(self) -> str:
        return " ".join(part for part in (self.search, self.filter, self.sort) if part)


class DeadCursor(InputError):
    """The service does not know the cursor any more. The list can only be begun anew."""


@dataclass(frozen=True, slots=True)
class QueryPage:
    """`next_cursor` is None on the last page; `total` is what the service counts, None when it does not say."""

    works: tuple[WorkArtifact, ...]
    next_cursor: str | None
    total: int | None


def read_query(text: str, *, since: str | None = None) -> WorksQuery:
    """The query of a text; with `since` (a year or a day) only of works published from then on."""
    plain = " ".join(text.split())
    if not plain or len(plain) > _MAX_CHARS:
        raise InputError(
            f"the query is empty or longer than {_MAX_CHARS} characters; write a filter such as is_oa:true or words"
        )
    if not any(char.isalnum() for char in plain):
        raise InputError(f"the query {plain[:40]!r} holds no word; write a filter such as is_oa:true or words")
    query = _of_address(plain) if _ADDRESS.match(plain) else _of_words(plain)
    if since is None:
        return query
    condition = f"from_publication_date:{_day(since)}"
    joined = f"{query.filter},{condition}" if query.filter else condition
    return WorksQuery(query.search, joined, query.sort)


def is_filter(query: str) -> bool:
    """`publication_year:2024,is_oa:true` is one; `deep learning: a review` is not."""
    return all(_CONDITION.fullmatch(part.strip()) for part in query.split(","))


async def page_of_works(
    query: WorksQuery,
    cursor: str | None,
    client: Client,
    call: Call,
    *,
    per_page: int = MAX_PER_PAGE,
    base_url: str = DEFAULT_BASE_URL,
) -> QueryPage:
    """One page; `cursor` None asks for the first. A query the service refuses is an `InputError`; one that it refuses
    at a cursor only may be good still: `DeadCursor`."""
    page = await client.fetch(_address(query, cursor or "*", per_page, base_url), Role.METADATA, call)
    answer = read_record(page) or Record()
    if page.status in (401, 403):
        raise InputError(f"OpenAlex answered {page.status}; check resolvers.openalex.api_key, or leave it unset")
    if page.status != 200:
        refused = InputError if cursor is None else DeadCursor
        said = answer.text("message") or f"status {page.status}"
        raise refused(f"OpenAlex refuses the query {str(query)[:200]!r}: {said}")
    if not isinstance(answer.get("results"), list):
        raise TransientFailure(Reason.DOWNLOAD_ERROR, "OpenAlex answered without results", url=page.url)
    records = answer.objects("results", at_most=MAX_PER_PAGE * 2)
    works = tuple(work for record in records if (work := work_of_record(record)) is not None)
    meta = answer.object("meta")
    total = meta.get("count")
    more = meta.text("next_cursor") if records else None
    return QueryPage(works, more if more != cursor else None, total if isinstance(total, int) else None)


def _of_words(text: str) -> WorksQuery:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) and all(_CONDITION.fullmatch(part) for part in parts if part):
        raise InputError(
            f"the filter {text[:200]!r} has a comma too many; join conditions as in is_oa:true,has_doi:true"
        )
    if is_filter(text):
        return WorksQuery(filter=",".join(part.strip() for part in text.split(",")))
    return WorksQuery(search=text)


def _of_address(address: str) -> WorksQuery:
    if _WORKS_ADDRESS.match(address) is None:
        raise InputError(
            "this is not the address of a list of works; copy one that begins with https://openalex.org/works?, "
            "or give a page as an identifier, without --query"
        )
    given = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    query = WorksQuery(given.get("search"), given.get("filter"), given.get("sort"))
    if query.search is None and query.filter is None:
        raise InputError("this OpenAlex address has neither filter= nor search=; copy it from a list of works")
    return query


def _day(text: str) -> str:
    """`2024` is its first day."""
    plain = text.strip()
    try:
        return date.fromisoformat(f"{plain}-01-01" if re.fullmatch("[0-9]{4}", plain) else plain).isoformat()
    except ValueError:
        raise InputError(f"{text[:40]!r} is not a day; write --since 2024 or --since 2024-05-31") from None


def _address(query: WorksQuery, cursor: str, per_page: int, base_url: str) -> str:
    given = (("search", query.search), ("filter", query.filter), ("sort", query.sort))
    parameters = [f"{name}={quote(value, safe=':,|!<>')}" for name, value in given if value]
    size = max(1, min(per_page, MAX_PER_PAGE))
    paging = [f"per_page={size}", f"cursor={quote(cursor, safe='*')}", f"select={FIELDS}"]
    return f"{base_url.rstrip('/')}/works?{'&'.join([*parameters, *paging])}"
