"""Why a text is no identifier, and what was probably meant, for the message to the user. Pure."""

from __future__ import annotations

import re

from DocsToKG.ContentDownload.resolvers.ids.normal_forms import trim_end

_ANY = "give a DOI, an arXiv id, PMC..., pmid:..., W... or a URL that starts with https://"
_OPENALEX_OTHER = re.compile(r"[ASIPFTC][0-9]{4,13}")
_LONG_NUMBER = re.compile(r"(?:PMC|pmid\s*:?\s*|W)[0-9]{10,}", re.IGNORECASE)
_ISBN = re.compile(r"(?:isbn(?:-1[03])?[:\s]*)?97[89](?:[-\s]?[0-9]){10}|isbn.*", re.IGNORECASE)
_HAL = re.compile(r"(?P<id>(?:hal|tel|inria|halshs|ineris|pasteur|cel|dumas)-[0-9]{6,9}(?:v[0-9]+)?)", re.IGNORECASE)
_HANDLE = re.compile(r"(?:hdl|handle)\s*[:=]?\s*(?P<id>[0-9][0-9.]*/\S+)", re.IGNORECASE)
_SHORT_DOI = re.compile(r"10/\w+")
_SHORT_DOI_URL = re.compile(r"(?:https?://)?doi\.org/(?:10/)?\w+", re.IGNORECASE)
_PREFIX_ALONE = re.compile(r"10\.[0-9]{4,9}/?")
_SOME_DOI = re.compile(r"10\.[0-9]{4,9}/[!-~]+")


def suggestion(text: str, clean: str) -> tuple[str, str]:
    """What `text` is instead, and what to write; `clean` is it without its wrapping."""
    return _of_dois(text, clean) or _of_others(clean) or ("not an identifier", _ANY)


def _of_dois(text: str, clean: str) -> tuple[str, str] | None:
    if _SHORT_DOI.fullmatch(clean) or _SHORT_DOI_URL.fullmatch(text.strip()):
        return "a shortDOI, which the indexes do not know", "open it in a browser and give the full DOI"
    if _PREFIX_ALONE.fullmatch(clean):
        return "the prefix of a DOI without the rest", "copy the whole DOI, such as 10.1234/abc"
    inner = _SOME_DOI.search(clean)
    # A name in a citation may hold any letter; what stands in the DOI itself counts.
    if (
        inner is not None
        and any(char.isspace() for char in clean)
        and clean[inner.end() : inner.end() + 1].strip() == ""
    ):
        return "more than an identifier", f"did you mean {trim_end(inner[0])[:200]}?"
    if re.search(r"10\.[0-9]{1,9}/", clean) and not clean.isascii():
        return "a DOI with letters or signs outside ASCII", "copy the DOI from the publisher's page"
    return None


def _of_others(clean: str) -> tuple[str, str] | None:
    if clean.isdigit() and not _ISBN.fullmatch(clean):
        return "a bare number is ambiguous", f"write pmid:{clean[:12]} or PMC{clean[:12]}"
    if _LONG_NUMBER.fullmatch(clean):
        return "a PMCID, PMID or OpenAlex id with too many digits", "copy it again from the page of the paper"
    if _OPENALEX_OTHER.fullmatch(clean):
        return "an entity of OpenAlex that is not a work", "give a work (W...), or use --query"
    if _ISBN.fullmatch(clean):
        return "an ISBN, which names a book", "give the DOI of the book or chapter"
    if (hal := _HAL.fullmatch(clean)) is not None:
        return "a HAL id", f"write https://hal.science/{hal['id']}"
    if (handle := _HANDLE.fullmatch(clean)) is not None:
        return "a handle", f"write https://hdl.handle.net/{handle['id'][:200]}"
    if re.match(r"(?:ftp|file|s3)://", clean, re.IGNORECASE):
        return "not an http or https address", "give the address of a web page or file, or a DOI"
    if len(re.findall(r"[^\W\d_]{2,}", clean)) >= 4 and " " in clean:
        return "words and no identifier", "give the paper's DOI, or search with --query"
    return None
