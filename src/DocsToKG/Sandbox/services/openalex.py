"""api.openalex.org: works by any identifier, and lists by filter or search with cursors."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from DocsToKG.Sandbox.identifiers import OPENALEX_BASE, PMID_BASE
from DocsToKG.Sandbox.messages import Request, Response, html_response, json_response, unknown_parameter
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.unpaywall import listed_copies
from DocsToKG.Sandbox.works import Copy, Work

_MAX_VALUES = 100
_MAX_TARGET = 4094
_SINGLE = ("select", "api_key", "mailto")
_LIST = (*_SINGLE, "filter", "search", "page", "per_page", "per-page", "cursor", "sort", "sample", "seed", "group_by")
_ARXIV_PREFIX = "10.48550/arxiv."
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Test = Callable[[Work], bool]
_SORTED: dict[str, Callable[[Work], Any]] = {
    "publication_date": lambda work: work.date,
    "publication_year": lambda work: work.year,
    "display_name": lambda work: work.title,
}
_GROUPED: dict[str, Callable[[Work], str]] = {
    "publication_year": lambda work: str(work.year),
    "open_access.oa_status": lambda work: work.oa_status if listed_copies(work) else "closed",
    "is_oa": lambda work: str(bool(listed_copies(work))).lower(),
    "type": lambda work: "article" if work.in_crossref else "preprint",
}


class BadFilter(ValueError):
    """A filter or cursor that the service would refuse."""


class OpenAlex(Service):
    name = "openalex"
    hosts = ("api.openalex.org", "content.openalex.org")

    def answer(self, request: Request) -> Response:
        key = _key(request)
        if key == "":
            return json_response({"error": "Invalid API key", "message": "omit api_key when you have none"}, 401)
        if request.host == "content.openalex.org":
            return json_response({"error": "Not cached" if key else "API key required"}, 404 if key else 401)
        try:
            _check(request)
            response = self._list(request) if request.path == "/works" else self._single(request)
        except BadFilter as error:
            response = json_response({"error": "Invalid query parameters error.", "message": str(error)}, 400)
        limit = str(int(100 * self._context.limits.rate_factor) or 1)
        response.headers |= {"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": limit, "X-RateLimit-Reset": "1"}
        return response

    def _single(self, request: Request) -> Response:
        work = self._find(request.path.removeprefix("/works/"))
        if work is None:
            return html_response("404 Not Found", "<h1>Not Found</h1>", 404)
        return self._context.index_fault(work, self.name) or json_response(_selected(record(work), request))

    def _find(self, name: str) -> Work | None:
        world = self._context.world
        name = name.removeprefix("https://openalex.org/")
        lowered = name.lower()
        for start in ("doi:", "https://doi.org/", "https:/doi.org/"):
            if lowered.startswith(start):
                doi = name[len(start) :]
                # A preprint is one entity with its published paper, found under either DOI.
                arxiv_id = doi[len(_ARXIV_PREFIX) :] if doi.lower().startswith(_ARXIV_PREFIX) else ""
                return world.by_doi(doi) or world.by_arxiv_id(arxiv_id)
        if lowered.startswith("pmid:") and name[5:].isdecimal():
            return world.by_number(int(name[5:]), PMID_BASE, "pmid")
        if lowered.startswith("w") and name[1:].isdecimal():
            return world.by_number(int(name[1:]), OPENALEX_BASE, "openalex_id")
        return None

    def _list(self, request: Request) -> Response:
        works = _sorted(list(self._matching(request)), request)
        size, start = _page(request)
        if "group_by" in request.query:
            return json_response({"meta": {"count": len(works)}, "results": [], "group_by": _groups(works, request)})
        shown = works[start : start + size]
        after = start + size if start + size < len(works) else None
        meta = {"count": len(works), "per_page": size, "next_cursor": _cursor(after)}
        return json_response(
            {"meta": meta, "results": [_selected(record(work), request) for work in shown], "group_by": []}
        )

    def _matching(self, request: Request) -> Iterator[Work]:
        world = self._context.world
        words = request.query.get("filter", "").split(",")
        tests = [_test(word) for word in words if word and not word.startswith("doi:")]
        names = [word.removeprefix("doi:") for word in words if word.startswith("doi:")]
        sought = request.query.get("search", "").lower().split()[:20]
        for work in self._named(names) if names else map(world.work, range(world.count)):
            title = work.title.lower()
            if all(test(work) for test in tests) and all(word in title for word in sought):
                yield work

    def _named(self, words: list[str]) -> list[Work]:
        """The works a `doi:a|b` filter names. A comma inside a DOI would end the filter, as it does in reality."""
        values = [value for word in words for value in word.split("|")]
        if len(values) > _MAX_VALUES:
            raise BadFilter(f"at most {_MAX_VALUES} values may be joined with |")
        found = [self._context.world.by_doi(value.removeprefix("https://doi.org/")) for value in values]
        return [work for work in found if work]


def _check(request: Request) -> None:
    is_list = request.path == "/works"
    if is_list and len(request.target) > _MAX_TARGET:
        raise BadFilter(f"the address is longer than {_MAX_TARGET} characters")
    name = unknown_parameter(request, _LIST if is_list else _SINGLE)
    if name is not None:
        raise BadFilter(f"{name} is unknown to the sandbox")


def _selected(shown: dict[str, Any], request: Request) -> dict[str, Any]:
    names = [name for name in request.query.get("select", "").split(",") if name]
    if unknown := [name for name in names if name not in shown]:
        raise BadFilter(f"{unknown[0]} is not a field of works that the sandbox has")
    return {name: shown[name] for name in names} if names else shown


def _sorted(works: list[Work], request: Request) -> list[Work]:
    """In the order asked for, or a sample of them."""
    if "sample" in request.query:
        size, seed = request.query["sample"], request.query.get("seed", "0")
        if not size.isdecimal():
            raise BadFilter("sample must be a number")
        return Random(seed).sample(works, min(int(size[:6]), len(works)))
    for word in reversed([word for word in request.query.get("sort", "").split(",") if word]):
        name, _, way = word.partition(":")
        if name not in _SORTED or way not in ("", "asc", "desc"):
            raise BadFilter(f"sort by {word} is unknown to the sandbox")
        works = sorted(works, key=_SORTED[name], reverse=way == "desc")
    return works


def _groups(works: list[Work], request: Request) -> list[dict[str, Any]]:
    name = request.query["group_by"]
    if name not in _GROUPED:
        raise BadFilter(f"group_by {name} is unknown to the sandbox")
    counts = Counter(_GROUPED[name](work) for work in works)
    return [{"key": key, "key_display_name": key, "count": count} for key, count in counts.most_common()]


def _key(request: Request) -> str | None:
    """As parameter or as bearer; blank is a wrong key, none is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return request.query.get("api_key", token.strip() if scheme.lower() == "bearer" else None)


