"""What a PDF says of itself: title, DOIs, the words of its first pages.

Knows XMP, the Info dictionary and the plain strings of content streams. It is no text extraction: a
font with its own numbering stays unread, and a sign that is not read is only a sign less.
Promises: bounded memory whatever the file inflates to; nothing here raises because of what a file holds.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import pikepdf

XMP_BYTES = 256 * 1024
PAGE_BYTES = 1 << 20

_RAW_BYTES = 16 << 20
_TEXT_CHARS = 20_000
_VALUE_CHARS = 2_000
_PRODUCER_CHARS = 200
_SCAN_PIXELS = 1_000_000
_DOIS = 50
# Patterns that are searched for in a whole page begin with plain letters and look back from there: that is how the
# engine passes quickly over all that cannot be a beginning.
_DOI = re.compile(r"10\.(?<!\w10\.)\d{4,9}(?:\.\d{1,9}){0,3}/[^\s\"<>{}|\\^`]{1,200}")
_ESCAPED = re.compile(r"&(?:amp|lt|gt|quot|apos);")
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}

# The fields in which a file names itself. Relations, sources and references name others.
_XMP_NAMES = r"(?:prism:doi|dc:identifier|pdfx:doi|pdfx:wps-articledoi|crossmark:doi|xmp:identifier)"
_XMP_ELEMENT = re.compile(rf"<{_XMP_NAMES}\b[^>]{{0,300}}>(.{{0,800}}?)</{_XMP_NAMES}", re.DOTALL)
_XMP_ATTRIBUTE = re.compile(rf"\s{_XMP_NAMES}\s?=\s?[\"']([^\"']{{1,300}})[\"']")
_XMP_TITLE = re.compile(r"<dc:title\b[^>]{0,300}>(.{0,3000}?)</dc:title", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"<[^>]{0,300}>")
_INFO_NAMES = frozenset({"/doi", "/wps-articledoi", "/subject", "/title", "/crossmarkdoi"})
_INFO_READ = _INFO_NAMES | {"/producer"}
_INFO_KEYS = 100

# A shown string, a gap that may be wide enough for a word space, or an operator that starts a new line of text; the
# first byte tells which. An escape is passed over in one go: a bracket that it hides must not begin another search for
# an end that may be missing.
_SHOWN = re.compile(
    rb"\\.|\([^()\\]*+(?:\\.[^()\\]*+)*+\)|-(?<![\w.]-)\d{3,5}(?:\.\d+)?(?=[\s(\]])"
    rb"|T(?<!\wT)[dDmjJ]\b|E(?<!\wE)T\b",
    re.DOTALL,
)
_STRING, _GAP = b"(-"
_OPERATORS = dict.fromkeys((b"Td", b"TD", b"Tm", b"Tj", b"TJ", b"ET"), b"\n")
_HEX_SHOWN = re.compile(rb"<[0-9A-Fa-f\s]{4,}+>\s*(?:Tj|TJ|['\"\]]|-?[\d.]+\s*[<\]])")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f]")
_DRAWN = re.compile(rb"/[^\s/]+\s+Do\b")
_ESCAPE = re.compile(rb"\\([nrtbf()\\]|[0-7]{1,3}|\r?\n|.)", re.DOTALL)
_PLAIN = {b"n": b" ", b"r": b" ", b"t": b" ", b"b": b"", b"f": b" "}
_LONGEST_ESCAPE = 4  # a backslash and three digits
_WORD_GAP = -200
_AT_ONCE = 2_000


class Imprint(NamedTuple):
    """`declared`: DOIs in fields that name the file itself. `printed`: DOIs shown on the first page. `seen`: all.
    `partly_read`: the first page shows more than `first_page` tells."""

    title: str | None = None
    declared: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    first_page: str = ""
    producer: str | None = None
    partly_read: bool = False


def read_imprint(pdf: pikepdf.Pdf, first_pages: Sequence[pikepdf.Object]) -> Imprint:
    """Gather the signs from XMP, Info and up to two pages."""
    xmp, info = _xmp(pdf), _info(pdf)
    named = [*_named(xmp), *[value for key, value in info.items() if key in _INFO_NAMES]]
    declared = find_dois("\n".join(map(_unescape, named)) if named else "")
    contents = [_page_content(page) for page in first_pages[:2]]
    pages = [shown_text(content) for content in contents]
    printed = find_dois(pages[0]) if pages else ()
    return Imprint(
        title=_title(xmp, info),
        declared=declared,
        printed=printed,
        seen=tuple(dict.fromkeys((*declared, *printed, *find_dois("\n".join(pages[1:]))))),
        first_page=pages[0] if pages else "",
        producer=" ".join(info.get("/producer", "").split())[:_PRODUCER_CHARS] or None,
        partly_read=bool(pages) and _hides_text(first_pages[0], contents[0], pages[0]),
    )


def find_dois(text: str) -> tuple[str, ...]:
    """The DOIs in running text, lower case, without the punctuation around them, each once."""
    if "10." not in text:
        return ()
    return tuple(dict.fromkeys([_trim(match[0].lower()) for match in islice(_DOI.finditer(text), _DOIS)]))


def _trim(doi: str) -> str:
    while doi:
        if doi[-1] in ".,;:'’”" or (doi[-1] in ")]" and doi.count(doi[-1]) > doi.count({")": "(", "]": "["}[doi[-1]])):
            doi = doi[:-1]
        else:
            break
    return doi


def _named(xmp: str) -> list[str]:
    """What the fields hold in which a file names itself, lower case; nothing where no DOI can be in them."""
    if "10." not in xmp:
        return []
    text = xmp.lower()
    return [*_XMP_ATTRIBUTE.findall(text), *_XMP_ELEMENT.findall(text)]


def _title(xmp: str, info: dict[str, str]) -> str | None:
    found = _XMP_TITLE.search(xmp)
    text = _unescape(_TAGS.sub(" ", found[1])) if found else ""
    return " ".join((text.strip() or info.get("/title", "")).split())[:_VALUE_CHARS] or None


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ENTITIES[match[0]], text) if "&" in text else text


def _xmp(pdf: pikepdf.Pdf) -> str:
    try:
        raw = inflate(pdf.Root.get("/Metadata"), XMP_BYTES)
    except Exception:  # the parser raises whatever a broken object provokes; then the file says nothing
        return ""
    if raw.startswith((b"\xfe\xff", b"\xff\xfe")):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8", "replace")


def _info(pdf: pikepdf.Pdf) -> dict[str, str]:
    """The strings of the Info dictionary that anybody asks for, by their names in lower case."""
    found: dict[str, str] = {}
    try:
        info = pdf.trailer.get("/Info")
        if isinstance(info, pikepdf.Dictionary):
            for key in islice(info.keys(), _INFO_KEYS):
                if (name := key.lower()) in _INFO_READ and isinstance(value := info.get(key), pikepdf.String):
                    found[name] = str(value)[:_VALUE_CHARS]
    except Exception:  # as above
        pass
    return found


def _page_content(page: pikepdf.Object) -> bytes:
    try:
        content = page.get("/Contents")
        if not isinstance(content, pikepdf.Array):
            return inflate(content, PAGE_BYTES) + b"\n"
        joined = bytearray()
        for stream in list(content)[:50]:
            joined += inflate(stream, PAGE_BYTES - len(joined)) + b"\n"
            if len(joined) >= PAGE_BYTES:
                break
        return bytes(joined)
    except Exception:  # as above
        return b""


def _hides_text(page: pikepdf.Object, content: bytes, text: str) -> bool:
    """Strings in a font's own numbering, a page drawn as a picture, or one wrapped by a tool that stamps pages."""
    if _HEX_SHOWN.search(content) or len(_CONTROLS.findall(text)) * 20 > len(text):
        return True
    if not _DRAWN.search(content):
        return False
    try:
        resources = page.get("/Resources")
        drawn = resources.get("/XObject") if isinstance(resources, pikepdf.Dictionary) else None
        if not isinstance(drawn, pikepdf.Dictionary):
            return True
        return any(_may_hold_text(drawn.get(key)) for key in list(drawn.keys())[:50])
    except Exception:  # as above; what is drawn is then not known
        return True


