"""Build tiny font programs, TrueType and Type 1, in which a box stands for letters.

Knows the tables and the encryption that readers need. Does not know PDF objects or which letter a glyph stands for.
Promises: FreeType and fontTools load the result.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

_EM = 1000
_ASCENT, _DESCENT = 800, -200


@lru_cache(maxsize=64)
def truetype(glyphs: int, codes: tuple[int, ...] = ()) -> bytes:
    """A font of `glyphs` glyphs besides `.notdef`; `codes` are the Unicode values of glyphs 1, 2, ... in its cmap."""
    count = glyphs + 1
    box = _box()
    tables = {
        b"cmap": _cmap(codes),
        b"glyf": box * count,
        b"head": struct.pack(
            ">4sIIIHHQQhhhhHHhhh", b"\0\1\0\0", 0x10000, 0, 0x5F0F3CF5, 3, _EM, 0, 0, 50, 0, 450, 700, 0, 8, 2, 1, 0
        ),
        b"hhea": struct.pack(">IhhhHhhhhhh8xhH", 0x10000, _ASCENT, _DESCENT, 0, 500, 50, 50, 450, 1, 0, 0, 0, 1),
        b"hmtx": struct.pack(">Hh", 500, 50) + struct.pack(">h", 50) * (count - 1),
        b"loca": struct.pack(f">{count + 1}I", *range(0, len(box) * count + 1, len(box))),
        b"maxp": struct.pack(">IH13H", 0x10000, count, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"post": struct.pack(">IIhhI16x", 0x30000, 0, -100, 50, 0),
    }
    return _sfnt(tables)


def _box() -> bytes:
    """One contour of four points, filled up to a multiple of four bytes."""
    head = struct.pack(">hhhhhHH", 1, 50, 0, 450, 700, 3, 0)
    return head + b"\1\1\1\1" + struct.pack(">8h", 50, 400, 0, -400, 0, 0, 700, 0) + bytes(2)


def _cmap(codes: Sequence[int]) -> bytes:
    """Format 12 holds any code point."""
    groups = b"".join(struct.pack(">III", code, code, glyph) for code, glyph in _numbered(codes))
    table = struct.pack(">HHIII", 12, 0, 16 + len(groups), 0, len(groups) // 12) + groups
    return struct.pack(">HHHHI", 0, 1, 3, 10, 12) + table


def _numbered(codes: Sequence[int]) -> list[tuple[int, int]]:
    return sorted((code, glyph) for glyph, code in enumerate(codes, start=1))


def _sfnt(tables: dict[bytes, bytes]) -> bytes:
    power = len(tables).bit_length() - 1
    head = struct.pack(">IHHHH", 0x10000, len(tables), 16 << power, power, len(tables) * 16 - (16 << power))
    offset = len(head) + 16 * len(tables)
    directory, body = b"", b""
    for tag, data in sorted(tables.items()):
        padded = data + bytes(-len(data) % 4)
        total = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        directory += struct.pack(">4sIII", tag, total, offset + len(body), len(data))
        body += padded
    return head + directory + body


@lru_cache(maxsize=64)
def type1(names: tuple[str, ...]) -> tuple[bytes, int, int]:
    """A Type 1 program with glyphs of these names, and the lengths of its clear and its encrypted part."""
    clear = (
        b"%!PS-AdobeFont-1.0: Boxes\n11 dict begin\n/FontInfo 1 dict dup begin end readonly def\n/FontName /Boxes def\n"
        b"/PaintType 0 def\n/FontType 1 def\n/FontMatrix [0.001 0 0 0.001 0 0] readonly def\n"
        b"/Encoding StandardEncoding def\n/FontBBox {0 -200 1000 800} readonly def\ncurrentdict end\n"
        b"currentfile eexec\n"
    )
    # The first four bytes are for the cipher; none of the result may look like hexadecimal digits.
    private = _encrypted(b"\0\0\0\0" + _private(names), 55665)
    return clear + private + b"0" * 512 + b"\ncleartomark\n", len(clear), len(private)


def _private(names: tuple[str, ...]) -> bytes:
    box = _encrypted(b"\0\0\0\0" + _charstring(), 4330)
    shown = b" %d RD %s ND\n" % (len(box), box)
    entries = b"".join(b"/" + name.encode() + shown for name in (".notdef", *names))
    return (
        b"dup /Private 8 dict dup begin\n/RD {string currentfile exch readstring pop} executeonly def\n"
        b"/ND {noaccess def} executeonly def\n/NP {noaccess put} executeonly def\n/BlueValues [] def\n"
        b"/MinFeature {16 16} def\n/password 5839 def\n/lenIV 4 def\n"
        b"2 index /CharStrings %d dict dup begin\n"
        % (len(names) + 1)
        + entries
        + b"end\nend\nreadonly put\nnoaccess put\ndup /FontName get exch definefont pop\nmark currentfile closefile\n"
    )


def _charstring() -> bytes:
    hsbw, rmoveto, hlineto, vlineto, closepath, endchar = b"\x0d", b"\x15", b"\x06", b"\x07", b"\x09", b"\x0e"
    return (
        _number(0) + _number(500) + hsbw + _number(50) + _number(0) + rmoveto + _number(400) + hlineto
        + _number(700) + vlineto + _number(-400) + hlineto + closepath + endchar
    )  # fmt: skip


def _number(value: int) -> bytes:
    """Type 1 Font Format section 6.2, for values up to 1131 either way."""
    if -107 <= value <= 107:
        return bytes((value + 139,))
    high, low = divmod(abs(value) - 108, 256)
    return bytes((high + (247 if value > 0 else 251), low))


def _encrypted(data: bytes, key: int) -> bytes:
    out = bytearray()
    for value in data:
        cipher = value ^ (key >> 8)
        key = ((cipher + key) * 52845 + 22719) & 0xFFFF
        out.append(cipher)
    return bytes(out)
