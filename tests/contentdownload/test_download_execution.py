"""From a candidate to a proved file: real sockets, real cache, real store; whatever is wrong leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pikepdf
import pytest
from tests.contentdownload.polite_rig import reach

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.stages import WorkStages
from DocsToKG.ContentDownload.api.types import (
    Attempt,
    AttemptStatus,
    DownloadPlan,
    Reason,
    StoredCopy,
    Verb,
    WorkArtifact,
)
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.download_execution import CandidateDownload, DownloadRules
from DocsToKG.ContentDownload.errors import CandidateRejected, ConfigError, TransientFailure
from DocsToKG.ContentDownload.net.build import build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.policy import UrlPolicy
from DocsToKG.ContentDownload.orchestrator.limits import KeyedLimiter
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.Sandbox.pdf import Paper, make_pdf
from DocsToKG.Sandbox.pdf.document import Block, Document
from DocsToKG.Sandbox.pdf.renderings import written

DOI = "10.5555/nets.2020.5"
TITLE = "On the shape of very deep networks"
WORK = WorkArtifact(f"doi:{DOI}", doi=DOI, title=TITLE, publication_year=2020)
FRESH = {"ETag": '"v1"', "Cache-Control": "max-age=600"}
PAGES = 6  # of the paper below
PROSE = "A network that is deep has a shape, and its shape is what we look at here. " * 60


def paper(doi: str | None = DOI, *, title: str = TITLE, size: int = 20_000) -> bytes:
    return make_pdf(Paper(title, ("A. Author",), 2020, doi), size_bytes=size, key="k")


def jats(doi: str = DOI) -> bytes:
    meta = f'<article-meta><article-id pub-id-type="doi">{doi}</article-id></article-meta>'
    return f"<article><front>{meta}</front><body><p>{PROSE}</p></body></article>".encode()


def web_page(doi: str = DOI) -> bytes:
    head = f'<!DOCTYPE html><html><head><meta name="citation_doi" content="{doi}"></head><body>'
    return f"{head}<h2>Introduction</h2><p>{PROSE}</p><h2>Results</h2><p>{PROSE}</p></body></html>".encode()


class Origin(BaseHTTPRequestHandler):
    """Answers each path with what was laid there."""

    protocol_version = "HTTP/1.1"
    laid: dict[str, tuple[bytes, dict[str, str]]]
    asked: list[tuple[str, str, Message]]  # with the headers
    halfway: Callable[[], object] = staticmethod(lambda: None)

    def do_GET(self) -> None:
        type(self).asked.append((self.command, self.path, self.headers))
        body, headers = type(self).laid[self.path]
        self.send_response(200)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        if self.command == "HEAD":
            type(self).halfway()  # with the head all of it has come
            self.end_headers()
            return
        self.end_headers()
        # Some bodies are cut off by the client, and rightly so.
        with contextlib.suppress(OSError):
            self.wfile.write(body[:5000])
            type(self).halfway()
            self.wfile.write(body[5000:])

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        return None


@dataclass
class Desk:
    """One source's client, one store, one origin."""

    client: RateRetryClient
    room: PermitQueues
    loop: LoopThread
    store: LocalStore
    origin: type[Origin]
    attempts: list[Attempt] = field(default_factory=list)
    exchanges: list[Attempt] = field(default_factory=list)  # as the client told them

    def lay(self, path: str, body: bytes, **headers: str) -> str:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.origin.laid[path] = (body, {"Content-Type": "application/pdf"} | named)
        return f"https://pub.org{path}"

    def get(
        self,
        url: str,
        *,
        work: WorkArtifact = WORK,
        rules: DownloadRules | None = None,
        claim: Callable[[], bool] = lambda: True,
        cancel: CancelToken | None = None,
        client: Client | None = None,
        stages: WorkStages | None = None,
        **plan: object,
    ) -> StoredCopy | None:
        download = CandidateDownload(self.store, rules or DownloadRules(), SystemClock(), self)
        call = Call(work.work_id, cancel or CancelToken(), stages=stages)
        coming = download(DownloadPlan(url, "unpaywall", **plan), work, client or self.client, call, claim)  # type: ignore[arg-type]
        return self.loop.run(coming, cancel=call.cancel)

    def refused(self, url: str, **how: object) -> str:
        with pytest.raises(CandidateRejected) as caught:
            self.get(url, **how)  # type: ignore[arg-type]
        return caught.value.reason

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        return None

    def files(self) -> list[str]:
        """Everything below the root, temporary files included."""
        found = (path for path in self.store.root.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.store.root)) for path in found)


