"""Decode bytes into numbered lines of text.

UTF-8 with or without mark, UTF-16, else Latin-1 line by line; any line ending. A line over the cap is dropped
to its end without being held in memory, and says so. Streams that were handed in are left open.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

MAX_LINE_CHARS = 64 * 1024
_HEAD_BYTES = 8192
_SIGNATURES = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a ZIP archive or spreadsheet",
    b"\x1f\x8b": "gzip-compressed",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\xd0\xcf\x11\xe0": "an old Word or Excel document",
    b"\xfd7zXZ": "xz-compressed",
    b"BZh": "bzip2-compressed",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]|(?:^|[\r\n])\d+ \d+ obj\b")


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its ending. `too_long` lines have no text."""

    number: int
    text: str
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class TextSource:
    """A stream being read as text. `head` is its beginning, for telling formats apart; `raw_head` before decoding."""

    head: str
    raw_head: bytes
    stream: IO[str]

    def lines(self) -> Iterator[Line]:
        number = 0
        while text := self.stream.readline(MAX_LINE_CHARS + 1):
            number += 1
            if len(text) > MAX_LINE_CHARS and not text.endswith("\n"):
                self._drop_rest_of_line()
                yield Line(number, "", too_long=True)
            else:
                yield Line(number, mend(text.removesuffix("\n")))

    def held(self, limit: int) -> TextSource | None:
        """The same with everything in memory, or None when it is more than `limit` characters."""
        text = self.stream.read(limit + 1)
        return TextSource(text, self.raw_head, io.StringIO(text)) if len(text) <= limit else None

    def _drop_rest_of_line(self) -> None:
        while (rest := self.stream.readline(MAX_LINE_CHARS)) and not rest.endswith("\n"):
            pass


@contextlib.contextmanager
def open_text(stream: IO[bytes] | IO[str]) -> Iterator[TextSource]:
    """Read a binary or text stream as text; the stream itself is not closed."""
    if isinstance(stream, io.StringIO):
        stream = io.BytesIO(stream.read().encode())
    binary = cast(BinaryIO, getattr(stream, "buffer", stream))
    reader = binary if isinstance(binary, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, binary))
    beginning = reader.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    encoding = _encoding(beginning)
    head = beginning.decode(encoding, "replace").lstrip("\ufeff")
    # Bytes that are not UTF-8 travel as lone surrogates to `mend`, which reads their line as Latin-1.
    errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
    wrapper = io.TextIOWrapper(reader, encoding=encoding, errors=errors, newline=None)
    try:
        yield TextSource(head, beginning, wrapper)
    finally:
        wrapper.detach()
        if reader is not binary:
            reader.detach()


def looks_binary(head: bytes) -> str | None:
    """What kind of file this is when it is plainly no text, else None. A signature above a list is one bad line."""
    kind = next((kind for magic, kind in _SIGNATURES.items() if head.startswith(magic)), None)
    if kind is None:
        return "binary data" if _is_data(head) else None
    return None if _is_text(head.partition(b"\n")[2]) else kind


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Without a mark, UTF-16 of ASCII text shows as a zero in every other byte, and hardly any between them.
    sample = head[:200]
    if len(sample) >= 8 and sample[1::2].count(0) > len(sample) * 0.4 and sample[0::2].count(0) < len(sample) * 0.05:
        return "utf-16-le"
    if len(sample) >= 8 and sample[0::2].count(0) > len(sample) * 0.4 and sample[1::2].count(0) == 0:
        return "utf-16-be"
    return "utf-8-sig"


def _is_text(data: bytes) -> bool:
    """Whether there is something, and nothing in it that only binary files and the body of a PDF have."""
    return bool(data.strip()) and _NO_TEXT.search(data) is None


def _is_data(head: bytes) -> bool:
    """Whether bytes that no text has are many, zeros among them. A zero in a list is a slip, and the zeros at its end
    are what a power cut leaves."""
    text = head.rstrip(b"\0")
    if b"\0" not in head or _encoding(head) != "utf-8-sig" or (text and b"\0" not in text):
        return False
    strange = len(_CONTROL.findall(text)) + len(text) - len(text.decode("utf-8", "ignore").encode())
    return strange * 4 > len(text) or not text


def mend(text: str) -> str:
    """Text whose bytes were not UTF-8, read as Latin-1."""
    if text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text):
        return text
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
