"""A PDF is proved whole, or rejected with a reason of its own."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import re
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.pdf.structure import is_gzip, prove_pdf, unwrap_gzip
from DocsToKG.Sandbox.pdf import Paper
from DocsToKG.Sandbox.pdf import make_pdf as make_paper

PLAIN = {"object_stream_mode": pikepdf.ObjectStreamMode.disable}
PACKED = {"object_stream_mode": pikepdf.ObjectStreamMode.generate}
USER = {"encryption": pikepdf.Encryption(user="open", owner="own")}
OWNER = {"encryption": pikepdf.Encryption(user="", owner="own")}
FORMS: dict[str, dict[str, object]] = {
    "classic": {**PLAIN, "static_id": True},
    "object streams": {**PACKED, "static_id": True},
    "linearized": {**PLAIN, "linearize": True, "static_id": True},
    "linearized, object streams": {**PACKED, "linearize": True, "static_id": True},
    "owner password": {**PACKED, **OWNER},
    "user password": {**PLAIN, **USER},
}


def make_pdf(form: str = "classic", *, pages: int = 3, page_bytes: int = 800, text: str = "", **more: object) -> bytes:
    """A PDF with pages of noise that does not compress, and `text` shown first on page one."""
    noise = random.Random(f"{form} {pages} {page_bytes}")
    with pikepdf.new() as pdf:
        for number in range(pages):
            page = pdf.add_blank_page(page_size=(600, 800))
            shown = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET\n".encode() if number == 0 else b""
            page.obj.Contents = pdf.make_stream(shown + b"% " + noise.randbytes(page_bytes).hex().encode())
        for key, value in more.items():
            pdf.docinfo["/" + key] = value
        out = io.BytesIO()
        pdf.save(out, compress_streams=True, **FORMS[form])  # type: ignore[arg-type]
    return out.getvalue()


def updated(pdf: bytes, *, stream_bytes: int = 3000) -> bytes:
    """The same with a revision appended: a new object, its table, and a trailer that points back."""
    previous = int(re.findall(rb"startxref\s+(\d+)", pdf)[-1])
    size = int(re.findall(rb"/Size (\d+)", pdf)[-1])
    root = re.findall(rb"/Root (\d+ 0 R)", pdf)[-1]
    body = random.Random(stream_bytes).randbytes(stream_bytes).hex().encode()
    at = len(pdf)
    new = b"%d 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n" % (size, len(body), body)
    table = b"xref\n%d 1\n%010d 00000 n \ntrailer\n<</Size %d/Root %s/Prev %d>>\n" % (
        size,
        at,
        size + 1,
        root,
        previous,
    )
    return pdf + new + table + b"startxref\n%d\n%%%%EOF\n" % (at + len(new))


def handmade(*objects: bytes, root: bytes = b"/Root 1 0 R") -> bytes:
    """A classic PDF of the given object bodies, numbered from 1, padded over the size floor."""
    out = bytearray(b"%PDF-1.7\n% " + b"padding " * 150 + b"\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out + b"trailer\n<</Size %d%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, root, table))


@pytest.fixture
def prove(tmp_path: Path) -> Callable[..., object]:
    path = tmp_path / "candidate"

    def prove_bytes(data: bytes, **options: object) -> object:
        """As a file and in memory, which must make no difference."""
        path.write_bytes(data)
        from_file, from_memory = verdict(path, options), verdict(data, options)
        assert from_memory == from_file
        return prove_pdf(path, **options)  # type: ignore[arg-type]

    return prove_bytes


def verdict(source: Path | bytes, options: dict[str, Any]) -> object:
    try:
        return prove_pdf(source, **options)
    except CandidateRejected as rejected:
        return rejected.reason, rejected.detail


def reason(prove: Callable[..., object], data: bytes, **options: object) -> str:
    with pytest.raises(CandidateRejected) as caught:
        prove(data, **options)
    return caught.value.reason


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_pdf_passes_in_every_form(prove, form):
    facts = prove(make_pdf(form))
    assert facts.pages == (None if form == "user password" else 3)
    assert facts.encrypted == ("password" in form)
    assert facts.linearized == ("linearized" in form)
    assert facts.version
    assert facts.warnings == (("file: invalid password",) if form == "user password" else ())


def test_an_encryption_the_parser_does_not_know_is_flagged_not_rejected(prove):
    locked = handmade(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
        root=b"/Root 1 0 R/Encrypt<</Filter/Adobe.PubSec/V 4>>/ID[<00><00>]",
    )
    facts = prove(locked)
    assert facts.encrypted
    assert facts.pages is None


def thirty_pdfs() -> list[tuple[str, bytes]]:
    """Different writers, indexes, revisions and locks, from 3 KB to 280 KB."""
    made = [
        (f"{form}, {pages} pages of {size}", make_pdf(form, pages=pages, page_bytes=size))
        for form in FORMS
        for pages, size in [(1, 1500), (12, 300), (3, 45_000)]
    ]
    made += [(f"updated, {size}", updated(make_pdf(pages=2), stream_bytes=size)) for size in (50, 3000, 60_000)]
    made += [("updated linearized", updated(make_pdf("linearized"), stream_bytes=2000))]
    made += [("updated twice", updated(updated(make_pdf()), stream_bytes=900))]
    made += [("junk before", b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + make_pdf("object streams"))]
    made += [("NULs after", make_pdf(pages=4, page_bytes=5000) + b"\0" * 90)]
    made += [("a comment after", make_pdf(pages=4, page_bytes=6000) + b"\n<!-- cache -->\n")]
    made += [(f"the sandbox's, {size}", sandbox_pdf(size)) for size in (4000, 30_000, 150_000)]
    made += [("by hand", by_hand())]
    return made


def sandbox_pdf(size: int) -> bytes:
    paper = Paper(title="On cuts", authors=("A. Nobody",), year=2020, doi=f"10.5555/cut.{size}")
    return make_paper(paper, size_bytes=size, key=str(size))


def by_hand() -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    return handmade(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[3 0 R]>>", page)


def accepted_cuts(prove: Callable[..., object], junk: Sequence[bytes]) -> list[tuple[str, int]]:
    accepted = []
    for number, (name, data) in enumerate(thirty_pdfs()):
        prove(data)
        for percent in range(1, 100):
            with contextlib.suppress(CandidateRejected):
                prove(data[: len(data) * percent // 100] + junk[(number + percent) % len(junk)])
                accepted.append((name, percent))
    return accepted


@pytest.mark.slow
def test_no_truncated_file_passes(prove):
    """DL-07: each of thirty PDFs, cut at every percent, by its bytes alone; none is accepted."""
    pdfs = thirty_pdfs()
    assert len({data for _, data in pdfs}) == 30
    # A cut inside the junk after a file's end would lose nothing of it.
    assert all(data.rindex(b"%%EOF") + 5 > len(data) * 0.99 for _, data in pdfs)
    assert accepted_cuts(prove, [b""]) == []


@pytest.mark.slow
def test_no_truncated_file_passes_with_what_servers_append(prove):
    assert accepted_cuts(prove, [b"\r\n\r\n", b"<!-- cached -->\n", b"\0" * 600, b"\r\n0\r\n\r\n"]) == []


def test_a_few_cuts_of_every_form_are_missed(prove):
    for form in FORMS:
        data = make_pdf(form, pages=2, page_bytes=3000)
        for percent in (1, 20, 50, 80, 95, 99):
            with pytest.raises(CandidateRejected):
                prove(data[: len(data) * percent // 100])


@pytest.mark.parametrize("lost", [1, 3, 6, 10, 20, 100])
def test_the_last_bytes_are_missed(prove, lost):
    """A lenient parser repairs a file that lost its last twenty bytes; it is still a truncated one."""
    assert reason(prove, make_pdf().rstrip()[:-lost]) == Reason.TRUNCATED


def test_bytes_lost_in_the_middle_are_missed(prove):
    data = make_pdf(pages=5, page_bytes=5000)
    assert reason(prove, data[:9000] + data[9700:]) == Reason.TRUNCATED


def test_an_update_cut_inside_its_first_number_is_truncated(prove):
    first = make_pdf()
    whole = updated(first)
    for cut in range(len(first) + 1, len(first) + 40):
        assert reason(prove, whole[:cut]) == Reason.TRUNCATED, cut - len(first)


@pytest.mark.parametrize(
    "junk", [b"\n\n", b"\0" * 3000, b"<!-- served by cache 12 0 -->", b"\r\n0\r\n\r\n", b"\n" * 60_000, b"%%EOF\n"]
)
def test_junk_after_the_end_is_common_and_harmless(prove, junk):
    assert prove(make_pdf() + junk).pages == 3


@pytest.mark.parametrize(
    "junk", [b"\xef\xbb\xbf", b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"<!-- x -->\n", b" " * 900]
)
@pytest.mark.parametrize("form", ["classic", "object streams"])
def test_junk_before_the_header_is_common_and_harmless(prove, junk, form):
    assert prove(junk + make_pdf(form)).pages == 3


def test_too_much_junk_on_either_side_is_not_searched(prove):
    assert reason(prove, b" " * 1024 + make_pdf()) == Reason.CORRUPT_PDF
    assert reason(prove, make_pdf() + b"\0" * 66_000) == Reason.TRUNCATED


def test_an_empty_body_has_its_own_reason(prove):
    assert reason(prove, b"") == Reason.EMPTY_BODY


def test_a_tiny_file_has_its_own_reason(prove):
    assert reason(prove, b"%PDF-1.4\n%%EOF") == Reason.TOO_SMALL
    assert reason(prove, b"not found") == Reason.TOO_SMALL
    assert reason(prove, make_pdf(), min_bytes=10**6) == Reason.TOO_SMALL


def test_bytes_of_another_kind_are_no_pdf(prove):
    assert reason(prove, b"\x89PNG\r\n" + bytes(5000)) == Reason.UNEXPECTED_CT
    assert reason(prove, b"\x02" * 5000) == Reason.CORRUPT_PDF


def test_an_archive_with_a_pdf_in_it_is_no_pdf(prove):
    """Stored, not packed, the file inside shows its header and its end."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("paper.pdf", make_pdf())
    assert reason(prove, out.getvalue()) == Reason.UNEXPECTED_CT


