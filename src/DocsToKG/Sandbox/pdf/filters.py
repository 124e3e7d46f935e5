"""Encode streams as producers do: Flate, LZW, ASCII85, PNG predictors (ISO 32000-1 section 7.4).

Promises: every result names the entries that a reader needs to decode it.
"""

from __future__ import annotations

import zlib
from base64 import a85encode
from collections.abc import Callable
from typing import NamedTuple

_COLUMNS = 120
_CLEAR, _END = 256, 257
_WIDEST = 12


class Encoded(NamedTuple):
    """`entries` are those of the stream's dictionary, without its length."""

    entries: bytes
    data: bytes


Filter = Callable[[bytes], Encoded]


def unencoded(data: bytes) -> Encoded:
    return Encoded(b"", data)


def flate(data: bytes) -> Encoded:
    return Encoded(b"/Filter /FlateDecode", zlib.compress(data, 1))


def stored(data: bytes) -> Encoded:
    """Flate without compression: for noise, which has none to give, but whose damage the checksum tells."""
    return Encoded(b"/Filter /FlateDecode", zlib.compress(data, 0))


def ascii85(data: bytes) -> Encoded:
    return Encoded(b"/Filter [/ASCII85Decode /FlateDecode]", a85encode(zlib.compress(data, 1), wrapcol=78) + b"~>")


def lzw(data: bytes) -> Encoded:
    return Encoded(b"/Filter /LZWDecode", _packed(_codes(data)))


def predicted(data: bytes) -> Encoded:
    """Flate over rows that the PNG predictor "up" has changed."""
    parameters = b"/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns %d >>" % _COLUMNS
    padded = data + b" " * (-len(data) % _COLUMNS)
    return Encoded(parameters, zlib.compress(predicted_up(padded, _COLUMNS), 1))


def predicted_up(data: bytes, columns: int) -> bytes:
    """Each row as its difference from the row above (PNG filter type 2); the last row is filled with zeros."""
    data += bytes(-len(data) % columns)
    above = bytes(columns) + data[:-columns]
    changed = _differences(data, above)
    return b"".join([b"\2" + changed[start : start + columns] for start in range(0, len(changed), columns)])


def _differences(data: bytes, other: bytes) -> bytes:
    """Byte by byte, modulo 256, with all bytes in one long number; the top bits stop every borrow."""
    tops = int.from_bytes(b"\x80" * len(data), "big")
    here, there = int.from_bytes(data, "big"), int.from_bytes(other, "big")
    result = ((here | tops) - (there & ~tops)) ^ ((here ^ ~there) & tops)
    return result.to_bytes(len(data), "big")


def _codes(data: bytes) -> list[tuple[int, int]]:
    """LZW codes, each with its number of bits; a code grows one entry early, as the format's default has it."""
    codes = [(_CLEAR, 9)]
    table: dict[int, int] = {}  # the code of a run and one more byte
    bits, following, run = 9, 258, -1
    for value in data:
        if run < 0:
            run = value
            continue
        longer = run << 8 | value
        if longer in table:
            run = table[longer]
            continue
        codes.append((run, bits))
        table[longer] = following
        following += 1
        run = value
        if following + 1 > 1 << bits and bits < _WIDEST:
            bits += 1
        elif following >= (1 << _WIDEST) - 2:
            codes.append((_CLEAR, bits))
            table = {}
            bits, following = 9, 258
    if run >= 0:
        codes.append((run, bits))
        if following + 2 > 1 << bits and bits < _WIDEST:
            bits += 1
    return [*codes, (_END, bits)]


def _packed(codes: list[tuple[int, int]]) -> bytes:
    bits = "".join([f"{code:0{width}b}" for code, width in codes])
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")
