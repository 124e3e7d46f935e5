"""A large body that breaks off is gone on with: real sockets, cache and store; the server counts what it sends."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import signal
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pikepdf
import pytest
from tests.contentdownload.polite_rig import Budget, reach
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.ranges import LEAST_BYTES
from DocsToKG.ContentDownload.api.types import Attempt, DownloadPlan, Reason, StoredCopy, WorkArtifact
from DocsToKG.ContentDownload.download_execution import CandidateDownload, DownloadRules
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.fallback.in_flight import DeduplicatedDownload
from DocsToKG.ContentDownload.fallback.orchestrator import Download
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.policy import UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots
from DocsToKG.ContentDownload.orchestrator.limits import KeyedLimiter
from DocsToKG.ContentDownload.storage.cas import cas_path
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.Sandbox.pdf import Paper, make_pdf

DOI = "10.5555/nets.2020.5"
TITLE = "On the shape of very deep networks"
WORK = WorkArtifact(f"doi:{DOI}", doi=DOI, title=TITLE, publication_year=2020)
URL = "https://pub.org/thesis.pdf"
SIZE = 4_000_000
CUT = 1_500_000
OLD = formatdate(1_500_000_000, usegmt=True)


@lru_cache
def thesis(key: str = "k", doi: str = DOI) -> bytes:
    return make_pdf(Paper(TITLE, ("A. Author",), 2020, doi), size_bytes=SIZE, key=key)


class Answer(NamedTuple):
    """`cut`: of the body, only so much is sent. `stalls`: and then nothing, on an open connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    cut: int | None = None
    stalls: bool = False


Script = Callable[[Mapping[str, str]], Answer]


