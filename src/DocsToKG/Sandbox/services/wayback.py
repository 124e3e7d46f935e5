"""web.archive.org: the capture index and raw replay of publishers' files and pages."""

from __future__ import annotations

import re
from base64 import b32encode
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha1
from urllib.parse import parse_qsl, unquote, urlsplit

from DocsToKG.Sandbox.messages import (
    Request,
    Response,
    html_response,
    json_response,
    redirect,
    text_response,
    unknown_parameter,
)
from DocsToKG.Sandbox.publishers import indexes_in
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.file_responses import file_response
from DocsToKG.Sandbox.services.pages import landing_page
from DocsToKG.Sandbox.works import Copy, Work

_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
_REPLAY = re.compile(r"/web/(\d{1,14})(id_)?/(.+)")
_MATCHES = ("exact", "prefix", "host")
_KNOWN = (
    "url",
    "matchType",
    "from",
    "to",
    "filter",
    "limit",
    "output",
    "fl",
    "gzip",
    "resolveRevisits",
    "showResumeKey",
)
_EARLY = "20000101000000"


@dataclass(frozen=True, slots=True)
class Capture:
    """One stored answer."""

    timestamp: str
    original: str
    mimetype: str
    status: int
    body: bytes

    def row(self) -> list[str]:
        parts = urlsplit(self.original)
        key = ",".join(reversed(parts.netloc.removeprefix("www.").split("."))) + ")" + parts.path.lower()
        digest = b32encode(sha1(self.body, usedforsecurity=False).digest()).decode()
        return [key, self.timestamp, self.original, self.mimetype, str(self.status), digest, str(len(self.body) + 400)]