def test_a_pdf_may_begin_with_the_mark_of_postscript(prove):
    assert prove(b"%!PS-Adobe-3.0 PDF-1.4\n" + make_pdf()).pages == 3


def test_a_page_is_named_as_the_page_it_is(prove):
    assert reason(prove, b"<!DOCTYPE html><title>Just a moment...</title>") == Reason.CHALLENGE
    assert reason(prove, b"<html><body>" + b"The article. " * 200) == Reason.HTML_INSTEAD_OF_PDF
    assert reason(prove, b"<html><body>Expected %PDF-1.4 but" + b" " * 2000) == Reason.HTML_INSTEAD_OF_PDF


def test_a_startxref_that_leads_nowhere_is_truncation(prove):
    data = make_pdf()
    for wrong in (b"0", b"999999999", b"17"):
        assert reason(prove, re.sub(rb"startxref\s+\d+", b"startxref\n" + wrong, data)) == Reason.TRUNCATED


def test_a_startxref_off_by_a_line_end_is_a_slip(prove):
    data = make_pdf()
    at = int(re.findall(rb"startxref\s+(\d+)", data)[-1])
    assert prove(data.replace(b"startxref\n%d" % at, b"startxref\n%d" % (at - 2))).pages == 3


def test_a_damaged_index_is_noted_not_rejected(prove):
    data = make_pdf()
    broken = re.sub(rb"\d{10} 00000 n", b"0000000001 00000 n", data)
    facts = prove(broken)
    assert facts.repaired
    assert facts.pages == 3
    assert facts.warnings
    assert not any("candidate" in note for note in facts.warnings), "the temp file's name is nobody's business"


