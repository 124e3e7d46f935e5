"""What PMC's open bucket says of an article: which versions it holds, and what one version is.

Pure: bytes and JSON in, values out. Knows the form of the listing and of the metadata, where files are named as
`s3://pmc-oa-opendata/PMC1.1/PMC1.1.pdf?md5=<hex>`. Promises: a file outside its version's own folder is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from DocsToKG.ContentDownload.resolvers.ids.identifier import normalize_doi, normalize_pmcid, normalize_pmid
from DocsToKG.ContentDownload.resolvers.records.fields import text_of, title_of, year_of

_BUCKET = "s3://pmc-oa-opendata/"
_MOST_MEDIA = 100
_FIGURES = (".jpg", ".jpeg", ".gif", ".png", ".tif", ".tiff")
_FILE = re.compile(r"(?P<key>[^?#\s]{1,500})(?:\?md5=(?P<md5>[0-9a-fA-F]{32}))?")
# "Journal. 2019 Apr 22; 14(4)": the year follows the journal, whose name may hold a number of its own.
_CITED = re.compile(r"\.\s+((?:1[5-9]|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class BucketFile:
    """A file by its key, escaped for a path, and its published digest."""

    path: str
    checksum: str | None


@dataclass(frozen=True, slots=True)
class BucketRecord:
    """One version of an article."""

    pmcid: str | None
    doi: str | None
    pmid: str | None
    title: str | None
    year: int | None
    license: str | None
    is_manuscript: bool
    is_retracted: bool | None
    pdf: BucketFile | None
    xml: BucketFile | None
    media: tuple[BucketFile, ...] = ()  # figures and films of the text are left out


def versions_in(listing: bytes, pmcid: str) -> list[int] | None:
    """The versions listed for `pmcid`, newest first; None when the answer is no listing."""
    if b"ListBucketResult" not in listing[:4096]:
        return None
    found = re.findall(rb"<Prefix>\s*%s\.(\d{1,4})/\s*</Prefix>" % pmcid.encode(), listing)
    return sorted({int(number) for number in found}, reverse=True)


def record_of(answer: Mapping[str, Any], folder: str) -> BucketRecord:
    """The metadata of the version whose files lie in `folder` (`PMC1.1/`)."""
    retracted = answer.get("is_retracted")
    cited = _CITED.search((text_of(answer, "citation") or "")[:300])
    return BucketRecord(
        pmcid=normalize_pmcid(_shown(answer, "pmcid")),
        doi=normalize_doi(text_of(answer, "doi") or ""),
        pmid=normalize_pmid(_shown(answer, "pmid")),
        title=title_of(answer.get("title")),
        year=year_of(cited[1]) if cited is not None else None,
        license=text_of(answer, "license_code"),
        is_manuscript=answer.get("is_manuscript") is True,
        is_retracted=retracted if isinstance(retracted, bool) else None,
        pdf=_file(text_of(answer, "pdf_url"), folder),
        xml=_file(text_of(answer, "xml_url"), folder),
        media=tuple(_media(answer, folder)),
    )


def _media(answer: Mapping[str, Any], folder: str) -> Iterator[BucketFile]:
    listed = answer.get("media_urls")
    for address in listed[:_MOST_MEDIA] if isinstance(listed, list) else ():
        file = _file(address, folder) if isinstance(address, str) else None
        if file is not None and not file.path.lower().endswith(_FIGURES):
            yield file


def _shown(answer: Mapping[str, Any], name: str) -> str:
    """A number or a text, as text: ids come as either."""
    value = answer.get(name)
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12
    return str(value) if is_number else text_of(answer, name) or ""


def _file(address: str | None, folder: str) -> BucketFile | None:
    match = _FILE.fullmatch((address or "").removeprefix(_BUCKET))
    if match is None or not (address or "").startswith(_BUCKET + folder) or ".." in match["key"]:
        return None
    # S3 reads a plain "+" as a blank.
    return BucketFile(
        path=quote(match["key"], safe="/%"), checksum=f"md5:{match['md5'].lower()}" if match["md5"] else None
    )
