"""The files of a source: in a folder, by a pattern, in a bucket, in a tar archive.

Knows names, sizes and locations, not contents. A remote file is fetched only while it is read, so that a snapshot of
any size needs room for a few of its parts.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.errors import ConfigError, ContentDownloadError, InputError

_SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".txt", ".gz", ".zst")
_BATCH_BYTES = 256 << 20
_TAR = (".tar", ".tgz", ".tar.gz")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a source; `stamp` changes when its bytes do. `member` is its name inside a tar archive."""

    source: str
    address: str
    size_bytes: int
    stamp: str
    member: str = ""

    @property
    def name(self) -> str:
        return f"{self.address}:{self.member}" if self.member else self.address

    @property
    def form(self) -> str:
        """Of its name alone; a `.json` may be lines or one object."""
        name = (self.member or self.address).lower().removesuffix(".gz").removesuffix(".zst")
        for suffix, form in ((".parquet", "parquet"), (".csv", "csv"), (".tsv", "csv"), (".json", "json")):
            if name.endswith(suffix):
                return form
        return "jsonl"


def find_parts(source: str, address: str) -> list[Part]:
    """The files at an address, by name; an `InputError` when there are none."""
    if address.startswith("s3://"):
        with _bucket_errors(address):
            found = _in_bucket(source, address)
    elif any(sign in address for sign in "*?["):
        found = [_file(source, Path(name)) for name in sorted(glob(address, recursive=True)) if Path(name).is_file()]
    else:
        found = _on_disk(source, Path(address))
    if not found:
        raise InputError(f"{address}: no file of {source} is there ({', '.join(_SUFFIXES)})")
    return found


def batches(parts: Iterable[Part], *, size_bytes: int = _BATCH_BYTES) -> Iterator[list[Part]]:
    """Files that are read together: of one source and form, not much more than `size_bytes`."""
    batch: list[Part] = []
    for part in parts:
        alike = not batch or (batch[0].source, batch[0].form) == (part.source, part.form)
        if batch and (not alike or sum(one.size_bytes for one in batch) + part.size_bytes > size_bytes):
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch


@contextmanager
def on_disk(parts: Sequence[Part], folder: Path) -> Iterator[dict[Path, Part]]:
    """The parts as files; those that had to be fetched lie in `folder` meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield {_fetched(part, folder, number): part for number, part in enumerate(parts)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def form_of(file: Path, part: Part) -> str:
    """A `.json` whose first line is an object is a file of lines."""
    if part.form != "json":
        return part.form
    opener: Any = gzip.open if file.name.endswith(".gz") else open
    try:
        with opener(file, "rb") as stream:
            return "jsonl" if isinstance(json.loads(stream.readline(1 << 26)), dict) else "json"
    except (ValueError, EOFError, OSError):
        return "json"


def _on_disk(source: str, path: Path) -> list[Part]:
    if path.name.endswith(_TAR):
        return _in_tar(source, path)
    if path.is_dir():
        files = (file for file in sorted(path.rglob("*")) if file.name.endswith(_SUFFIXES) and file.is_file())
        return [_file(source, file) for file in files if not file.name.startswith((".", "manifest"))]
    if not path.exists():
        raise InputError(f"no such file or folder: {path}")
    return [_file(source, path)]


def _file(source: str, path: Path) -> Part:
    stat = path.stat()
    return Part(source, str(path.resolve()), stat.st_size, str(stat.st_mtime_ns))


def _in_tar(source: str, path: Path) -> list[Part]:
    stat = path.stat()
    try:
        with tarfile.open(path) as archive:
            return [
                Part(source, str(path.resolve()), member.size, str(stat.st_mtime_ns), member.name)
                for member in archive
                if member.isfile() and member.name.endswith(_SUFFIXES)
            ]
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{path} cannot be read as a tar archive: {error}") from error


def _in_bucket(source: str, address: str) -> list[Part]:
    """One object, or all below a prefix."""
    obstore, store, prefix = _bucket(address)
    bucket = address.removeprefix("s3://").partition("/")[0]
    is_file = prefix.endswith(_SUFFIXES)
    entries = (
        [obstore.head(store, prefix)] if is_file else [each for some in obstore.list(store, prefix) for each in some]
    )
    found = [
        Part(source, f"s3://{bucket}/{entry['path']}", entry["size"], str(entry["e_tag"]))
        for entry in entries
        if entry["path"].endswith(_SUFFIXES) and not entry["path"].rpartition("/")[2].startswith("manifest")
    ]
    return sorted(found, key=lambda part: part.address)


@contextmanager
def _bucket_errors(address: str) -> Iterator[None]:
    """Report a bucket's errors as errors of the input, with its address."""
    try:
        yield
    except ContentDownloadError:
        raise
    except Exception as error:
        if not isinstance(error, FileNotFoundError) and not type(error).__module__.startswith("obstore"):
            raise
        raise InputError(f"{address} cannot be read: {str(error).strip().partition(chr(10))[0][:200]}") from error


def _bucket(address: str) -> tuple[Any, Any, str]:
    """The store of a bucket. Without credentials in the usual AWS_* variables it is asked without a signature."""
    try:
        import obstore
        from obstore.store import S3Store
    except ImportError:
        raise ConfigError("s3:// addresses need obstore; install it with: pip install 'docstokg[s3]'") from None
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    signed = bool(os.environ.get("AWS_ACCESS_KEY_ID"))
    is_plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    store = S3Store(bucket, skip_signature=not signed, client_options={"allow_http": is_plain})
    return obstore, store, prefix


def _fetched(part: Part, folder: Path, number: int) -> Path:
    name = Path(part.member or part.address).name
    if part.member:
        return _extracted(part, folder / str(number) / name)
    if not part.address.startswith("s3://"):
        return Path(part.address)
    target = folder / str(number) / name
    target.parent.mkdir(parents=True)
    with _bucket_errors(part.address), target.open("wb") as out:
        obstore, store, path = _bucket(part.address)
        for chunk in obstore.get(store, path):
            out.write(chunk)
    return target


def _extracted(part: Part, target: Path) -> Path:
    target.parent.mkdir(parents=True)
    with tarfile.open(part.address) as archive:
        stream = archive.extractfile(part.member)
        if stream is None:
            raise InputError(f"{part.name} is no file")
        with stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
    return target
