"""arxiv.org and export.arxiv.org: abstract pages, PDFs, and the Atom API."""

from __future__ import annotations

import re
from html import escape

from DocsToKG.Sandbox.messages import Request, Response, html_response, redirect, unknown_parameter
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.file_responses import bare_target, file_response
from DocsToKG.Sandbox.works import Work

_ID = re.compile(r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v(?P<version>\d{1,2}))?")
_MAX_IDS = 2_000
_KNOWN = ("id_list", "search_query", "start", "max_results", "sortBy", "sortOrder")


class Arxiv(Service):
    name = "arxiv"
    hosts = ("arxiv.org", "www.arxiv.org", "export.arxiv.org")

    def answer(self, request: Request) -> Response:
        if request.path == "/api/query":
            return self._query(request)
        part, _, name = bare_target(request).partition("?")[0].removeprefix("/").partition("/")
        if part == "pdf" and name.endswith(".pdf"):
            return redirect(f"https://{request.host}/pdf/{name.removesuffix('.pdf')}", 301)
        work = self._find(name) if part in ("abs", "pdf") else None
        copy = work.copy("arxiv") if work else None
        if work is None or copy is None:
            return html_response("Article not found", "<h1>Article not found</h1>", 404)
        return file_response(self._context, request, work, copy) if part == "pdf" else _abstract_page(work)

    def _find(self, name: str) -> Work | None:
        match = _ID.fullmatch(name)
        work = self._context.world.by_arxiv_id(match["id"]) if match else None
        if match and work and int(match["version"] or 1) > work.arxiv_versions:
            return None
        return work

    def _query(self, request: Request) -> Response:
        if (name := unknown_parameter(request, _KNOWN)) is not None:
            return _feed(400, [_error_entry(f"unknown_to_the_sandbox_{name}")])
        names = [name for name in request.query.get("id_list", "").split(",") if name][:_MAX_IDS]
        for name in names:
            if not _ID.fullmatch(name):
                return _feed(400, [_error_entry(f"incorrect_id_format_for_{name[:60]}")])
        try:
            works = self._searched([work for name in names if (work := self._find(name))] if names else None, request)
            start, most = int(request.query.get("start", "0")), int(request.query.get("max_results") or "10")
        except ValueError as error:
            return _feed(400, [_error_entry(str(error))])
        shown = works[start : start + (most if "max_results" in request.query or not names else len(works))]
        return _feed(200, [_entry(work) for work in shown], total=len(works), start=start)

    def _searched(self, named: list[Work] | None, request: Request) -> list[Work]:
        """Of the named works, or of all on arXiv, those with the words; a `ValueError` for what is unknown here."""
        world, query = self._context.world, request.query.get("search_query", "").strip()
        if named is None and not query:
            return []
        every = (world.work(number) for number in range(world.count)) if named is None else iter(named)
        tests = [_test(term) for term in re.split(r"\s+AND\s+", query) if term] if query else []
        works = [work for work in every if work.copy("arxiv") and all(test in _text(work, of) for of, test in tests)]
        order = request.query.get("sortBy", "relevance")
        if order not in ("relevance", "submittedDate", "lastUpdatedDate"):
            raise ValueError("unknown_sortBy")
        if order != "relevance":
            works.sort(key=lambda work: work.date, reverse=request.query.get("sortOrder") != "ascending")
        return works


def _test(term: str) -> tuple[str, str]:
    """A field and the words sought in it."""
    match = re.fullmatch(r'(?:(ti|au|all):)?"?([\w .-]{1,80})"?', term)
    if match is None or re.search(r"\b(?:OR|ANDNOT)\b", term):
        raise ValueError("search_query_unknown_to_the_sandbox")
    return match[1] or "all", match[2].lower()


def _text(work: Work, of: str) -> str:
    people = " ".join(f"{given} {family}" for given, family in work.authors)
    return {"ti": work.title, "au": people}.get(of, f"{work.title} {people}").lower()


def _abstract_page(work: Work) -> Response:
    metas = [
        ("citation_title", work.title),
        ("citation_arxiv_id", work.arxiv_id or ""),
        ("citation_pdf_url", f"https://arxiv.org/pdf/{work.arxiv_id}"),
        ("citation_date", work.date.replace("-", "/")),
    ]
    tags = "".join(f'<meta name="{name}" content="{escape(value)}"/>' for name, value in metas)
    page = (
        f"<!DOCTYPE html><html><head><title>[{work.arxiv_id}] {escape(work.title)}</title>{tags}</head>"
        f'<body><h1>{escape(work.title)}</h1><a href="/pdf/{work.arxiv_id}">View PDF</a></body></html>'
    )
    return Response(200, page.encode())


def _feed(status: int, entries: list[str], *, total: int | None = None, start: int = 0) -> Response:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"'
        ' xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom">\n'
        f"<id>https://arxiv.org/api/sandbox</id><title>arXiv Query</title>"
        f"<opensearch:totalResults>{len(entries) if total is None else total}</opensearch:totalResults>"
        f"<opensearch:startIndex>{start}</opensearch:startIndex>\n{''.join(entries)}</feed>\n"
    )
    return Response(status, text.encode(), "application/atom+xml; charset=utf-8")


def _entry(work: Work) -> str:
    name = f"{work.arxiv_id}v{work.arxiv_versions}"
    authors = "".join(f"<author><name>{escape(f'{given} {family}')}</name></author>" for given, family in work.authors)
    doi = f"<arxiv:doi>{escape(work.doi)}</arxiv:doi>" if work.in_crossref else ""
    return (
        f"<entry><id>http://arxiv.org/abs/{name}</id><title>{escape(work.title)}</title>"
        f"<updated>{work.date}T12:00:00Z</updated><published>{work.date}T12:00:00Z</published>"
        f'<link href="https://arxiv.org/abs/{name}" rel="alternate" type="text/html"/>'
        f'<link href="https://arxiv.org/pdf/{name}" rel="related" type="application/pdf" title="pdf"/>'
        f'<category term="math.CO" scheme="http://arxiv.org/schemas/atom"/>{doi}{authors}</entry>\n'
    )


def _error_entry(what: str) -> str:
    where = f"https://arxiv.org/api/errors#{escape(what[:100])}"
    said = escape(what[:100].replace("_", " "))
    return f"<entry><id>{where}</id><title>Error</title><summary>{said}</summary></entry>\n"
