"""Which paper does this text name? DOIs, arXiv ids, PMCIDs, PMIDs, OpenAlex ids and URLs in their usual spellings.

Pure: no network, no files. Promises: equal works under different spellings get one `work_id`; a text that
is no identifier is refused with a reason and a hint, never guessed.

Choices made here: DOIs are lower case and ASCII; a raw `#` or `?` ends a doi.org URL as in a browser, but is kept in a
bare DOI; an arXiv DOI is its arXiv id; an arXiv id with a version means that version, which is a work of its own; its
subject class does not matter; the page of a repository means the DOI that its address carries; the address of a
library's proxy or a link resolver means its target.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.resolvers.ids.addresses import ADDRESS, doi_of_address, identifier_in_url
from DocsToKG.ContentDownload.resolvers.ids.library_proxies import target_address
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import (
    DOI_SPELLING,
    MAX_IDENTIFIER_CHARS,
    Identifier,
    arxiv_base,
    arxiv_of_doi,
    arxiv_version,
    identifier_of,
    normalize_url,
    trim_end,
    unwrap,
)
from DocsToKG.ContentDownload.resolvers.ids.suggestions import suggestion
from DocsToKG.core.digest import sha256_hex
from DocsToKG.core.urls import index_url, mask_text, mask_url

_SPELLED = re.compile(
    r"(?P<scheme>doi|arxiv|pmcid|pmc|pmid|pubmed|openalex|url)\s*(?:[:=]\s*|\s+)(?P<rest>.+)", re.IGNORECASE
)
# Marks of order, width and direction, soft hyphens: letters of no identifier.
_UNSEEN = dict.fromkeys((0xAD, 0x2060, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F)))
_KNOWN_HOST = re.compile(
    r"(?:[a-z]+\.)*(?:doi|arxiv|europepmc|openalex|zenodo|biorxiv|medrxiv)\.org/|(?:[a-z]+\.)*ncbi\.nlm\.nih\.gov/"
    r"|(?:[a-z]+\.)*(?:figshare\.com|hal\.science|osf\.io)/",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class BadIdentifier(InputError):
    """The text names no paper: why not, and what to write instead."""

    def __init__(self, text: str, why: str, hint: str) -> None:
        shown = mask_text(text) if len(text) <= 120 else mask_text(text[:117]) + "..."
        super().__init__(f"{shown!r}: {why}; {hint}")
        self.text = text
        self.why = why
        self.hint = hint


def parse_identifier(text: str) -> Identifier:
    """The paper that `text` names, in any usual spelling; raises `BadIdentifier`."""
    clean = target_address(_clean(text))
    spelled = _SPELLED.fullmatch(clean)
    if spelled is not None:
        return _parse_spelled(text, spelled["scheme"].lower(), spelled["rest"].strip())
    if clean.lower().startswith(("http://", "https://")) or _KNOWN_HOST.match(clean):
        return _parse_url(text, clean)
    schemes = ("doi", "arxiv", "openalex", *(("pmcid",) if clean[:3].upper() == "PMC" else ()))
    for scheme in schemes:
        if (found := identifier_of(scheme, clean)) is not None:
            return found
    raise _refusal(text, clean)


def identifiers_of(text: str) -> tuple[Identifier, ...]:
    """What `text` names: one identifier, and the page itself when the DOI was read off the address of a repository."""
    found = parse_identifier(text)
    address = _address_of(target_address(_clean(text))) if found.scheme == "doi" else None
    is_page = address is not None and doi_of_address(address) == found.value
    return (found, Identifier("url", address)) if address is not None and is_page else (found,)


def to_work(identifier: Identifier, **known: Any) -> WorkArtifact:
    """The work an identifier stands for; `known` are further fields of `WorkArtifact`."""
    return work_of([identifier], **known)


def work_of(identifiers: Iterable[Identifier], **known: Any) -> WorkArtifact:
    """One work from all its identifiers. The first of a scheme counts; the strongest scheme gives the `work_id`."""
    fields = dict(known)
    metadata = dict(fields.pop("metadata", None) or {})
    for identifier in identifiers:
        _add(fields, metadata, identifier)
    for name in ("landing_urls", "pdf_urls"):
        fields[name] = tuple(dict.fromkeys(fields.get(name) or ()))
    version = str(metadata.get("arxiv_version") or "")
    return WorkArtifact(work_id=work_id_of(fields, arxiv_version=version), metadata=metadata, **fields)


def work_id_of(fields: dict[str, Any], *, arxiv_version: str = "") -> str:
    """`doi:...`, else `arxiv:...`, `pmcid:...`, `pmid:...`, `openalex:...`, `url:...`: the strongest name known."""
    names = (("doi", "doi"), ("arxiv", "arxiv_id"), ("pmcid", "pmcid"), ("pmid", "pmid"), ("openalex", "openalex_id"))
    for scheme, name in names:
        if fields.get(name):
            return f"{scheme}:{fields[name]}{arxiv_version if scheme == 'arxiv' else ''}"
    urls = (*(fields.get("landing_urls") or ()), *(fields.get("pdf_urls") or ()))
    if not urls:
        raise BadIdentifier("", "no identifier is known", "give a DOI, an arXiv id, a PMCID, a PMID or a URL")
    return f"url:{_shown_address(urls[0])}"


def _shown_address(url: str) -> str:
    """The address as every record may show it: a key in it is masked, and a digest keeps such addresses apart."""
    address = index_url(url)
    shown = mask_url(address)
    return shown if shown == address else f"{shown}#{sha256_hex(address.encode())[:12]}"


def _add(fields: dict[str, Any], metadata: dict[str, Any], identifier: Identifier) -> None:
    scheme, value = identifier.scheme, identifier.value
    if scheme == "doi" and (preprint := arxiv_of_doi(value)) is not None:
        scheme, value = "arxiv", preprint
    if scheme == "url":
        name = "pdf_urls" if value.partition("?")[0].lower().endswith(".pdf") else "landing_urls"
        fields[name] = (*(fields.get(name) or ()), value)
    elif scheme == "arxiv":
        if fields.get("arxiv_id") is None and (version := arxiv_version(value)) is not None:
            metadata.setdefault("arxiv_version", version)
        fields["arxiv_id"] = fields.get("arxiv_id") or arxiv_base(value)
    else:
        name = "openalex_id" if scheme == "openalex" else scheme
        fields[name] = fields.get(name) or value


def _clean(text: str) -> str:
    if len(text) > MAX_IDENTIFIER_CHARS:
        raise BadIdentifier(text, f"longer than {MAX_IDENTIFIER_CHARS} characters", "give one identifier per entry")
    # Copied from a web page, an identifier may bring along signs that nobody sees.
    clean = text.strip().translate(_UNSEEN).strip()
    if not clean:
        raise BadIdentifier(text, "empty", "give a DOI, an arXiv id, a PMCID, a PMID or a URL")
    if _CONTROL.search(clean):
        raise BadIdentifier(text, "contains control characters", "save the list as plain UTF-8 text")
    if "&" in clean and re.search(r"&(?:lt|gt|amp|#\d+);", clean):
        clean = html.unescape(clean)
    return trim_end(unwrap(clean))


def _as_url(text: str) -> Identifier | None:
    url = normalize_url(text) if text.lower().startswith(("http://", "https://")) else None
    return Identifier("url", url) if url is not None else None


# The scheme that each prefix means, and what one of it looks like.
_BY_PREFIX: dict[str, tuple[str, str]] = {
    "doi": ("doi", "a DOI, which looks like 10.1234/abc"),
    "arxiv": ("arxiv", "an arXiv id, which looks like 2104.12255 or hep-th/9901001"),
    "pmcid": ("pmcid", "a PMCID, which looks like PMC1234567"),
    "pmc": ("pmcid", "a PMCID, which looks like PMC1234567"),
    "pmid": ("pmid", "a PMID, which is a number"),
    "pubmed": ("pmid", "a PMID, which is a number"),
    "openalex": ("openalex", "an OpenAlex work, which looks like W2741809807"),
    "url": ("url", "an http or https URL"),
}


def _parse_spelled(text: str, prefix: str, rest: str) -> Identifier:
    if prefix != "url" and rest.lower().startswith(("http://", "https://")):
        return _parse_url(text, rest)
    scheme, kind = _BY_PREFIX[prefix]
    value = trim_end(unwrap(rest))
    found = identifier_of(scheme, value) if scheme != "url" else _as_url(value)
    if found is None:
        raise _refusal(text, rest) if scheme == "doi" else BadIdentifier(text, f"not {kind}", "check the spelling")
    return found


def _parse_url(text: str, url: str) -> Identifier:
    url = target_address(url)
    found = identifier_in_url(url)
    if found is not None:
        return found
    host = ADDRESS.match(url)
    if host is not None and host["host"].lower().removeprefix("www.") in ("doi.org", "dx.doi.org"):
        raise _refusal(text, DOI_SPELLING.sub("", url, count=1))
    if re.fullmatch(r"https?://(?:api\.)?openalex\.org/(?:\w+/)?[ASIPFTC]\d+", url, re.IGNORECASE):
        raise BadIdentifier(text, "an entity of OpenAlex that is not a work", "give a work (W...), or use --query")
    address = _address_of(url)
    if address is None:
        raise BadIdentifier(text, "not a usable http or https URL", "copy the whole address, with its host")
    doi = doi_of_address(address)
    return Identifier("doi", doi) if doi is not None else Identifier("url", address)


def _address_of(url: str) -> str | None:
    return normalize_url(url if "://" in url else f"https://{url}")


def _refusal(text: str, clean: str) -> BadIdentifier:
    return BadIdentifier(text, *suggestion(text, clean))
