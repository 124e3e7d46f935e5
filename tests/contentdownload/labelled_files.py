"""Papers whose file is known: DOIs with the addresses at which indexes, publishers or public texts say their PDF is.

Recorded records name most; `KNOWN` adds pairs read in public texts for publishers that the records lack.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.needs import recorded

from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.landing.link_ranking import site_of

KNOWN = (
    ("10.7717/peerj.384", "https://peerj.com/articles/384.pdf"),
    ("10.2320/jinstmet1952.61.12_1352", "https://www.jstage.jst.go.jp/article/jinstmet1952/61/12/61_12_1352/_pdf/-char/en"),
    ("10.1299/jsmesports.2009.0_152", "https://www.jstage.jst.go.jp/article/jsmesports/2009/0/2009_152/_pdf"),
    ("10.1299/jsmemsd.2002.99", "https://www.jstage.jst.go.jp/article/jsmemsd/2002/0/2002_99/_pdf"),
    ("10.1299/jsmemecj.2017.g0500606", "https://www.jstage.jst.go.jp/article/jsmemecj/2017/0/2017_G0500606/_pdf"),
    ("10.1186/s12879-016-1593-0", "https://link.springer.com/content/pdf/10.1186/s12879-016-1593-0.pdf"),
    ("10.1186/s13677-015-0042-8", "http://link.springer.com/content/pdf/10.1186/s13677-015-0042-8.pdf"),
    ("10.1515/znb-1952-0303", "https://www.degruyter.com/document/doi/10.1515/znb-1952-0303/pdf"),
    ("10.1515/znb-2024-0113", "https://www.degruyterbrill.com/document/doi/10.1515/znb-2024-0113/pdf?licenseType=free"),
    ("10.1515/opth-2019-0002", "https://www.degruyter.com/document/doi/10.1515/opth-2019-0002/pdf"),
    ("10.1515/popets-2015-0006", "https://sciendo.com/article/10.1515/popets-2015-0006"),
    ("10.1515/jaiscr-2016-0010", "https://sciendo.com/article/10.1515/jaiscr-2016-0010"),
    ("10.1515/quageo-2016-0030", "https://sciendo.com/article/10.1515/quageo-2016-0030"),
    ("10.1515/fcds-2017-0007", "https://sciendo.com/article/10.1515/fcds-2017-0007"),
    ("10.2307/1390722", "https://www.jstor.org/stable/pdf/1390722.pdf"),
    ("10.2307/1885060", "https://www.jstor.org/stable/pdf/1885060.pdf"),
    ("10.2307/j.ctt7zvxr2.9", "https://www.jstor.org/stable/pdf/j.ctt7zvxr2.9.pdf"),
    ("10.5194/egusphere-egu24-10298", "https://meetingorganizer.copernicus.org/EGU24/EGU24-10298.pdf"),
    ("10.31234/osf.io/3ykst", "https://osf.io/3ykst/download"),
    ("10.1590/s2179-975x2011000300002", "http://www.scielo.br/scielo.php?script=sci_pdf&pid=S2179-975X2011000300002"),
    ("10.1590/s0074-02762006000900051", "http://www.scielo.br/scielo.php?script=sci_pdf&pid=S0074-02762006000900051"),
    ("10.1073/pnas.2305772120", "https://www.pnas.org/doi/pdf/10.1073/pnas.2305772120"),
    ("10.1021/acs.jpcc.2c06145", "https://pubs.acs.org/doi/pdf/10.1021/acs.jpcc.2c06145?ref=article_openPDF"),
    ("10.1021/bk-2006-styg.ch014", "http://pubs.acs.org/doi/pdf/10.1021/bk-2006-STYG.ch014"),
    (
        "10.5194/isprs-archives-xliii-b3-2020-1077-2020",
        "https://isprs-archives.copernicus.org/articles/XLIII-B3-2020/1077/2020/isprs-archives-XLIII-B3-2020-1077-2020.pdf",
    ),
    ("10.1016/s0021-9258(20)48862-3", "https://www.jbc.org/article/S0021-9258(20)48862-3/pdf"),
    ("10.1016/s0021-9258(22)00327-1", "https://www.jbc.org/article/S0021-9258(22)00327-1/pdf"),
    ("10.1016/s0167-8140(24)00615-7", "https://www.thegreenjournal.com/article/S0167-8140(24)00615-7/pdf"),
    (
        "10.1016/s0213-9111(01)71599-3",
        "https://www.gacetasanitaria.org/es-la-distribucion-binomial-negativa-frente-articulo-resumen-S0213911101715993",
    ),
    ("10.1016/s0167-8140(24)00119-1", "https://www.thegreenjournal.com/article/S0167-8140(24)00119-1/pdf"),
)  # fmt: skip
# Hosts of one publisher that serve the same files, and publishers that were renamed.
_SAME_PUBLISHER = {
    "biomedcentral.com": "springer.com",
    "springeropen.com": "springer.com",
    "degruyter.com": "degruyterbrill.com",
}
# Not the publisher's copy, or no statement where it is.
_ELSEWHERE = (
    "doi.org", "europepmc.org", "nih.gov", "arxiv.org", "handle.net", "semanticscholar.org", "worktribe.com",
    "ieee.org",
)  # fmt: skip
# Publishers that an index counts among the repositories, and whose DOIs are their own.
_OWN_DOIS = tuple(
    f"https://doi.org/10.{number}" for number in ("1101", "64898", "21203", "20944", "31219", "2139", "3917")
)


def files_of_publishers() -> dict[str, set[str]]:
    """By DOI: where the publisher's file is said to be."""
    found: dict[str, set[str]] = defaultdict(set)
    for doi, address in (*KNOWN, *_of_openalex(), *_of_crossref(), *_of_unpaywall(), *_of_pages()):
        name = normalize_doi(doi)
        if name is not None and site_of(address) not in _ELSEWHERE:
            found[name].add(address)
    return found


