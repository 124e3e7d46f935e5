"""Damage in a PDF's streams is told, and a whole file, however sloppily written, is never called damaged."""

from __future__ import annotations

import contextlib
import io
import random
import re
import zlib
from collections.abc import Callable, Iterator

import pikepdf
import pytest
from tests.contentdownload.pdf_damage import DAMAGES, flipped
from tests.contentdownload.pdf_writers import WRITERS, Made, reportlab_pdf

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, PutOff
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import PDF
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, ReadOptions, StreamReport
from DocsToKG.ContentDownload.validation.pdf.streams import check_common_file, check_streams
from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine
from DocsToKG.ContentDownload.validation.policy import ValidationRules
from DocsToKG.Sandbox.pdf import Paper, make_pdf

WORK = WorkArtifact("url:https://example.org/a.pdf")
PLAN = DownloadPlan("https://example.org/a.pdf", "test")
ON_BARLEY = Paper("On barley", ("A. Author",), 2020, "10.1234/b.1")
CHANCE = random.Random(11)
WORDS = [f"{CHANCE.getrandbits(40):x}" for _ in range(3_000)]
MADE = Made([[" ".join(CHANCE.sample(WORDS, 10)) for _ in range(50)] for _ in range(8)])


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    with TextEngine(PoolLimits(workers=2)) as engine:
        yield engine


def streams(engine: TextEngine, data: bytes, mode: str = "all") -> StreamReport:
    read = engine.read(data, ReadOptions(streams=mode)).result(60)
    assert isinstance(read, DocumentText), read
    assert read.streams is not None
    return read.streams


def refused(engine: TextEngine, data: bytes, rules: ValidationRules | None = None) -> str | None:
    came = ReceivedFile(file=data, md5="", sha256="", url=PLAN.url, headers={})
    try:
        prove(PDF, PLAN, WORK, came, min_pdf_bytes=0, rules=rules or ValidationRules(), engine=engine)
    except CandidateRejected as error:
        return error.reason
    return None


def test_nothing_is_read_where_there_is_nothing_to_compare():
    """An engine that is closed answers what it is asked by putting the work off."""
    closed = TextEngine(PoolLimits(workers=1))
    closed.close()
    small, large = (make_pdf(ON_BARLEY, size_bytes=size, key="k") for size in (30_000, 300_000))
    assert refused(closed, large, ValidationRules(streams="none")) is None
    with pytest.raises(PutOff):
        refused(closed, large)
    assert refused(closed, small) is None  # its streams are decoded at once
    assert refused(closed, flipped(small, random.Random(1))) == Reason.CORRUPT_PDF


COMPRESSED = {name: writer(MADE) for name, writer in WRITERS.items() if name not in ("plain", "scan with text")}
COMPRESSED["the sandbox"] = make_pdf(ON_BARLEY, size_bytes=40_000, key="k")
TRIES = 6


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_in_compressed_streams_is_told(engine, damage):
    """At least 98 %: some blocks lie between the streams, where nothing of the paper is."""
    chance = random.Random(damage)
    spoiled = [DAMAGES[damage](data, chance) for data in COMPRESSED.values() if len(data) > 8_000 for _ in range(TRIES)]
    told = [refused(engine, data) for data in spoiled]
    assert len(told) >= 40
    assert sum(reason in (Reason.CORRUPT_PDF, Reason.TRUNCATED) for reason in told) >= 0.98 * len(told)


@pytest.mark.parametrize("name", [*WRITERS, "the sandbox"])
def test_a_whole_file_is_not_called_damaged(engine, name):
    data = COMPRESSED.get(name) or WRITERS[name](MADE)
    assert refused(engine, data) is None


def _edited(change: Callable[[bytes], bytes]) -> bytes:
    """A paper whose first compressed stream was written by `change` of its raw bytes."""
    with pikepdf.open(io.BytesIO(reportlab_pdf(MADE))) as pdf:
        content = zlib.compress(pdf.pages[0].Contents.read_bytes())
        pdf.pages[0].Contents = pdf.make_stream(change(content), Filter=pikepdf.Name.FlateDecode)
        out = io.BytesIO()
        pdf.save(out, compress_streams=False)
    return out.getvalue()


def _flushed(content: bytes) -> bytes:
    packer = zlib.compressobj()
    return packer.compress(zlib.decompress(content)) + packer.flush(zlib.Z_SYNC_FLUSH)


