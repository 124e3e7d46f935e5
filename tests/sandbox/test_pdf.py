"""The files are real PDFs: a strict reader opens them, PDFium reads their text, and it is where readers look for it."""

from __future__ import annotations

import io
import re
import zlib
from random import Random

import pikepdf
import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.pdf import Paper, make_pdf
from DocsToKG.Sandbox.pdf.filters import Filter, ascii85, flate, lzw, predicted, stored, unencoded
from DocsToKG.Sandbox.pdf.objects import Objects
from DocsToKG.Sandbox.pdf.renderings import RENDERINGS
from DocsToKG.Sandbox.world import World

PRISM_DOI = "{http://prismstandard.org/namespaces/basic/2.0/}doi"
ODD = "10.5511/(SICI)1097-0258(19980815)17:15<1000012::AID-SIM6>3.0.CO;2-I"
TITLE = "Affine (and \\ odd) flow of efficient <signals> in the officers' baffles"
AUTHORS = ("Ana Dvořák", "Søren Müller", "Priya Okafor")
WHOLE = Paper(TITLE, AUTHORS, 2020, ODD, journal="Letters in Soft Dynamics", volume="12", issue="3", first_page=101)
READABLE = sorted(set(RENDERINGS) - {"scan"})


def _open(data: bytes) -> pikepdf.Pdf:
    return pikepdf.open(io.BytesIO(data), attempt_recovery=False)


def texts(data: bytes) -> list[str]:
    """What PDFium reads on each page, in one line."""
    document = pypdfium2.PdfDocument(data)
    try:
        return [" ".join(page.get_textpage().get_text_range().split()) for page in document]
    finally:
        document.close()


@pytest.mark.parametrize("size", [1_000, 20_000, 60_000, 1_500_000])
def test_a_file_has_about_the_size_asked_for(size: int) -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, "10.1/x"), size_bytes=size, key="k")
    assert abs(len(data) - max(size, 6_000)) < 1_500


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_pikepdf_opens_every_rendering_without_a_warning(rendering: str) -> None:
    data = make_pdf(WHOLE, size_bytes=30_000, key="k", rendering=rendering)
    with _open(data) as pdf:
        assert len(pdf.pages) >= 3
        assert pdf.get_warnings() == []
        assert pdf.check_pdf_syntax() == []
    assert data == make_pdf(WHOLE, size_bytes=30_000, key="k", rendering=rendering)


def test_pikepdf_opens_the_files_of_a_world_without_a_warning() -> None:
    world = World(seed=7, count=30, size_bytes=8_000, files=Files.plain())
    for index in range(30):
        work = world.work(index)
        for data in world.acceptable_files(work).values():
            with _open(data) as pdf:
                assert len(pdf.pages) == work.page_count
                assert pdf.get_warnings() == []
                assert pdf.check_pdf_syntax() == []


@pytest.mark.parametrize("rendering", READABLE)
def test_pdfium_reads_the_title_page_of_every_rendering(rendering: str) -> None:
    first = texts(make_pdf(WHOLE, size_bytes=30_000, key="k", rendering=rendering))[0]
    for expected in (TITLE, f"https://doi.org/{ODD}", "Letters in Soft Dynamics 12(3), 101", "Abstract", "Received"):
        assert expected in first
    for author in AUTHORS:
        assert author in first


@pytest.mark.parametrize("rendering", READABLE)
def test_pdfium_reads_sections_references_and_page_numbers(rendering: str) -> None:
    pages = texts(make_pdf(WHOLE, size_bytes=30_000, key="k", rendering=rendering))
    assert all(len(page) > 400 for page in pages)
    assert re.search(r"\. \d{4};\d+:\d+-\d+\.", pages[-1]), "a reference"
    assert f"101–{100 + len(pages)} (2020)" in pages[0]
    assert f"{100 + len(pages)}" in pages[-1].split()


@pytest.mark.parametrize(
    ("rendering", "expected"), [("rtl", "מבוא"), ("arabic", "مقدمة"), ("cjk", "材料与方法"), ("japanese", "材料と方法")]
)
def test_other_scripts_are_read_in_the_order_of_reading(rendering: str, expected: str) -> None:
    assert any(expected in page for page in texts(make_pdf(WHOLE, size_bytes=30_000, key="k", rendering=rendering)))


def test_a_bare_scan_has_no_text_but_a_picture_on_every_page() -> None:
    data = make_pdf(WHOLE, size_bytes=30_000, key="k", rendering="scan")
    assert set(texts(data)) == {""}
    with _open(data) as pdf:
        assert all("/Im0" in page.Resources.XObject for page in pdf.pages)


