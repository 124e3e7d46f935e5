"""Institutional repositories: accepted versions behind EPrints, DSpace and Signposting pages."""

from __future__ import annotations

from DocsToKG.Sandbox.artifacts import bare_target, file_reply, wall
from DocsToKG.Sandbox.exchange import Reply, Request, html_reply
from DocsToKG.Sandbox.houses import ALL_HOUSES, REPOSITORIES
from DocsToKG.Sandbox.services.pages import find_copy, landing_page
from DocsToKG.Sandbox.web import Web


class Repositories:
    name = "repositories"
    hosts = tuple(house.host for house in REPOSITORIES)

    def __init__(self, web: Web) -> None:
        self._web = web

    def answer(self, request: Request) -> Reply:
        house = ALL_HOUSES[request.host]
        found = find_copy(self._web, request, house, "repository")
        if found is None:
            return html_reply("Not found", "<h1>No such item</h1>", 404)
        work, copy = found
        target = bare_target(request)
        if target == house.pdf.format(n=work.serial):
            return file_reply(self._web, request, work, copy)
        if target == house.landing.format(n=work.serial):
            return wall(self._web, request, work, copy) or landing_page(work, copy)
        return html_reply("Not found", "<h1>No such item</h1>", 404)