def test_a_pdf_without_pages_is_corrupt(prove):
    assert reason(prove, handmade(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>")) == "corrupt-pdf"
    assert reason(prove, handmade(b"<</Type/Catalog>>")) == Reason.CORRUPT_PDF
    assert reason(prove, handmade(b"42")) == Reason.CORRUPT_PDF


def test_lost_pages_are_corruption(prove):
    data = make_pdf(pages=6, page_bytes=200)
    third = [match.start() for match in re.finditer(rb"\d+ 0 obj\s<<(?:(?!endobj).)*?/Type /Page\b", data, re.DOTALL)][
        2
    ]
    holed = data[:third] + b"\0" * 60 + data[third + 60 :]
    assert reason(prove, holed) == Reason.CORRUPT_PDF


def test_a_page_tree_that_bites_its_tail_ends(prove):
    """SEC-07: a loop in the page tree costs nothing."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    looped = handmade(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 2/Kids[3 0 R 2 0 R 2 0 R]>>", page)
    assert reason(prove, looped) == Reason.CORRUPT_PDF


def test_a_page_tree_that_doubles_at_every_level_ends(prove):
    """Sixty levels of two links each would be 2^60 visits."""
    levels = [b"<</Type/Pages/Count 1/Kids[%d 0 R %d 0 R]>>" % (n + 3, n + 3) for n in range(60)]
    page = b"<</Type/Page/MediaBox[0 0 9 9]>>"
    begun = time.thread_time()
    assert reason(prove, handmade(b"<</Type/Catalog/Pages 2 0 R>>", *levels, page)) == Reason.CORRUPT_PDF
    assert time.thread_time() - begun < 4


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join([packer.compress(b" " * (1 << 20)) for _ in range(megabytes)] + [packer.flush()])


@pytest.mark.slow
def test_an_inflating_content_stream_is_read_to_its_cap(prove):
    """SEC-06, SEC-07: 200 MB behind 200 KB, in the page and in the metadata."""
    packed = bomb(200)
    stream = b"<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream" % (len(packed), packed)
    data = handmade(
        b"<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents[4 0 R 4 0 R 4 0 R]>>",
        stream,
    )
    tracemalloc.start()
    assert prove(data).pages == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 << 20


@pytest.mark.slow
def test_an_inflating_index_is_refused_by_the_parser(prove):
    """SEC-06: the cross-reference itself may be the bomb; what the parser inflates is capped for the process."""
    packed = bomb(150)
    out = bytearray(b"%PDF-1.5\n1 0 obj\n<</Type/Catalog>>\nendobj\n")
    at = len(out)
    out += b"2 0 obj\n<</Type/XRef/Size 9/W[1 4 1]/Root 1 0 R/Filter/FlateDecode/Length %d>>\nstream\n" % len(packed)
    out += packed + b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % at
    assert reason(prove, bytes(out)) == Reason.CORRUPT_PDF


def test_a_forgotten_gzip_is_unwrapped_to_its_cap(tmp_path):
    """SEC-06: the inner file in bounded pieces, never more than allowed."""
    inner = make_pdf()
    path = tmp_path / "wrapped"
    path.write_bytes(gzip.compress(inner))
    assert is_gzip(path)
    assert b"".join(unwrap_gzip(path, max_bytes=len(inner))) == inner
    with pytest.raises(CandidateRejected, match=Reason.TOO_LARGE):
        list(unwrap_gzip(path, max_bytes=len(inner) - 1))
    path.write_bytes(gzip.compress(bytes(50 << 20)))
    pieces = unwrap_gzip(path, max_bytes=1 << 20)
    with pytest.raises(CandidateRejected, match=Reason.TOO_LARGE):
        assert max(map(len, pieces)) <= 64 * 1024


def test_a_broken_gzip_is_no_file(tmp_path):
    path = tmp_path / "wrapped"
    path.write_bytes(gzip.compress(make_pdf())[:-9])
    with pytest.raises(CandidateRejected, match=Reason.TRUNCATED):
        list(unwrap_gzip(path, max_bytes=1 << 20))
    path.write_bytes(b"\x1f\x8b\x08" + b"?" * 500)
    with pytest.raises(CandidateRejected, match=Reason.CORRUPT_PDF):
        list(unwrap_gzip(path, max_bytes=1 << 20))
