"""Publishers' hosts: landing pages and PDFs, a router page, a paywall, and a house that is gone."""

from __future__ import annotations

from html import escape
from urllib.parse import quote, urlsplit

from DocsToKG.Sandbox.artifacts import bare_target, file_reply, wall
from DocsToKG.Sandbox.exchange import Reply, Request, html_reply, redirect
from DocsToKG.Sandbox.houses import ALL_HOUSES, PUBLISHERS, House
from DocsToKG.Sandbox.services.jats import web_page
from DocsToKG.Sandbox.services.pages import find_copy, html_galley, landing_page, supplement_of
from DocsToKG.Sandbox.web import Web
from DocsToKG.Sandbox.works import Copy, Work

_ROUTERS = {urlsplit(house.router).netloc: house for house in PUBLISHERS if house.router}


class Publishers:
    name = "publishers"
    hosts = tuple(house.host for house in PUBLISHERS) + tuple(_ROUTERS)

    def __init__(self, web: Web) -> None:
        self._web = web

    def answer(self, request: Request) -> Reply:
        house = ALL_HOUSES.get(request.host) or _ROUTERS[request.host]
        if request.path == "/login":
            return html_reply("Sign in", "<form action='/login'><input name='user'></form> Institutional login")
        found = find_copy(self._web, request, house, "publisher")
        if found is None:
            return html_reply("Not found", "<h1>Page not found</h1>", 404)
        work, copy = found
        if request.host in _ROUTERS:
            return _router_page(copy)
        if house.state == "gone":
            return html_reply("Not found", "<h1>This journal has moved on</h1>", 404)
        target = bare_target(request)
        if target == supplement_of(work):
            return Reply(200, self._web.world.part_for(work, "supplement"), "application/pdf")
        if target == house.pdf.format(n=work.serial):
            return _closed(request, work) if house.state == "closed" else file_reply(self._web, request, work, copy)
        if target == house.landing.format(n=work.serial):
            return wall(self._web, request, work, copy) or landing_page(work, copy)
        return _viewer(house, work, target)


def _closed(request: Request, work: Work) -> Reply:
    # Half of the paywalls refuse, the other half lead to a page where one may sign in.
    if work.index % 2:
        return html_reply("Access denied", "<h1>Get access</h1><p>Purchase or log in.</p>", 403)
    return redirect(f"https://{request.host}/login?uri={quote(request.target, safe='')}")


def _router_page(copy: Copy) -> Reply:
    field = f'<input type="hidden" name="redirectURL" value="{escape(quote(copy.landing_url, safe=""))}"/>'
    return html_reply("Redirecting", f"<form>{field}</form>")


def _viewer(house: House, work: Work, target: str) -> Reply:
    """The page around a PDF that OJS shows instead of the file."""
    pdf = house.pdf.format(n=work.serial)
    view = pdf.replace("/download/", "/view/")
    if house.style == "ojs" and target == html_galley(view):
        return Reply(200, web_page(work))
    if house.style == "ojs" and target == view:
        return html_reply(
            "PDF viewer", f'<iframe src="{pdf}"></iframe><a class="download" href="{pdf}">Download PDF</a>'
        )
    return html_reply("Not found", "<h1>Page not found</h1>", 404)
