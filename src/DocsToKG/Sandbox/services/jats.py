"""The full text of a work: as an article in JATS, as PMC and Europe PMC give it, and as a web page."""

from __future__ import annotations

from html import escape

from DocsToKG.Sandbox.works import Work

_SENTENCES = (
    "The measurements were repeated in every season and at every site.",
    "Differences between the groups were small but held in each of the samples.",
    "We discuss what the result means for the models that are in use today.",
    "Further work should look at longer periods and at other places.",
)


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
