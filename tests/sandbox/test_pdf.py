"""The files are real PDFs: a strict reader opens them, and their identity is where readers look for it."""

from __future__ import annotations

import io
import zlib

import pikepdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.Sandbox.pdf import Paper, make_pdf
from DocsToKG.Sandbox.world import World

PRISM_DOI = "{http://prismstandard.org/namespaces/basic/2.0/}doi"
ODD = "10.5511/(SICI)1097-0258(19980815)17:15<1000012::AID-SIM6>3.0.CO;2-I"


def _open(data: bytes) -> pikepdf.Pdf:
    return pikepdf.open(io.BytesIO(data), attempt_recovery=False)


@pytest.mark.parametrize("size", [1_000, 20_000, 60_000, 1_500_000])
def test_a_file_has_about_the_size_asked_for(size: int) -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, "10.1/x"), size_bytes=size, key="k")
    assert abs(len(data) - max(size, 2_400)) < 600


def test_pikepdf_opens_files_without_a_warning() -> None:
    world = World(seed=7, count=30, size_bytes=8_000)
    for index in range(30):
        for data in world.acceptable_files(world.work(index)).values():
            with _open(data) as pdf:
                assert len(pdf.pages) == 2
                assert pdf.get_warnings() == []
                assert pdf.check_pdf_syntax() == []


def test_the_doi_and_title_are_in_the_xmp_and_on_the_first_page() -> None:
    paper = Paper("Weak (and \\ odd) <signals>", ("Ana Dvořák",), 2020, ODD)
    with _open(make_pdf(paper, size_bytes=5_000, key="k")) as pdf:
        with pdf.open_metadata() as xmp:
            assert xmp[PRISM_DOI] == ODD
            assert xmp["dc:identifier"] == f"doi:{ODD}"
            assert xmp["dc:title"] == paper.title
        lines = pikepdf.parse_content_stream(pdf.pages[0])
        shown = [bytes(operands[0]) for operands, operator in lines if str(operator) == "Tj"]
    assert f"https://doi.org/{ODD}".encode() in shown


def test_a_file_without_doi_names_none() -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, None, stamp="arXiv:2101.00001v1"), size_bytes=5_000, key="k")
    assert b"doi" not in data.lower().split(b"stream")[1]
    assert b"arXiv:2101.00001v1" in data


def test_a_file_cannot_be_compressed_much() -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, "10.1/x"), size_bytes=60_000, key="k")
    assert len(zlib.compress(data)) > 55_000


def test_files_end_as_readers_expect() -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, "10.1/x"), size_bytes=5_000, key="k")
    assert data.startswith(b"%PDF-1.7\n")
    assert data.endswith(b"%%EOF\n")
    assert b"startxref" in data[-64:]


@pytest.mark.slow
@examples(40)
@given(title=st.text(max_size=80), doi=st.from_regex(r"10\.\d{4}/[!-~]{1,40}", fullmatch=True))
def test_no_title_or_doi_breaks_the_file(title: str, doi: str) -> None:
    printable = "".join(char for char in title if char.isprintable())
    data = make_pdf(Paper(printable, ("A B",), 2020, doi), size_bytes=4_000, key="k")
    with _open(data) as pdf:
        assert pdf.get_warnings() == []
        with pdf.open_metadata() as xmp:
            assert xmp[PRISM_DOI] == doi
