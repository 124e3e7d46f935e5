"""doi.org: from a name to the page its registrant keeps."""

from __future__ import annotations

import re
from urllib.parse import quote

from DocsToKG.Sandbox.exchange import Reply, Request, html_reply, json_reply, redirect
from DocsToKG.Sandbox.web import Web
from DocsToKG.Sandbox.works import Work

_NAME = re.compile(r"10\.[\d.]+/\S+")


class DoiResolver:
    name = "doi"
    hosts = ("doi.org", "dx.doi.org", "www.doi.org")

    def __init__(self, web: Web) -> None:
        self._web = web

    def answer(self, request: Request) -> Reply:
        path = request.path.removeprefix("/")
        if path.startswith("api/handles/"):
            return self._handle(path.removeprefix("api/handles/"))
        if path.startswith("doiRA/"):
            return self._agency(path.removeprefix("doiRA/"))
        if not _NAME.fullmatch(path):
            return html_reply("Error: Not a DOI", "<h1>This is not a DOI</h1>", 400)
        work = self._web.world.by_doi(path)
        if work is None:
            return html_reply("Error: DOI Not Found", "<h1>DOI Not Found</h1>", 404)
        trouble = self._web.index_trouble(work, self.name)
        return trouble or redirect(_registered(request, work))

    def _handle(self, doi: str) -> Reply:
        work = self._web.world.by_doi(doi)
        if work is None:
            return json_reply({"responseCode": 100, "handle": doi}, 404)
        value = {"index": 1, "type": "URL", "data": {"format": "string", "value": target_of(work)}, "ttl": 86400}
        return json_reply({"responseCode": 1, "handle": work.doi, "values": [value]})

    def _agency(self, doi: str) -> Reply:
        work = self._web.world.by_doi(doi)
        if work is None:
            return json_reply([{"DOI": doi, "status": "DOI does not exist"}])
        return json_reply([{"DOI": doi, "RA": "Crossref" if work.in_crossref else "DataCite"}])


def target_of(work: Work) -> str:
    """The registered address."""
    copy = work.copy("publisher") or work.copies[0]
    return copy.house.first_url(work.serial) if copy.house else copy.landing_url


def _registered(request: Request, work: Work) -> str:
    if "application/vnd.citationstyles.csl+json" in request.headers.get("accept", "") and work.in_crossref:
        return f"https://api.crossref.org/v1/works/{quote(work.doi, safe='')}/transform"
    return target_of(work)
