"""Indexes with few records: DOAJ, OpenAIRE, DataCite, fatcat, CORE, HAL and OSTI, each in the form of the original.

DOAJ knows the landing pages of gold works, OpenAIRE those of copies in repositories. The others know no work.
"""

from __future__ import annotations

from typing import Any

from DocsToKG.Sandbox.messages import Request, Response, json_response
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.works import Work

_DOAJ_SEARCH = "/api/v4/search/articles/"
_OPENAIRE_SEARCH = "/graph/v3/research-products"


class SmallIndexes(Service):
    name = "small_indexes"
    hosts = (
        "doaj.org",
        "api.openaire.eu",
        "api.datacite.org",
        "api.fatcat.wiki",
        "api.core.ac.uk",
        "api.archives-ouvertes.fr",
        "www.osti.gov",
    )

    def answer(self, request: Request) -> Response:
        match request.host:
            case "doaj.org":
                return self._doaj(request)
            case "api.openaire.eu":
                return self._openaire(request)
            case "api.core.ac.uk":
                return _core(request)
            case "api.archives-ouvertes.fr":
                return json_response({"response": {"numFound": 0, "start": 0, "docs": []}})
            case "www.osti.gov":
                return json_response([], headers={"X-Total-Count": "0"})
            case "api.datacite.org":
                title = "The resource you are looking for doesn't exist."
                return json_response({"errors": [{"status": "404", "title": title}]}, 404)
            case _:
                nothing = {"success": False, "error": "not-found", "message": "no such release"}
                return json_response(nothing, 404)

    def _doaj(self, request: Request) -> Response:
        if not request.path.startswith(_DOAJ_SEARCH):
            return json_response({"status": "forbidden"}, 403)
        field, _, doi = request.path.removeprefix(_DOAJ_SEARCH).partition(":")
        work = self._context.world.by_doi(doi.strip('"')) if field == "doi" else None
        found = [_doaj_article(work)] if work is not None and work.oa_status in ("gold", "diamond") else []
        return json_response({"total": len(found), "page": 1, "pageSize": 5, "results": found})

    def _openaire(self, request: Request) -> Response:
        if request.path != _OPENAIRE_SEARCH:
            return json_response({"message": "Not Found"}, 404)
        work = self._context.world.by_doi(request.query.get("pid", ""))
        found = [_openaire_product(work)] if work is not None and work.copy("repository") is not None else []
        return json_response({"header": {"numFound": len(found)}, "results": found})


def _core(request: Request) -> Response:
    if not request.headers.get("authorization", "").startswith("Bearer "):
        return json_response({"message": "Rate limit exceeded"}, 401)
    return json_response({"totalHits": 0, "limit": 5, "offset": 0, "results": []})


def _doaj_article(work: Work) -> dict[str, Any]:
    publisher = work.copy("publisher")
    links = [] if publisher is None else [{"type": "fulltext", "content_type": "HTML", "url": publisher.landing_url}]
    bibjson = {
        "title": work.title,
        "year": str(work.year),
        "identifier": [{"type": "doi", "id": work.doi}],
        "link": links,
        "journal": {"title": work.journal},
    }
    return {"id": f"doaj-{work.index}", "bibjson": bibjson}


def _openaire_product(work: Work) -> dict[str, Any]:
    copy = work.copy("repository")
    assert copy is not None
    instance = {
        "urls": [copy.landing_url],
        "license": work.licence,
        "accessRight": {"label": "OPEN"},
        "pids": [{"scheme": "doi", "value": work.doi}],
    }
    return {"mainTitle": work.title, "pids": [{"scheme": "doi", "value": work.doi}], "instances": [instance]}
