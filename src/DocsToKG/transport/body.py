"""The body of an answer, in its three framings: by length, in chunks, or until the connection ends.

Knows where a body ends and whether it ended there. Does not decode content codings. Promises: a body that
stops early raises `BodyTooShort`, it never just ends; blocks are handed on as they came, without copying.
"""

from __future__ import annotations

import re
from typing import Protocol

import httpx2

from DocsToKG.transport.errors import BodyTooShort, HeadersTooLarge
from DocsToKG.transport.head import Head

BLOCK_BYTES = 128 * 1024

_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?")
_MAX_LINE_BYTES = 4 * 1024
_MAX_OVERHEAD_BYTES = 64 * 1024
_MAX_TRAILER_BYTES = 16 * 1024


class Source(Protocol):
    """What a body is read from."""

    ragged: bool

    def receive(self, size: int) -> bytes: ...

    def put_back(self, data: bytes) -> None: ...


class Body(Protocol):
    """`read` gives the next block, empty at the end; `finished` is known as soon as the last byte is."""

    @property
    def finished(self) -> bool: ...

    def read(self) -> bytes: ...


def body_of(head: Head, source: Source) -> Body:
    if head.chunked:
        return ChunkedBody(source)
    if head.length is not None:
        return LengthBody(source, head.length)
    return UntilCloseBody(source)


class LengthBody:
    """A body of announced length."""

    def __init__(self, source: Source, length: int) -> None:
        self._source = source
        self._length = length
        self._left = length
        self.finished = length == 0

    def read(self) -> bytes:
        if self.finished:
            return b""
        block = self._source.receive(min(self._left, BLOCK_BYTES))
        if not block:
            raise BodyTooShort(expected=self._length, received=self._length - self._left)
        self._left -= len(block)
        self.finished = self._left == 0
        return block


class UntilCloseBody:
    """A body that the end of the connection ends."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._received = 0
        self.finished = False

    def read(self) -> bytes:
        if self.finished:
            return b""
        block = self._source.receive(BLOCK_BYTES)
        self._received += len(block)
        if not block:
            # Without TLS's closing word anybody on the way may have cut the stream (RFC 9112 section 9.8).
            if self._source.ragged:
                raise BodyTooShort(expected=None, received=self._received)
            self.finished = True
        return block


class ChunkedBody:
    """A body in chunks. Many small chunks that came together are handed on together."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._chunks = ChunkReader()
        self._received = 0

    @property
    def finished(self) -> bool:
        return self._chunks.finished

    def read(self) -> bytes:
        while not self.finished:
            block = self._source.receive(BLOCK_BYTES)
            if not block:
                raise BodyTooShort(expected=None, received=self._received)
            data = self._chunks.feed(block)
            self._received += len(data)
            if self.finished:
                self._source.put_back(self._chunks.excess)
            if data:
                return data
        return b""


class ChunkReader:
    """Takes the chunked form apart, however it is cut into blocks. Pure."""

    def __init__(self) -> None:
        self.finished = False
        self.excess = b""
        self._left = 0
        self._line = b""
        self._overhead = 0
        self._expect = self._size_line
        self._trailer_bytes = 0

    def feed(self, block: bytes) -> bytes:
        """The data in `block`. After the last chunk, what remains is kept as `excess`."""
        parts: list[bytes] = []
        at = 0
        while at < len(block) and not self.finished:
            if self._left:
                # A block that lies wholly inside one chunk is the same object, not a copy.
                parts.append(block[at : at + self._left])
                at += len(parts[-1])
                self._left -= len(parts[-1])
            else:
                at = self._feed_line(block, at)
        if self.finished:
            self.excess += block[at:]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _feed_line(self, block: bytes, at: int) -> int:
        end = block.find(b"\n", at, at + _MAX_LINE_BYTES)
        stop = min(len(block), at + _MAX_LINE_BYTES) if end < 0 else end + 1
        self._line += block[at:stop]
        if len(self._line) > _MAX_LINE_BYTES:
            raise httpx2.RemoteProtocolError("a line between the chunks is too long")
        if end >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n"):
                raise httpx2.RemoteProtocolError("a line between the chunks does not end with CRLF")
            self._expect(line[:-2])
        return stop

    def _size_line(self, line: bytes) -> None:
        match = _CHUNK_LINE.fullmatch(line)
        if match is None:
            raise httpx2.RemoteProtocolError("a chunk size is not a sensible number")
        self._left = int(match[1], 16)
        # Long extensions on tiny chunks would make us read much for little; honest framing needs a few bytes a chunk.
        self._overhead = max(0, self._overhead + len(line) - 16 - 2 * min(self._left, _MAX_OVERHEAD_BYTES))
        if self._overhead > _MAX_OVERHEAD_BYTES:
            raise httpx2.RemoteProtocolError("the chunks carry more framing than data")
        self._expect = self._after_chunk if self._left else self._trailer_line

    def _after_chunk(self, line: bytes) -> None:
        if line:
            raise httpx2.RemoteProtocolError("a chunk is longer than its size")
        self._expect = self._size_line

    def _trailer_line(self, line: bytes) -> None:
        self._trailer_bytes += len(line)
        if self._trailer_bytes > _MAX_TRAILER_BYTES:
            raise HeadersTooLarge("the fields after the last chunk are too long")
        self.finished = not line
