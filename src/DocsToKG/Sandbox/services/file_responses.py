"""Serve one copy of a work: the PDF over HTTP, or the response that its fault makes.

Knows validators, conditional and ranged requests (RFC 9110 sections 13 and 14), and every fault of a file or of the
host it lies on. Does not know which service asked.
"""

from __future__ import annotations

import re
import zlib
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from hashlib import md5, sha256

from DocsToKG.Sandbox.messages import Delivery, Request, Response, html_response, redirect
from DocsToKG.Sandbox.publishers import PRIVATE_PLACES
from DocsToKG.Sandbox.seeded_random import choose
from DocsToKG.Sandbox.services.base import Context
from DocsToKG.Sandbox.works import Copy, Work

_BOMB_MIB = 256
_LOOP_MARK = re.compile(r"[?&](?:hop|cookieSet)=\d+$")
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")
_ODD_TYPES = ("application/octet-stream", "application/x-download", "text/plain", "binary/octet-stream")
_BODY_FAULTS = {
    "truncated_length": Delivery("cut"),
    "truncated_chunked": Delivery("chunked-cut"),
    "reset": Delivery("reset"),
}


def file_response(context: Context, request: Request, work: Work, copy: Copy) -> Response:
    """The answer to a request for the file of a copy."""
    fault = copy.fault or ""
    if request.method == "HEAD" and fault == "no_head":
        context.count_fault(fault)
        return Response(405, b"", "text/plain", {"Allow": "GET"})
    fault_response = context.status_fault(work, copy.kind, fault) or blocking_page(context, request, work, copy)
    return fault_response or _wrong_body(context, work, fault) or _true_file(context, request, work, copy)


def blocking_page(context: Context, request: Request, work: Work, copy: Copy) -> Response | None:
    """What stands before every page of a host that does not want programs, or is built badly."""
    fault = copy.fault or ""
    response = _blocking_page(context, request, work, fault)
    if response:
        context.count_fault(fault)
    return response


def bare_target(request: Request) -> str:
    """The target without the marks that loops leave on it."""
    return _LOOP_MARK.sub("", request.target)


def _blocking_page(context: Context, request: Request, work: Work, fault: str) -> Response | None:
    match fault:
        case "challenge_403" | "challenge_200":
            return _challenge(403 if fault == "challenge_403" else 200)
        case "cookie_loop":
            return _loop(request, "cookieSet", 1)
        case "redirect_loop":
            return _loop(request, "hop", 2)
        case "redirect_private":
            return redirect(choose(PRIVATE_PLACES, context.world.seed, work.index, "private"))
    return None


def _challenge(status: int) -> Response:
    inner = "<noscript>Enable JavaScript and cookies to continue</noscript><script src='https://challenges.cloudflare.com/'>"
    response = html_response("Just a moment...", inner + "</script>", status)
    response.headers["cf-mitigated"] = "challenge"
    # A cache that believes this keeps the challenge in place of the paper.
    response.headers["Cache-Control"] = "max-age=3600"
    return response


def _loop(request: Request, mark: str, hops: int) -> Response:
    bare = bare_target(request)
    step = int(request.query.get(mark, "0")[:1] or 0)
    join = "&" if "?" in bare else "?"
    target = f"{bare}{join}{mark}={step + 1}" if step < hops else bare
    response = redirect(f"https://{request.host}{target}")
    if mark == "cookieSet":
        response.headers["Set-Cookie"] = f"probe={step}; Path=/"
    return response


