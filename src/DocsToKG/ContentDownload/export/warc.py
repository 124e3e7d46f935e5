"""The exchanges of a corpus as WARC 1.1 (ISO 28500), for archives and their tools.

What is still held of each: an answer whose head is in the HTTP cache becomes a `response`, with the `request` that it
answered; a file whose head is not held becomes a `resource`; and each work has a `metadata` record with all that is
known of how it was had. Promises: no header that was sent is written, since none is kept, and addresses have their
secrets masked; a file that is not what the record says, or cannot be read, is left out and named; the same corpus gives
the same records.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import IO, Any, BinaryIO, Protocol
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from DocsToKG.ContentDownload.errors import ConfigError, FileUnreadable
from DocsToKG.ContentDownload.export.copying import pour
from DocsToKG.ContentDownload.net.entries import StoredAnswer
from DocsToKG.ContentDownload.storage.files import StoredFiles

_ADDRESS = re.compile(r"https?://[\x21-\x7e]+")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_IN_MEMORY = 1 << 20
# Of the connection, not of the answer; bodies are kept without the one and with the other.
_NOT_KEPT = frozenset({"transfer-encoding", "connection", "keep-alive", "content-length", "set-cookie", "set-cookie2"})
_TRY = ("ts", "verb", "url", "status", "http_status", "content_type", "reason", "resolver", "role", "from_cache")
_WORK = (
    "doc_id", "state", "title", "year", "license", "license_raw", "version", "path", "sha256", "size_bytes", "mime",
    "url", "resolver", "tier", "host", "evidence", "doi_seen", "reason", "run_id", "config_hash", "created_at",
)  # fmt: skip


class Answers(Protocol):
    """The answers that the HTTP cache still holds."""

    def find(self, url: str) -> StoredAnswer | None: ...

    def body(self, url: str, answer: StoredAnswer) -> BinaryIO | None:
        """Of an answer that is not a file of the store."""
        ...


@dataclass(slots=True)
class Written:
    """What was written. `spoiled` are files that are gone, damaged or unreadable: path and what was found."""

    works: int = 0
    files: int = 0
    responses: int = 0
    bytes: int = 0
    spoiled: list[tuple[str, str]] = field(default_factory=list)


def write_warc(
    rows: Iterable[Mapping[str, Any]],
    out: IO[bytes],
    *,
    files: StoredFiles,
    answers: Answers,
    tries_of: Callable[[str], Sequence[Mapping[str, Any]]],
    compressed: bool,
    info: Mapping[str, str],
) -> Written:
    """`tries_of` gives the requests made for a work; `info` is said of the whole, with the moment as `date`."""
    archive = _Archive(out, compressed=compressed, files=files, answers=answers)
    archive.begin(info)
    for row in rows:
        archive.add(row, tries_of(row["doc_id"]))
    return archive.written


class _Archive:
    """One file of records. Knows what it holds already: an answer is written once, whatever it stands for."""

    def __init__(self, out: IO[bytes], *, compressed: bool, files: StoredFiles, answers: Answers) -> None:
        self._writer, self._http = _library(out, compressed)
        self._files, self._answers = files, answers
        self._held: set[bytes] = set()  # names of records that were written
        self._date = ""
        self.written = Written()

    def _moment(self, text: Any) -> str:
        """When something was, as far as the record knows it; else the moment of the export."""
        return text if isinstance(text, str) and _MOMENT.fullmatch(text) else self._date

    def begin(self, info: Mapping[str, str]) -> None:
        self._date = info["date"]
        fields = "".join(f"{name}: {value}\r\n" for name, value in info.items() if name != "date").encode()
        heads = {"WARC-Date": info["date"], "WARC-Record-ID": _name("warcinfo", info["date"], fields.decode())}
        heads["Content-Type"] = "application/warc-fields"
        self._write(None, "warcinfo", heads, BytesIO(fields), len(fields))

    def add(self, row: Mapping[str, Any], tries: Sequence[Mapping[str, Any]]) -> None:
        """A work: its file, what else was answered on the way to it, and all that is known of it."""
        main = self._file(row)
        others = [name for one in _asked(tries) if (name := self._answer(one)) is not None]
        self._metadata(row, tries, [*([main] if main else []), *others])
        self.written.works += 1

    def _file(self, row: Mapping[str, Any]) -> str | None:
        """The record of the work's file, written once for each address and digest."""
        path, sha256, url = row["path"], row["sha256"], row["url"]
        if not (path and sha256 and _is_plain(url)):
            return None
        name = _name("file", url, sha256)
        if _short(name) in self._held:
            return name
        body = self._proved(path, sha256)
        if body is None:
            return None
        with body:
            size, date = _size(body), self._moment(row["created_at"])
            answer = self._answers.find(url)
            if answer is not None and answer.sha256 == sha256:
                self._response(url, answer, body, size, date, name)
            else:
                heads = {"WARC-Date": date, "WARC-Record-ID": name}
                heads["Content-Type"] = row["mime"] or "application/octet-stream"
                self._write(url, "resource", heads, body, size)
        self._held.add(_short(name))
        self.written.files += 1
        self.written.bytes += size
        return name

    def _answer(self, one: Mapping[str, Any]) -> str | None:
        """The answer to one request, where the cache still has it whole."""
        url, answer = one["url"], self._answers.find(one["url"])
        if answer is None or answer.in_cas:
            return None
        name = _name("answer", url, answer.sha256)
        if _short(name) in self._held:
            return name
        opened = self._answers.body(url, answer)
        if opened is None:
            return None
        with contextlib.closing(opened), SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
            if not _is_copied(opened, body, answer.sha256):
                return None
            self._response(url, answer, body, _size(body), self._moment(one["ts"]), name)
        self._held.add(_short(name))
        return name

    def _response(self, url: str, answer: StoredAnswer, body: IO[bytes], size: int, date: str, name: str) -> None:
        sent = _name("request", name, answer.method)
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        asked = self._http(f"{answer.method} {path} HTTP/1.1", [("Host", parts.netloc)], is_http_request=True)
        heads = {"WARC-Date": date, "WARC-Record-ID": sent, "WARC-Concurrent-To": name}
        self._write(url, "request", heads, None, 0, asked)
        status = f"{answer.status} {_phrase(answer.status)}"
        kept = [(k, v) for k, values in answer.headers.items() if k.lower() not in _NOT_KEPT for v in values]
        head = self._http(status, [*kept, ("Content-Length", str(size))], protocol="HTTP/1.1")
        self._write(url, "response", {"WARC-Date": date, "WARC-Record-ID": name}, body, size, head)
        self.written.responses += 1

    def _metadata(self, row: Mapping[str, Any], tries: Sequence[Mapping[str, Any]], about: Sequence[str]) -> None:
        told = {
            "work": {name: row[name] for name in _WORK if row.get(name) is not None},
            "requests": [{name: one[name] for name in _TRY if one.get(name) is not None} for one in tries],
            "records": list(about),
        }
        content = json.dumps(told, ensure_ascii=False, indent=1).encode()
        heads = {
            "WARC-Date": self._moment(row["created_at"]),
            "WARC-Record-ID": _name("metadata", row["doc_id"], row["run_id"] or ""),
            "Content-Type": "application/json",
            **({"WARC-Refers-To": about[0]} if about else {}),
        }
        about_url = row["url"] if _is_plain(row["url"]) else None
        self._write(about_url, "metadata", heads, BytesIO(content), len(content))

    def _proved(self, path: str, sha256: str) -> SpooledTemporaryFile[bytes] | None:
        """The file as the record has it; None, and noted, when it is not."""
        try:
            opened = self._files.open(path)
            if opened is None:
                self.written.spoiled.append((path, "missing"))
                return None
            with contextlib.closing(opened), contextlib.ExitStack() as stack:
                body = stack.enter_context(SpooledTemporaryFile(max_size=_IN_MEMORY))
                if pour(opened, body)[0] == sha256:
                    stack.pop_all()
                    return body
        except FileUnreadable:
            self.written.spoiled.append((path, "unreadable"))
            return None
        self.written.spoiled.append((path, "damaged"))
        return None

    def _write(
        self, url: str | None, kind: str, heads: dict[str, str], body: IO[bytes] | None, size: int, http: Any = None
    ) -> None:
        record = self._writer.create_warc_record(
            url, kind, payload=body, length=size, warc_headers_dict=heads, http_headers=http,
            warc_content_type=heads.get("Content-Type", ""),
        )  # fmt: skip
        self._writer.write_record(record)