def file(body: bytes, *, cut: int | None = None, stalls: bool = False, tag: str | None = '"v1"', **said: str) -> Script:
    """As a good server answers, whether asked for all of it or for the rest."""

    def answer(asked: Mapping[str, str]) -> Answer:
        headers = {"Accept-Ranges": "bytes"} | ({"ETag": tag} if tag is not None else {})
        headers |= {name.replace("_", "-"): value for name, value in said.items()}
        first = int(asked["range"].removeprefix("bytes=").removesuffix("-")) if "range" in asked else 0
        if first and asked["if-range"] in (tag, headers.get("Last-Modified")):
            headers["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
            return Answer(206, headers, body[first:], cut, stalls)
        return Answer(200, headers, body, cut, stalls)

    return answer


def told(status: int, body: bytes = b"", **headers: str) -> Script:
    return lambda asked: Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


class Origin(BaseHTTPRequestHandler):
    """Answers as scripted, one answer after the other."""

    protocol_version = "HTTP/1.1"
    script: list[Script]
    asked: list[dict[str, str]]
    sent: list[int]
    flowing: threading.Event  # half of a body that stalls is out
    release: threading.Event

    def do_GET(self) -> None:
        here = type(self)
        if self.path == "/robots.txt":
            self._send(Answer(404, {}))
            return
        asked = {name.lower(): value for name, value in self.headers.items()} | {"path": self.path}
        here.asked.append(asked)
        # Some are cut off by the client, and rightly so.
        with contextlib.suppress(OSError):
            self._send(here.script.pop(0)(asked))

    def _send(self, answer: Answer) -> None:
        here, body = type(self), answer.body[: answer.cut]
        self.send_response(answer.status)
        said = {"Content-Type": "application/pdf", "Content-Length": str(len(answer.body))} | answer.headers
        for name, value in said.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.path != "/robots.txt":
            here.sent.append(len(body))
        self.wfile.write(body)
        self.wfile.flush()
        if answer.stalls:
            here.flowing.set()
            here.release.wait(30)
        self.close_connection = self.close_connection or answer.cut is not None

    def log_message(self, format: str, *args: object) -> None:
        return None


@dataclass
class Desk:
    """One source's client, one store, one origin."""

    port: int
    origin: type[Origin]
    store: LocalStore
    folder: Path
    attempts: list[Attempt] = field(default_factory=list)
    stacks: list[HttpStack] = field(default_factory=list)
    loop: LoopThread = field(default_factory=LoopThread)
    wrap: Callable[[Download], Download] = lambda download: download

    def client(self, *, places: KeyedLimiter | None = None, **policy: Any) -> RateRetryClient:
        clock = SystemClock()
        stack = build_http_stack(
            reach(self.port),
            user_agent="DocsToKG/test",
            cache=CacheSettings(self.folder / "cache"),
            open_cas=self.store.open,
        )
        self.stacks.append(stack)
        # One at a time: whoever asks for the rest must have let go of what broke off.
        self.limits = HostLimits(clock=clock, default_host=HostLimit(1, {}))
        room = PermitQueues(self.limits, clock=clock)
        room.cap(None, places)
        rules: dict[str, Any] = {"gates": room, "limits": self.limits, "url_policy": UrlPolicy()}
        rules |= {"attempts": self, "clock": clock}
        rules["random"] = lambda: 0.5
        given = {"retry": RetryPolicy(base_s=0.01, jitter_s=0.0), "wait_s": 5.0} | policy
        return RateRetryClient(
            "unpaywall",
            http=stack.http,
            robots=Robots(http=stack.http, **rules),
            policy=SourcePolicy("unpaywall", **given),
            cache=stack.cache,
            **rules,
        )

    def get(
        self,
        *script: Script,
        rules: DownloadRules | None = None,
        checksum: str | None = None,
        cancel: CancelToken | None = None,
        budget: Budget | None = None,
        **policy: Any,
    ) -> StoredCopy:
        self.origin.script[:] = script
        call = Call(WORK.work_id, cancel or CancelToken(), budget)
        plan = DownloadPlan(URL, "unpaywall", checksum=checksum)
        client = self.client(**policy)
        download = self.wrap(CandidateDownload(self.store, rules or DownloadRules(), SystemClock(), self))
        copy = self.loop.run(download(plan, WORK, client, call, lambda: True), cancel=call.cancel)
        assert copy is not None
        assert copy.path is not None
        return copy

    def close(self) -> None:
        for stack in self.stacks:
            self.loop.run(stack.aclose())
        self.loop.close()

    def fails(self, *script: Script, **how: Any) -> TransientFailure:
        with pytest.raises(TransientFailure) as caught:
            self.get(*script, **how)
        assert self.files() == []
        return caught.value

    def ranges(self) -> list[str | None]:
        return [asked.get("range") for asked in self.origin.asked]

    def rows(self) -> list[tuple[str, int | None, int | None, str | None]]:
        told = [row for row in self.attempts if row.status != "robots-fetch"]
        return [(row.status.value, row.http_status, row.bytes_written, row.reason) for row in told]

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        return None

    def files(self) -> list[str]:
        """Everything below the root, temporary files included."""
        found = (path for path in self.store.root.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.store.root)) for path in found)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    told = {"script": [], "asked": [], "sent": [], "flowing": threading.Event(), "release": threading.Event()}
    handler = type("Here", (Origin,), told)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    store = LocalStore(tmp_path / "docs", min_free_bytes=0, fsync=False)
    store.prepare()
    desk = Desk(server.server_address[1], handler, store, tmp_path)
    yield desk
    handler.release.set()
    desk.close()
    server.shutdown()
    server.server_close()
    thread.join(5)


# what is gone on with


def test_only_the_rest_of_a_body_that_broke_off_is_asked_for(desk: Desk) -> None:
    copy = desk.get(file(thesis(), cut=CUT), file(thesis()))
    assert Path(copy.path).read_bytes() == thesis()
    assert copy.sha256 == hashlib.sha256(thesis()).hexdigest()
    assert copy.size_bytes == len(thesis())
    assert desk.ranges() == [None, f"bytes={CUT}-"]
    assert desk.origin.asked[1]["if-range"] == '"v1"'
    assert sum(desk.origin.sent) == len(thesis()), "no byte came twice"
    assert len(desk.files()) == 2, "the object and its readable name"


def test_the_record_tells_each_request_and_where_the_bytes_came_from(desk: Desk) -> None:
    desk.get(file(thesis(), cut=CUT), file(thesis()))
    assert desk.rows() == [
        ("http-get", 200, None, None),
        ("size-mismatch", 200, CUT, "size-mismatch"),
        ("http-get", 206, None, None),
        ("http-200", 206, len(thesis()) - CUT, None),
    ]


def test_the_whole_is_described_by_the_answer_that_began_it(desk: Desk) -> None:
    stream = desk.get(file(thesis(), cut=CUT), file(thesis(), Content_Type="text/plain")).stream
    assert (stream.http_status, stream.content_type) == (200, "application/pdf")
    assert (stream.content_length_hdr, stream.bytes_written) == (len(thesis()), len(thesis()))
    assert (stream.sha256, stream.etag) == (hashlib.sha256(thesis()).hexdigest(), '"v1"')


