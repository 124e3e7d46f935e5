"""Each source of an index in the shape its provider publishes."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import needs
from tests.contentdownload.index_files import built, write_lines

from DocsToKG.ContentDownload.index.build import Wanted, build
from DocsToKG.ContentDownload.index.engine import connect
from DocsToKG.ContentDownload.index.reader import Access, Index, KnownWork
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.openalex import open_locations, work_of_record
from DocsToKG.ContentDownload.resolvers.record import Record


def known(root: Path, source: str, address: Path, *ids: str, **more: Any) -> list[KnownWork]:
    build(root, Wanted([(source, str(address))], files=2, **more))
    with Index(root) as index:
        return index.lookup(ids)


def recorded_works() -> list[dict[str, Any]]:
    folder = needs.recorded("openalex")
    return [each["work"] for file in sorted(folder.glob("*.json")) for each in json.loads(file.read_text())["records"]]


@pytest.mark.slow
def test_every_open_copy_of_the_recorded_works_is_found_again(tmp_path: Path) -> None:
    records = recorded_works()
    built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl.gz", records))
    works = [work_of_record(Record(record)) for record in records]
    with Index(tmp_path / "oa") as index:
        found = index.lookup([work.work_id for work in works if work is not None])
    named = 0
    for record, work, told in zip(records, works, found, strict=True):
        assert work is not None
        places = open_locations(Record(record))
        addresses = {place.get(name) for place in places for name in ("pdf_url", "landing_page_url")} - {None}
        there = {copy[name] for copy in told.copies for name in ("url", "page")}
        # Two spellings of one page of a copy may be given; the file's address is always there.
        assert addresses - there <= {p.get("landing_page_url") for p in places if p.get("pdf_url") in there}
        named += len(addresses)
        assert (told.access is Access.OPEN) == bool(places)
        ids = (f"doi:{work.doi}", f"arxiv:{work.arxiv_id}", f"pmcid:{work.pmcid}", f"pmid:{work.pmid}")
        assert {name for name in ids if not name.endswith(":None")} <= set(told.ids)
    assert named > 500


def test_unpaywall_lines(tmp_path: Path) -> None:
    place = {"url": "https://a.example/1", "url_for_pdf": None, "url_for_landing_page": "https://a.example/1"}
    best = {"url_for_pdf": "https://arxiv.org/pdf/1304.1068", "pmh_id": "oai:arXiv.org:1304.1068", "is_best": True}
    record = {"doi": "10.5555/A", "is_oa": True, "oa_status": "green", "oa_locations": [place, best], "year": 2013}
    closed = {"doi": "10.5555/b", "is_oa": False, "oa_locations": []}
    file = write_lines(tmp_path / "u.jsonl.gz", [record, closed])
    by_doi, by_arxiv, shut = known(
        tmp_path / "oa", "unpaywall", file, "doi:10.5555/a", "arxiv:1304.1068", "doi:10.5555/b"
    )
    assert by_doi == by_arxiv
    assert [(copy["url"], copy["evidence"]) for copy in by_doi.copies] == [
        ("https://arxiv.org/pdf/1304.1068", "url_for_pdf"),
        ("https://a.example/1", "url_for_landing_page"),
    ]
    assert (shut.access, shut.oa_status) == (Access.CLOSED, "closed")


def crossref(doi: str, *, starts: str = "2012-03-21T00:00:00Z", **more: Any) -> dict[str, Any]:
    licence = {"URL": "http://creativecommons.org/licenses/by/4.0/", "content-version": "vor"}
    licence |= {"start": {"date-time": starts}}
    links = [
        {"URL": f"https://p.example/{doi}.pdf", "content-type": "application/pdf", "content-version": "vor"},
        {"URL": f"https://api.elsevier.com/{doi}", "content-type": "application/pdf", "content-version": "vor"},
        {"URL": f"https://p.example/{doi}.xml", "content-type": "text/xml", "content-version": "vor"},
    ]
    return {"DOI": doi, "title": ["A"], "license": [licence], "link": links, "issued": {"date-parts": [[2012]]}, **more}


def test_crossref_tells_copies_under_an_open_licence_in_force_and_retractions(tmp_path: Path) -> None:
    lines = [
        crossref("10.5555/A"),
        crossref("10.5555/later", starts="2999-01-01T00:00:00Z"),
        crossref("10.5555/gone", **{"updated-by": [{"DOI": "10.5555/notice", "type": "retraction"}]}),
        crossref("10.5555/self", **{"update-to": [{"DOI": "10.5555/SELF", "type": "withdrawal"}]}),
        crossref("10.5555/notice", **{"update-to": [{"DOI": "10.5555/gone", "type": "retraction"}]}),
    ]
    ids = [f"doi:10.5555/{name}" for name in ("a", "later", "gone", "self", "notice")]
    open_, later, gone, itself, notice = known(
        tmp_path / "oa", "crossref", write_lines(tmp_path / "c.jsonl", lines), *ids
    )
    assert [copy["url"] for copy in open_.copies] == ["https://p.example/10.5555/A.pdf"]
    assert (open_.copies[0]["version"], open_.year) == ("publishedVersion", 2012)
    assert later.access is Access.UNKNOWN, "Crossref does not say that a work is closed"
    assert [work.is_retracted for work in (gone, itself, notice)] == [True, True, None]


def pmc(number: int, version: int = 1, **more: Any) -> dict[str, Any]:
    file = f"s3://pmc-oa-opendata/PMC{number}.{version}/PMC{number}.{version}.pdf?md5={'0' * 31}{version}"
    return {"pmcid": f"PMC{number}", "version": version, "pmid": 5, "doi": "10.5555/p", "pdf_url": file, **more}


def test_pmc_metadata_as_single_objects_with_an_inventory(tmp_path: Path) -> None:
    folder = tmp_path / "metadata"
    folder.mkdir()
    for version in (1, 2):
        (folder / f"PMC7.{version}.json").write_text(json.dumps(pmc(7, version), indent=1))
    rows = '"pmc-oa-opendata","metadata/PMC7.2.json","2026-11-01T00:00:00Z","e"\n"pmc-oa-opendata","README.txt","",""\n'
    (tmp_path / "inventory.csv.gz").write_bytes(gzip.compress(rows.encode()))
    inventory = [str(tmp_path / "inventory.csv.gz")]
    by_doi, by_pmid = known(tmp_path / "oa", "pmc", folder, "doi:10.5555/p", "pmid:5", inventory=inventory)
    assert by_doi == by_pmid
    [copy] = by_doi.copies
    assert copy["url"] == "https://pmc-oa-opendata.s3.amazonaws.com/PMC7.2/PMC7.2.pdf"
    assert copy["checksum"] == f"md5:{'0' * 31}2"


def test_arxiv_metadata(tmp_path: Path) -> None:
    lines = [
        {"id": "0704.0001", "title": "Two\n  lines", "doi": "10.5555/X", "versions": [{"created": "Mon, 2 Apr 2007"}]},
        {"id": "math/0611800", "title": "Old", "doi": None, "license": "http://creativecommons.org/licenses/by/4.0/"},
    ]
    file = write_lines(tmp_path / "arxiv.json", lines)
    published, old = known(tmp_path / "oa", "arxiv", file, "doi:10.5555/x", "arxiv:math/0611800")
    assert (published.title, published.year, published.ids) == ("Two lines", 2007, ("doi:10.5555/x", "arxiv:0704.0001"))
    assert old.copies[0]["url"] == "https://export.arxiv.org/pdf/math/0611800"
    assert old.copies[0]["license"] == "http://creativecommons.org/licenses/by/4.0/"


def test_datacite_in_its_tar(tmp_path: Path) -> None:
    rights = [{"rightsUri": "https://creativecommons.org/licenses/by/4.0/legalcode", "rightsIdentifier": "cc-by-4.0"}]
    text = {"resourceTypeGeneral": "Text"}
    records = [
        {"attributes": {"doi": "10.5555/t", "url": "https://d.example/t", "types": text, "rightsList": rights}},
        {
            "attributes": {
                "doi": "10.5555/f",
                "contentUrl": ["https://d.example/f.pdf"],
                "types": text,
                "rightsList": rights,
            }
        },
        {"attributes": {"doi": "10.5555/s", "url": "https://d.example/s", "types": text, "rightsList": []}},
        {"attributes": {"doi": "10.5555/d", "url": "https://d.example/d", "types": {"resourceTypeGeneral": "Dataset"}}},
    ]
    packed = gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode())
    with tarfile.open(tmp_path / "datacite.tar", "w") as archive:
        member = tarfile.TarInfo("dois/updated_2026-01/part_0000.jsonl.gz")
        member.size = len(packed)
        archive.addfile(member, io.BytesIO(packed))
    ids = [f"doi:10.5555/{name}" for name in "tfsd"]
    page, file, silent, data = known(tmp_path / "oa", "datacite", tmp_path / "datacite.tar", *ids)
    assert [(work.copies[0]["url"], work.copies[0]["kind"]) for work in (page, file)] == [
        ("https://d.example/t", "page"),
        ("https://d.example/f.pdf", "pdf"),
    ]
    assert page.copies[0]["license"] == "cc-by-4.0"
    assert [silent.access, data.access] == [Access.UNKNOWN, Access.UNKNOWN]
    assert data.ids == ()


def test_the_first_copies_are_the_users_own_and_none_is_there_twice(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,url\n10.5555/a,https://mine.example/a.pdf\n")
    lines = write_lines(tmp_path / "c.jsonl", [crossref("10.5555/A")])
    twice = write_lines(tmp_path / "more.jsonl", [crossref("10.5555/A") | {"link": crossref("10.5555/A")["link"] * 2}])
    wanted = [("crossref", str(lines)), ("crossref", str(twice)), ("copies", str(tmp_path / "mine.csv"))]
    build(tmp_path / "oa", Wanted(wanted, files=1))
    with Index(tmp_path / "oa") as index:
        [work] = index.lookup(["doi:10.5555/a"])
    assert [copy["url"] for copy in work.copies] == ["https://mine.example/a.pdf", "https://p.example/10.5555/A.pdf"]


_SPELLINGS = ["{}", "https://doi.org/{}", "http://dx.doi.org/{}", "doi:{}", "DOI: {}", "{}.", " {} ", "doi.org/{}"]
_DOIS = st.from_regex(r"10\.[0-9]{4,6}(\.[0-9]{1,3})?/[A-Za-z0-9()<>;:._/-]{1,20}", fullmatch=True)


@pytest.mark.slow
@given(doi=_DOIS, spelling=st.sampled_from(_SPELLINGS))
def test_dois_are_written_as_the_other_half_of_the_program_writes_them(doi: str, spelling: str) -> None:
    text = spelling.format(doi)
    [(found, name)] = db().execute("SELECT doi_of(?), name_of(?)", [text, text]).fetchall()
    wanted = normalize_doi(text)
    # Brackets and punctuation at the end of a DOI are read by the careful reader alone.
    if wanted is not None and doi[-1].isalnum():
        assert found == wanted
    if name is not None:
        assert name == str(parse_identifier(text))


@pytest.mark.slow
def test_names_are_told_only_where_the_careful_reader_agrees() -> None:
    cases = json.loads(needs.recorded("identifiers").glob("*.json").__next__().read_text())
    texts = [case["raw"] for some in cases["cases"].values() for case in some if isinstance(case["raw"], str)]
    for text in texts:
        [(name,)] = db().execute("SELECT name_of(?)", [text]).fetchall()
        if name is not None:
            try:
                assert name == str(parse_identifier(text))
            except BadIdentifier:
                pytest.fail(f"{text!r} is no identifier, but {name} was read")


_OPEN: list[Any] = []


def db() -> Any:
    if not _OPEN:
        _OPEN.append(connect())
        _OPEN.append(_OPEN[0].__enter__())
    return _OPEN[1]