def test_a_tagged_file_has_a_structure_tree_for_all_its_marked_content() -> None:
    with _open(make_pdf(WHOLE, size_bytes=30_000, key="k", rendering="tagged")) as pdf:
        elements = list(pdf.Root.StructTreeRoot.K.K)
        assert pdf.Root.MarkInfo.Marked
        assert [str(element.S) for element in elements[:3]] == ["/H1", "/P", "/P"]
        named = {str(operator) for page in pdf.pages for _, operator in pikepdf.parse_content_stream(page)}
        assert {"BDC", "BMC", "EMC"} <= named


def test_renderings_differ_in_the_structure_they_are_named_for() -> None:
    made = {name: make_pdf(WHOLE, size_bytes=30_000, key="k", rendering=name) for name in RENDERINGS}
    for name, sign in {
        "latex": b"/FontFile ", "word": b"/Identity-H", "indesign": b"/ObjStm", "cjk": b"/UniGB-UTF16-H",
        "forms": b"/Subtype /Form", "type1": b"/LZWDecode", "type3": b"/Type3", "ascii85": b"/ASCII85Decode",
    }.items():  # fmt: skip
        assert sign in made[name], name
    with _open(made["unencoded"]) as pdf:
        assert all("/Filter" not in page.Contents for page in pdf.pages)


def test_the_doi_and_title_are_in_the_xmp() -> None:
    with _open(make_pdf(WHOLE, size_bytes=5_000, key="k")) as pdf, pdf.open_metadata() as xmp:
        assert xmp[PRISM_DOI] == ODD
        assert xmp["dc:identifier"] == f"doi:{ODD}"
        assert xmp["dc:title"] == TITLE


def test_a_preprint_bears_its_stamp_and_no_doi() -> None:
    paper = Paper("A title", ("A B",), 2020, None, stamp="arXiv:2101.00001v1", form="preprint")
    first = texts(make_pdf(paper, size_bytes=5_000, key="k"))[0]
    assert "arXiv:2101.00001v1" in first
    assert "doi" not in first.lower()


def test_a_cover_stands_before_the_paper() -> None:
    paper = Paper(TITLE, AUTHORS, 2020, ODD, form="accepted", cover="Aldmoor Research Repository")
    pages = texts(make_pdf(paper, size_bytes=30_000, key="k"))
    assert "Aldmoor Research Repository" in pages[0]
    assert "Abstract" not in pages[0]
    assert "Accepted manuscript" in pages[1]
    assert "Abstract" in pages[1]
    assert "DOI: " + ODD in pages[1]


def test_a_file_cannot_be_compressed_much() -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, "10.1/x"), size_bytes=60_000, key="k")
    assert len(zlib.compress(data)) > 50_000


def test_files_end_as_readers_expect() -> None:
    data = make_pdf(Paper("A title", ("A B",), 2020, "10.1/x"), size_bytes=5_000, key="k")
    assert data.startswith(b"%PDF-1.7\n")
    assert data.endswith(b"%%EOF\n")
    assert b"startxref" in data[-64:]


@pytest.mark.parametrize("packing", [unencoded, flate, stored, ascii85, lzw, predicted])
def test_filters_give_back_what_they_were_given(packing: Filter) -> None:
    chance = Random(3)
    for length in (1, 255, 4_000, 60_000):
        data = bytes(chance.choices(b"abc 012()<>\xff\x00", k=length))
        objects = Objects()
        number = objects.add_stream(b"", packing(data))
        page = objects.add(b"<< /Type /Page /MediaBox [0 0 9 9] /Parent %d 0 R >>" % (number + 2))
        tree = objects.add(b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % page)
        root = objects.add(b"<< /Type /Catalog /Pages %d 0 R >>" % tree)
        with _open(objects.with_table(root, root)) as pdf:
            assert pdf.get_object(number, 0).read_bytes()[:length] == data


@pytest.mark.slow
@examples(40)
@given(title=st.text(max_size=80), doi=st.from_regex(r"10\.\d{4}/[!-~]{1,40}", fullmatch=True))
def test_no_title_or_doi_breaks_the_file(title: str, doi: str) -> None:
    printable = "".join(char for char in title if char.isprintable())
    for rendering in ("plain", "latex", "word"):
        data = make_pdf(Paper(printable, ("A B",), 2020, doi), size_bytes=4_000, key="k", rendering=rendering)
        with _open(data) as pdf:
            assert pdf.get_warnings() == []
    data = make_pdf(Paper(printable, ("A B",), 2020, doi), size_bytes=4_000, key="k")
    with _open(data) as pdf, pdf.open_metadata() as xmp:
        assert xmp[PRISM_DOI] == doi
