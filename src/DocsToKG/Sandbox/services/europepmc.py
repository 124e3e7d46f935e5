"""Europe PMC: search by identifier, and rendered PDFs of its open articles."""

from __future__ import annotations

import re
from typing import Any

from DocsToKG.Sandbox.identifiers import PMC_BASE, PMID_BASE
from DocsToKG.Sandbox.messages import Request, Response, html_response, json_response, unknown_parameter
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.file_responses import file_response
from DocsToKG.Sandbox.services.pages import jats
from DocsToKG.Sandbox.works import Work

_ROOT = "/europepmc/webservices/rest"
_BY_DOI = re.compile(r'DOI:"?([^"\s]+)"?')
_BY_PMCID = re.compile(r'PMCID:"?PMC(\d{1,12})"?')
_BY_PMID = re.compile(r'EXT_ID:"?(\d{1,12})"?(?: AND SRC:MED)?')


_KNOWN = ("query", "resultType", "format", "pageSize", "cursorMark", "email")


def _is_known(term: str) -> bool:
    """An identifier, or plain words; other fields and operators are unknown here."""
    if any(pattern.fullmatch(term) for pattern in (_BY_DOI, _BY_PMCID, _BY_PMID)):
        return True
    return re.fullmatch(r'"?[\w .,-]*"?', term) is not None and not re.search(r"\b(?:AND|NOT)\b", term)


class EuropePmc(Service):
    name = "europepmc"
    hosts = ("www.ebi.ac.uk", "europepmc.org")

    def answer(self, request: Request) -> Response:
        if request.host == "europepmc.org":
            return self._render(request)
        if request.path == f"{_ROOT}/search":
            return self._search(request)
        if match := re.fullmatch(_ROOT + r"/PMC(\d{1,12})/fullTextXML", request.path):
            work = self._context.world.by_number(int(match[1]), PMC_BASE, "pmcid")
            if work:
                return Response(200, jats(work), "application/xml")
        return html_response("404", "<h1>Not Found</h1>", 404)

    def _search(self, request: Request) -> Response:
        query = request.query.get("query", "").strip()[:8000]
        name = unknown_parameter(request, _KNOWN)
        terms = re.split(r"\s+OR\s+", query.strip("()"))
        if name is None and not all(map(_is_known, terms)):
            name = "query"
        if name is not None or request.query.get("format", "json") != "json":
            return json_response({"errCode": 400, "errMsg": f"{name or 'format'} is unknown to the sandbox"}, 400)
        works = list({work.index: work for term in terms for work in self._found(term)}.values())
        if len(works) == 1 and (fault_response := self._context.index_fault(works[0], self.name)):
            return fault_response
        size = request.query.get("pageSize", "25")
        start = request.query.get("cursorMark", "*").removeprefix("sandbox-")
        first = int(start) if start.isdecimal() else 0
        shown = works[first : first + (int(size) if size.isdecimal() else 25)]
        after = first + len(shown)
        return json_response(
            {
                "version": "6.9",
                "hitCount": len(works),
                "nextCursorMark": f"sandbox-{after}" if after < len(works) else request.query.get("cursorMark", "*"),
                "request": {"queryString": query[:1000], "resultType": "core"},
                "resultList": {"result": [record(work) for work in shown]},
            }
        )

    def _found(self, term: str) -> list[Work]:
        """By an identifier, else by words of the title."""
        if ":" in term:
            work = self._find(term)
            return [work] if work else []
        world, words = self._context.world, term.lower().strip('"').split()
        works = (world.work(number) for number in range(world.count)) if words else iter(())
        return [work for work in works if work.pmid and all(word in work.title.lower() for word in words)]

    def _find(self, query: str) -> Work | None:
        """Only works in PubMed are known here."""
        world = self._context.world
        if match := _BY_DOI.fullmatch(query):
            work = world.by_doi(match[1])
            return work if work and work.pmid else None
        if match := _BY_PMCID.fullmatch(query):
            return world.by_number(int(match[1]), PMC_BASE, "pmcid")
        if match := _BY_PMID.fullmatch(query):
            return world.by_number(int(match[1]), PMID_BASE, "pmid")
        return None

    def _render(self, request: Request) -> Response:
        number = re.fullmatch(r"/articles/PMC(\d{1,12})", request.path)
        if request.path == "/backend/ptpmcrender.fcgi":
            number = re.fullmatch(r"PMC(\d{1,12})", request.query.get("accid", ""))
        work = self._context.world.by_number(int(number[1]), PMC_BASE, "pmcid") if number else None
        copy = work.copy("europepmc") if work else None
        if work is None or copy is None:
            return html_response("Not found", "<h1>Article not found</h1>", 404)
        if "pdf" in request.query or request.query.get("blobtype") == "pdf":
            return file_response(self._context, request, work, copy)
        return html_response("Europe PMC", f"<h1>{work.pmcid}</h1>")


def record(work: Work) -> dict[str, Any]:
    in_pmc = work.pmcid is not None
    links = [_link("doi", "S", "Subscription required", f"https://doi.org/{work.doi}")]
    if in_pmc:
        links.insert(0, _link("html", "OA", "Open access", f"https://europepmc.org/articles/{work.pmcid}"))
        links.insert(0, _link("pdf", "OA", "Open access", f"https://europepmc.org/articles/{work.pmcid}?pdf=render"))
    return {
        "id": work.pmid,
        "source": "MED",
        "pmid": work.pmid,
        **({"pmcid": work.pmcid, "fullTextIdList": {"fullTextId": [work.pmcid]}} if in_pmc else {}),
        "doi": work.doi,
        "title": work.title,
        "pubYear": str(work.year),
        "pubTypeList": {"pubType": ["research-article", "Journal Article"]},
        "isOpenAccess": "Y" if in_pmc else "N",
        "inEPMC": "Y" if in_pmc else "N",
        "inPMC": "Y" if in_pmc else "N",
        "hasPDF": "Y" if in_pmc else "N",
        "authMan": "N",
        **({"license": work.licence.replace("-", " ", 1)} if in_pmc and work.licence else {}),
        "fullTextUrlList": {"fullTextUrl": links},
    }


def _link(style: str, code: str, availability: str, url: str) -> dict[str, str]:
    return {
        "availability": availability,
        "availabilityCode": code,
        "documentStyle": style,
        "site": "Europe_PMC" if style != "doi" else "DOI",
        "url": url,
    }
