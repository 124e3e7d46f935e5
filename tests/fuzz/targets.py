"""Everything that reads bytes from outside, as functions of bytes. Each gives nothing, or raises an error of its kind.

A target is named after what it reads. `check` may raise only what `allowed` names; anything else is a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
from tests.fuzz import kept, signed, spoken
from tests.fuzz.target import NOW, Target, in_a_file, text

from DocsToKG.ContentDownload.api.licences import family, spdx
from DocsToKG.ContentDownload.api.ports import Call, NullSink, Page
from DocsToKG.ContentDownload.api.ranges import Rest, content_range, whole_of
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, Role, WorkArtifact
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import CandidateRejected, ConfigError, ContentDownloadError, InputError
from DocsToKG.ContentDownload.inputs import read_inputs
from DocsToKG.ContentDownload.net.build import build_http_stack
from DocsToKG.ContentDownload.net.faults import asked_pause_s
from DocsToKG.ContentDownload.net.limits.adaptive import announced
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.policy import UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots, RobotsVerdict
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.identifier import parse_identifier
from DocsToKG.ContentDownload.resolvers.ids.repositories import page_of_copy, pages_of_location
from DocsToKG.ContentDownload.resolvers.landing.html_page import link_headers
from DocsToKG.ContentDownload.resolvers.landing.page import extract
from DocsToKG.ContentDownload.resolvers.links.copy_facts import INDEX
from DocsToKG.ContentDownload.resolvers.openalex_query import page_of_works, read_query
from DocsToKG.ContentDownload.resolvers.wayback import best_captures, captures_in
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.checksum import check_headers
from DocsToKG.ContentDownload.validation.forms import FORMS
from DocsToKG.ContentDownload.validation.page_kinds import classify_body
from DocsToKG.core.bucket import Rate
from DocsToKG.core.clock import ManualClock
from DocsToKG.core.urls import BadUrl, host_key, index_url, join_url, mask_text, mask_url, request_url
from DocsToKG.Orchestrator.settings import BadSettings, load_settings
from DocsToKG.transport.curl.head import parse_head
from DocsToKG.transport.decoding import decoder_for
from DocsToKG.transport.errors import BodyTooLarge

WORK = WorkArtifact(
    "doi:10.5555/a", doi="10.5555/a", title="Of things and their names", arxiv_id="2101.00001", pmid="1", pmcid="PMC1",
    openalex_id="W1", landing_urls=("https://pages.example.org/a",), pdf_urls=("https://files.example.org/a.pdf",),
)  # fmt: skip
# Sources that know only works of their own house.
WORKS = {
    "zenodo": WorkArtifact("doi:10.5281/zenodo.7", doi="10.5281/zenodo.7"),
    "figshare": WorkArtifact("doi:10.6084/m9.figshare.7.v1", doi="10.6084/m9.figshare.7.v1"),
    "hal": WorkArtifact("x", landing_urls=("https://hal.science/hal-01234567",)),
    "osti": WorkArtifact("doi:10.2172/7", doi="10.2172/7"),
    "biorxiv": WorkArtifact("doi:10.1101/123456", doi="10.1101/123456"),
    "datacite": WorkArtifact("doi:10.3929/x", doi="10.3929/x"),
    "dspace": WorkArtifact("x", landing_urls=("https://hdl.handle.net/10945/7",)),
}
NAMED = {
    "doi": re.compile(rb"10\.\d+/[^\s\"'<>&\\]+"),
    "pmcid": re.compile(rb"PMC\d+"),
    "pmid": re.compile(rb'(?<="pmid":")\d+|(?<="pmid": ")\d+|(?<="pmid":)\d+|(?<="pmid": )\d+'),
}
MOST_FETCHES = 60
MOST_PLANS = 400
MOST_DECODED = 1 << 20


# answers of services


class Same:
    """A client that has one answer for every question, and patience for so many."""

    def __init__(self, body: bytes, status: int) -> None:
        self._body, self._status = body, status
        self._asked = 0

    async def fetch(self, url: str, role: Role, call: Call, *, headers: Any = None) -> Page:
        self._asked += 1
        assert self._asked <= MOST_FETCHES, "a source asks without end"
        request_url(url)  # an address that cannot be asked for is a crash later
        return Page(url, self._status, {"content-type": "application/json"}, self._body, ())


def source(name: str) -> Callable[[bytes], object]:
    # arXiv is asked for more than its files only on request.
    settings = ResolverSettings(email="who@uni.example.edu", api_key="sesame", options={"metadata": True})

    def check(data: bytes) -> None:
        built = registry.build([name], settings={name: settings})[name]
        for status in (200, 404):
            with contextlib.suppress(ContentDownloadError):
                _check_result(answered(built, data, status))

    return check


def answered(source: Any, data: bytes, status: int = 200) -> ResolverResult:
    work = WORKS.get(source.name) or work_named(data)
    return _end_of(source.resolve(work, Same(data, status), Call(work_id=work.work_id)))


def work_named(data: bytes) -> WorkArtifact:
    """The work that an answer is about, as far as it says: of another's nothing more would be read."""
    found = {
        name: named[0].decode("ascii", "replace") for name, pattern in NAMED.items() if (named := pattern.search(data))
    }
    return replace(WORK, **found)