def record(work: Work) -> dict[str, Any]:
    locations = [_location(work, copy) for copy in _copies(work)]
    open_places = [location for location in locations if location["is_oa"]]
    best = open_places[0] if open_places else None
    ids = {"openalex": f"https://openalex.org/{work.openalex_id}", "doi": f"https://doi.org/{work.doi.lower()}"}
    if work.pmid:
        ids["pmid"] = f"https://pubmed.ncbi.nlm.nih.gov/{work.pmid}"
    return {
        "id": ids["openalex"],
        "doi": ids["doi"],
        "title": work.title,
        "display_name": work.title,
        "publication_year": work.year,
        "publication_date": work.date,
        "ids": ids,
        "type": "article" if work.in_crossref else "preprint",
        "biblio": {
            "volume": work.volume,
            "issue": work.issue,
            "first_page": str(work.first_page),
            "last_page": work.page_range.partition("-")[2],
        },
        "is_retracted": False,
        "is_paratext": False,
        "open_access": {
            "is_oa": bool(best),
            "oa_status": work.oa_status if best else "closed",
            "oa_url": (best["pdf_url"] or best["landing_page_url"]) if best else None,
            "any_repository_has_fulltext": any(copy.kind != "publisher" for copy in listed_copies(work)),
        },
        "authorships": [{"author": {"display_name": f"{given} {family}"}} for given, family in work.authors],
        "primary_location": locations[0] if locations else None,
        "best_oa_location": best,
        "locations": locations,
        "locations_count": len(locations),
        "has_content": {"pdf": False, "grobid_xml": False},
        "content_urls": None,
    }


def _copies(work: Work) -> list[Copy]:
    """All listed copies, and the publisher's page even where it is closed."""
    return [copy for copy in work.copies if copy.listed != "nothing" or copy.kind == "publisher"]


def _location(work: Work, copy: Copy) -> dict[str, Any]:
    is_open = copy.listed != "nothing"
    return {
        "id": _location_id(work, copy),
        "is_oa": is_open,
        "landing_page_url": copy.landing_url,
        "pdf_url": copy.pdf_url if copy.listed == "pdf" else None,
        "version": copy.version,
        "license": work.licence if is_open and copy.kind == "publisher" else None,
        "license_id": None,
        "is_accepted": copy.version != "submittedVersion",
        "is_published": copy.version == "publishedVersion",
        "source": {
            "id": None,
            "display_name": work.journal,
            "type": "journal" if copy.kind == "publisher" else "repository",
        },
    }


def _location_id(work: Work, copy: Copy) -> str:
    match copy.kind:
        case "arxiv":
            return f"pmh:oai:arXiv.org:{work.arxiv_id}"
        case "pmc":
            return f"pmh:oai:pubmedcentral.nih.gov:{(work.pmcid or '').removeprefix('PMC')}"
        case "repository":
            return f"pmh:oai:{copy.publisher.host if copy.publisher else 'unknown'}:{work.serial}"
    return f"doi:{work.doi.lower()}"


def _test(word: str) -> Test:
    name, _, value = word.partition(":")
    match name:
        case "publication_year" if value.isdecimal():
            return lambda work: work.year == int(value)
        case "from_publication_date" if _DAY.fullmatch(value):
            return lambda work: work.date >= value
        case "to_publication_date" if _DAY.fullmatch(value):
            return lambda work: work.date <= value
        case "is_oa" | "open_access.is_oa" if value in ("true", "false"):
            return lambda work: bool(listed_copies(work)) == (value == "true")
        case "open_access.oa_status" | "oa_status":
            return lambda work: work.oa_status == value
        case "title.search":
            return lambda work: all(part in work.title.lower() for part in value.lower().split())
    raise BadFilter(f"{name} is not a valid field, or {value!r} no value for it")


def _page(request: Request) -> tuple[int, int]:
    size = request.query.get("per_page") or request.query.get("per-page") or "25"
    if not size.isdecimal() or not 1 <= int(size[:6]) <= 100:
        raise BadFilter("per_page must be a number between 1 and 100")
    cursor = request.query.get("cursor", "*")
    try:
        if cursor == "*":
            return int(size), max(0, int(request.query.get("page", "1")) - 1) * int(size)
        return int(size), max(0, int(urlsafe_b64decode(cursor.encode()).decode()))
    except ValueError as error:
        raise BadFilter("page or cursor is not one we gave") from error


def _cursor(start: int | None) -> str | None:
    return None if start is None else urlsafe_b64encode(str(start).encode()).decode()