def _wrong_body(context: Context, work: Work, fault: str) -> Response | None:
    """A body that is not the paper, under the name of one."""
    match fault:
        case "html_as_pdf":
            response = html_response("Article", "<p>Please use the reader to view this article.</p>" * 40)
        case "tiny_stub":
            response = Response(200, b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n% nothing here\n%%EOF\n")
        case "wrong_article":
            response = Response(200, context.world.wrong_file_for(work))
        case "cover_only" | "first_page" | "supplement" | "notice":
            response = Response(200, context.world.part_for(work, fault))
        case "gzip_bomb":
            response = Response(200, gzip_bomb(), headers={"Content-Encoding": "gzip"})
        case _:
            return None
    context.count_fault(fault)
    response.content_type = "application/pdf"
    return response


def _true_file(context: Context, request: Request, work: Work, copy: Copy) -> Response:
    body = context.world.file_of(work, copy)
    headers = _validators(work, copy, body)
    if _unchanged(request, headers):
        return Response(304, b"", headers=headers)
    response = Response(200, body, "application/pdf", headers, work=work.index)
    if copy.fault == "wrong_content_type":
        context.count_fault(copy.fault)
        response.content_type = choose(_ODD_TYPES, context.world.seed, work.index, "odd type")
    response = _ranged(request, response)
    if response.status < 300 and request.method == "GET":
        response.delivery = _delivery(context, work, copy)
    return response


def _validators(work: Work, copy: Copy, body: bytes) -> dict[str, str]:
    digest = md5(body, usedforsecurity=False).hexdigest() if copy.kind == "pmc" else sha256(body).hexdigest()[:32]
    headers = {
        "ETag": f'"{digest}"',
        "Last-Modified": formatdate((work.year - 1970) * 31_556_952, usegmt=True),
        "Accept-Ranges": "bytes",
    }
    if copy.publisher and copy.publisher.cache_control:
        headers["Cache-Control"] = copy.publisher.cache_control
    return headers


def _unchanged(request: Request, headers: dict[str, str]) -> bool:
    if tags := request.headers.get("if-none-match"):
        return headers["ETag"] in {tag.strip().removeprefix("W/") for tag in tags.split(",")} or tags == "*"
    if since := request.headers.get("if-modified-since"):
        try:
            return parsedate_to_datetime(headers["Last-Modified"]) <= parsedate_to_datetime(since)
        except (TypeError, ValueError):
            return False
    return False


def _ranged(request: Request, response: Response) -> Response:
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    condition = request.headers.get("if-range")
    if not match or (condition and condition not in (response.headers["ETag"], response.headers["Last-Modified"])):
        return response
    total = len(response.body)
    first, last = int(match[1]), min(int(match[2] or total), total - 1)
    if first >= total or last < first:
        return Response(416, b"", "text/plain", {**response.headers, "Content-Range": f"bytes */{total}"})
    headers = {**response.headers, "Content-Range": f"bytes {first}-{last}/{total}"}
    return Response(206, response.body[first : last + 1], response.content_type, headers, work=response.work)


def _delivery(context: Context, work: Work, copy: Copy) -> Delivery:
    fault = copy.fault or ""
    timed = {"slow": Delivery("slow", seconds=context.slow_s), "stalled": Delivery("stall", seconds=context.stall_s)}
    bad = {**_BODY_FAULTS, **timed}.get(fault)
    if bad is not None and context.still_fails(work, copy.kind, fault):
        context.count_fault(fault)
        return bad
    # Some servers never tell the length.
    return Delivery("chunked") if work.index % 10 == 3 else Delivery()


@lru_cache(maxsize=1)
def gzip_bomb() -> bytes:
    """A few hundred KB that unpack to 256 MiB after an honest PDF header."""
    head, block = b"%PDF-1.7\n", bytes(1024 * 1024)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush equal input gives equal output, so one block packed is all of them packed.
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(head)
    for _ in range(_BOMB_MIB):
        checksum = zlib.crc32(block, checksum)
    length = len(head) + _BOMB_MIB * len(block)
    trailer = checksum.to_bytes(4, "little") + length.to_bytes(4, "little")
    return b"\x1f\x8b\x08\x00\0\0\0\0\x02\xff" + start + packed * _BOMB_MIB + packer.flush() + trailer
