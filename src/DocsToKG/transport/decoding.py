"""gzip and deflate taken apart as they come.

libcurl could decode too, but says nothing when the compressed stream breaks off. Promises: never more output at once
than there is room for; a stream without its end raises `CompressedBodyCut`.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import httpx2

from DocsToKG.transport.errors import BodyTooLarge, CompressedBodyCut

ACCEPTED = "gzip, deflate"
_INFLATED = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP, _ZLIB, _RAW = 31, 15, -15
_PIECE_BYTES = 1 << 20


class Decoder(Protocol):
    def feed(self, data: bytes, room: int | None) -> bytes:
        """The decoded bytes, at most `room` of them; raises `BodyTooLarge` when there are more."""
        ...

    def finish(self) -> None:
        """The body is over; raises `CompressedBodyCut` when the compressed stream is not."""
        ...


def decoder_for(content_encoding: str) -> Decoder | None:
    """None when there is nothing to decode."""
    codings = [item.strip().lower() for item in content_encoding.split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    if not codings:
        return None
    if codings in (["gzip"], ["x-gzip"]):
        return _Inflater(_GZIP)
    if codings == ["deflate"]:
        return _Inflater(_ZLIB)
    raise httpx2.DecodingError("the body comes in an encoding we did not ask for")


class _Inflater:
    def __init__(self, format_: int) -> None:
        self._format = format_
        self._inner = zlib.decompressobj(format_)
        self._received = 0
        self._begun = False

    def feed(self, data: bytes, room: int | None) -> bytes:
        limit = None if room is None else room
        parts: list[bytes] = []
        while data:
            piece = self._inflate(data, _PIECE_BYTES if room is None else min(room + 1, _PIECE_BYTES))
            parts.append(piece)
            self._received += len(piece)
            if room is not None:
                room -= len(piece)
                if room < 0:
                    raise BodyTooLarge(limit=self._received + room if limit is not None else 0)
            data = self._inner.unconsumed_tail or self._next_member()
        return b"".join(parts)

    def finish(self) -> None:
        if self._begun and not self._inner.eof:
            raise CompressedBodyCut(received=self._received)

    def _inflate(self, data: bytes, most: int) -> bytes:
        try:
            piece = self._inner.decompress(data, most)
        except zlib.error:
            if self._format != _ZLIB or self._begun:
                raise httpx2.DecodingError("the compressed body is damaged") from None
            # Some servers call a stream without zlib's own head "deflate".
            self._format, self._begun = _RAW, True
            self._inner = zlib.decompressobj(_RAW)
            return self._inflate(data, most)
        self._begun = True
        return piece

    def _next_member(self) -> bytes:
        """gzip may hold several streams in a row; whatever else follows the first is left out."""
        rest = self._inner.unused_data
        if not rest.startswith(b"\x1f\x8b"):
            return b""
        self._inner = zlib.decompressobj(self._format)
        return rest


def lenient_decoder(content_encoding: str) -> Decoder | None:
    """As `decoder_for`, where any name that is no compression we know is passed over: some servers name a charset."""
    codings = [item.strip().lower() for item in content_encoding.split(",")]
    decoders = [_Inflater(_ZLIB if coding == "deflate" else _GZIP) for coding in codings if coding in _INFLATED]
    if len(decoders) < 2:
        return decoders[0] if decoders else None
    return _Chain(decoders[::-1])


class _Chain:
    """Encoded more than once; the last coding is taken off first."""

    def __init__(self, decoders: list[_Inflater]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes, room: int | None) -> bytes:
        for decoder in self._decoders:
            data = decoder.feed(data, room)
        return data

    def finish(self) -> None:
        for decoder in self._decoders:
            decoder.finish()
