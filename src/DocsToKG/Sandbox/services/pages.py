"""Landing pages: one frame, many ways to point to the PDF (or not)."""

from __future__ import annotations

import json
from html import escape
from urllib.parse import quote

from DocsToKG.Sandbox.exchange import Reply, Request
from DocsToKG.Sandbox.houses import House, indexes_in
from DocsToKG.Sandbox.web import Web
from DocsToKG.Sandbox.works import Copy, Work

_FILLER = "<p>Background reading, figures, references and the other furniture of an article page.</p>\n" * 12


def find_copy(web: Web, request: Request, house: House, kind: str) -> tuple[Work, Copy] | None:
    """The work a target of this house stands for, if that work has its copy here."""
    for index in indexes_in(request.target):
        work = web.world.by_index(index)
        copy = work.copy(kind) if work else None
        if work and copy and copy.house is house:
            return work, copy
    return None


def landing_page(work: Work, copy: Copy) -> Reply:
    """The page of a copy, in the style of its house."""
    style = copy.house.style if copy.house else "citation"
    head, body, headers = _pointer(style, work, copy)
    page = (
        f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(work.title)}</title>\n"
        f"{_citation_tags(work)}{head}</head>\n<body><h1>{escape(work.title)}</h1>\n{body}\n{_FILLER}"
        f'<a href="{supplement_of(work)}">Supplementary material (PDF)</a></body></html>\n'
    )
    return Reply(200, page.encode(), headers=headers)


def supplement_of(work: Work) -> str:
    return f"/suppl/{work.serial}-supp.pdf"


def html_galley(view: str) -> str:
    """Where a journal on OJS shows the text beside the viewer of its PDF."""
    return f"{view.rpartition('/')[0]}/2"


def doi_url(doi: str) -> str:
    """With everything encoded that a header or a path could stumble over."""
    return "https://doi.org/" + quote(doi, safe="/")


def meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{escape(content)}">\n'


def _citation_tags(work: Work) -> str:
    authors = "".join(meta("citation_author", f"{family}, {given}") for given, family in work.authors)
    date = meta("citation_publication_date", work.date.replace("-", "/"))
    return meta("citation_title", work.title) + meta("citation_doi", work.doi) + authors + date


def _pointer(style: str, work: Work, copy: Copy) -> tuple[str, str, dict[str, str]]:
    """What the head, the body and the headers say about the PDF."""
    path = "/" + copy.pdf_url.split("/", 3)[3]
    match style:
        case "link":
            return f'<link rel="alternate" type="application/pdf" href="{escape(path)}">\n', "", {}
        case "ojs":
            view = escape(path.replace("/download/", "/view/"))
            html = f'<a class="obj_galley_link file" href="{html_galley(view)}">HTML</a>'
            return "", f'<a class="obj_galley_link pdf" href="{view}">PDF</a>{html}', {}
        case "anchor":
            return "", f'<a href="{escape(path)}" title="Download PDF">Download PDF</a>', {}
        case "jsonld":
            return _json_ld(work, copy), "", {}
        case "relative":
            base = copy.landing_url.rsplit("/", 2)[0] + "/"
            link = copy.pdf_url.removeprefix(base)
            return f'<base href="{base}">\n' + meta("citation_pdf_url", link), "", {}
        case "eprints":
            return meta("eprints.document_url", copy.pdf_url), "", {}
        case "signposting":
            links = f'<{copy.pdf_url}>; rel="item"; type="application/pdf", <{doi_url(work.doi)}>; rel="cite-as"'
            return "", "<p>Files are listed in the record.</p>", {"Link": links}
        case "paywall":
            return meta("citation_pdf_url", copy.pdf_url), "<h2>Get access</h2><p>Purchase this article.</p>", {}
    return meta("citation_pdf_url", copy.pdf_url), "", {}


def _json_ld(work: Work, copy: Copy) -> str:
    media = {"@type": "MediaObject", "encodingFormat": "application/pdf", "contentUrl": copy.pdf_url}
    article = {"@type": "ScholarlyArticle", "name": work.title, "isAccessibleForFree": True, "encoding": [media]}
    text = json.dumps({"@context": "https://schema.org", "@graph": [article]}).replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>\n'
