"""arxiv.org and export.arxiv.org: abstract pages, PDFs, and the Atom API."""

from __future__ import annotations

import re
from html import escape

from DocsToKG.Sandbox.artifacts import bare_target, file_reply
from DocsToKG.Sandbox.exchange import Reply, Request, html_reply, redirect
from DocsToKG.Sandbox.web import Web
from DocsToKG.Sandbox.works import Work

_ID = re.compile(r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v(?P<version>\d{1,2}))?")
_MAX_IDS = 2_000


class Arxiv:
    name = "arxiv"
    hosts = ("arxiv.org", "www.arxiv.org", "export.arxiv.org")

    def __init__(self, web: Web) -> None:
        self._web = web

    def answer(self, request: Request) -> Reply:
        if request.path == "/api/query":
            return self._query(request)
        part, _, name = bare_target(request).partition("?")[0].removeprefix("/").partition("/")
        if part == "pdf" and name.endswith(".pdf"):
            return redirect(f"https://{request.host}/pdf/{name.removesuffix('.pdf')}", 301)
        work = self._find(name) if part in ("abs", "pdf") else None
        copy = work.copy("arxiv") if work else None
        if work is None or copy is None:
            return html_reply("Article not found", "<h1>Article not found</h1>", 404)
        return file_reply(self._web, request, work, copy) if part == "pdf" else _abstract_page(work)

    def _find(self, name: str) -> Work | None:
        match = _ID.fullmatch(name)
        work = self._web.world.by_arxiv_id(match["id"]) if match else None
        if match and work and int(match["version"] or 1) > work.arxiv_versions:
            return None
        return work

    def _query(self, request: Request) -> Reply:
        names = [name for name in request.query.get("id_list", "").split(",") if name][:_MAX_IDS]
        for name in names:
            if not _ID.fullmatch(name):
                return _feed(400, [_error_entry(name)])
        return _feed(200, [_entry(work) for name in names if (work := self._find(name))])


def _abstract_page(work: Work) -> Reply:
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
    return Reply(200, page.encode())


def _feed(status: int, entries: list[str]) -> Reply:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"'
        ' xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom">\n'
        f"<id>https://arxiv.org/api/sandbox</id><title>arXiv Query</title>"
        f"<opensearch:totalResults>{len(entries)}</opensearch:totalResults>"
        f"<opensearch:startIndex>0</opensearch:startIndex>\n{''.join(entries)}</feed>\n"
    )
    return Reply(status, text.encode(), "application/atom+xml; charset=utf-8")


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


def _error_entry(name: str) -> str:
    where = f"https://arxiv.org/api/errors#incorrect_id_format_for_{escape(name[:60])}"
    return f"<entry><id>{where}</id><title>Error</title><summary>incorrect id format</summary></entry>\n"
