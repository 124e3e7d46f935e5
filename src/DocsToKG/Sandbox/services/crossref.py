"""api.crossref.org: what publishers registered for a DOI, with the headers of its pools."""

from __future__ import annotations

from typing import Any

from DocsToKG.Sandbox.messages import Request, Response, json_response, text_response, unknown_parameter
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.doi import target_of
from DocsToKG.Sandbox.works import Work

_POOLS = {"public": (5, 1), "polite": (10, 3)}
_MAX_ROWS = 1_000
_KNOWN = ("filter", "rows", "offset", "cursor", "query", "select", "mailto")
_FIELDS = (
    *("DOI", "type", "title", "container-title", "publisher", "volume", "issue", "page", "author", "issued"),
    *("link", "license", "resource", "relation", "URL"),
)
_CREATIVE = {"cc-by": "by/4.0", "cc-by-nc": "by-nc/4.0", "cc-by-nc-nd": "by-nc-nd/4.0"}


class Crossref(Service):
    name = "crossref"
    hosts = ("api.crossref.org",)

    def answer(self, request: Request) -> Response:
        response = self._answer(request)
        polite = "mailto" in request.query or "mailto:" in request.headers.get("user-agent", "")
        pool = "polite" if polite else "public"
        rate, concurrent = _POOLS[pool]
        response.headers |= {
            "x-api-pool": pool,
            "x-rate-limit-limit": str(int(rate * self._context.limits.rate_factor) or 1),
            "x-rate-limit-interval": "1s",
            "x-concurrency-limit": str(concurrent),
        }
        return response

    def _answer(self, request: Request) -> Response:
        path = request.path.removeprefix("/v1")
        if path == "/works":
            return self._list(request)
        doi = path.removeprefix("/works/").removesuffix("/agency").removesuffix("/transform")
        work = self._context.world.by_doi(doi) if path.startswith("/works/") else None
        if work is None or not work.in_crossref:
            return text_response("Resource not found.", 404, "text/plain")
        if fault_response := self._context.index_fault(work, self.name):
            return fault_response
        if path.endswith("/agency"):
            return _message("work-agency", {"DOI": work.doi.lower(), "agency": {"id": "crossref", "label": "Crossref"}})
        if path.endswith("/transform"):
            return Response(200, json_response(record(work)).body, "application/vnd.citationstyles.csl+json")
        return _message("work", record(work))

    def _list(self, request: Request) -> Response:
        filters = [word for word in request.query.get("filter", "").split(",") if word]
        rows, offset = request.query.get("rows", "20"), request.query.get("offset", "0")
        wrong = unknown_parameter(request, _KNOWN) or next((w for w in filters if not w.startswith("doi:")), None)
        if wrong is not None:
            return _failure("parameter-not-allowed", wrong, "unknown to the sandbox")
        if not rows.isdecimal() or int(rows[:6]) > _MAX_ROWS or not offset.isdecimal():
            return _failure("integer-not-valid", rows, f"rows are at most {_MAX_ROWS}")
        cursor = request.query.get("cursor")
        start = _start(cursor) if cursor is not None else int(offset[:9])
        if start is None:
            return _failure("cursor-not-valid", str(cursor), "no cursor of ours", status=404)
        works = [work for work in self._asked(filters, request) if work.in_crossref]
        shown = [record(work) for work in works[start : start + int(rows)]]
        select = [name for name in request.query.get("select", "").split(",") if name]
        if unknown := [name for name in select if name not in _FIELDS]:
            return _failure("parameter-not-allowed", unknown[0], "no field that may be selected")
        items = [{name: item[name] for name in select if name in item} for item in shown] if select else shown
        message: dict[str, Any] = {"total-results": len(works), "items-per-page": int(rows), "items": items}
        if cursor is not None:
            message["next-cursor"] = f"sandbox-{start + len(items)}"
        return _message("work-list", message)

    def _asked(self, filters: list[str], request: Request) -> list[Work]:
        """Those that the filter names, else all; of these the ones whose title, journal or authors have the words."""
        world = self._context.world
        named = [world.by_doi(word.removeprefix("doi:")) for word in filters[:_MAX_ROWS]]
        works = [work for work in named if work] if filters else [world.work(n) for n in range(world.count)]
        words = request.query.get("query", "").lower().split()[:20]
        return [work for work in works if all(word in _text(work) for word in words)]


def _text(work: Work) -> str:
    people = " ".join(f"{given} {family}" for given, family in work.authors)
    return f"{work.title} {work.journal} {people}".lower()


def _start(cursor: str) -> int | None:
    if cursor == "*":
        return 0
    number = cursor.removeprefix("sandbox-")
    return int(number) if cursor.startswith("sandbox-") and number.isdecimal() else None


def _failure(kind: str, value: str, message: str, *, status: int = 400) -> Response:
    problem = {"type": kind, "value": value, "message": message}
    return json_response({"status": "failed", "message-type": "validation-failure", "message": [problem]}, status)


def record(work: Work) -> dict[str, Any]:
    date = [int(part) for part in work.date.split("-")]
    return {
        "DOI": work.doi.lower(),
        "type": "journal-article",
        "title": [work.title],
        "container-title": [work.journal],
        "publisher": work.journal,
        "volume": work.volume,
        "issue": work.issue,
        "page": work.page_range,
        "author": [{"given": given, "family": family, "sequence": "first"} for given, family in work.authors],
        "issued": {"date-parts": [date]},
        "link": _links(work),
        "license": _licences(work, date),
        "resource": {"primary": {"URL": target_of(work)}},
        "relation": {},
        "URL": f"https://doi.org/{work.doi.lower()}",
    }


def _links(work: Work) -> list[dict[str, str]]:
    """A link is no statement of open access: closed works have them too."""
    copy = work.copy("publisher")
    if copy is None:
        return []
    kind = "application/pdf" if work.index % 3 else "unspecified"
    link = {"URL": copy.pdf_url, "content-version": "vor", "intended-application": "text-mining"}
    return [{**link, "content-type": kind}, {**link, "content-type": "text/xml", "URL": copy.landing_url + "#xml"}]


def _licences(work: Work, date: list[int]) -> list[dict[str, Any]]:
    if work.licence is None or work.oa_status == "closed":
        return []
    url = f"https://creativecommons.org/licenses/{_CREATIVE[work.licence]}/"
    return [{"URL": url, "start": {"date-parts": [date]}, "delay-in-days": 0, "content-version": "vor"}]


def _message(kind: str, message: Any) -> Response:
    return json_response({"status": "ok", "message-type": kind, "message-version": "1.0.0", "message": message})
