"""A bundle as one file: a tar of its files in their order, compressed with zstd, with a signed trailer.

The trailer is a skippable zstd frame (RFC 8878), so `tar --zstd` reads the file; it holds an envelope over the digest
of all bytes before it. Promises: those bytes are verified before the first of them is unpacked; a tar header that is
not exactly the one written here is refused, so no name can lead elsewhere; the trailer bounds what is unpacked.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import orjson

from DocsToKG.Orchestrator.audit.layout import ORDER, line
from DocsToKG.Orchestrator.errors import BadBundle, SigningUnavailable
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Signer

SUFFIX = ".tar.zst"
TRAILER_TYPE = "application/vnd.docstokg.audit-archive+json"
_SKIPPED = (0x184D2A5D).to_bytes(4, "little")
_MAX_TRAILER = 64 * 1024
_BLOCK = tarfile.BLOCKSIZE
_MAX_FILE = 1 << 40
_LEVEL = 6
_WINDOW_LOG = 21  # so that unpacking takes 2 MiB, whoever packed
_CHUNK = 1 << 18


def is_archive(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def pack(folder: Path, target: Path, signers: Sequence[Signer]) -> None:
    zstandard = _zstandard()
    parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=_WINDOW_LOG, write_checksum=True)
    unpacked = 0
    with target.open("xb") as raw, _Hashing(raw) as out:
        with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(out, closefd=False) as packed:
            for name in ORDER:
                unpacked += _add(packed, name, folder / name)
            packed.write(bytes(2 * _BLOCK))
        said = {"bytes": out.size, "sha256": out.sha.hexdigest(), "unpackedBytes": unpacked + 2 * _BLOCK}
        raw.write(trailer(dsse.sign(line(said), TRAILER_TYPE, signers)))


def trailer(envelope: dict[str, Any]) -> bytes:
    """The last frame: the envelope, and the length of the frame so that it is found from the end."""
    content = line(envelope)
    size = 8 + len(content) + 4
    return _SKIPPED + (size - 8).to_bytes(4, "little") + content + size.to_bytes(4, "little")


def read_trailer(file: BinaryIO, where: str) -> tuple[dict[str, Any], int]:
    """The envelope of the trailer, and how many bytes lie before it."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 4))
    size = int.from_bytes(file.read(4), "little")
    if not 12 < size <= min(end, _MAX_TRAILER):
        raise BadBundle(where, "the signed trailer is missing: the file was cut short, or is no bundle")
    file.seek(end - size)
    data = file.read(size)
    try:
        envelope = orjson.loads(data[8:-4])
        whole = isinstance(envelope, dict) and trailer(envelope) == data
    except (orjson.JSONDecodeError, TypeError):
        whole = False
    if not whole:
        raise BadBundle(where, "the signed trailer is damaged")
    return envelope, end - size


def check_digest(file: BinaryIO, size: int, said: Any, where: str) -> int:
    """Compare the packed bytes with what the trailer says of them; how many there are once unpacked."""
    if not isinstance(said, dict) or set(said) != {"bytes", "sha256", "unpackedBytes"}:
        raise BadBundle(where, "the trailer does not say what it should")
    file.seek(0)
    sha, left = hashlib.sha256(), size
    while left and (block := file.read(min(left, _CHUNK))):
        sha.update(block)
        left -= len(block)
    if said["bytes"] != size or said["sha256"] != sha.hexdigest():
        raise BadBundle(where, f"the {size} packed bytes are not those that were signed")
    unpacked: int = said["unpackedBytes"]
    return unpacked


@contextmanager
def unpacking(file: BinaryIO, size: int, most: int, where: str) -> Iterator[Iterator[tuple[str, int, IO[bytes]]]]:
    """The files of the archive one after the other: name, size, and what to read it by."""
    zstandard = _zstandard()
    file.seek(0)
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG)
    with decompressor.stream_reader(_Limited(file, size), closefd=False) as reader:
        bounded = _Bounded(reader, most, where, zstandard.ZstdError)
        yield _members(bounded, where)


def _members(stream: _Bounded, where: str) -> Iterator[tuple[str, int, IO[bytes]]]:
    for name in ORDER:
        header = stream.exactly(_BLOCK)
        try:
            size = tarfile.TarInfo.frombuf(header, "utf-8", "strict").size
        except (tarfile.TarError, UnicodeDecodeError, ValueError):
            raise BadBundle(where, f"the archive is damaged before {name}") from None
        if not 0 <= size <= _MAX_FILE or header != _header(name, size):
            raise BadBundle(where, f"the archive has no {name} in its place, or not as it is written")
        member = _Member(stream, size)
        yield name, size, member  # type: ignore[misc]  # it has what reading needs
        member.skip()
        if any(stream.exactly(-size % _BLOCK)):
            raise BadBundle(where, f"there are bytes behind {name}")
    if any(stream.exactly(2 * _BLOCK)) or stream.read(1):
        raise BadBundle(where, "there is more in the archive than a bundle has")


def _header(name: str, size: int) -> bytes:
    """The one header a file has: sizes above 8 GiB in the GNU way, everything that could differ set."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.GNU_FORMAT)


def _add(out: Any, name: str, path: Path) -> int:
    size = path.stat().st_size
    out.write(_header(name, size))
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            out.write(block)
    out.write(bytes(-size % _BLOCK))
    return _BLOCK + size + -size % _BLOCK


class _Hashing:
    """Counts and digests what is written through it."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self.sha, self.size = out, hashlib.sha256(), 0

    def __enter__(self) -> _Hashing:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def write(self, data: bytes) -> int:
        self.sha.update(data)
        self.size += len(data)
        return self._out.write(data)


class _Limited:
    """The first bytes of a file, and not the trailer."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def read(self, most: int = -1) -> bytes:
        data = self._file.read(self._left if most < 0 else min(most, self._left))
        self._left -= len(data)
        return data


class _Bounded:
    """What comes out of the decompressor, never more than was said."""

    def __init__(self, stream: Any, most: int, where: str, broken: type[Exception]) -> None:
        self._stream, self._left, self._where, self._broken = stream, most, where, broken

    def read(self, most: int) -> bytes:
        try:
            data: bytes = self._stream.read(most)
        except self._broken:
            raise BadBundle(self._where, "the packed bytes cannot be unpacked") from None
        self._left -= len(data)
        if self._left < 0:
            raise BadBundle(self._where, "more is unpacked than the trailer says")
        return data

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self.read(size - len(data))):
            data += more
        if len(data) < size:
            raise BadBundle(self._where, "the archive ends too early")
        return data


class _Member:
    """One file of the archive."""

    def __init__(self, stream: _Bounded, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, most: int = -1) -> bytes:
        wanted = self._left if most < 0 else min(most, self._left)
        data = self._stream.read(wanted) if wanted else b""
        self._left -= len(data)
        return data

    def skip(self) -> None:
        while self._left and self.read(_CHUNK):
            pass


def _zstandard() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise SigningUnavailable from None
    return zstandard