def _may_hold_text(drawn: object) -> bool:
    if not isinstance(drawn, pikepdf.Stream) or str(drawn.get("/Subtype")) != "/Image":
        return True
    return int(drawn.get("/Width", 0)) * int(drawn.get("/Height", 0)) >= _SCAN_PIXELS


def inflate(stream: object, cap: int) -> bytes:
    """At most `cap` decoded bytes of a stream that is plain or Flate; anything else, and anything huge, is empty."""
    if not isinstance(stream, pikepdf.Stream) or cap <= 0 or int(stream.get("/Length", 0)) > _RAW_BYTES:
        return b""
    filters = _filters(stream) if "/Filter" in stream else []  # asking for what is not there is dear
    if not filters:
        return bytes(memoryview(stream.get_raw_stream_buffer())[:cap])
    if filters not in (["/FlateDecode"], ["/Fl"]) or "/DecodeParms" in stream:
        return b""
    return _inflate_flate(memoryview(stream.get_raw_stream_buffer()), cap)


def _filters(stream: pikepdf.Stream) -> list[str]:
    named = stream.get("/Filter")
    if named is None:
        return []
    return [str(name) for name in list(named)[:8]] if isinstance(named, pikepdf.Array) else [str(named)]


def _inflate_flate(raw: memoryview, cap: int) -> bytes:
    inflater = zlib.decompressobj()
    out = bytearray()
    at = 0
    try:
        while at < len(raw) and len(out) < cap and not inflater.eof:
            out += inflater.decompress(inflater.unconsumed_tail + bytes(raw[at : at + 16384]), cap - len(out))
            at += 16384
    except zlib.error:
        pass  # what came before the damage may still name the paper
    return bytes(out)