def test_a_bad_line_costs_requests_and_no_bytes(desk: Desk) -> None:
    """Also more often than a request is tried: each answer brought a good deal of the file."""
    bad = file(thesis(), cut=LEAST_BYTES)
    copy = desk.get(bad, bad, bad, file(thesis()), retry=RetryPolicy(max_attempts=2, base_s=0.01, jitter_s=0.0))
    assert Path(copy.path).read_bytes() == thesis()
    assert desk.ranges() == [None, *(f"bytes={times * LEAST_BYTES}-" for times in (1, 2, 3))]
    assert sum(desk.origin.sent) == len(thesis())


def test_the_rest_may_begin_like_anything(desk: Desk) -> None:
    """What a file is shows in its beginning, which has been looked at."""
    picture = b"\x89PNG\r\n\x1a\n"
    with pikepdf.open(io.BytesIO(thesis())) as paper:
        paper.Root.PieceInfo = paper.make_stream(bytes(CUT) + picture + bytes(CUT))
        paper.save(made := io.BytesIO(), compress_streams=False)
    odd = made.getvalue()
    cut = odd.index(picture)
    assert cut >= CUT
    assert Path(desk.get(file(odd, cut=cut), file(odd)).path).read_bytes() == odd
    assert desk.ranges() == [None, f"bytes={cut}-"]


def test_the_rest_is_not_asked_for_at_once(desk: Desk) -> None:
    """But after the wait of any other failure."""
    times = []

    def timed(script: Script) -> Script:
        return lambda asked: (times.append(time.monotonic()), script(asked))[1]

    slowly = RetryPolicy(base_s=0.4, jitter_s=0.0)
    desk.get(timed(file(thesis(), cut=CUT)), timed(file(thesis())), retry=slowly)
    assert times[1] - times[0] >= 0.4


def test_an_answer_that_brings_little_more_is_the_last(desk: Desk) -> None:
    little = file(thesis(), cut=LEAST_BYTES - 1)
    failure = desk.fails(file(thesis(), cut=CUT), little, file(thesis()))
    assert failure.reason == Reason.SIZE_MISMATCH
    assert desk.ranges() == [None, f"bytes={CUT}-"]


def test_a_body_that_stalls_is_gone_on_with(desk: Desk) -> None:
    copy = desk.get(file(thesis(), cut=CUT, stalls=True), file(thesis()), wait_s=0.7)
    assert Path(copy.path).read_bytes() == thesis()
    assert desk.rows()[1] == ("size-mismatch", 200, CUT, "timeout")
    assert sum(desk.origin.sent) == len(thesis())


def test_bytes_that_waited_to_be_joined_are_asked_for_again(desk: Desk) -> None:
    """download.chunk_size_bytes: what the reader never got does not count."""
    copy = desk.get(file(thesis(), cut=CUT), file(thesis()), chunk_bytes=1_000_000)
    assert Path(copy.path).read_bytes() == thesis()
    began = int((desk.ranges()[1] or "").removeprefix("bytes=").removesuffix("-"))
    assert LEAST_BYTES <= began <= CUT
    assert desk.rows()[1] == ("size-mismatch", 200, began, "size-mismatch")


def test_a_date_will_do_where_the_file_had_been_at_rest(desk: Desk) -> None:
    dated = {"tag": None, "Last_Modified": OLD}
    copy = desk.get(file(thesis(), cut=CUT, **dated), file(thesis(), **dated))
    assert Path(copy.path).read_bytes() == thesis()
    assert desk.origin.asked[1]["if-range"] == OLD


def chunked(body: bytes) -> Script:
    """The rest without a length of its own; `body` is what really comes."""

    def answer(asked: Mapping[str, str]) -> Answer:
        headers = {"ETag": '"v1"', "Content-Range": f"bytes {CUT}-{len(thesis()) - 1}/{len(thesis())}"}
        pieces = (body[at : at + 60_000] for at in range(0, len(body), 60_000))
        framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        return Answer(206, {**headers, "Transfer-Encoding": "chunked", "Content-Length": ""}, framed)

    return answer


