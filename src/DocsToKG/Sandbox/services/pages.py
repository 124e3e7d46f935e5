"""Landing pages with many ways to point to the PDF (or not), and full text as JATS and as a web page."""

from __future__ import annotations

import json
from html import escape
from urllib.parse import quote

from DocsToKG.Sandbox.messages import Request, Response
from DocsToKG.Sandbox.publishers import Publisher, indexes_in
from DocsToKG.Sandbox.services.base import Context
from DocsToKG.Sandbox.works import Copy, Work

_SENTENCES = (
    "The measurements were repeated in every season and at every site.",
    "Differences between the groups were small but held in each of the samples.",
    "We discuss what the result means for the models that are in use today.",
    "Further work should look at longer periods and at other places.",
)
_FILLER = "<p>Background reading, figures, references and the other furniture of an article page.</p>\n" * 12


def find_copy(context: Context, request: Request, publisher: Publisher, kind: str) -> tuple[Work, Copy] | None:
    """The work a target of this publisher stands for, if that work has its copy here."""
    for index in indexes_in(request.target):
        work = context.world.by_index(index)
        copy = work.copy(kind) if work else None
        if work and copy and copy.publisher is publisher:
            return work, copy
    return None


def landing_page(work: Work, copy: Copy) -> Response:
    """The page of a copy, in the style of its publisher."""
    style = copy.publisher.style if copy.publisher else "citation"
    head, body, headers = _pointer(style, work, copy)
    page = (
        f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(work.title)}</title>\n"
        f"{_citation_tags(work)}{head}</head>\n<body><h1>{escape(work.title)}</h1>\n{body}\n{_FILLER}"
        f'<a href="{supplement_of(work)}">Supplementary material (PDF)</a></body></html>\n'
    )
    return Response(200, page.encode(), headers=headers)


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


def jats(work: Work) -> bytes:
    """Equal works give equal bytes."""
    paragraphs = "".join(f"<p>{escape(work.title)}, part {part}. {' '.join(_SENTENCES)}</p>" for part in range(1, 9))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<article article-type="research-article"><front><article-meta>'
        f'<article-id pub-id-type="pmc">{work.pmcid}</article-id>'
        f'<article-id pub-id-type="doi">{escape(work.doi)}</article-id>'
        f"<title-group><article-title>{escape(work.title)}</article-title></title-group>"
        f"<pub-date><year>{work.year}</year></pub-date></article-meta></front>"
        f"<body><sec><title>Introduction</title>{paragraphs}</sec></body></article>\n"
    ).encode()


def web_page(work: Work) -> bytes:
    """The same text, as a journal shows it to readers."""
    parts = [f"<p>{escape(work.title)}, part {part}. {' '.join(_SENTENCES)}</p>" for part in range(1, 17)]
    sections = f"<h2>Introduction</h2>{''.join(parts[:8])}<h2>Results</h2>{''.join(parts[8:])}"
    head = f'<meta name="citation_doi" content="{escape(work.doi)}"><title>{escape(work.title)}</title>'
    body = f"<article><h1>{escape(work.title)}</h1>{sections}</article>"
    return f"<!DOCTYPE html>\n<html><head><meta charset='utf-8'>{head}</head><body>{body}</body></html>\n".encode()
