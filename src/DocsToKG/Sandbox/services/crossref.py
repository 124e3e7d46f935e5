"""api.crossref.org: what publishers registered for a DOI, with the headers of its pools."""

from __future__ import annotations

from typing import Any

from DocsToKG.Sandbox.exchange import Reply, Request, json_reply, text_reply
from DocsToKG.Sandbox.services.doi import target_of
from DocsToKG.Sandbox.web import Web
from DocsToKG.Sandbox.works import Work

_POOLS = {"public": (5, 1), "polite": (10, 3)}
_MAX_ROWS = 1_000
_CREATIVE = {"cc-by": "by/4.0", "cc-by-nc": "by-nc/4.0", "cc-by-nc-nd": "by-nc-nd/4.0"}


class Crossref:
    name = "crossref"
    hosts = ("api.crossref.org",)

    def __init__(self, web: Web) -> None:
        self._web = web

    def answer(self, request: Request) -> Reply:
        reply = self._answer(request)
        polite = "mailto" in request.query or "mailto:" in request.headers.get("user-agent", "")
        pool = "polite" if polite else "public"
        rate, concurrent = _POOLS[pool]
        reply.headers |= {
            "x-api-pool": pool,
            "x-rate-limit-limit": str(int(rate * self._web.limits.rate_factor) or 1),
            "x-rate-limit-interval": "1s",
            "x-concurrency-limit": str(concurrent),
        }
        return reply

    def _answer(self, request: Request) -> Reply:
        path = request.path.removeprefix("/v1")
        if path == "/works":
            return self._list(request)
        doi = path.removeprefix("/works/").removesuffix("/agency").removesuffix("/transform")
        work = self._web.world.by_doi(doi) if path.startswith("/works/") else None
        if work is None or not work.in_crossref:
            return text_reply("Resource not found.", 404, "text/plain")
        if trouble := self._web.index_trouble(work, self.name):
            return trouble
        if path.endswith("/agency"):
            return _message("work-agency", {"DOI": work.doi.lower(), "agency": {"id": "crossref", "label": "Crossref"}})
        if path.endswith("/transform"):
            return Reply(200, json_reply(record(work)).body, "application/vnd.citationstyles.csl+json")
        return _message("work", record(work))

    def _list(self, request: Request) -> Reply:
        filters = [word for word in request.query.get("filter", "").split(",") if word]
        unknown = [word for word in filters if not word.startswith("doi:")]
        rows = request.query.get("rows", "20")
        if unknown or not rows.isdecimal() or int(rows) > _MAX_ROWS:
            problem = {"type": "parameter-not-allowed", "value": (unknown or [rows])[0], "message": "not understood"}
            failure = {"status": "failed", "message-type": "validation-failure", "message": [problem]}
            return json_reply(failure, 400)
        works = [self._web.world.by_doi(word.removeprefix("doi:")) for word in filters[:_MAX_ROWS]]
        items = [record(work) for work in works if work and work.in_crossref][: int(rows)]
        return _message("work-list", {"total-results": len(items), "items-per-page": int(rows), "items": items})


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


def _message(kind: str, message: Any) -> Reply:
    return json_reply({"status": "ok", "message-type": kind, "message-version": "1.0.0", "message": message})
