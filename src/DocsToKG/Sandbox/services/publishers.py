"""Hosts of publishers and of institutional repositories: landing pages and PDFs.

Some publishers stand behind a link hub or a paywall, one is gone; repositories show accepted versions behind EPrints,
DSpace and Signposting pages.
"""

from __future__ import annotations

from html import escape
from urllib.parse import quote, urlsplit

from DocsToKG.Sandbox.messages import Request, Response, html_response, redirect
from DocsToKG.Sandbox.publishers import BY_HOST, PUBLISHERS, REPOSITORIES, Publisher
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.file_responses import bare_target, blocking_page, file_response
from DocsToKG.Sandbox.services.pages import find_copy, html_galley, landing_page, supplement_of, web_page
from DocsToKG.Sandbox.works import Copy, Work

_LINK_HUBS = {urlsplit(publisher.link_hub).netloc: publisher for publisher in PUBLISHERS if publisher.link_hub}


class Publishers(Service):
    name = "publishers"
    hosts = tuple(publisher.host for publisher in PUBLISHERS) + tuple(_LINK_HUBS)

    def answer(self, request: Request) -> Response:
        publisher = BY_HOST.get(request.host) or _LINK_HUBS[request.host]
        if request.path == "/login":
            return html_response("Sign in", "<form action='/login'><input name='user'></form> Institutional login")
        found = find_copy(self._context, request, publisher, "publisher")
        if found is None:
            return html_response("Not found", "<h1>Page not found</h1>", 404)
        work, copy = found
        if request.host in _LINK_HUBS:
            return _link_hub_page(copy)
        if publisher.state == "gone":
            return html_response("Not found", "<h1>This journal has moved on</h1>", 404)
        target = bare_target(request)
        if target == supplement_of(work):
            return Response(200, self._context.world.part_for(work, "supplement"), "application/pdf")
        if target == publisher.pdf.format(n=work.serial):
            return (
                _closed(request, work)
                if publisher.state == "closed"
                else file_response(self._context, request, work, copy)
            )
        if target == publisher.landing.format(n=work.serial):
            return blocking_page(self._context, request, work, copy) or landing_page(work, copy)
        return _viewer(publisher, work, target)


class Repositories(Service):
    name = "repositories"
    hosts = tuple(publisher.host for publisher in REPOSITORIES)

    def answer(self, request: Request) -> Response:
        publisher = BY_HOST[request.host]
        found = find_copy(self._context, request, publisher, "repository")
        if found is None:
            return html_response("Not found", "<h1>No such item</h1>", 404)
        work, copy = found
        target = bare_target(request)
        if target == publisher.pdf.format(n=work.serial):
            return file_response(self._context, request, work, copy)
        if target == publisher.landing.format(n=work.serial):
            return blocking_page(self._context, request, work, copy) or landing_page(work, copy)
        return html_response("Not found", "<h1>No such item</h1>", 404)


def _closed(request: Request, work: Work) -> Response:
    # Half of the paywalls refuse, the other half lead to a page where one may sign in.
    if work.index % 2:
        return html_response("Access denied", "<h1>Get access</h1><p>Purchase or log in.</p>", 403)
    return redirect(f"https://{request.host}/login?uri={quote(request.target, safe='')}")


def _link_hub_page(copy: Copy) -> Response:
    field = f'<input type="hidden" name="redirectURL" value="{escape(quote(copy.landing_url, safe=""))}"/>'
    return html_response("Redirecting", f"<form>{field}</form>")


def _viewer(publisher: Publisher, work: Work, target: str) -> Response:
    """The page around a PDF that OJS shows instead of the file."""
    pdf = publisher.pdf.format(n=work.serial)
    view = pdf.replace("/download/", "/view/")
    if publisher.style == "ojs" and target == html_galley(view):
        return Response(200, web_page(work))
    if publisher.style == "ojs" and target == view:
        return html_response(
            "PDF viewer", f'<iframe src="{pdf}"></iframe><a class="download" href="{pdf}">Download PDF</a>'
        )
    return html_response("Not found", "<h1>Page not found</h1>", 404)
