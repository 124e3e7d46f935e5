"""What a PDF declares of itself: XMP and the Info dictionary. It supports a verdict and never makes one."""

from __future__ import annotations

import html
import re

from DocsToKG.ContentDownload.validation.dois import find_dois, is_placeholder
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText

_XMP_NAMES = r"(?:prism:doi|dc:identifier|pdfx:doi|pdfx:wps-articledoi|crossmark:doi|xmp:identifier)"
_XMP_ELEMENT = re.compile(rf"<{_XMP_NAMES}\b[^>]{{0,300}}>(.{{0,800}}?)</{_XMP_NAMES}", re.DOTALL)
_XMP_ATTRIBUTE = re.compile(rf"\s{_XMP_NAMES}\s?=\s?[\"']([^\"']{{1,300}})[\"']")
_INFO_NAMES = ("doi", "DOI", "WPS-ARTICLEDOI", "Subject", "Title")


def declared_dois(document: DocumentText) -> tuple[str, ...]:
    """The DOIs in the fields by which a file names itself."""
    xmp = document.xmp.lower() if "10." in document.xmp else ""
    named = [*_XMP_ATTRIBUTE.findall(xmp), *_XMP_ELEMENT.findall(xmp)]
    named += [document.info[name].lower() for name in _INFO_NAMES if name in document.info]
    return tuple(doi for doi in find_dois("\n".join(named)) if not is_placeholder(doi))


_XMP_TITLE = re.compile(r"<dc:title\b[^>]{0,300}>(.{0,3000}?)</dc:title", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"<[^>]{0,300}>")
_TITLE_CHARS = 500


def declared_title(document: DocumentText) -> str | None:
    """The title of the XMP, else that of the Info dictionary."""
    found = _XMP_TITLE.search(document.xmp)
    text = html.unescape(_TAGS.sub(" ", found[1])) if found else ""
    return " ".join((text.strip() or document.info.get("Title", "")).split())[:_TITLE_CHARS] or None


def named_dois(document: DocumentText) -> tuple[str, ...]:
    """The declared DOIs, then those on the first two pages."""
    shown = find_dois("\n".join(page.text for page in document.pages[:2]).lower())
    return tuple(dict.fromkeys((*declared_dois(document), *shown)))