def _end_of(asking: Coroutine[Any, Any, Any]) -> Any:
    """Nobody waits here, so it needs no event loop, which would cost more than what is tried."""
    try:
        asking.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a source waits for something else than its client")


def _check_result(result: ResolverResult) -> None:
    assert len(result.plans) <= MOST_PLANS
    for plan in result.plans:
        index_url(plan.url)
    assert all(len(note) < 5000 for note in result.notes)


def robots(data: bytes) -> None:
    """As the client reads them: whatever the bytes, there are rules, and they answer."""
    clock = ManualClock()
    limits = HostLimits(clock=clock, default_host=HostLimit(1))
    gates = PermitQueues(limits, clock=clock)
    about: Any = {"url_policy": UrlPolicy(), "attempts": NullSink(), "crawl_delay_cap_s": 60.0, "random": lambda: 0.5}

    async def checked() -> RobotsVerdict:
        web = httpx2.MockTransport(lambda request: httpx2.Response(200, content=data))
        stack = build_http_stack(web, user_agent="DocsToKG/1")
        reader = Robots(http=stack.http, gates=gates, limits=limits, clock=clock, **about)
        return await reader.check("https://example.org/a/b.pdf?x=%20y", Call("w"))

    verdict = asyncio.run(checked())
    assert verdict.state in ("allowed", "blocked", "parse error")
    assert verdict.crawl_delay_s is None or 0 <= verdict.crawl_delay_s <= 60


def landing(data: bytes) -> None:
    facts = extract("https://pages.example.org/a/b", data, {"content-type": "text/html"})
    assert len(facts.pdf_links) <= MOST_PLANS
    for found in (*facts.pdf_links, *facts.other_forms):
        index_url(found.url)


def copy_name(data: bytes) -> None:
    """A name that an index gives a copy: the page it stands for can be asked for."""
    page = page_of_copy(text(data))
    assert page is None or request_url(page) == page
    for found in pages_of_location(text(data), [text(data)]):
        index_url(found)


def captures(data: bytes) -> None:
    found = captures_in(data)
    if found is not None:
        assert len(best_captures(found, "https://example.org/a.pdf", at_most=3)) <= 3


def query_page(data: bytes) -> None:
    """A page of a list, the first and a later one."""
    asked = read_query("is_oa:true")
    for status in (200, 400):
        for cursor in (None, "x"):
            with contextlib.suppress(ContentDownloadError):
                page = _end_of(page_of_works(asked, cursor, Same(data, status), Call(work_id="query")))
                assert all(work.work_id for work in page.works)


# files


def proof(form: str) -> Callable[[bytes], object]:
    def check(path: Path) -> None:
        came = ReceivedFile(file=path, md5="", sha256="", url="https://example.org/a", headers={})
        try:
            prove(FORMS[form], DownloadPlan(came.url, "test"), WORK, came, min_pdf_bytes=0)
        except CandidateRejected as error:
            Reason(error.reason)

    return in_a_file("candidate", check)


def body_kind(data: bytes) -> None:
    classify_body(data[:65_536], url="https://example.org/a", content_type="text/html")


# what the user gives


def listed(path: Path) -> None:
    for line in read_inputs([str(path)], stdin=io.BytesIO()):
        assert line.work is not None or line.problem or line.duplicate_of


def settings(path: Path) -> None:
    load_config(path, environ={})


def identifier(data: bytes) -> None:
    parse_identifier(text(data))


def licence(data: bytes) -> None:
    named = spdx(text(data))
    assert named is None or len(named) < 60
    family(text(data))


def query(data: bytes) -> None:
    assert read_query(text(data)).key


def rate(data: bytes) -> None:
    Rate.parse(text(data))


# the wire


def head(data: bytes) -> None:
    parse_head([*data.splitlines(keepends=True), b"\r\n"])