def is_file_of(guess: str, known: str, doi: str) -> bool:
    """Is the address guessed that of the known file, or of this paper's file at the same publisher?"""
    if place(guess) == place(known) and not place(guess)[1].endswith(".php"):
        return True
    if _publisher(guess) != _publisher(known):
        return False
    names = {squeezed(doi.partition("/")[2]), squeezed(doi.rpartition("/")[2]), *_numbers(doi)}
    return any(name in squeezed(unquote(known)) for name in names if len(name) >= 4)


def place(url: str) -> tuple[str, str]:
    """Host and path: the query differs by tracking, the case of a DOI by taste."""
    parts = urlsplit(url)
    return (parts.hostname or ""), unquote(parts.path).lower().removesuffix("/-char/en").removesuffix("/-char/ja")


def squeezed(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def records(status: str) -> list[dict[str, Any]]:
    file = recorded("openalex") / f"works-{status}.json"
    return [entry["work"] for entry in json.loads(file.read_text())["records"]]


def _numbers(doi: str) -> Iterator[str]:
    """The last number of a DOI, where it is long enough to be a name: `rs-1828260`, `elife.44753`."""
    digits = [part for part in "".join(char if char.isdigit() else " " for char in doi).split() if len(part) >= 5]
    yield from digits[-1:]


def _publisher(url: str) -> str:
    site = site_of(url)
    return _SAME_PUBLISHER.get(site, site)


def _of_openalex() -> Iterator[tuple[str, str]]:
    for status in ("bronze", "closed", "diamond", "gold", "green", "hybrid"):
        for record in records(status):
            for location in record["locations"]:
                is_deposit = (location.get("source") or {}).get("type") == "repository"
                if location.get("pdf_url") and (not is_deposit or record["doi"].startswith(_OWN_DOIS)):
                    yield record["doi"], location["pdf_url"]


def _of_crossref() -> Iterator[tuple[str, str]]:
    for file in sorted(recorded("crossref").glob("*.json")):
        for exchange in json.loads(file.read_text()):
            body = exchange["response"].get("body_text") or ""
            if body.startswith("{"):
                yield from _links_in(json.loads(body))


def _links_in(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _links_in(item)
    if isinstance(value, Mapping):
        if isinstance(value.get("DOI"), str) and isinstance(value.get("link"), list):
            for link in value["link"]:
                is_pdf = link.get("content-type") == "application/pdf" or "pdf" in link["URL"]
                if is_pdf and "api." not in link["URL"]:
                    yield value["DOI"], link["URL"]
        for item in value.values():
            yield from _links_in(item)


def _of_unpaywall() -> Iterator[tuple[str, str]]:
    for file in sorted(recorded("unpaywall").glob("*.json")):
        for record in json.loads(file.read_text())["records"]:
            for location in record["oa_locations"]:
                if location.get("url_for_pdf") and location.get("host_type") == "publisher":
                    yield record["doi"], location["url_for_pdf"]


def _of_pages() -> Iterator[tuple[str, str]]:
    for page in json.loads((recorded("landing") / "truth.json").read_text())["pages"].values():
        if page["doi"] and page["pdf_url"]:
            yield page["doi"], page["pdf_url"]


def pages_of(doi: str, known: str) -> Iterator[str]:
    """The addresses that a page has at the publisher of a known file, as rules for pages know them."""
    host, path = place(known)
    name = doi.partition("/")[2]
    yield f"https://{host}/articles/{name if host == 'www.nature.com' else doi}"
    yield f"https://{host}/article/{doi}"
    if path.startswith("/doi/"):
        yield f"https://{host}/doi/full/{doi}"
    if "/article/s" in path:
        yield f"https://{host}{path.removesuffix('/pdf').replace('/article/s', '/article/S')}/fulltext"
    if host == "journals.openedition.org":
        yield known.replace("/pdf/", "/")
    if host.endswith("cairn.info"):
        yield known.partition("/pdf")[0]
    if host == "elifesciences.org":
        yield f"https://elifesciences.org/articles/{name.rpartition('.')[2]}"