def test_a_rest_in_chunks_is_as_good_and_must_be_as_long_as_it_says(desk: Desk) -> None:
    rest = thesis()[CUT:]
    assert desk.fails(file(thesis(), cut=CUT), chunked(rest + b"x"), file(thesis())).reason == Reason.SIZE_MISMATCH
    assert len(desk.origin.asked) == 2
    assert Path(desk.get(file(thesis(), cut=CUT), chunked(rest)).path).read_bytes() == thesis()
    assert desk.rows()[-1] == ("http-200", 206, len(rest), None)
    assert Path(desk.get(file(thesis(), cut=CUT), chunked(rest[:-1]), file(thesis())).path).read_bytes() == thesis()
    assert desk.ranges()[-1] == f"bytes={len(thesis()) - 1}-"


def test_a_rest_that_never_ends_is_cut_off_at_the_cap_of_the_whole(desk: Desk) -> None:
    rules = DownloadRules(max_bytes=len(thesis()))
    failure = desk.fails(file(thesis(), cut=CUT), chunked(bytes(len(thesis()))), rules=rules)
    assert failure.reason == Reason.SIZE_MISMATCH, "which says nothing of the file"
    assert ("download-error", None, None, "too-large") in desk.rows()


def test_each_hop_is_asked_anew_and_only_the_file_knows_its_tag(desk: Desk) -> None:
    """The link may be signed anew each time."""

    def hop(number: int) -> Script:
        return told(302, Location=f"https://files.org/t.pdf?X-Amz-Signature={number}")

    copy = desk.get(hop(1), file(thesis(), cut=CUT), hop(2), file(thesis()))
    assert Path(copy.path).read_bytes() == thesis()
    assert [asked["host"] for asked in desk.origin.asked] == ["pub.org", "files.org"] * 2
    assert desk.ranges() == [None, None, None, f"bytes={CUT}-"]
    assert "if-range" not in desk.origin.asked[2]
    assert copy.stream.final_url.endswith("Signature=1")


def test_a_link_that_leads_elsewhere_now_is_asked_for_all_of_it(desk: Desk) -> None:
    first, other = told(302, Location="/one.pdf"), told(302, Location="/two.pdf")
    copy = desk.get(first, file(thesis(), cut=CUT), other, file(thesis("other")))
    assert Path(copy.path).read_bytes() == thesis("other")
    assert desk.ranges() == [None] * 4


@pytest.mark.slow
def test_a_busy_server_is_waited_for(desk: Desk) -> None:
    """Retry-After holds for the rest as for anything else."""
    busy = told(429, Retry_After="1")
    began = time.monotonic()
    copy = desk.get(file(thesis(), cut=CUT), busy, file(thesis()))
    assert time.monotonic() - began >= 1
    assert Path(copy.path).read_bytes() == thesis()
    assert desk.ranges() == [None, f"bytes={CUT}-", f"bytes={CUT}-"]
    assert ("retry", 429, None, "retry-after") in desk.rows()


def test_neither_the_rest_nor_the_whole_enters_the_cache(desk: Desk) -> None:
    fresh = {"Cache_Control": "max-age=600"}
    desk.get(file(thesis(), cut=CUT, **fresh), file(thesis(), **fresh))
    desk.get(file(thesis(), **fresh))
    assert desk.ranges() == [None, f"bytes={CUT}-", None]
    assert "if-none-match" not in desk.origin.asked[2], "nothing was stored that could be asked about"
    desk.get()
    assert len(desk.origin.asked) == 3, "what came in one piece is kept"


def test_the_callers_places_are_free_between_the_answers(desk: Desk) -> None:
    """There is one, and each answer needs it."""
    places = KeyedLimiter(1)

    def rest(asked: Mapping[str, str]) -> Answer:
        assert places.in_use("pub.org") == 1
        return file(thesis())(asked)

    desk.get(file(thesis(), cut=CUT), rest, places=places)
    assert len(desk.origin.asked) == 2
    assert places.in_use("pub.org") == 0


def test_works_that_share_an_address_share_the_file_that_was_gone_on_with(desk: Desk) -> None:
    shared: list[Download] = []

    def share(download: Download) -> Download:
        shared.append(DeduplicatedDownload(download, open_stored=desk.store.open, clock=SystemClock()))
        return shared[0]

    desk.wrap = share
    first = desk.get(file(thesis(), cut=CUT), file(thesis()))
    assert desk.get().sha256 == first.sha256
    assert len(desk.origin.asked) == 2, "the second work is served from the store"
    cas_path(desk.store.root, first.sha256).unlink()
    desk.get(file(thesis(), cut=CUT), file(thesis()))
    assert desk.ranges()[2:] == [None, f"bytes={CUT}-"], (
        "once the store has lost it, the network is asked for all of it"
    )