def compressed(data: bytes) -> None:
    """Cut anywhere, the same bytes come out, or both ways end in an error; never more than there is room for."""

    def read(coding: str, step: int) -> bytes | None:
        decoder, out = decoder_for(coding), b""
        assert decoder is not None
        try:
            for at in range(0, len(data), step):
                out += decoder.feed(data[at : at + step], MOST_DECODED - len(out))
            decoder.finish()
        except (httpx2.RequestError, BodyTooLarge):
            return None
        assert len(out) <= MOST_DECODED
        return out

    for coding in ("gzip", "deflate"):
        assert read(coding, max(1, len(data))) == read(coding, 7)


def header_values(data: bytes) -> None:
    """One value, wherever a value is read."""
    text = data.decode("latin-1")
    pause_s = asked_pause_s(text, now=NOW)
    assert pause_s is None or 0 <= pause_s <= 366 * 86_400
    for name in ("x-rate-limit-limit", "x-ratelimit-remaining", "ratelimit", "ratelimit-policy", "x-concurrency-limit"):
        others = dict.fromkeys(("x-rate-limit-interval", "x-ratelimit-reset", "ratelimit-reset"), text)
        announced({name: text, **others}, now=NOW)
    assert len(list(link_headers(text))) <= len(text)
    with contextlib.suppress(CandidateRejected), tempfile.NamedTemporaryFile() as file:
        for name in ("content-md5", "digest", "repr-digest", "x-goog-hash", "etag", "x-amz-checksum-sha256"):
            check_headers({name: text}, md5="0" * 32, sha256="0" * 64, url="https://example.org/", file=Path(file.name))


def rest_of_a_file(data: bytes) -> None:
    """One value a line. Whatever they are: what is believed lies within the file, and what is sent is one line."""
    said, tag, changed, sent, length, *_ = [*data.decode("latin-1").split("\n"), *[""] * 5]
    found = content_range(said)
    assert found is None or 0 <= found.first <= found.last < found.total
    for first in ({"etag": tag}, {"last-modified": changed, "date": sent}):
        whole = whole_of("https://example.org/a", first, 100)
        if whole is None:
            continue
        rest = Rest(whole, 40)
        httpx2.Headers(rest.wishes()).raw  # noqa: B018 - what cannot be sent raises
        assert all(value.isascii() and value.isprintable() for value in rest.wishes().values())
        answer = {"content-range": said, "content-length": length, "etag": tag, "last-modified": changed}
        if rest.is_in(whole.url, 206, answer):
            assert found == (40, 99, 100)
            assert length == "60"


def address(data: bytes) -> None:
    given = text(data)
    mask_text(given)
    mask_url(given)
    for step in (request_url, index_url, host_key, lambda link: join_url("https://example.org/a/", link)):
        with contextlib.suppress(BadUrl):
            step(given)


ASKED = tuple(name for name in registry.names() if name != INDEX)  # the index reads what its own builder wrote
TARGETS: dict[str, Target] = {
    **{f"source-{name}": Target(source(name), is_json=True) for name in ASKED},
    "robots": Target(robots),
    "landing-page": Target(landing),
    "copy-name": Target(copy_name),
    "captures": Target(captures, is_json=True),
    "query-page": Target(query_page, (InputError,), is_json=True),
    **{f"proof-{form}": Target(proof(form)) for form in FORMS},
    "body-kind": Target(body_kind),
    "list-txt": Target(in_a_file("given.txt", listed), (InputError,)),
    "list-csv": Target(in_a_file("given.csv", listed), (InputError,)),
    "list-jsonl": Target(in_a_file("given.jsonl", listed), (InputError,), is_json=True),
    "list-bib": Target(in_a_file("given.bib", listed), (InputError,)),
    "list-ris": Target(in_a_file("given.ris", listed), (InputError,)),
    "config-yaml": Target(in_a_file("settings.yaml", settings), (ConfigError,)),
    "config-json": Target(in_a_file("settings.json", settings), (ConfigError,), is_json=True),
    "server-settings": Target(in_a_file("settings.yaml", load_settings), (BadSettings,)),
    "identifier": Target(identifier, (InputError,)),
    "licence": Target(licence),
    "query": Target(query, (InputError,)),
    "rate": Target(rate, (ValueError,)),
    "head": Target(head, (httpx2.RemoteProtocolError,)),
    "compressed": Target(compressed),
    "header-values": Target(header_values),
    "rest-of-a-file": Target(rest_of_a_file),
    "address": Target(address),
    **signed.TARGETS,
    **spoken.TARGETS,
    **kept.TARGETS,
}
