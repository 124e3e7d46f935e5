"""Serve one copy of a work: the PDF as HTTP has it, or what its fault makes of it.

Knows validators, conditional and ranged requests (RFC 9110 sections 13 and 14), and every fault of a file or of the
host it lies on. Does not know which service asked.
"""

from __future__ import annotations

import re
import zlib
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from hashlib import md5, sha256

from DocsToKG.Sandbox.draw import choose
from DocsToKG.Sandbox.exchange import Delivery, Reply, Request, html_reply, redirect
from DocsToKG.Sandbox.houses import PRIVATE_PLACES
from DocsToKG.Sandbox.web import Web
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


def file_reply(web: Web, request: Request, work: Work, copy: Copy) -> Reply:
    """The answer to a request for the file of a copy."""
    fault = copy.fault or ""
    if request.method == "HEAD" and fault == "no_head":
        web.meet(fault)
        return Reply(405, b"", "text/plain", {"Allow": "GET"})
    trouble = web.status_trouble(work, copy.kind, fault) or wall(web, request, work, copy)
    return trouble or _impostor(web, work, fault) or _true_file(web, request, work, copy)


def wall(web: Web, request: Request, work: Work, copy: Copy) -> Reply | None:
    """What stands before every page of a host that does not want programs, or is built badly."""
    fault = copy.fault or ""
    reply = _wall(web, request, work, fault)
    if reply:
        web.meet(fault)
    return reply


def bare_target(request: Request) -> str:
    """The target without the marks that loops leave on it."""
    return _LOOP_MARK.sub("", request.target)


def _wall(web: Web, request: Request, work: Work, fault: str) -> Reply | None:
    match fault:
        case "challenge_403" | "challenge_200":
            return _challenge(403 if fault == "challenge_403" else 200)
        case "cookie_loop":
            return _loop(request, "cookieSet", 1)
        case "redirect_loop":
            return _loop(request, "hop", 2)
        case "redirect_private":
            return redirect(choose(PRIVATE_PLACES, web.world.seed, work.index, "private"))
    return None


def _challenge(status: int) -> Reply:
    inner = "<noscript>Enable JavaScript and cookies to continue</noscript><script src='https://challenges.cloudflare.com/'>"
    reply = html_reply("Just a moment...", inner + "</script>", status)
    reply.headers["cf-mitigated"] = "challenge"
    # A cache that believes this keeps the challenge in place of the paper.
    reply.headers["Cache-Control"] = "max-age=3600"
    return reply


def _loop(request: Request, mark: str, hops: int) -> Reply:
    bare = bare_target(request)
    step = int(request.query.get(mark, "0")[:1] or 0)
    join = "&" if "?" in bare else "?"
    target = f"{bare}{join}{mark}={step + 1}" if step < hops else bare
    reply = redirect(f"https://{request.host}{target}")
    if mark == "cookieSet":
        reply.headers["Set-Cookie"] = f"probe={step}; Path=/"
    return reply


def _impostor(web: Web, work: Work, fault: str) -> Reply | None:
    """A body that is not the paper, under the name of one."""
    match fault:
        case "html_as_pdf":
            reply = html_reply("Article", "<p>Please use the reader to view this article.</p>" * 40)
        case "tiny_stub":
            reply = Reply(200, b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n% nothing here\n%%EOF\n")
        case "wrong_article":
            reply = Reply(200, web.world.wrong_file_for(work))
        case "cover_only" | "first_page" | "supplement" | "notice":
            reply = Reply(200, web.world.part_for(work, fault))
        case "gzip_bomb":
            reply = Reply(200, gzip_bomb(), headers={"Content-Encoding": "gzip"})
        case _:
            return None
    web.meet(fault)
    reply.content_type = "application/pdf"
    return reply


def _true_file(web: Web, request: Request, work: Work, copy: Copy) -> Reply:
    body = web.world.file_of(work, copy)
    headers = _validators(work, copy, body)
    if _unchanged(request, headers):
        return Reply(304, b"", headers=headers)
    reply = Reply(200, body, "application/pdf", headers, work=work.index)
    if copy.fault == "wrong_content_type":
        web.meet(copy.fault)
        reply.content_type = choose(_ODD_TYPES, web.world.seed, work.index, "odd type")
    reply = _ranged(request, reply)
    if reply.status < 300 and request.method == "GET":
        reply.delivery = _delivery(web, work, copy)
    return reply


def _validators(work: Work, copy: Copy, body: bytes) -> dict[str, str]:
    digest = md5(body, usedforsecurity=False).hexdigest() if copy.kind == "pmc" else sha256(body).hexdigest()[:32]
    headers = {
        "ETag": f'"{digest}"',
        "Last-Modified": formatdate((work.year - 1970) * 31_556_952, usegmt=True),
        "Accept-Ranges": "bytes",
    }
    if copy.house and copy.house.cache_control:
        headers["Cache-Control"] = copy.house.cache_control
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


def _ranged(request: Request, reply: Reply) -> Reply:
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    condition = request.headers.get("if-range")
    if not match or (condition and condition not in (reply.headers["ETag"], reply.headers["Last-Modified"])):
        return reply
    total = len(reply.body)
    first, last = int(match[1]), min(int(match[2] or total), total - 1)
    if first >= total or last < first:
        return Reply(416, b"", "text/plain", {**reply.headers, "Content-Range": f"bytes */{total}"})
    headers = {**reply.headers, "Content-Range": f"bytes {first}-{last}/{total}"}
    return Reply(206, reply.body[first : last + 1], reply.content_type, headers, work=reply.work)


def _delivery(web: Web, work: Work, copy: Copy) -> Delivery:
    fault = copy.fault or ""
    timed = {"slow": Delivery("slow", seconds=web.slow_s), "stalled": Delivery("stall", seconds=web.stall_s)}
    bad = {**_BODY_FAULTS, **timed}.get(fault)
    if bad is not None and web.spoiled(work, copy.kind, fault):
        web.meet(fault)
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
