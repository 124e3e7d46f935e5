"""The normal form of each kind of identifier: `normalize_*` gives it as text, `identifier_of` as an `Identifier`, or
None when the text is not of that kind.

Pure and idempotent: a normal form is its own normal form. Says nothing about why a text was refused;
`ids` does that.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from DocsToKG.core.urls import BadUrl, request_url

MAX_IDENTIFIER_CHARS = 2048

# All old-style archives, closed since 2007: a closed list, so that `notes/1234567` is not taken for a paper.
_ARCHIVES = (
    "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|"
    "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|"
    "q-alg|q-bio|quant-ph|solv-int|supr-con"
)
_DOI = re.compile(r"10\.[0-9]{1,9}(?:\.[0-9]{1,9})*/[!-~]{1,1024}")
DOI_SPELLING = re.compile(
    r"(?:info:doi/|urn:doi:|hdl:\s*(?=10\.)|doi\s*[:=]?\s*|(?:https?://)?(?:www\.|dx\.)?doi\.org/)", re.IGNORECASE
)
_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
_ARXIV_NEW = re.compile(r"(?P<yymm>[0-9]{2}(?:0[1-9]|1[0-2]))\.(?P<number>[0-9]{4,5})(?P<version>v[1-9][0-9]{0,2})?")
_ARXIV_OLD = re.compile(
    rf"(?P<archive>{_ARCHIVES})(?P<subject>\.[A-Z]{{2}})?/(?P<number>[0-9]{{2}}(?:0[1-9]|1[0-2])[0-9]{{3}})"
    r"(?P<version>v[1-9][0-9]{0,2})?"
)
ARXIV_PATH = re.compile(r"/(?:abs|pdf|html|format|e-print|src|ps)/(?P<id>.+?)(?:\.pdf)?/?")
_PMCID = re.compile(r"(?:PMC)?0*([1-9][0-9]{0,9})(?:\.[0-9]{1,3})?", re.IGNORECASE)
_PMID = re.compile(r"0*([1-9][0-9]{0,8})")
_OPENALEX = re.compile(r"(W)0*([1-9][0-9]{0,12})", re.IGNORECASE)
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}
_WRAPPED = {"<": ">", '"': '"', "'": "'", "`": "`", "(": ")", "[": "]", "{": "}", "“": "”", "‘": "’", "«": "»"}


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name of a paper in its normal form. `scheme` is doi, arxiv, pmcid, pmid, openalex or url."""

    scheme: str
    value: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.value}"


def normalize_doi(text: str) -> str | None:
    """`10.<registrant>/<suffix>` in lower case, or None. Takes any spelling of a DOI, also inside a doi.org URL."""
    if len(text) > MAX_IDENTIFIER_CHARS:
        return None
    # Escapes and punctuation may hide each other (`%2E`, `&amp;#41;`), so go on until nothing moves.
    doi = text
    while (simpler := _simpler_doi(doi)) != doi:
        doi = simpler
    return doi.lower() if _DOI.fullmatch(doi) else None


def normalize_arxiv(text: str) -> str | None:
    """The arXiv id as given (version and subject class kept), or None."""
    value = re.sub(r"^arxiv\s*:?\s*", "", text.strip(), flags=re.IGNORECASE)
    value = re.sub(r"\s+\[[\w.-]+\]$", "", value)
    url = re.search(r"arxiv\.org(/.+)$", value, re.IGNORECASE)
    if url is not None and (path := ARXIV_PATH.fullmatch(url[1])) is not None:
        value = path["id"]
    return value if _split_arxiv(value) is not None else None


def arxiv_version(arxiv_id: str) -> str | None:
    """`v2` of `2104.12255v2`."""
    parts = _split_arxiv(arxiv_id)
    return parts[1] if parts is not None else None


def arxiv_base(arxiv_id: str) -> str:
    """The id that names the paper whatever its version: `math.CA/0611800v2` gives `math/0611800`."""
    parts = _split_arxiv(arxiv_id)
    return parts[0] if parts is not None else arxiv_id


