"""doi.org: from a name to the page its registrant keeps."""

from __future__ import annotations

import re
from urllib.parse import quote

from DocsToKG.Sandbox.messages import Request, Response, html_response, json_response, redirect
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.works import Work

_NAME = re.compile(r"10\.[\d.]+/\S+")


class DoiResolver(Service):
    name = "doi"
    hosts = ("doi.org", "dx.doi.org", "www.doi.org")

    def answer(self, request: Request) -> Response:
        path = request.path.removeprefix("/")
        if path.startswith("api/handles/"):
            return self._handle(path.removeprefix("api/handles/"))
        if path.startswith("doiRA/"):
            return self._agency(path.removeprefix("doiRA/"))
        if not _NAME.fullmatch(path):
            return html_response("Error: Not a DOI", "<h1>This is not a DOI</h1>", 400)
        work = self._context.world.by_doi(path)
        if work is None:
            return html_response("Error: DOI Not Found", "<h1>DOI Not Found</h1>", 404)
        fault_response = self._context.index_fault(work, self.name)
        return fault_response or redirect(_registered(request, work))

    def _handle(self, doi: str) -> Response:
        work = self._context.world.by_doi(doi)
        if work is None:
            return json_response({"responseCode": 100, "handle": doi}, 404)
        value = {"index": 1, "type": "URL", "data": {"format": "string", "value": target_of(work)}, "ttl": 86400}
        return json_response({"responseCode": 1, "handle": work.doi, "values": [value]})

    def _agency(self, doi: str) -> Response:
        work = self._context.world.by_doi(doi)
        if work is None:
            return json_response([{"DOI": doi, "status": "DOI does not exist"}])
        return json_response([{"DOI": doi, "RA": "Crossref" if work.in_crossref else "DataCite"}])


def target_of(work: Work) -> str:
    """The registered address."""
    copy = work.copy("publisher") or work.copies[0]
    return copy.publisher.first_url(work.serial) if copy.publisher else copy.landing_url


def _registered(request: Request, work: Work) -> str:
    if "application/vnd.citationstyles.csl+json" in request.headers.get("accept", "") and work.in_crossref:
        return f"https://api.crossref.org/v1/works/{quote(work.doi, safe='')}/transform"
    return target_of(work)
