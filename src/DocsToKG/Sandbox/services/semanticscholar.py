"""api.semanticscholar.org: a paper by any of its identifiers, alone or in batches."""

from __future__ import annotations

import json
from typing import Any

from DocsToKG.Sandbox.identifiers import PMC_BASE, PMID_BASE
from DocsToKG.Sandbox.messages import Request, Response, json_response, unknown_parameter
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.works import Work

_ROOT = "/graph/v1/paper/"
_FIELDS = frozenset(
    {"paperId", "externalIds", "openAccessPdf", "isOpenAccess", "title", "year", "authors", "venue", "url"}
)
_MAX_BATCH = 500
# What the service knows of a paper and the sandbox has nothing to say of, with the value for nothing.
_NOTHING: dict[str, Any] = {
    "abstract": None, "citationCount": 0, "citationStyles": None, "citations": [], "corpusId": None, "embedding": None,
    "fieldsOfStudy": None, "influentialCitationCount": 0, "journal": None, "publicationDate": None,
    "publicationTypes": None, "publicationVenue": None, "referenceCount": 0, "references": [], "s2FieldsOfStudy": [],
    "tldr": None,
}  # fmt: skip


class SemanticScholar(Service):
    name = "semanticscholar"
    hosts = ("api.semanticscholar.org",)

    def answer(self, request: Request) -> Response:
        if not request.path.startswith(_ROOT):
            return json_response({"message": "Not Found"}, 404)
        if (name := unknown_parameter(request, ("fields",))) is not None:
            return json_response({"error": f"{name} is unknown to the sandbox"}, 400)
        fields = {field.partition(".")[0] for field in request.query.get("fields", "title").split(",")}
        if unknown := sorted(fields - _FIELDS - set(_NOTHING)):
            return json_response({"error": f"Unrecognized or unsupported fields: [{', '.join(unknown)}]"}, 400)
        name = request.path.removeprefix(_ROOT)
        if name == "batch":
            return self._batch(request, fields)
        work = self._find(name)
        if work is None:
            return json_response({"error": f"Paper with id {name[:200]} not found"}, 404)
        return self._context.index_fault(work, self.name) or json_response(record(work, fields))

    def _batch(self, request: Request, fields: set[str]) -> Response:
        try:
            names = json.loads(request.body)["ids"]
        except (ValueError, TypeError, KeyError, RecursionError):
            names = None
        if request.method != "POST" or not isinstance(names, list) or len(names) > _MAX_BATCH:
            return json_response({"error": f"POST at most {_MAX_BATCH} ids as JSON"}, 400)
        works = [self._find(str(name)) for name in names]
        return json_response([record(work, fields) if work else None for work in works])

    def _find(self, name: str) -> Work | None:
        world = self._context.world
        scheme, colon, value = name.partition(":")
        if not colon:
            index = int(name[:10], 16) if len(name) == 40 and _is_hex(name) else -1
            work = world.by_index(index)
            return work if work and work.semantic_scholar_id == name.lower() else None
        match scheme.upper():
            case "DOI":
                return world.by_doi(value)
            case "ARXIV":
                return world.by_arxiv_id(value)
            case "PMID" if value.isdecimal():
                return world.by_number(int(value[:12]), PMID_BASE, "pmid")
            case "PMCID" if value.removeprefix("PMC").isdecimal():
                return world.by_number(int(value.removeprefix("PMC")[:12]), PMC_BASE, "pmcid")
        return None


def record(work: Work, fields: set[str]) -> dict[str, Any]:
    """The fields asked for; the id always."""
    ids = {"DOI": work.doi, "ArXiv": work.arxiv_id, "PubMed": work.pmid}
    ids["PubMedCentral"] = (work.pmcid or "").removeprefix("PMC") or None
    every: dict[str, Any] = _NOTHING | {
        "externalIds": {name: value for name, value in ids.items() if value},
        "openAccessPdf": _open_pdf(work),
        "isOpenAccess": work.oa_status != "closed",
        "title": work.title,
        "year": work.year,
        "venue": work.journal,
        "url": f"https://www.semanticscholar.org/paper/{work.semantic_scholar_id}",
        "authors": [{"authorId": None, "name": f"{given} {family}"} for given, family in work.authors],
    }
    return {"paperId": work.semantic_scholar_id} | {name: value for name, value in every.items() if name in fields}


def _open_pdf(work: Work) -> dict[str, str | None] | None:
    if work.oa_status == "closed":
        return None
    arxiv, publisher = work.copy("arxiv"), work.copy("publisher")
    url = ""
    if arxiv:
        url = arxiv.landing_url  # as the service often does: the page, not the file
    elif publisher and publisher.listed == "pdf":
        url = publisher.pdf_url
    elif publisher and publisher.listed == "page":
        url = publisher.landing_url
    disclaimer = "Notice: the copy may be subject to a licence of its own."
    return {"url": url, "status": work.oa_status.upper(), "license": work.licence, "disclaimer": disclaimer}


def _is_hex(text: str) -> bool:
    return all(char in "0123456789abcdefABCDEF" for char in text)
