"""Decode a PDF's streams to tell damage. Runs in a worker process.

Every zlib stream ends with a checksum of what it decodes to, so flipped, zeroed and moved bytes show. Streams of other
codings are decoded where qpdf can; pictures in JPEG, JPEG 2000, JBIG2 and fax coding are not looked into. Knows what
writers do wrongly without harm: a missing checksum or end mark, bytes after the end, a wrong `/Length`, a broken index.
Promises: bounded in decoded bytes and seconds; a file that qpdf opens never raises.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pikepdf

from DocsToKG.ContentDownload.validation.pdf.document import StreamReport

SAMPLE = 40  # streams decoded under `sample`: the first ones and the last ones
MAX_OBJECTS = 200_000
NOTES = 10

_FLATE = frozenset({"/FlateDecode", "/Fl"})
_QPDF_DECODES = _FLATE | {
    "/ASCII85Decode", "/A85", "/ASCIIHexDecode", "/AHx", "/LZWDecode", "/LZW", "/RunLengthDecode", "/RL",
}  # fmt: skip
_PIECE = 64 * 1024
_SYNC_FLUSH = b"\x00\x00\xff\xff"
_CHECKSUM_BYTES = 4
_ZEROED = bytes(64)  # codings without a checksum write text, fonts and forms without such a run


def check_streams(
    pdf: pikepdf.Pdf,
    mode: str,
    *,
    max_bytes: int,
    max_s: float,
    only_flate: bool = False,
    warnings: Sequence[object] = (),
) -> dict[str, Any]:
    """The report in the form of `StreamReport.from_json`. `only_flate`: a stream of another coding, whose decoding
    nothing bounds here, ends the check. `warnings` are those that were asked for before."""
    ends_at = time.monotonic() + max_s
    damaged: list[str] = []
    checked = skipped = decoded = bad_sums = 0
    complete = True
    for number, stream in _streams(pdf, mode):
        if decoded >= max_bytes or time.monotonic() >= ends_at:
            complete = False
            break
        if only_flate and not _FLATE.issuperset(_filters(stream)[:1]):
            complete = False
            break
        problem, size = _check(stream, max_bytes - decoded, ends_at)
        decoded += size
        if problem is None:
            skipped += 1
            continue
        checked += 1
        if problem:
            bad_sums += problem == _BAD_SUM
            damaged.append(f"object {number}: {problem}")
    if bad_sums == len(damaged) == checked and checked >= 3:
        damaged = []  # a writer that computes every checksum wrongly; damage spares some stream
    damaged += _broken_objects([*warnings, *islice(pdf.get_warnings(), _MOST_WARNINGS)])
    return {
        "checked": checked,
        "skipped": skipped,
        "decoded_bytes": decoded,
        "damaged": damaged[:NOTES],
        "complete": complete,
    }


# The text between the streams of a file that a common writer has made, and how its streams begin.
_TEXT = bytes([9, 10, 12, 13, *range(32, 127)])
_END = b"endstream"
_LENGTH = re.compile(rb"/Length\s+(\d{1,8})\b(?!\s+\d+\s+R)")
_STRING = re.compile(rb"\((?:[^()\\]|\\.)*\)", re.DOTALL)
_FIRST_FILTER = re.compile(rb"/Filter\s*\[?\s*/(?:FlateDecode|Fl)\b")


def check_common_file(data: bytes, *, max_bytes: int) -> StreamReport | None:
    """The report without a parser, for a small file with nothing unusual in it; else None.

    Every object's text is printable and every stream is compressed by zlib and decodes without a complaint. A parser
    makes an object of each part of the file, which takes longer than decoding it.
    """
    at = after = max(data.find(b" obj"), 0)
    checked = skipped = decoded = 0
    texts = []
    try:
        while (begin := data.find(b"stream", after)) >= 0:
            described = data[max(data.rfind(b" obj", at, begin), at) : begin]
            start = data.index(b"\n", begin, begin + 8) + 1
            length = _LENGTH.search(described)
            end = start + int(length[1]) if length is not None else data.index(_END, start)
            texts.append(data[at:start])
            at = data.index(_END, end, end + 12)
            after = at + len(_END)
            if _FIRST_FILTER.search(described) is not None:
                inflater = zlib.decompressobj()
                decoded += len(inflater.decompress(data[start:end], max_bytes - decoded))
                if not inflater.eof:
                    return None
                checked += 1
            elif b"/Filter" in described:
                return None
            else:
                skipped += 1
    except (ValueError, zlib.error):
        return None
    texts.append(data[at:])
    is_common = checked and _is_text(b"".join(texts)) and data.count(_END) == checked + skipped
    return StreamReport(checked, skipped, decoded) if is_common else None


def _is_text(part: bytes) -> bool:
    """Printable but for its strings, which may be in UTF-16."""
    return not part.translate(None, _TEXT) or not _STRING.sub(b"", part).translate(None, _TEXT)


_BAD_SUM = "the checksum differs"
_LOST = "unable to recover stream data"
_OBJECT = re.compile(r"\(object (\d+) 0")
# What qpdf says of tokens that stand where none can. A careless writer makes one such mistake again and again; bytes
# that do not belong there make several kinds of them.
_MISPLACED = (
    "unknown token", "unexpected >", "unexpected )", "in hexstring", "inserting key", "unexpected array close",
    "unexpected brace", "unexpected dictionary close", "giving up on reading", "expected endobj", "duplicated key",
)  # fmt: skip
_KINDS = 2
_MOST_WARNINGS = 2_000


def _broken_objects(warnings: Iterable[object]) -> list[str]:
    """The objects whose own text is damaged, by the warnings that reading them has left."""
    kinds: dict[str, set[str]] = {}
    lost: dict[str, None] = {}
    for warning in warnings:
        text = str(warning)
        found = _OBJECT.search(text)
        if found is None:
            continue
        if _LOST in text:
            lost[found[1]] = None
        kinds.setdefault(found[1], set()).update(kind for kind in _MISPLACED if kind in text)
    broken = dict.fromkeys([*lost, *(number for number, seen in kinds.items() if len(seen) >= _KINDS)])
    return [f"object {number}: its text is damaged" for number in broken]


def _streams(pdf: pikepdf.Pdf, mode: str) -> Iterator[tuple[int, pikepdf.Stream]]:
    found = _all_streams(pdf)
    if mode != "sample":
        yield from found
        return
    both = list(found)
    yield from both if len(both) <= SAMPLE else both[: SAMPLE // 2] + both[-SAMPLE // 2 :]


def _all_streams(pdf: pikepdf.Pdf) -> Iterator[tuple[int, pikepdf.Stream]]:
    for thing in islice(pdf.objects, MAX_OBJECTS):
        if isinstance(thing, pikepdf.Stream):
            yield thing.objgen[0], thing


def _check(stream: pikepdf.Stream, max_bytes: int, ends_at: float) -> tuple[str | None, int]:
    """What is wrong, empty when nothing is, None when the coding cannot be checked; and the decoded bytes."""
    try:
        filters = _filters(stream)
        if filters and filters[0] in _FLATE:
            return inflate_problem(memoryview(stream.get_raw_stream_buffer()), max_bytes, ends_at)
        if not filters or not _QPDF_DECODES.issuperset(filters) or int(stream.get("/Length", 0)) > max_bytes // 4:
            return None, 0
        if stream.get("/Subtype") != pikepdf.Name.Image and _ZEROED in bytes(stream.get_raw_stream_buffer()):
            return "zeros where its coding has none", 0
        return "", len(stream.read_bytes(pikepdf.StreamDecodeLevel.generalized))
    except Exception as error:  # the parser raises whatever a broken object provokes
        return " ".join(str(error).split())[-120:] or type(error).__name__, 0


def _filters(stream: pikepdf.Stream) -> list[str]:
    named = stream.get("/Filter")
    if named is None:
        return []
    return [str(name) for name in islice(iter(named), 8)] if isinstance(named, pikepdf.Array) else [str(named)]


def inflate_problem(raw: memoryview, max_bytes: int, ends_at: float) -> tuple[str, int]:
    """What is wrong with a zlib stream, empty when nothing is; and the decoded bytes."""
    inflater = zlib.decompressobj()
    size = at = 0
    tail = b""
    try:
        while not inflater.eof and (tail or at < len(raw)):
            if not tail:
                tail = bytes(raw[at : at + _PIECE])
                at += len(tail)
            size += len(inflater.decompress(tail, 1 << 20))
            tail = inflater.unconsumed_tail
            if size >= max_bytes or time.monotonic() >= ends_at:
                return "", size
    except zlib.error as error:
        return (_BAD_SUM if "incorrect data check" in str(error) else str(error)[:100]), size
    if inflater.eof or _ends_well(raw):
        return "", size
    return "the stream ends too early", size


def _ends_well(raw: memoryview) -> bool:
    """Without its end mark, but with all its data: only the checksum is missing, or the writer flushed and left."""
    body = bytes(raw).rstrip(b"\r\n")
    if not body or body.endswith(_SYNC_FLUSH):
        return True
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = bytes(raw[2:])
        while data and not inflater.eof:
            inflater.decompress(data, 1 << 20)
            data = inflater.unconsumed_tail
    except zlib.error:
        return False
    return inflater.eof and len(inflater.unused_data) < _CHECKSUM_BYTES
