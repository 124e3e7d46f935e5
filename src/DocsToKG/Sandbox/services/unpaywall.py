"""api.unpaywall.org: open locations of a Crossref DOI, for callers who leave an address."""

from __future__ import annotations

from typing import Any

from DocsToKG.Sandbox.messages import Request, Response, html_response, json_response
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.works import Copy, Work

_REFUSED_ENDINGS = ("example.com", "example.org.invalid")


class Unpaywall(Service):
    name = "unpaywall"
    hosts = ("api.unpaywall.org",)

    def answer(self, request: Request) -> Response:
        if not request.path.startswith("/v2/"):
            return html_response("404 Not Found", "<h1>Not Found</h1>", 404)
        email = request.query.get("email", "")
        if "@" not in email or email.endswith(_REFUSED_ENDINGS):
            return _refusal("Please use your own email address in API calls. See http://unpaywall.org/products/api")
        work = self._context.world.by_doi(request.path.removeprefix("/v2/"))
        if work is None or not work.in_crossref:
            return html_response("404 Not Found", "<h1>Not Found</h1><p>The DOI is not in the index.</p>", 404)
        return self._context.index_fault(work, self.name) or json_response(record(work))


def record(work: Work) -> dict[str, Any]:
    locations = [_location(work, copy) for copy in listed_copies(work)]
    if locations:
        locations[0]["is_best"] = True
    best = locations[0] if locations else None
    return {
        "doi": work.doi.lower(),
        "doi_url": f"https://doi.org/{work.doi.lower()}",
        "title": work.title,
        "genre": "journal-article",
        "is_paratext": False,
        "published_date": work.date,
        "year": work.year,
        "journal_name": work.journal,
        "journal_is_oa": work.oa_status == "gold",
        "journal_is_in_doaj": work.oa_status == "gold",
        "publisher": work.journal,
        "is_oa": bool(locations),
        "oa_status": work.oa_status if locations else "closed",
        "has_repository_copy": any(location["host_type"] == "repository" for location in locations),
        "best_oa_location": best,
        "first_oa_location": best,
        "oa_locations": locations,
        "oa_locations_embargoed": [],
        "updated": f"{work.date}T10:00:00",
        "data_standard": 2,
        "z_authors": [{"given": given, "family": family} for given, family in work.authors],
    }


def listed_copies(work: Work) -> list[Copy]:
    """Publisher first, then the others, as the service ranks them."""
    return [copy for copy in work.copies if copy.listed != "nothing"]


def _location(work: Work, copy: Copy) -> dict[str, Any]:
    pdf = copy.pdf_url if copy.listed == "pdf" else None
    publisher = copy.publisher.name if copy.publisher and copy.kind == "repository" else None
    return {
        "url": pdf or copy.landing_url,
        "url_for_pdf": pdf,
        "url_for_landing_page": copy.landing_url,
        "version": copy.version,
        "license": work.licence if copy.kind in ("publisher", "pmc") else None,
        "host_type": "publisher" if copy.kind == "publisher" else "repository",
        "is_best": False,
        "pmh_id": _pmh_id(work, copy),
        "endpoint_id": None,
        "repository_institution": publisher,
        "oa_date": work.date,
        "evidence": "deprecated",
        "updated": "deprecated",
    }


def _pmh_id(work: Work, copy: Copy) -> str | None:
    match copy.kind:
        case "arxiv":
            return f"oai:arXiv.org:{work.arxiv_id}"
        case "pmc":
            return f"oai:pubmedcentral.nih.gov:{(work.pmcid or '').removeprefix('PMC')}"
        case "repository" if copy.publisher:
            return f"oai:{copy.publisher.host}:{work.serial}"
    return None


def _refusal(message: str) -> Response:
    return json_response({"HTTP_status_code": 422, "error": True, "message": message}, 422)