SLOPPY = {
    "bytes after a stream's end": _edited(lambda content: content + b"\r\n\0\0"),
    "no checksum": _edited(lambda content: content[:-4]),
    "half a checksum": _edited(lambda content: content[:-2]),
    "no end mark": _edited(_flushed),
    "a wrong length": re.sub(rb"/Length (\d+)", lambda found: b"/Length 1%s" % found[1], reportlab_pdf(MADE), count=1),
    "bytes after the file's end": reportlab_pdf(MADE) + b"\r\n\0\0\0",
    "a broken index": reportlab_pdf(MADE).replace(b"0000000", b"0000001", 3),
}


@pytest.mark.parametrize("name", SLOPPY)
def test_a_sloppy_writer_s_file_is_not_called_damaged(engine, name):
    assert streams(engine, SLOPPY[name]).damaged == ()
    assert refused(engine, SLOPPY[name]) is None


def test_a_writer_that_computes_no_checksum_right_is_taken_for_sloppy(engine):
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(reportlab_pdf(MADE))) as pdf:
        for page in pdf.pages:
            content = zlib.compress(page.Contents.read_bytes())
            page.Contents = pdf.make_stream(content[:-4] + b"\0\0\0\0", Filter=pikepdf.Name.FlateDecode)
        pdf.save(out, compress_streams=False)
    assert streams(engine, out.getvalue()).damaged == ()


def test_a_damaged_file_is_kept_on_request_and_says_so(engine):
    data = flipped(COMPRESSED["truetype"], random.Random(3))
    assert refused(engine, data) == Reason.CORRUPT_PDF
    came = ReceivedFile(file=data, md5="", sha256="", url=PLAN.url, headers={})
    facts = prove(PDF, PLAN, WORK, came, min_pdf_bytes=0, rules=ValidationRules(keep_damaged=True), engine=engine)
    assert facts.record()["damaged"]
    assert refused(engine, data, ValidationRules(streams="none")) is None


def test_what_is_decoded_is_bounded(engine):
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page()
        page.obj.Contents = pdf.make_stream(b" " * (64 << 20))
        out = io.BytesIO()
        pdf.save(out)
    read = engine.read(out.getvalue(), ReadOptions(max_stream_bytes=1 << 20)).result(60)
    assert isinstance(read, DocumentText)
    assert read.streams is not None
    assert read.streams.decoded_bytes <= 3 << 20
    assert read.streams.damaged == ()


def test_a_sample_reads_the_first_and_the_last_streams(engine):
    with pikepdf.new() as pdf:
        for number in range(100):
            pdf.add_blank_page().obj.Contents = pdf.make_stream(b"BT ET %% %d" % number)
        out = io.BytesIO()
        pdf.save(out, compress_streams=True, object_stream_mode=pikepdf.ObjectStreamMode.disable)
    assert streams(engine, out.getvalue(), "sample").checked == 40
    assert streams(engine, out.getvalue()).checked == 100


def parsed(data: bytes) -> StreamReport:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return StreamReport.from_json(check_streams(pdf, "all", max_bytes=1 << 24, max_s=60))


def parses(data: bytes) -> bool:
    with contextlib.suppress(pikepdf.PdfError), pikepdf.open(io.BytesIO(data)):
        return True
    return False


def test_a_common_file_is_checked_as_its_parser_would():
    data = make_pdf(ON_BARLEY, size_bytes=40_000, key="k")
    assert check_common_file(data, max_bytes=1 << 24) == parsed(data)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_either_common_or_left_to_the_parser(writer):
    data = WRITERS[writer](MADE)
    assert check_common_file(data, max_bytes=1 << 24) in (None, parsed(data))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_not_a_common_one(damage):
    chance, data = random.Random(damage), make_pdf(ON_BARLEY, size_bytes=40_000, key="k")
    spoiled = [DAMAGES[damage](data, chance) for _ in range(50)]
    told = [bad for bad in spoiled if parses(bad) and parsed(bad).damaged]
    assert len(told) >= 25 or damage == "a cut tail"  # that one is refused before any stream is looked at
    assert [bad for bad in told if check_common_file(bad, max_bytes=1 << 24) is not None] == []


def test_a_stream_that_inflates_without_end_is_left_to_the_parser():
    bomb = zlib.compress(bytes(1 << 20))
    data = b"%%PDF-1.4\n1 0 obj\n<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (
        len(bomb),
        bomb,
    )
    assert check_common_file(data, max_bytes=1 << 16) is None
    assert check_common_file(data, max_bytes=2 << 20) == StreamReport(1, 0, 1 << 20)
