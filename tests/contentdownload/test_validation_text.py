"""The text of a PDF is read whatever font, filter or producer made it, within bounds."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import pikepdf
import pytest
from tests.contentdownload.pdf_writers import WRITERS, Made, Text, reportlab_pdf, scan_pdf

from DocsToKG.ContentDownload.validation.identity.metadata import declared_dois, declared_title, named_dois
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, ReadOptions, TextFailure
from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine

TITLE = "Efficient flow of networks: Part II"
PAGE = (
    Text("Journal of Things 12 (2020) 100-119", 8),
    Text(TITLE, 18, 20),
    Text("Anna Author and Bert Else", 10, 12),
    Text("https://doi.org/10.1234/abc.2020.1", 8, 10),
    Text("Abstract", 12, 20),
    *("The meadows of the north are dry and their barley is short for its age." for _ in range(8)),
)
MADE = Made([PAGE, ["the second page"], ["the third page"], ["References", "[1] Smith J. On barley. 2011."]])


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    with TextEngine(PoolLimits(workers=1)) as engine:
        yield engine


def read(engine: TextEngine, data: bytes, **options: object) -> DocumentText:
    document = engine.read(data, ReadOptions(**options)).result(60)  # type: ignore[arg-type]
    assert isinstance(document, DocumentText), document
    return document


@pytest.mark.parametrize("name", WRITERS)
def test_text_is_read_with_its_place_and_size(engine, name):
    document = read(engine, WRITERS[name](MADE))
    first = document.pages[0]
    assert [page.number for page in document.pages] == [1, 2, 4]
    assert document.page_count == 4
    assert [line.text for line in first.lines[:5]] == [line.text for line in PAGE[:5] if isinstance(line, Text)]
    title = next(line for line in first.lines if line.text == TITLE)
    assert title.size == max(line.size for line in first.lines)
    assert title.size > 1.4 * first.lines[-1].size
    assert document.pages[-1].text.startswith("References")
    assert document.streams is not None
    assert document.streams.damaged == ()


def test_lines_of_one_size_below_one_another_are_a_block(engine):
    made = Made(
        [
            [
                Text("A title over", 18),
                Text("two lines", 18),
                Text("An author", 10, 10),
                Text("Prose", 10, 20),
                *["prose and prose"] * 5,
            ]
        ]
    )
    lines = read(engine, reportlab_pdf(made)).pages[0].lines
    assert [(line.text, line.block) for line in lines[:3]] == [("A title over", 0), ("two lines", 0), ("An author", 1)]


def test_other_scripts_are_read(engine):
    made = Made([[Text("日本語の論文の題名", 18), Text("本文" * 20)]])
    assert read(engine, reportlab_pdf(made, "HeiseiMin-W3")).pages[0].lines[0].text == "日本語の論文の題名"


def test_a_scan_is_known_as_one(engine):
    assert read(engine, scan_pdf(MADE)).is_scan
    assert not read(engine, scan_pdf(MADE, ocr=True)).is_scan
    assert not read(engine, reportlab_pdf(MADE)).is_scan


def test_a_hyphen_at_the_end_of_a_line_stays(engine):
    made = Made([[Text("A paper on dia-"), Text("grammatic things")]])
    assert read(engine, reportlab_pdf(made)).pages[0].text == "A paper on dia-\ngrammatic things"


def test_the_numbers_of_a_manuscript_s_lines_are_left_out(engine):
    numbered = Made([[f"{number} A line of the manuscript" for number in range(1, 30)]])
    assert {line.text for line in read(engine, reportlab_pdf(numbered)).pages[0].lines} == {"A line of the manuscript"}
    table = Made([[f"{number * 7} A line of a table" for number in range(1, 30)]])
    assert read(engine, reportlab_pdf(table)).pages[0].lines[0].text == "7 A line of a table"


def test_how_much_is_read_is_bounded(engine):
    many = Made([["x" * 50] * 40] * 30)
    document = read(engine, reportlab_pdf(many), pages=3, last_pages=2, max_letters=100, max_document_letters=300)
    assert [page.number for page in document.pages] == [1, 2, 3, 29]
    assert all(page.letters <= 100 and page.cut for page in document.pages)
    assert document.record()["pages"] == [1, 2, 3, 29]


def test_metadata_outline_and_attachments_are_read(engine):
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(reportlab_pdf(MADE))) as pdf:
        with pdf.open_metadata(set_pikepdf_as_editor=False) as xmp:
            xmp["dc:title"] = "A declared title"
        with pdf.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem("1 Introduction", 0))
        pdf.attachments["table.csv"] = b"a,b"
        pdf.docinfo["/doi"] = "10.1234/abc"
        pdf.save(out)
    document = read(engine, out.getvalue())
    assert "A declared title" in document.xmp
    assert document.outline == ("1 Introduction",)
    assert document.attachments == ("table.csv",)
    assert document.info["doi"] == "10.1234/abc"


def test_a_file_behind_a_password_is_a_reason(engine):
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(reportlab_pdf(MADE))) as pdf:
        pdf.save(out, encryption=pikepdf.Encryption(user="open", owner="own"))
    failure = engine.read(out.getvalue()).result(60)
    assert isinstance(failure, TextFailure)
    assert failure.reason == "text-encrypted"


def test_a_file_that_only_its_owner_may_change_is_read(engine):
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(reportlab_pdf(MADE))) as pdf:
        pdf.save(out, encryption=pikepdf.Encryption(user="", owner="own"))
    document = read(engine, out.getvalue())
    assert TITLE in document.pages[0].text
    assert document.streams is not None
    assert document.streams.damaged == ()


def with_xmp(packet: bytes) -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(reportlab_pdf(MADE))) as pdf:
        pdf.Root.Metadata = pdf.make_stream(packet, Type=pikepdf.Name.Metadata, Subtype=pikepdf.Name.XML)
        pdf.docinfo["/Subject"] = "J. Nets 3, doi:10.1234/info."
        pdf.save(out, fix_metadata_version=False)
    return out.getvalue()


def test_the_dois_in_which_a_file_names_itself_are_read(engine):
    title = "<dc:title><rdf:Alt><rdf:li>Deep &amp; Wide</rdf:li></rdf:Alt></dc:title>"
    own = "<prism:doi>10.1234/ABC.5</prism:doi><dc:identifier>doi:10.1234/abc.5</dc:identifier>"
    document = read(engine, with_xmp((title + own + "<dc:relation>10.9999/other</dc:relation>").encode()))
    assert declared_dois(document) == ("10.1234/abc.5", "10.1234/info")
    assert declared_title(document) == "Deep & Wide"
    assert named_dois(document) == ("10.1234/abc.5", "10.1234/info", "10.1234/abc.2020.1")
    attribute = read(engine, with_xmp(b'<rdf:Description prism:doi="10.1234/attr"/>'))
    assert "10.1234/attr" in declared_dois(attribute)


@pytest.mark.parametrize("packet", [b"\xff\xfe\x00", b"<prism:doi>" * 5000, b"\0" * 5000, b"<" * 200_000])
def test_hostile_metadata_says_nothing_and_costs_nothing(engine, packet):
    document = read(engine, with_xmp(packet))
    begun = time.thread_time()
    assert declared_dois(document) == ("10.1234/info",)
    declared_title(document)
    assert time.thread_time() - begun < 1