def test_a_published_digest_is_compared_with_the_whole(desk: Desk) -> None:
    right, wrong = (f"md5:{hashlib.md5(data).hexdigest()}" for data in (thesis(), b"other"))
    desk.fails(file(thesis(), cut=CUT), file(thesis()), checksum=wrong)
    # What the second answer states may be of the part that it brings.
    of_part = b64encode(hashlib.md5(thesis()[CUT:]).digest()).decode()
    copy = desk.get(file(thesis(), cut=CUT), file(thesis(), Content_MD5=of_part), checksum=right)
    assert Path(copy.path).read_bytes() == thesis()


# what is had anew


def test_a_file_that_changed_meanwhile_is_had_from_its_first_byte(desk: Desk) -> None:
    copy = desk.get(file(thesis(), cut=CUT), file(thesis("new"), tag='"v2"'))
    assert Path(copy.path).read_bytes() == thesis("new")
    assert copy.sha256 == hashlib.sha256(thesis("new")).hexdigest()
    assert copy.stream.etag == '"v2"'
    assert [row[:3] for row in desk.rows()[2:]] == [("http-get", 200, None), ("http-200", 200, len(thesis("new")))]


def test_a_shorter_file_leaves_nothing_of_the_longer_one(desk: Desk) -> None:
    short = make_pdf(Paper(TITLE, ("A. Author",), 2020, DOI), size_bytes=20_000, key="s")
    copy = desk.get(file(thesis(), cut=CUT), file(short, tag='"v2"'))
    assert Path(copy.path).read_bytes() == short


def test_who_does_not_know_ranges_is_asked_once(desk: Desk) -> None:
    def ignores(cut: int | None) -> Script:
        return lambda asked: file(thesis(), cut=cut)({})

    assert Path(desk.get(ignores(CUT), ignores(None)).path).read_bytes() == thesis()
    assert desk.ranges() == [None, f"bytes={CUT}-"]


def test_who_sent_it_anew_and_broke_off_again_is_left_alone(desk: Desk) -> None:
    failure = desk.fails(file(thesis(), cut=CUT), file(thesis("new"), tag='"v2"', cut=CUT), file(thesis("new")))
    assert failure.reason == Reason.SIZE_MISMATCH
    assert len(desk.origin.asked) == 2


def test_a_page_in_place_of_the_rest_is_judged_as_ever(desk: Desk) -> None:
    page = b"<html><title>Log in</title><body>" + b"<p>Please log in.</p>" * 100 + b"</body></html>"
    with pytest.raises(CandidateRejected):
        desk.get(file(thesis(), cut=CUT), told(200, page, Content_Type="text/html"))
    assert desk.files() == []


def test_the_cap_holds_for_a_file_that_grew_meanwhile(desk: Desk) -> None:
    rules = DownloadRules(max_bytes=len(thesis()))
    with pytest.raises(CandidateRejected) as caught:
        desk.get(file(thesis(), cut=CUT), file(thesis() + b"more", tag='"v2"'), rules=rules)
    assert caught.value.reason == Reason.TOO_LARGE
    assert desk.files() == []
    assert Path(desk.get(file(thesis(), cut=CUT), file(thesis()), rules=rules).path).read_bytes() == thesis()


# what is not asked for

NOT_KNOWN_WELL_ENOUGH: dict[str, Script] = {
    "weak tag": file(thesis(), cut=CUT, tag='W/"v1"'),
    "weak tag beside a date": file(thesis(), cut=CUT, tag='W/"v1"', Last_Modified=OLD),
    "two tags": file(thesis(), cut=CUT, tag='"v1", "v2"'),
    "no tag": file(thesis(), cut=CUT, tag=None),
    "a date that is none": file(thesis(), cut=CUT, tag=None, Last_Modified="yesterday"),
    "says that it knows no ranges": file(thesis(), cut=CUT, Accept_Ranges="none"),
    "too little came": file(thesis(), cut=LEAST_BYTES - 1),
}