class Paced(RateRetryClient):
    """The same client before a host of another pace."""

    def __init__(self, client: RateRetryClient, interval_s: float) -> None:
        self.__dict__.update(client.__dict__)
        self._interval = interval_s

    def interval_s(self, url: str) -> float:
        return self._interval


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    handler = type("Here", (Origin,), {"laid": {}, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    clock = SystemClock()
    store = LocalStore(tmp_path / "docs", min_free_bytes=0, fsync=False)
    store.prepare()
    stack = build_http_stack(
        reach(server.server_address[1]),
        user_agent="DocsToKG/test",
        cache=CacheSettings(tmp_path / "cache"),
        open_cas=store.open,
    )
    limits = HostLimits(clock=clock, default_host=HostLimit(4, {}), hosts={"*.one-at-a-time.org": HostLimit(1, {})})
    room = PermitQueues(limits, clock=clock)
    told = Desk(None, None, None, None, handler)  # type: ignore[arg-type]
    client = RateRetryClient(
        "unpaywall",
        http=stack.http,
        gates=room,
        limits=limits,
        robots=None,
        url_policy=UrlPolicy(),
        policy=SourcePolicy("unpaywall"),
        attempts=told,
        clock=clock,
        random=lambda: 0.5,
        cache=stack.cache,
    )
    with LoopThread() as loop:
        yield Desk(client, room, loop, store, handler, exchanges=told.attempts)
        loop.run(stack.aclose())
    server.shutdown()
    server.server_close()
    thread.join(5)


def stored(copy: StoredCopy | None) -> StoredCopy:
    assert copy is not None
    return copy


def test_a_paper_is_stored_with_what_was_seen_of_it(desk: Desk) -> None:
    """DL-04, DL-10: readable name, digest, facts; and no temporary file is left."""
    copy = stored(desk.get(desk.lay("/a.pdf", paper(), **FRESH)))
    assert Path(copy.path).read_bytes() == paper()
    assert desk.store.relative(copy.path).startswith("PDF/2020__on-the-shape-of-very-deep-networks__")
    assert copy.mime == "application/pdf"
    assert copy.sha256 == hashlib.sha256(paper()).hexdigest()
    assert copy.facts["pages"] == PAGES
    assert copy.facts["doi_seen"] == DOI
    assert copy.facts["title_seen"] == TITLE
    assert copy.facts["producer"] == "DocsToKG sandbox"
    assert copy.facts["version"] == "1.7"
    assert copy.facts["encrypted"] is False
    assert copy.facts["unwrapped"] is None
    assert len(desk.files()) == 2, "the object and its readable name"
    desk.get("https://pub.org/a.pdf")
    assert len(desk.origin.asked) == 1, "the second time the cache answers"


def test_an_encrypted_paper_is_kept_and_flagged(desk: Desk) -> None:
    with pikepdf.open(BytesIO(paper())) as pdf:
        pdf.save(out := BytesIO(), encryption=pikepdf.Encryption(user="secret", owner="own"))
    copy = stored(desk.get(desk.lay("/a.pdf", out.getvalue())))
    assert copy.facts["encrypted"] is True
    assert copy.facts["pages"] is None
    assert Path(copy.path).read_bytes() == out.getvalue()


def zipped() -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("paper.pdf", paper())
    return out.getvalue()


PAGE = b"<html><body>" + b"<p>The article is elsewhere.</p>" * 50
CHALLENGE = b"<html><title>Just a moment...</title>" + b" " * 2000
SUPPLEMENT = written(
    Document(
        front=(
            Block("Supporting Information for", size=14, bold=True),
            Block(TITLE, size=14, bold=True),
            Block("Contents. Table S1: all sizes. Figure S1: all shapes. Text S1: further proofs."),
        ),
        title=TITLE,
    ),
    "plain",
    key="s",
    size_bytes=20_000,
)
BAD_BODIES = {
    "empty": (b"", Reason.EMPTY_BODY),
    "tiny": (b"%PDF-1.4\n%%EOF", Reason.TOO_SMALL),
    "cut": (paper()[:-300], Reason.TRUNCATED),
    "page": (PAGE, Reason.HTML_INSTEAD_OF_PDF),
    "challenge": (CHALLENGE, Reason.CHALLENGE),
    "noise": (b"\x00\x01" * 4000, Reason.CORRUPT_PDF),
    "archive": (zipped(), Reason.UNEXPECTED_CT),
    "another paper": (paper("10.9999/other", title="A story of many fishes"), Reason.WRONG_ARTICLE),
    "supplement": (SUPPLEMENT, Reason.SUPPLEMENT),
    "archive in gzip": (gzip.compress(zipped()), Reason.UNEXPECTED_CT),
    "page in gzip": (gzip.compress(CHALLENGE), Reason.CHALLENGE),
    "cut gzip": (gzip.compress(paper())[:-200], Reason.TRUNCATED),
    "JATS": (jats(), Reason.CORRUPT_PDF),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_what_is_not_the_paper_is_refused_with_its_reason_and_removed(desk: Desk, name: str) -> None:
    """DL-07, DL-12, DL-14: the reason is recorded, nothing is stored, nothing stays in the cache."""
    body, reason = BAD_BODIES[name]
    url = desk.lay("/bad.pdf", body, **FRESH)
    assert desk.refused(url) == reason
    assert desk.files() == []
    assert [(told.verb, told.status, told.reason) for told in desk.attempts] == [
        (Verb.FINALIZE, AttemptStatus.CONTENT_POLICY_SKIP, reason)
    ]
    desk.lay("/bad.pdf", paper(), **FRESH)
    assert desk.get(url) is not None, "the cache must not answer with the bad body"


def test_a_body_above_the_cap_is_cut_off(desk: Desk) -> None:
    """DL-09"""
    assert desk.refused(desk.lay("/a.pdf", paper()), rules=DownloadRules(max_bytes=10_000)) == Reason.TOO_LARGE
    assert desk.refused(desk.lay("/b.pdf", paper()), max_bytes_override=10_000) == Reason.TOO_LARGE
    assert desk.files() == []


def test_a_foreign_file_is_cut_off_at_its_first_bytes(desk: Desk) -> None:
    """DL-09: what cannot be a paper is not fetched to its end."""
    assert desk.refused(desk.lay("/a.pdf", b"\x89PNG\r\n" + bytes(8_000_000))) == Reason.UNEXPECTED_CT
    assert (desk.attempts[0].bytes_written or 0) < 4_000_000


def test_a_forgotten_gzip_is_unwrapped_and_the_cache_is_not_misled(desk: Desk) -> None:
    """SEC-06: the stored bytes are the paper; a cached answer would pair them with the wrapped one's headers."""
    url = desk.lay("/a.pdf", gzip.compress(paper()), **FRESH, Content_Type="text/html")
    for asked in (1, 2):
        copy = stored(desk.get(url))
        assert Path(copy.path).read_bytes() == paper()
        assert copy.sha256 == hashlib.sha256(paper()).hexdigest()
        assert copy.size_bytes == len(paper())
        assert copy.facts["unwrapped"] == "gzip"
        assert len(desk.origin.asked) == asked
    assert len(desk.files()) == 2


def test_what_unwraps_to_too_much_is_refused(desk: Desk) -> None:
    """SEC-06"""
    url = desk.lay("/a.pdf", gzip.compress(b"%PDF-1.7\n" + bytes(5_000_000)))
    assert desk.refused(url, rules=DownloadRules(max_bytes=1_000_000)) == Reason.TOO_LARGE
    assert desk.files() == []


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
def test_a_published_digest_is_compared(desk: Desk, algorithm: str) -> None:
    """DL-11: a mismatch leaves nothing and may pass with the next try."""
    url = desk.lay("/a.pdf", paper(), **FRESH)
    right = f"{algorithm}:{hashlib.new(algorithm, paper()).hexdigest()}"
    with pytest.raises(TransientFailure) as caught:
        desk.get(url, checksum=f"{algorithm}:{hashlib.new(algorithm, b'other').hexdigest()}")
    assert caught.value.reason == Reason.CHECKSUM_MISMATCH
    assert desk.files() == []
    assert desk.get(url, checksum=right) is not None
    assert len(desk.origin.asked) == 2, "the bytes that failed were not kept for the next try"


def test_a_cached_file_that_does_not_match_its_digest_is_purged_and_asked_for_again(desk: Desk) -> None:
    """DL-11, FAIL-07: the server has the right file by now; the cache must not stand before it."""
    url = desk.lay("/a.pdf", paper(), **FRESH)
    desk.get(url)
    new = paper(size=30_000)
    desk.lay("/a.pdf", new, **FRESH)
    right = f"sha256:{hashlib.sha256(new).hexdigest()}"
    assert Path(stored(desk.get(url, checksum=right)).path).read_bytes() == new
    assert len(desk.origin.asked) == 2
    assert stored(desk.get(url, checksum=right)).stream.from_cache, "the new file took the old one's place"


def test_a_digest_that_never_matches_costs_one_request_more_than_the_cache(desk: Desk) -> None:
    """DL-11, TEL-07: both refusals are told."""
    url = desk.lay("/a.pdf", paper(), **FRESH)
    desk.get(url)
    with pytest.raises(TransientFailure):
        desk.get(url, checksum="md5:" + "0" * 32)
    assert len(desk.origin.asked) == 2
    assert [(told.verb, told.status, told.reason) for told in desk.attempts] == [
        (Verb.FINALIZE, AttemptStatus.CONTENT_POLICY_SKIP, Reason.CHECKSUM_MISMATCH)
    ] * 2


def test_a_cached_file_of_another_work_stays_in_the_cache(desk: Desk) -> None:
    url = desk.lay("/a.pdf", paper(), **FRESH)
    desk.get(url)
    other = WorkArtifact("doi:10.5555/other", doi="10.5555/other", title="A story of many fishes")
    assert desk.refused(url, work=other) == Reason.WRONG_ARTICLE
    assert stored(desk.get(url)).stream.from_cache
    assert len(desk.origin.asked) == 1


def test_the_digest_of_a_wrapped_file_may_be_of_either(desk: Desk) -> None:
    packed = gzip.compress(paper())
    url = desk.lay("/a.pdf", packed)
    for body in (packed, paper()):
        assert desk.get(url, checksum=f"sha1:{hashlib.sha1(body).hexdigest()}") is not None
    with pytest.raises(TransientFailure):
        desk.get(url, checksum=f"sha1:{hashlib.sha1(b'other').hexdigest()}")


def test_the_page_that_named_the_link_must_be_about_the_paper(desk: Desk) -> None:
    url = desk.lay("/a.pdf", paper(None, title="Untitled"))
    assert desk.refused(url, page_doi="10.9999/other") == Reason.WRONG_ARTICLE
    assert desk.get(url, page_doi=DOI) is not None


ALL = DownloadRules(formats=("pdf", "xml", "html"))
FORMS = {"xml": ("application/xml", jats()), "html": ("text/html", web_page())}


@pytest.mark.parametrize("form", FORMS)
def test_full_text_in_another_form_is_stored_as_what_it_is(desk: Desk, form: str) -> None:
    mime, body = FORMS[form]
    url = desk.lay("/a", body, **FRESH, Content_Type=mime)
    copy = stored(desk.get(url, rules=ALL, expected_mime=mime))
    assert copy.mime == mime
    assert Path(copy.path).read_bytes() == body
    relative = desk.store.relative(copy.path)
    assert relative.startswith(f"{form.upper()}/2020__")
    assert relative.endswith(f".{form}")
    assert copy.facts["form"] == form
    assert copy.facts["doi_seen"] == DOI
    assert mime in desk.origin.asked[0][2]["Accept"], "it was asked for as what it is"
    desk.get(url, rules=ALL, expected_mime=mime)
    assert len(desk.origin.asked) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_was_not_asked_for_is_not_requested(desk: Desk, form: str) -> None:
    """DL-01"""
    assert desk.refused(desk.lay("/a", FORMS[form][1]), expected_mime=FORMS[form][0]) == Reason.POLICY_TYPE
    assert desk.origin.asked == []


def test_a_pdf_that_was_not_asked_for_is_not_requested(desk: Desk) -> None:
    assert desk.refused(desk.lay("/a.pdf", paper()), rules=DownloadRules(formats=("xml",))) == Reason.POLICY_TYPE


def test_a_pdf_in_answer_to_another_form_is_taken_where_pdfs_are(desk: Desk) -> None:
    url = desk.lay("/a", paper())
    copy = stored(desk.get(url, rules=ALL, expected_mime="text/html"))
    assert copy.mime == "application/pdf"
    assert desk.store.relative(copy.path).startswith("PDF/")
    only = DownloadRules(formats=("xml", "html"))
    assert desk.refused(url, rules=only, expected_mime="application/xml") == Reason.UNEXPECTED_CT


@pytest.mark.parametrize(
    ("mime", "body", "reason"),
    [
        ("application/xml", jats("10.9999/other"), Reason.WRONG_ARTICLE),
        ("application/xml", jats()[:-30], Reason.TRUNCATED),
        ("application/xml", CHALLENGE, Reason.CHALLENGE),
        ("application/xml", b"", Reason.EMPTY_BODY),
        ("text/html", web_page("10.9999/other"), Reason.WRONG_ARTICLE),
        ("text/html", web_page()[:-30], Reason.TRUNCATED),
        ("text/html", CHALLENGE, Reason.CHALLENGE),
        ("text/html", PAGE, Reason.NO_FULL_TEXT),
    ],
)
def test_bad_full_text_is_refused_with_its_reason_and_removed(
    desk: Desk, mime: str, body: bytes, reason: Reason
) -> None:
    url = desk.lay("/a", body, Content_Type=mime)
    assert desk.refused(url, rules=ALL, expected_mime=mime) == reason
    assert desk.files() == []


def test_head_refuses_what_is_surely_no_paper_before_the_body_is_asked_for(desk: Desk) -> None:
    """DL-02"""
    rules = DownloadRules(head_enabled=True)
    assert desk.refused(desk.lay("/a", b"x", Content_Type="image/png"), rules=rules) == Reason.POLICY_TYPE
    small = DownloadRules(head_enabled=True, max_bytes=5000)
    assert desk.refused(desk.lay("/b", paper()), rules=small) == Reason.POLICY_SIZE
    assert [method for method, _, _ in desk.origin.asked] == ["HEAD", "HEAD"]
    assert desk.get(desk.lay("/c", paper(), Content_Type="image/pdf"), rules=rules) is not None


HEAD = DownloadRules(head_enabled=True)


def answering(desk: Desk, status: int, *, only_head: bool = False) -> None:
    """Answers with `status`, HEAD alone or everything."""
    answer = desk.origin.do_GET

    def do(self: Origin) -> None:
        if only_head and self.command == "GET":
            answer(self)
            return
        type(self).asked.append((self.command, self.path, self.headers))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    desk.origin.do_GET = desk.origin.do_HEAD = do  # type: ignore[method-assign]


@pytest.mark.parametrize(("status", "asked"), [(403, ["HEAD", "GET"]), (404, ["HEAD"]), (410, ["HEAD"])])
def test_head_refuses_a_copy_that_is_gone_or_forbidden(desk: Desk, status: int, asked: list[str]) -> None:
    """RES-21, RES-24: 403 may be about HEAD, so a few bytes are asked for; the whole file is not."""
    answering(desk, status)
    with pytest.raises(CandidateRejected) as caught:
        desk.get("https://pub.org/a", rules=HEAD)
    assert (caught.value.reason, caught.value.http_status) == (Reason.HTTP_STATUS, status)
    assert [method for method, _, _ in desk.origin.asked] == asked
    assert all("Range" in headers for method, _, headers in desk.origin.asked if method == "GET")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.slow
def test_a_host_that_is_busy_at_head_is_left_alone(desk: Desk, status: int) -> None:
    """RES-21: no GET follows."""
    answering(desk, status)
    with pytest.raises(TransientFailure) as caught:
        desk.get("https://pub.org/a", rules=HEAD)
    assert caught.value.http_status == status
    assert {method for method, _, _ in desk.origin.asked} == {"HEAD"}


@pytest.mark.parametrize("status", [400, 401, 406])
def test_a_host_that_answers_head_with_nonsense_loses_nothing(desk: Desk, status: int) -> None:
    """RES-21"""
    url = desk.lay("/a.pdf", paper())
    answering(desk, status, only_head=True)
    assert desk.get(url, rules=HEAD) is not None
    assert [method for method, _, _ in desk.origin.asked] == ["HEAD", "GET"]


def test_head_is_left_out_where_requests_are_dear(desk: Desk) -> None:
    """LIM-05"""
    url = desk.lay("/a.pdf", paper())
    slow = Paced(desk.client, 1.1)
    assert desk.get(url, rules=HEAD, client=slow) is not None
    assert [method for method, _, _ in desk.origin.asked] == ["GET"]
    assert desk.get(desk.lay("/b.pdf", paper()), rules=HEAD, client=Paced(desk.client, 1.0)) is not None
    assert [method for method, _, _ in desk.origin.asked] == ["GET", "HEAD", "GET"]


def test_a_download_says_where_it_is_and_when_it_is_over(desk: Desk) -> None:
    """QUE-15: with the address, and back at its tier however it ended."""
    seen: list[tuple[str, str | None]] = []
    stages = WorkStages(lambda stage, url: seen.append((stage, url)))
    stages.tier("direct_oa")
    url = desk.lay("/a.pdf", paper())
    assert desk.get(url, rules=HEAD, stages=stages) is not None
    tier = ("resolve:direct_oa", None)
    steps = [(stage, url) for stage in ("head_check", "fetch", "verify", "store")]
    assert seen == [tier, *steps, tier]
    seen.clear()
    bad = desk.lay("/b.pdf", paper("10.5555/another", title="Another paper altogether"))
    desk.refused(bad, stages=stages)
    assert seen == [("fetch", bad), ("verify", bad), tier]


class Places(KeyedLimiter):
    """The caller's own, and who came and went."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(1)
        self._events = events

    def acquire(self, key: str, blocking: bool = True, timeout: float | None = None) -> bool:
        taken = super().acquire(key, blocking, timeout)
        self._events.append(f"take {key}" if taken else "refused")
        return taken

    def release(self, key: str) -> None:
        self._events.append("free")
        super().release(key)


@pytest.mark.parametrize("good", [True, False])
def test_the_callers_places_are_held_while_bytes_flow_and_at_no_other_time(desk: Desk, good: bool) -> None:
    """LIM-05, ORC-13: not while the file is proved, and on every way out they are free; HEAD has its own."""
    events: list[str] = []

    def claim() -> bool:
        events.append("claim")
        return True

    desk.room.cap(Places(events), None)
    desk.origin.halfway = staticmethod(lambda: events.append("halfway"))
    url = desk.lay("/a.pdf", paper() if good else b"<!DOCTYPE html><html><body>Sign in</body></html>" * 300)
    if good:
        assert desk.get(url, rules=HEAD, claim=claim) is not None
    else:
        desk.refused(url, rules=HEAD, claim=claim)
    one = ["take unpaywall", "halfway", "free"]
    assert events == [*one, *one, *["claim"] * good]


def test_a_body_that_ends_early_leaves_a_line_and_no_file(desk: Desk) -> None:
    """TEST-08: half a megabyte is announced, a fifth of it comes."""
    url = desk.lay("/a.pdf", paper(size=100_000), Content_Length="500000", Connection="close")
    with pytest.raises(TransientFailure) as caught:
        desk.get(url)
    assert caught.value.reason == Reason.SIZE_MISMATCH
    assert [line.status for line in desk.exchanges][-1] == AttemptStatus.SIZE_MISMATCH
    assert desk.files() == []


def test_files_of_one_host_come_over_its_connection_whatever_their_order(desk: Desk) -> None:
    """EXT-05: works stand in a line per host, and who leaves the host hands its connection to the next in that line."""
    opened: list[object] = []
    desk.origin.setup = lambda self: (opened.append(self), BaseHTTPRequestHandler.setup(self))  # type: ignore[method-assign]
    hosts = [f"h{n}.one-at-a-time.org" for n in range(3)]
    download = CandidateDownload(desk.store, DownloadRules(), SystemClock(), desk)
    plans = []
    for n in range(24):
        desk.lay(f"/{n}.pdf", paper())
        plans.append(DownloadPlan(f"https://{hosts[n % 3]}/{n}.pdf", "unpaywall"))

    async def all_at_once() -> list[StoredCopy | None]:
        call = Call(WORK.work_id)
        return await asyncio.gather(*(download(plan, WORK, desk.client, call, lambda: True) for plan in plans))

    assert None not in desk.loop.run(all_at_once())
    assert len(desk.origin.asked) == 24
    assert len(opened) == len(hosts)


def test_a_rival_that_was_first_leaves_nothing_to_store(desk: Desk) -> None:
    url = desk.lay("/a.pdf", gzip.compress(paper()))
    assert desk.get(url, claim=lambda: False) is None
    assert desk.files() == []


def test_a_cancelled_download_leaves_nothing(desk: Desk) -> None:
    """DL-12"""
    cancel = CancelToken()
    desk.origin.halfway = staticmethod(cancel.cancel)
    with pytest.raises(Cancelled):
        desk.get(desk.lay("/a.pdf", paper(size=2_000_000)), cancel=cancel)
    assert desk.files() == []


def test_markup_before_a_whole_pdf_is_junk(desk: Desk) -> None:
    """A server that prints a warning before the file has still sent the file."""
    copy = stored(desk.get(desk.lay("/a.pdf", b"<br /><b>Notice</b>: session\n" + paper())))
    assert copy.facts["pages"] == PAGES


def test_the_formats_are_a_setting_that_knows_its_words(tmp_path: Path) -> None:
    def formats(value: object) -> tuple[str, ...]:
        settings = {"download": {"formats": value}} if value else {}
        return load_config(None, settings, environ={}, user_file=tmp_path / "none").download.formats

    assert formats(None) == DownloadRules().formats == ("pdf",)
    assert formats("xml, PDF,xml") == ("xml", "pdf")
    for wrong in ("epub", "pdf, doc", [""], ","):
        with pytest.raises(ConfigError, match=r"download\.formats"):
            formats(wrong)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("https://pub.org/article?token=s3cr3t", "https://pub.org/article?token=s3cr3t"),
        ("https://b.org/article?token=s3cr3t", "https://b.org/"),
    ],
)
def test_another_host_learns_whose_page_named_the_file_and_no_more(desk: Desk, page: str, told: str) -> None:
    """SEC: an address may hold the reader's ticket."""
    desk.get(desk.lay("/a.pdf", paper()), referer=page)
    assert [headers["Referer"] for _, _, headers in desk.origin.asked] == [told]