class Wayback(Service):
    name = "wayback"
    hosts = ("web.archive.org", "archive.org")

    def answer(self, request: Request) -> Response:
        if request.path == "/cdx/search/cdx":
            return self._index(request)
        if request.path == "/wayback/available":
            return self._available(request)
        # The archived address keeps its own query, so the target is read as it was sent.
        match = _REPLAY.fullmatch(request.target)
        return self._replay(request, match) if match else _no_capture()

    def _find(self, url: str) -> tuple[Work, Copy] | None:
        """The work whose captured publisher address this is, in either scheme."""
        bare = re.sub(r"^https?:/+", "", url)
        for index in indexes_in(url):
            work = self._context.world.by_index(index)
            copy = work.copy("publisher") if work and work.copy("wayback") else None
            if work and copy and f"https://{bare}" in (copy.pdf_url, copy.landing_url):
                return work, copy
        return None

    def _captures(self, url: str) -> list[Capture]:
        found = self._find(url)
        if found is None:
            return []
        work, copy = found
        stamp = _stamp(work)
        if url.endswith(copy.pdf_url.partition("://")[2]):
            body = self._context.world.file_of(work, copy)
            missing = Capture(_EARLY, copy.pdf_url, "text/html", 404, b"gone")
            return [missing, Capture(stamp, copy.pdf_url, "application/pdf", 200, body)]
        return [Capture(stamp, copy.landing_url, "text/html", 200, landing_page(work, copy).body)]

    def _index(self, request: Request) -> Response:
        url, match = request.query.get("url", ""), request.query.get("matchType", "exact")
        name = unknown_parameter(request, _KNOWN) or ("matchType" if match not in _MATCHES else None)
        if name is not None:
            return text_response(f"{name} is unknown to the sandbox\n", 400)
        rows = [capture.row() for capture in (self._captures(url) if match == "exact" else self._under(url, match))]
        first, last = request.query.get("from", ""), request.query.get("to", "")
        rows = [row for row in rows if row[1][: len(first)] >= first and row[1][: len(last)] <= last]
        try:
            rows = [row for row in rows if _passes(row, request)]
        except re.error:
            return text_response("Bad filter\n", 400)
        limit = request.query.get("limit", "")
        if re.fullmatch(r"-?\d{1,6}", limit):
            rows = rows[: int(limit)] if int(limit) >= 0 else rows[int(limit) :]
        shown = [name for name in request.query.get("fl", "").split(",") if name] or list(_FIELDS)
        if not set(shown) <= set(_FIELDS):
            return text_response("Bad fl\n", 400)
        rows = [[row[_FIELDS.index(name)] for name in shown] for row in rows]
        if request.query.get("output") == "json":
            return json_response([shown, *rows] if rows else [])
        return text_response("".join(" ".join(row) + "\n" for row in rows))

    def _under(self, url: str, match: str) -> list[Capture]:
        """The captures below an address, or of its host."""
        bare = re.sub(r"^https?:/+", "", url).rstrip("*")
        sought = bare.partition("/")[0] + "/" if match == "host" else bare
        works = map(self._context.world.work, range(self._context.world.count))
        copies = (copy for work in works if work.copy("wayback") and (copy := work.copy("publisher")))
        addresses = [address for copy in copies for address in (copy.pdf_url, copy.landing_url)]
        under = [address for address in addresses if address.partition("://")[2].startswith(sought)]
        return [capture for address in under for capture in self._captures(address)]

    def _available(self, request: Request) -> Response:
        url = request.query.get("url", "")
        good = [capture for capture in self._captures(url) if capture.status == 200]
        closest = {
            "status": "200",
            "available": True,
            "url": f"http://web.archive.org/web/{good[-1].timestamp}/{good[-1].original}" if good else "",
            "timestamp": good[-1].timestamp if good else "",
        }
        return json_response({"url": url, "archived_snapshots": {"closest": closest} if good else {}})

    def _replay(self, request: Request, match: re.Match[str]) -> Response:
        url = match[3] if "://" in match[3] else unquote(match[3])
        captures = self._captures(url)
        exact = next((capture for capture in captures if capture.timestamp == match[1]), None)
        if not captures:
            return _no_capture()
        if exact is None:
            nearest = captures[-1]
            response = redirect(f"https://web.archive.org/web/{nearest.timestamp}{match[2] or ''}/{nearest.original}")
            response.headers["X-Archive-Redirect-Reason"] = f"found capture at {nearest.timestamp}"
            return response
        return self._stored(request, exact, raw=match[2] is not None)

    def _stored(self, request: Request, capture: Capture, *, raw: bool) -> Response:
        found = self._find(capture.original)
        if capture.mimetype == "application/pdf" and found and not raw:
            response = html_response(
                "Wayback Machine", f"<iframe src='/web/{capture.timestamp}if_/{capture.original}'></iframe>"
            )
        elif capture.mimetype == "application/pdf" and found:
            work = found[0]
            response = file_response(self._context, request, work, work.copy("wayback") or found[1])
        else:
            response = Response(capture.status, capture.body)
        moment = datetime.strptime(capture.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        response.headers |= {
            "Memento-Datetime": format_datetime(moment, usegmt=True),
            "X-Archive-Src": "sandbox-crawl.warc.gz",
            "X-Archive-Orig-Content-Type": capture.mimetype,
        }
        return response


def _stamp(work: Work) -> str:
    copy = work.copy("wayback")
    return copy.pdf_url.split("/web/")[1][:14] if copy else _EARLY


def _passes(row: list[str], request: Request) -> bool:
    """Every `filter=[!]field:regex` must match the whole field."""
    for name, value in parse_qsl(request.raw_query):
        if name != "filter":
            continue
        field, _, pattern = value.removeprefix("!").partition(":")
        if field not in _FIELDS or len(pattern) > 100:
            return False
        if bool(re.fullmatch(pattern, row[_FIELDS.index(field)])) == value.startswith("!"):
            return False
    return True


def _no_capture() -> Response:
    return html_response("Wayback Machine", "<p>The Wayback Machine has not archived that URL.</p>", 404)