def shown_text(content: bytes) -> str:
    """The literal strings a content stream shows, in order: joined inside one operator, apart between two."""
    if b"(" not in content:
        return ""
    pieces = map(_Pieces(_OPERATORS).__getitem__, map(itemgetter(0), _SHOWN.finditer(content)))
    out = bytearray()
    while len(out) < _TEXT_CHARS and (some := list(islice(pieces, _AT_ONCE))):
        out += b"".join(some)
    return _lines(out[:_TEXT_CHARS].decode("latin-1"))


class _Pieces(dict[bytes, bytes]):
    """What each thing that `_SHOWN` finds adds to the text. Most of them come many times on a page."""

    def __missing__(self, found: bytes) -> bytes:
        if found[0] == _STRING:
            piece = _without_escapes(found[1:-1]) if b"\\" in found else found[1:-1]
        else:
            piece = b" " if found[0] == _GAP and float(found) <= _WORD_GAP else b""
        self[found] = piece
        return piece


def _without_escapes(shown: bytes) -> bytes:
    """One string may be a whole page of blanks: no more of it is looked at than is kept of all."""
    return _ESCAPE.sub(_unescape_byte, shown[: _LONGEST_ESCAPE * _TEXT_CHARS])


def _lines(text: str) -> str:
    """The lines that hold something, without the blanks around them."""
    return "\n".join(filter(None, map(str.strip, text.split("\n"))))


def _unescape_byte(match: re.Match[bytes]) -> bytes:
    found = match[1]
    if found[0] in b"01234567":
        return bytes([int(found, 8) & 255])
    return _PLAIN.get(found, b"" if found.strip() == b"" else found)
