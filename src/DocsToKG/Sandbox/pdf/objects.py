"""Collect the objects of a file and write them out: with a table of offsets, or packed in object streams.

Knows objects, cross-reference tables and cross-reference streams (ISO 32000-1 section 7.5). Does not know pages.
Promises: equal objects give equal bytes.
"""

from __future__ import annotations

import struct
from hashlib import md5

from DocsToKG.Sandbox.pdf.filters import Encoded, flate, predicted_up

_ROW = 7  # one byte of kind, four of offset, two of index


class Objects:
    """Numbered objects, from one. A stream cannot be packed, a plain object can."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._streams: set[int] = set()

    def reserve(self) -> int:
        self._bodies.append(b"null")
        return len(self._bodies)

    def put(self, number: int, body: bytes) -> None:
        self._bodies[number - 1] = body

    def add(self, body: bytes) -> int:
        self._bodies.append(body)
        return len(self._bodies)

    def add_stream(self, entries: bytes, encoded: Encoded) -> int:
        number = self.add(_stream(entries + b" " + encoded.entries, encoded.data))
        self._streams.add(number)
        return number

    def put_stream(self, number: int, entries: bytes, encoded: Encoded) -> None:
        self.put(number, _stream(entries + b" " + encoded.entries, encoded.data))
        self._streams.add(number)

    @property
    def size(self) -> int:
        """About the bytes of the file so far."""
        return sum(map(len, self._bodies)) + 45 * len(self._bodies) + 200

    def with_table(self, root: int, info: int, version: bytes = b"1.7") -> bytes:
        out = bytearray(_head(version))
        offsets = [_append(out, number, body) for number, body in enumerate(self._bodies, start=1)]
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
        out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
        out += b"trailer\n<< /Size %d %s >>\n" % (len(offsets) + 1, self._trailer(root, info))
        return bytes(out + _tail(start))

    def packed(self, root: int, info: int) -> bytes:
        """Plain objects in one object stream, offsets in a cross-reference stream."""
        out = bytearray(_head(b"1.7"))
        plain = [number for number in range(1, len(self._bodies) + 1) if number not in self._streams]
        packed, table = len(self._bodies) + 1, len(self._bodies) + 2
        rows = {number: (2, packed, index) for index, number in enumerate(plain)}
        rows |= {number: (1, _append(out, number, self._bodies[number - 1]), 0) for number in sorted(self._streams)}
        rows[packed] = (1, _append(out, packed, self._object_stream(plain)), 0)
        rows[table] = (1, len(out), 0)
        data = b"".join(struct.pack(">BIH", *rows.get(number, (0, 0, 65535))) for number in range(table + 1))
        entries = b"/Type /XRef /Size %d /W [1 4 2] /DecodeParms << /Predictor 12 /Columns %d >> " % (table + 1, _ROW)
        encoded = flate(predicted_up(data, _ROW))
        start = _append(out, table, _stream(entries + self._trailer(root, info) + b" " + encoded.entries, encoded.data))
        return bytes(out + _tail(start))

    def _object_stream(self, numbers: list[int]) -> bytes:
        offsets, data = [], b""
        for number in numbers:
            offsets.append(b"%d %d" % (number, len(data)))
            data += self._bodies[number - 1] + b"\n"
        index = b" ".join(offsets) + b"\n"
        encoded = flate(index + data)
        head = b"/Type /ObjStm /N %d /First %d " % (len(numbers), len(index))
        return _stream(head + encoded.entries, encoded.data)

    def _trailer(self, root: int, info: int) -> bytes:
        name = md5(b"".join(self._bodies[:12]), usedforsecurity=False).hexdigest().encode()
        return b"/Root %d 0 R /Info %d 0 R /ID [<%s> <%s>]" % (root, info, name, name)


def text_string(text: str) -> bytes:
    """A text string (section 7.9.2.2): Latin where that is enough, else UTF-16."""
    try:
        raw = text.encode("ascii")
    except UnicodeEncodeError:
        raw = b"\xfe\xff" + text.encode("utf-16-be", "replace")
    return literal(raw)


def literal(raw: bytes) -> bytes:
    """A literal string (section 7.3.4.2)."""
    escaped = raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)").replace(b"\r", b"\\r")
    return b"(" + escaped + b")"


def _head(version: bytes) -> bytes:
    return b"%PDF-" + version + b"\n%\xe2\xe3\xcf\xd3\n"


def _tail(start: int) -> bytes:
    return b"startxref\n%d\n%%%%EOF\n" % start


def _append(out: bytearray, number: int, body: bytes) -> int:
    offset = len(out)
    out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    return offset


def _stream(entries: bytes, data: bytes) -> bytes:
    return b"<< " + entries + b" /Length %d >>\nstream\n" % len(data) + data + b"\nendstream"