@pytest.mark.parametrize("name", NOT_KNOWN_WELL_ENOUGH)
def test_a_file_that_is_not_known_well_enough_is_not_gone_on_with(desk: Desk, name: str) -> None:
    failure = desk.fails(NOT_KNOWN_WELL_ENOUGH[name], file(thesis()))
    assert failure.reason == Reason.SIZE_MISMATCH
    assert desk.ranges() == [None]


def test_a_file_that_changed_just_now_is_not_gone_on_with(desk: Desk) -> None:
    """Counted from this test's beginning: after a minute it is known well enough."""
    failure = desk.fails(file(thesis(), cut=CUT, tag=None, Last_Modified=formatdate(usegmt=True)), file(thesis()))
    assert failure.reason == Reason.SIZE_MISMATCH
    assert desk.ranges() == [None]


def test_an_encoded_file_is_not_gone_on_with(desk: Desk) -> None:
    """Its ranges would be of other bytes than those that were read."""
    noise = os.urandom(3_000_000)
    packed = gzip.compress(b"%PDF-1.7\n" + noise)
    desk.fails(file(packed, cut=2_500_000, Content_Encoding="gzip"), file(packed))
    assert desk.ranges() == [None]


def test_a_file_of_unknown_length_is_not_gone_on_with(desk: Desk) -> None:
    def chunked(asked: Mapping[str, str]) -> Answer:
        body = b"%x\r\n" % len(thesis()) + thesis()
        headers = {"ETag": '"v1"', "Transfer-Encoding": "chunked", "Content-Length": str(len(thesis()))}
        return Answer(200, headers, body, CUT)

    desk.fails(chunked, file(thesis()))
    assert desk.ranges() == [None]


def test_who_is_never_asked_again_is_not_asked_for_the_rest(desk: Desk) -> None:
    """max_retries: 0. One try is one request."""
    desk.fails(file(thesis(), cut=CUT), file(thesis()), retry=RetryPolicy(max_attempts=1))
    assert desk.ranges() == [None]


def test_a_work_whose_requests_are_used_up_has_no_more_for_the_rest(desk: Desk) -> None:
    """And the work may come again: its file broke off, no more."""
    failure = desk.fails(file(thesis(), cut=CUT), file(thesis()), budget=Budget(1))
    assert failure.reason == Reason.SIZE_MISMATCH
    assert desk.ranges() == [None]


def test_the_longest_time_of_a_transfer_is_not_given_twice(desk: Desk) -> None:
    failure = desk.fails(file(thesis(), cut=CUT, stalls=True), file(thesis()), deadline_s=0.4)
    assert failure.reason == Reason.TIMEOUT
    assert desk.ranges() == [None]


# answers that are no rest


def part(**other: str) -> Script:
    """A good rest but for what is given; a name without a value is left out."""

    def answer(asked: Mapping[str, str]) -> Answer:
        good = file(thesis())(asked)
        given = {name.replace("_", "-"): value for name, value in other.items()}
        return good._replace(headers={name: value for name, value in {**good.headers, **given}.items() if value})

    return answer


def shorter(asked: Mapping[str, str]) -> Answer:
    total = len(thesis())
    return Answer(206, {"ETag": '"v1"', "Content-Range": f"bytes {CUT}-{total - 2}/{total}"}, thesis()[CUT:-1])