def need_warc() -> None:
    """Say how to install what is missing, before anything is written."""
    try:
        import warcio  # noqa: F401
    except ImportError:
        raise ConfigError("WARC needs the warc extra: pip install 'docstokg[warc]'") from None


def _library(out: IO[bytes], compressed: bool) -> tuple[Any, Any]:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    return WARCWriter(out, gzip=compressed, warc_version="WARC/1.1"), StatusAndHeaders


def _asked(tries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The requests that an answer came to, each address once."""
    answered = [one for one in tries if one["verb"] == "GET" and one["http_status"] and _is_plain(one["url"])]
    return list({one["url"]: one for one in answered}.values())


def _is_plain(url: Any) -> bool:
    """An address that can stand in a head: a record that somebody edited may hold anything."""
    return isinstance(url, str) and _ADDRESS.fullmatch(url) is not None


def _name(*words: str) -> str:
    """The same words are the same record."""
    return f"<urn:uuid:{uuid5(NAMESPACE_URL, ' '.join(('urn:docstokg:warc', *words)))}>"


def _short(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def _is_copied(opened: BinaryIO, body: IO[bytes], sha256: str) -> bool:
    """Whether all of it was there. What the cache cannot give is as good as not held."""
    try:
        return pour(opened, body)[0] == sha256
    except FileUnreadable:
        return False


def _size(body: IO[bytes]) -> int:
    size = body.seek(0, 2)
    body.seek(0)
    return size


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