def normalize_pmcid(text: str) -> str | None:
    """`PMC<digits>`, or None. The prefix may be missing; a version (`PMC123.1`) is dropped."""
    value = re.sub(r"^pmcid\s*:?\s*", "", text.strip(), flags=re.IGNORECASE)
    match = _PMCID.fullmatch(value)
    return f"PMC{match[1]}" if match is not None and value.isascii() else None


def normalize_pmid(text: str) -> str | None:
    value = re.sub(r"^(?:pmid|pubmed)\s*:?\s*", "", text.strip(), flags=re.IGNORECASE)
    match = _PMID.fullmatch(value)
    return match[1] if match is not None and value.isascii() else None


def normalize_openalex(text: str) -> str | None:
    """`W<digits>`, or None; other entities of OpenAlex are no works."""
    match = re.fullmatch(
        r"(?:openalex:|https?://(?:api\.)?openalex\.org/(?:works/)?)?(.+)", text.strip(), re.IGNORECASE
    )
    found = _OPENALEX.fullmatch(match[1]) if match is not None else None
    return f"W{found[2]}" if found is not None and text.isascii() else None


def normalize_url(text: str) -> str | None:
    """The address as it will be asked for, or None when it is not http or https."""
    try:
        return request_url(text) if len(text) <= MAX_IDENTIFIER_CHARS else None
    except BadUrl:
        return None


_NORMALIZERS: Mapping[str, Callable[[str], str | None]] = {
    "doi": normalize_doi,
    "arxiv": normalize_arxiv,
    "pmcid": normalize_pmcid,
    "pmid": normalize_pmid,
    "openalex": normalize_openalex,
}


def identifier_of(scheme: str, text: str) -> Identifier | None:
    """The identifier when `text` is one of the scheme. An arXiv DOI is its arXiv id."""
    value = _NORMALIZERS[scheme](text)
    if value is None:
        return None
    preprint = arxiv_of_doi(value) if scheme == "doi" else None
    return Identifier(scheme, value) if preprint is None else Identifier("arxiv", preprint)


def arxiv_of_doi(doi: str) -> str | None:
    match = _ARXIV_DOI.fullmatch(doi)
    return normalize_arxiv(match[1]) if match is not None else None


def _simpler_doi(text: str) -> str:
    doi = text.strip()
    if not doi.startswith("10."):
        doi = DOI_SPELLING.sub("", doi, count=1)
    if "&" in doi:
        doi = html.unescape(doi)
    doi = trim_end(unquote(doi)).rstrip("/")
    # Known typo of one registrant; others really have DOIs with a double slash.
    return doi.replace("10.1037//", "10.1037/", 1) if doi.startswith("10.1037//") else doi


def _split_arxiv(value: str) -> tuple[str, str | None] | None:
    new = _ARXIV_NEW.fullmatch(value)
    if new is not None and value.isascii():
        # Five digits since January 2015 (identifier scheme of arXiv), four from April 2007.
        digits = 5 if new["yymm"] >= "1501" else 4
        fits = new["yymm"] >= "0704" and len(new["number"]) == digits
        return (f"{new['yymm']}.{new['number']}", new["version"]) if fits else None
    old = _ARXIV_OLD.fullmatch(value)
    if old is not None and value.isascii():
        return f"{old['archive']}/{old['number']}", old["version"]
    return None


def unwrap(text: str) -> str:
    """Without the quotes or brackets around all of it."""
    for _ in range(4):
        if len(text) < 3 or _WRAPPED.get(text[0]) != text.rstrip(".,;")[-1:]:
            break
        text = text.rstrip(".,;")[1:-1].strip()
    return text


def trim_end(text: str) -> str:
    """Without the punctuation of the sentence around it; a closing bracket goes only when nothing opened it."""
    while text:
        last = text[-1]
        opener = _BRACKETS.get(last)
        if last not in ".,;:\"'”’" and (opener is None or text.count(last) <= text.count(opener)):
            break
        text = text[:-1]
    return text