WRONG: dict[str, Script] = {
    "starts elsewhere": part(Content_Range=f"bytes {CUT + 1}-{len(thesis())}/{len(thesis())}"),
    "starts at the first byte": part(Content_Range=f"bytes 0-{len(thesis()) - 1}/{len(thesis())}"),
    "of another length": part(Content_Range=f"bytes {CUT}-{len(thesis()) - 1}/{len(thesis()) + 1}"),
    "of unknown length": part(Content_Range=f"bytes {CUT}-{len(thesis()) - 1}/*"),
    "without a range": part(Content_Range=""),
    "a range that is none": part(Content_Range="bytes something"),
    "another tag": part(ETag='"v2"'),
    "a weak tag": part(ETag='W/"v1"'),
    "without its tag": part(ETag=""),
    "encoded": part(Content_Encoding="gzip"),
    "several parts": part(Content_Range="", Content_Type="multipart/byteranges; boundary=x"),
    "shorter than asked for": shorter,
    "not satisfiable": told(416, Content_Range=f"bytes */{len(thesis())}"),
    "gone": told(404),
    "not modified": told(304),
    "forbidden": told(403),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_is_no_rest_leaves_the_failure_as_it_was(desk: Desk, name: str) -> None:
    """The file is asked for another time, from its first byte."""
    failure = desk.fails(file(thesis(), cut=CUT), WRONG[name], file(thesis()))
    assert failure.reason == Reason.SIZE_MISMATCH
    assert desk.ranges() == [None, f"bytes={CUT}-"]
    assert Path(desk.get(file(thesis())).path).read_bytes() == thesis()
    assert desk.ranges()[2:] == [None]


def test_parts_that_do_not_belong_together_are_not_kept_and_say_nothing_of_the_file(desk: Desk) -> None:
    """A server that lies about its tag: the next try gets it in one piece."""
    lie = thesis()[: CUT + 1000]
    failure = desk.fails(file(thesis(), cut=CUT), file(lie.ljust(len(thesis()), b"x")))
    assert failure.reason in (Reason.TRUNCATED, Reason.CORRUPT_PDF)
    assert [row[0] for row in desk.rows()][-2:] == ["http-200", "content-policy-skip"]
    assert Path(desk.get(file(thesis())).path).read_bytes() == thesis()
    assert desk.ranges() == [None, f"bytes={CUT}-", None]


def test_another_article_in_parts_is_not_judged_for_good_and_in_one_piece_is(desk: Desk) -> None:
    other = make_pdf(Paper("A story of many fishes", ("B. Author",), 2020, "10.9999/o"), size_bytes=SIZE, key="o")
    assert desk.fails(file(other, cut=CUT), file(other)).reason == Reason.WRONG_ARTICLE
    with pytest.raises(CandidateRejected) as caught:
        desk.get(file(other))
    assert caught.value.reason == Reason.WRONG_ARTICLE


def test_what_was_taken_down_stays_down_in_parts_too(desk: Desk) -> None:
    desk.origin.script[:] = file(thesis(), cut=CUT), file(thesis())
    gone = hashlib.sha256(thesis()).hexdigest()
    why = (Reason.TAKEN_DOWN, "gone")
    bar = CandidateDownload(
        desk.store, DownloadRules(), SystemClock(), barred=lambda sha256, work: why if sha256 == gone else None
    )
    with pytest.raises(CandidateRejected) as caught:
        desk.loop.run(bar(DownloadPlan(URL, "unpaywall"), WORK, desk.client(), Call("w"), lambda: True))
    assert caught.value.reason == Reason.TAKEN_DOWN


# ends in the middle


def test_a_work_that_is_called_off_in_the_middle_of_the_rest_leaves_nothing(desk: Desk) -> None:
    cancel = CancelToken()
    threading.Thread(target=lambda: desk.origin.flowing.wait(60) and cancel.cancel(), daemon=True).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        desk.get(file(thesis(), cut=CUT), file(thesis(), cut=LEAST_BYTES, stalls=True), cancel=cancel, wait_s=60.0)
    assert time.monotonic() - began < 20  # it would stall for thirty
    assert desk.files() == []
    [standing] = desk.limits.statuses(["pub.org"]).values()
    assert standing.limits["busy"] == 0


KILLED = """
import sys
from pathlib import Path
from tests.contentdownload.test_download_rest import Desk, Origin
from DocsToKG.ContentDownload.storage.local import LocalStore
folder = Path(sys.argv[1])
store = LocalStore(folder / "docs", min_free_bytes=0, fsync=False, unnamed=sys.argv[3] == "unnamed")
store.prepare()
Desk(int(sys.argv[2]), type("Remote", (Origin,), {"script": []}), store, folder).get(wait_s=60.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("names", ["unnamed", "named"])
def test_a_process_that_is_killed_in_the_middle_of_the_rest_leaves_nothing_to_go_on_with(
    desk: Desk, warm: WarmPrograms, names: str
) -> None:
    """Parts do not outlive their process; a next one begins with the first byte."""
    desk.origin.script[:] = file(thesis(), cut=CUT), file(thesis(), cut=LEAST_BYTES, stalls=True)
    command = [*warm.words("python"), "-c", KILLED, str(desk.folder), str(desk.port), names]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    try:
        assert desk.origin.flowing.wait(90)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()  # until nobody has its output open
    desk.store.prepare()
    assert desk.files() == []
    assert Path(desk.get(file(thesis())).path).read_bytes() == thesis()
    assert desk.ranges() == [None, f"bytes={CUT}-", None]
