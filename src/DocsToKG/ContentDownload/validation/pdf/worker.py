"""The process that reads and judges PDFs for a run, and may die of one without harm.

    python -m DocsToKG.ContentDownload.validation.pdf.worker

It serves one request after another over the socket that is its standard input: a length, a JSON object and the
descriptor of the file; and it answers with a length and a JSON object. Memory, seconds of processor time, open files
and written bytes are limited by the system. Knows nothing of jobs, names or the network.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
import pikepdf

from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import Origin
from DocsToKG.ContentDownload.validation.pdf import pdfium
from DocsToKG.ContentDownload.validation.pdf.document import HEADER, DocumentText, ReadOptions, TextFailure
from DocsToKG.ContentDownload.validation.pdf.examination import examine
from DocsToKG.ContentDownload.validation.pdf.streams import check_streams

MAX_REQUEST_BYTES = 64 * 1024
XMP_CHARS = 64 * 1024
_OPEN_FILES = 64


class Request(NamedTuple):
    """What is asked about a file: with a `known` work the verdict on it, else its text."""

    options: ReadOptions
    known: KnownWork | None
    origin: Origin
    max_reply: int


Answer = Callable[[Request, int], dict[str, Any]]


def main(answer: Answer | None = None) -> int:
    """Serve until the run closes the socket. Tests give an `answer` of their own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when it ends
    server = socket.socket(fileno=os.dup(0))
    limits = orjson.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    _limit(limits)
    pdfium.start()
    _bound_parser()
    answer = answer or answer_request
    while (received := _receive(server)) is not None:
        request, descriptor = received
        _limit_processor(float(limits.get("timeout_s", 30.0)))
        try:
            reply = orjson.dumps(answer(request, descriptor))
        except MemoryError:
            reply = orjson.dumps({"failure": "text-engine-memory", "detail": "the file needs too much memory"})
        except Exception as error:  # no file may end the process by an error of this program
            detail = f"{type(error).__name__}: {error}"[:300]
            reply = orjson.dumps({"failure": "text-engine-failed", "detail": detail})
        finally:
            os.close(descriptor)
        if len(reply) > request.max_reply:
            detail = f"a reply of {len(reply)} bytes"
            reply = orjson.dumps({"failure": "text-engine-output", "detail": detail})
        server.sendall(HEADER.pack(len(reply)) + reply)
    return 0


def _receive(server: socket.socket) -> tuple[Request, int] | None:
    """The next request; None when the run has gone."""
    head, descriptors, _, _ = socket.recv_fds(server, HEADER.size, 1)
    while head and len(head) < HEADER.size:
        head += server.recv(HEADER.size - len(head)) or b""
    if not head or not descriptors:
        return None
    (length,) = HEADER.unpack(head)
    body = b""
    while len(body) < min(length, MAX_REQUEST_BYTES):
        piece = server.recv(length - len(body))
        if not piece:
            return None
        body += piece
    asked = orjson.loads(body)
    known = KnownWork.from_json(asked["known"]) if asked["known"] is not None else None
    origin = Origin(tuple(asked["urls"]), asked["page_doi"])
    return Request(ReadOptions.from_json(asked["options"]), known, origin, int(asked["max_reply"])), descriptors[0]


def answer_request(request: Request, descriptor: int) -> dict[str, Any]:
    """The reply to one request."""
    if request.known is None:
        return read_document(request.options, descriptor)
    found = examine(request.known, lambda options: _read(options, descriptor), request.options, request.origin)
    return found.to_json()


def _read(options: ReadOptions, descriptor: int) -> DocumentText | TextFailure:
    reply = read_document(options, descriptor)
    return TextFailure.from_json(reply) if "failure" in reply else DocumentText.from_json(reply)


def read_document(options: ReadOptions, descriptor: int) -> dict[str, Any]:
    """The document in the form of `DocumentText.from_json`, or why it cannot be read."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return {"failure": "text-unreadable", "detail": "no bytes"}
    # A private, writable mapping: ctypes takes no other, and nothing reaches the file.
    data = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    try:
        xmp, streams = _structure(descriptor, options)
        reply: dict[str, Any] = {"page_count": 0, "pages": [], "info": {}, "outline": [], "attachments": []}
        if options.text:
            buffer = (ctypes.c_char * size).from_buffer(data)
            try:
                reply = pdfium.read(buffer, size, options)
            except pdfium.Unreadable as error:
                reason = "text-encrypted" if error.encrypted else "text-unreadable"
                return {"failure": reason, "detail": str(error), "streams": streams}
            finally:
                del buffer
    finally:
        with contextlib.suppress(BufferError):  # an error still refers to it; it goes with the error
            data.close()
    return {"engine": pdfium.ENGINE, **reply, "xmp": xmp, "streams": streams}


def _structure(descriptor: int, options: ReadOptions) -> tuple[str, dict[str, Any] | None]:
    """The XMP packet, and what decoding the streams showed. What qpdf cannot open says nothing."""
    try:
        with (
            io.FileIO(descriptor, closefd=False) as file,
            pikepdf.open(file, inherit_page_attributes=False, access_mode=pikepdf.AccessMode.mmap) as pdf,
        ):
            xmp = _xmp(pdf)
            if options.streams == "none":
                return xmp, None
            report = check_streams(pdf, options.streams, max_bytes=options.max_stream_bytes, max_s=options.max_stream_s)
            return xmp, report
    except MemoryError:
        raise
    except Exception:  # the parser raises whatever a broken object provokes
        return "", None


def _xmp(pdf: Any) -> str:
    with contextlib.suppress(Exception):  # as above
        stream = pdf.Root.get("/Metadata")
        if int(stream.get("/Length", 0)) <= 4 * XMP_CHARS:
            raw = bytes(stream.read_bytes())[: 4 * XMP_CHARS]
            wide = raw.startswith((b"\xfe\xff", b"\xff\xfe"))
            return raw.decode("utf-16" if wide else "utf-8", "replace")[:XMP_CHARS]
    return ""


def _limit(limits: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    memory = int(limits.get("memory_bytes", 0))
    if memory:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses it; there the time limit holds alone
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _limit_processor(seconds: float) -> None:
    """A worker whose run was killed has no one to stop it but the system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 2
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _bound_parser() -> None:
    pikepdf.settings.set_qpdf_limits(
        flate_max_memory=256 << 20,
        png_max_memory=64 << 20,
        tiff_max_memory=64 << 20,
        run_length_max_memory=64 << 20,
        doc_max_warnings=2_000,
    )


if __name__ == "__main__":
    raise SystemExit(main())
