"""The cache: what becomes visible, when, and what never does."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import hishel
import httpx2
import pytest
from tests.contentdownload.asked_cache import FRESH, URL, Blocks, ask, body, close, flags

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import (
    ARTIFACT,
    PENDING,
    UNCACHED,
    CachedTransport,
    CacheSettings,
    build_cache_transport,
)
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.ContentDownload.net.rewording import ABOUT_WORK
from DocsToKG.core.clock import ManualClock


class Origin:
    """A server that counts what reaches it."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self.answer: Callable[[httpx2.Request], httpx2.Response] = lambda request: body(b"one")

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self.answer(request)

    @property
    def asked(self) -> int:
        return len(self.requests)


class Caches:
    """Opens caches over one folder and one origin."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.origin = Origin()
        self.cas: dict[str, bytes] = {}
        self.clock = ManualClock(start=1_900_000_000.0)
        self.open_stacks: list[HttpStack] = []

    def open(self, credentials: dict[str, HostCredentials] | None = None, **knobs: Any) -> HttpStack:
        stack = build_http_stack(
            httpx2.MockTransport(self.origin),
            user_agent="t",
            credentials=credentials,
            cache=CacheSettings(self.base, **knobs),
            open_cas=lambda sha: io.BytesIO(self.cas[sha]) if sha in self.cas else None,
            clock=self.clock,
        )
        self.open_stacks.append(stack)
        return stack

    def files(self) -> list[Path]:
        return [path for path in self.base.rglob("*") if path.is_file() and path.name != "owner"]


@pytest.fixture
def caches(tmp_path: Path) -> Iterator[Caches]:
    found = Caches(tmp_path / "hishel")
    yield found
    for stack in found.open_stacks:
        close(stack)


def test_a_confirmed_answer_is_served_without_the_network(caches: Caches) -> None:
    """CACHE-02, CACHE-06, CACHE-22"""
    stack = caches.open()
    assert flags(ask(stack)) == (False, False)
    again = ask(stack)
    assert (flags(again), again.content) == ((True, False), b"one")
    assert caches.origin.asked == 1
    assert sorted(path.suffix for path in caches.files()) == [".body", ".json"]


def test_an_unconfirmed_answer_is_seen_by_nobody(caches: Caches) -> None:
    """A challenge page with max-age must not be replayed on every retry."""
    stack = caches.open()
    ask(stack, confirm=False)
    ask(stack, confirm=False)
    assert caches.origin.asked == 2


def test_a_body_that_breaks_off_leaves_nothing(caches: Caches) -> None:
    """CACHE-16"""
    stack = caches.open()
    caches.origin.answer = lambda request: httpx2.Response(
        200, headers=FRESH, stream=Blocks([b"half"], httpx2.ReadError("cut"))
    )
    with pytest.raises(httpx2.ReadError):
        ask(stack)
    assert caches.files() == []


def test_a_body_read_by_half_cannot_be_confirmed(caches: Caches) -> None:
    """CACHE-16"""
    stack = caches.open()
    caches.origin.answer = lambda request: httpx2.Response(200, headers=FRESH, stream=Blocks([b"a", b"b"]))

    async def read_half() -> None:
        response = await stack.http.exchange(httpx2.Request("GET", URL))
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        assert await anext(aiter(response.stream)) == b"a"
        response.extensions[PENDING].confirm()
        await response.aclose()

    asyncio.run(read_half())
    assert caches.files() == []


def test_a_files_entry_is_its_headers_and_its_digest(caches: Caches) -> None:
    """CACHE-19: the body is in the CAS, not here."""
    stack = caches.open()
    caches.origin.answer = lambda request: body(b"%PDF-paper", FRESH | {"etag": '"v1"'})
    response = ask(stack, confirm=False, **{ARTIFACT: True})
    assert caches.files() == []
    sha = hashlib.sha256(b"%PDF-paper").hexdigest()
    caches.cas[sha] = b"%PDF-paper"
    response.extensions[PENDING].confirm(sha)
    assert {path.stem for path in caches.files()} == {"heads"}
    assert not any(b"%PDF-paper" in path.read_bytes() for path in caches.files())
    assert ask(stack, **{ARTIFACT: True}).content == b"%PDF-paper"
    assert caches.origin.asked == 1


def test_an_entry_whose_file_is_gone_is_a_miss(caches: Caches) -> None:
    """CACHE-19: also no conditional request goes out for it."""
    stack = caches.open()
    caches.origin.answer = lambda request: body(b"paper", FRESH | {"etag": '"v1"'})
    sha = hashlib.sha256(b"paper").hexdigest()
    caches.cas[sha] = b"paper"
    ask(stack, confirm=False, **{ARTIFACT: True}).extensions[PENDING].confirm(sha)
    caches.cas.clear()
    assert flags(ask(stack, **{ARTIFACT: True})) == (False, False)
    assert "if-none-match" not in caches.origin.requests[-1].headers


def test_a_file_that_came_compressed_is_served_as_it_was_stored(caches: Caches) -> None:
    import gzip

    packed = gzip.compress(b"paper")
    headers = FRESH | {"content-encoding": "gzip", "content-length": str(len(packed))}
    caches.origin.answer = lambda request: body(packed, headers)
    stack = caches.open()
    sha = hashlib.sha256(b"paper").hexdigest()
    caches.cas[sha] = b"paper"
    ask(stack, confirm=False, **{ARTIFACT: True}).extensions[PENDING].confirm(sha)
    assert ask(stack).content == b"paper"


def test_a_stale_entry_is_revalidated_and_its_headers_refreshed(caches: Caches) -> None:
    """CACHE-03, CACHE-04: status 200 with both flags; afterwards it is fresh again."""
    old = formatdate(0, usegmt=True)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if "if-none-match" in request.headers:
            return httpx2.Response(304, headers=FRESH | {"etag": '"v1"', "date": formatdate(usegmt=True)})
        return body(b"one", FRESH | {"etag": '"v1"', "date": old})

    caches.origin.answer = answer
    stack = caches.open()
    ask(stack)
    second = ask(stack)
    assert (second.status_code, flags(second), second.content) == (200, (True, True), b"one")
    assert flags(ask(stack)) == (True, False)
    assert caches.origin.asked == 2


def test_a_changed_answer_replaces_the_old_one(caches: Caches) -> None:
    stack = caches.open(always_revalidate=True)
    caches.origin.answer = lambda request: body(b"one", FRESH | {"etag": '"v1"'})
    ask(stack)
    caches.origin.answer = lambda request: body(b"two", FRESH | {"etag": '"v2"'})
    changed = ask(stack)
    assert (flags(changed), changed.content) == ((False, False), b"two")
    assert len(caches.files()) == 2


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_errors_are_never_replayed(caches: Caches, status: int) -> None:
    """CACHE-15"""
    stack = caches.open()
    caches.origin.answer = lambda request: body(b"no", status=status)
    ask(stack)
    ask(stack)
    assert caches.origin.asked == 2
    assert caches.files() == []


def test_without_explicit_freshness_every_use_asks_again(caches: Caches) -> None:
    """CACHE-11"""
    weak = {"last-modified": formatdate(0, usegmt=True), "date": formatdate(usegmt=True)}
    caches.origin.answer = lambda request: (
        httpx2.Response(304) if "if-modified-since" in request.headers else body(b"one", weak)
    )
    strict = caches.open()
    ask(strict)
    assert flags(ask(strict)) == (True, True)
    close(strict)
    relaxed = caches.open(allow_heuristics=True)
    ask(relaxed, "https://a.org/other")
    assert flags(ask(relaxed, "https://a.org/other")) == (True, False)


def test_a_missing_date_does_not_make_an_answer_fresh_for_ever(caches: Caches) -> None:
    caches.clock = ManualClock(start=1_000_000.0)  # long ago, as hishel counts
    stack = caches.open(ttl_seconds=1e12)
    ask(stack)
    ask(stack)
    assert caches.origin.asked == 2


@pytest.mark.parametrize(
    "date", ["soon", "Fri, 31 Dec 2027 23:59:59 +" + "9" * 20, "Fri, 31 Dec 99999999999 23:59:59 GMT"]
)
def test_an_absurd_date_counts_as_none(caches: Caches, date: str) -> None:
    caches.origin.answer = lambda request: body(b"one", FRESH | {"date": date})
    stack = caches.open()
    assert ask(stack).headers["date"] != date
    assert flags(ask(stack)) == (True, False)


def test_force_cache_serves_what_headers_would_not_allow(caches: Caches) -> None:
    """CACHE-10"""
    caches.origin.answer = lambda request: body(b"one", {"cache-control": "no-store"})
    forced = caches.open(force_cache=True)
    ask(forced)
    assert flags(ask(forced)) == (True, False)
    close(forced)
    plain = caches.open()
    ask(plain, "https://a.org/2")
    ask(plain, "https://a.org/2")
    assert caches.origin.asked == 3


def test_private_answers_are_kept_only_when_wanted(caches: Caches) -> None:
    """CACHE-12"""
    caches.origin.answer = lambda request: body(b"one", {"cache-control": "private, max-age=600"})
    shared = caches.open(cache_private=False)
    ask(shared)
    ask(shared)
    assert caches.origin.asked == 2
    close(shared)
    private = caches.open(cache_private=True)
    ask(private)
    ask(private)
    assert caches.origin.asked == 3


def test_allow_stale_serves_an_old_entry_at_once(caches: Caches) -> None:
    """CACHE-12"""
    old = {"cache-control": "max-age=1", "date": formatdate(0, usegmt=True)}
    caches.origin.answer = lambda request: body(b"one", old)
    stack = caches.open(allow_stale=True)
    ask(stack)
    assert flags(ask(stack)) == (True, False)


def test_only_the_configured_methods_are_stored_and_ranges_never(caches: Caches) -> None:
    """CACHE-13"""
    stack = caches.open()
    ask(stack, method="HEAD")
    ask(stack, method="HEAD")
    ask(stack, headers={"range": "bytes=0-1"})
    ask(stack, headers={"range": "bytes=0-1"})
    ask(stack, **{UNCACHED: True})
    assert caches.origin.asked == 5
    assert caches.files() == []


def test_vary_keeps_variants_apart_also_when_the_cache_is_forced(caches: Caches) -> None:
    """CACHE-08"""
    caches.origin.answer = lambda request: body(request.headers["accept"].encode(), FRESH | {"vary": "Accept"})
    for force in (False, True):
        stack = caches.open(force_cache=force)
        for accept in ("application/json", "text/html", "application/json"):
            assert ask(stack, headers={"accept": accept}).content == accept.encode()
        close(stack)


def test_no_secret_reaches_the_cache_files(caches: Caches) -> None:
    """SEC-04: neither added credentials, nor a key in the URL, nor a cookie, nor a signed redirect."""
    held = {"a.org": HostCredentials({"authorization": "Bearer PLANTED"}, {"api_key": "PLANTED"})}

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/signed":
            location = {"location": "https://cdn.org/f?X-Amz-Signature=PLANTED"}
            return httpx2.Response(302, headers=FRESH | location, stream=Blocks([b""]))
        return body(b"one", FRESH | {"set-cookie": "session=PLANTED", "vary": "Cookie, Authorization"})

    caches.origin.answer = answer
    stack = caches.open(held)
    ask(stack, "https://a.org/w?email=PLANTED&x=1")
    ask(stack, "https://a.org/signed")
    ask(stack, "https://a.org/cookie", headers={"cookie": "session=PLANTED"})
    assert caches.origin.requests[0].headers["authorization"] == "Bearer PLANTED"
    assert len(caches.files()) == 2
    for path in caches.files():
        assert b"PLANTED" not in path.read_bytes()
        assert "PLANTED" not in str(path)
    assert flags(ask(stack, "https://a.org/w?email=PLANTED&x=1")) == (True, False)


def metas(caches: Caches) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in caches.files() if path.suffix == ".json"]


def test_an_answer_that_varies_by_what_we_say_of_ourselves_keeps_none_of_it(caches: Caches) -> None:
    """SEC-04: the contact address is in the User-Agent; variants are told apart by digests."""
    caches.origin.answer = lambda request: body(
        request.headers["user-agent"].encode(), FRESH | {"vary": "User-Agent, Accept-Language"}
    )
    me, you = {"user-agent": "t (+mailto:me@uni.edu)"}, {"user-agent": "t (+mailto:you@uni.edu)"}
    stack = caches.open()
    assert ask(stack, headers=me).content == b"t (+mailto:me@uni.edu)"
    assert flags(ask(stack, headers=me)) == (True, False)
    assert flags(ask(stack, headers=you)) == (False, False)
    assert flags(ask(stack, headers=me | {"accept-language": "de"})) == (False, False)
    assert [flags(ask(stack, headers=each)) for each in (me, you)] == [(True, False)] * 2
    for meta in metas(caches):
        assert sorted(meta["varying"]) == ["accept-language", "user-agent"]
        assert "uni.edu" not in json.dumps(meta)


def test_an_entry_that_holds_header_values_of_old_is_a_miss(caches: Caches) -> None:
    caches.origin.answer = lambda request: body(b"one", FRESH | {"vary": "Accept"})
    stack = caches.open()
    ask(stack, headers={"accept": "text/html"})
    [path] = [path for path in caches.files() if path.suffix == ".json"]
    old = json.loads(path.read_bytes()) | {"varying": {"accept": ["text/html"]}}
    path.write_text(json.dumps(old))
    assert flags(ask(stack, headers={"accept": "text/html"})) == (False, False)
    assert flags(ask(stack, headers={"accept": "text/html"})) == (True, False)


def test_headers_that_echo_a_secret_address_are_not_written(caches: Caches) -> None:
    """SEC-04: what freshness and validation rest on is."""
    echoed = "https://a.org/w?token=PLANTED"
    headers = FRESH | {
        "content-location": echoed,
        "refresh": f"5; url={echoed}",
        "x-request-url": "https://u:PLANTED@a.org/",
        "etag": '"v1"',
        "content-type": "text/html",
        "content-language": "en",
    }
    caches.origin.answer = lambda request: body(b"one", headers)
    stack = caches.open()
    assert ask(stack, echoed).headers["content-location"] == echoed
    again = ask(stack, echoed)
    assert flags(again) == (True, False)
    assert (again.headers["etag"], again.headers["content-language"]) == ('"v1"', "en")
    assert "content-location" not in again.headers
    for path in caches.files():
        assert b"PLANTED" not in path.read_bytes()


@pytest.mark.parametrize("link", ["https://a.org/f?code=PLANTED", "https://a.org/f;jsessionid=PLANTED"])
def test_a_page_that_names_a_signed_link_in_its_headers_is_not_kept(caches: Caches, link: str) -> None:
    """Such a link is of use only whole."""
    caches.origin.answer = lambda request: body(b"one", FRESH | {"link": f'<{link}>; rel="item"'})
    stack = caches.open()
    for _ in range(2):
        assert link in ask(stack).headers["link"]
    assert caches.origin.asked == 2
    assert caches.files() == []


def test_parameters_that_look_like_keys_still_tell_two_files_apart(caches: Caches) -> None:
    caches.origin.answer = lambda request: body(str(request.url).encode())
    stack = caches.open()
    first, second = ask(stack, "https://a.org/d?key=1"), ask(stack, "https://a.org/d?key=2")
    assert first.content != second.content
    assert ask(stack, "https://a.org/d?key=2").content == second.content


def test_expired_entries_are_not_served_and_are_swept(caches: Caches) -> None:
    """CACHE-14: housekeeping, whatever the freshness."""
    stack = caches.open(ttl_seconds=100.0, check_ttl_every_seconds=256.0)
    ask(stack)
    [meta] = [path for path in caches.files() if path.suffix == ".json"]
    caches.clock.advance(101)
    ask(stack, confirm=False)
    assert caches.origin.asked == 2
    for number in range(256):
        caches.clock.advance(1.0)
        ask(stack, f"https://b.org/{number}")
    assert not meta.exists()


def test_a_damaged_body_raises_and_is_then_a_miss(caches: Caches) -> None:
    stack = caches.open()
    caches.origin.answer = lambda request: body(b"one")
    ask(stack)
    [stored] = [path for path in caches.files() if path.suffix == ".body"]
    stored.write_bytes(b"two")
    with pytest.raises(OSError, match="damaged"):
        ask(stack)
    assert ask(stack).content == b"one"
    stored = next(path for path in caches.files() if path.suffix == ".body")
    stored.write_bytes(b"longer than it was")
    assert ask(stack).content == b"one"
    assert caches.origin.asked == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', json.dumps({"url": "x", "stored_at": "soon"})])
def test_an_unreadable_entry_is_a_miss(caches: Caches, text: str) -> None:
    stack = caches.open()
    ask(stack)
    [meta] = [path for path in caches.files() if path.suffix == ".json"]
    meta.write_text(text)
    assert ask(stack).content == b"one"
    assert caches.origin.asked == 2


def test_a_disk_that_takes_nothing_does_not_fail_the_download(caches: Caches) -> None:
    stack = caches.open()
    folder = next((caches.base / "pending").iterdir())
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert ask(stack).content == b"one"


def test_peek_sends_nothing(caches: Caches) -> None:
    stack = caches.open()
    assert stack.cache is not None
    assert asyncio.run(stack.cache.peek(httpx2.Request("GET", URL))) is None
    ask(stack)

    async def peek(cache: CachedTransport) -> None:
        hit = await cache.peek(httpx2.Request("GET", URL))
        assert hit is not None
        assert await hit.aread() == b"one"
        await hit.aclose()

    asyncio.run(peek(stack.cache))
    assert caches.origin.asked == 1


LEFTOVER = """
import sys, pathlib
from DocsToKG.ContentDownload.net.pending import PendingFolder
folder = PendingFolder(pathlib.Path(sys.argv[1]))
body = folder.new_body()
print(body.path, flush=True)
sys.stdin.readline()
import os; os._exit(9)
"""


def test_leftovers_of_a_dead_process_are_swept_and_those_of_a_living_one_are_not(tmp_path: Path) -> None:
    caches = Caches(tmp_path / "hishel")
    command = [sys.executable, "-c", LEFTOVER, str(caches.base / "pending")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        pending = Path(process.stdout.readline().strip())
        close(caches.open())
        assert pending.exists()
        process.stdin.write("die\n")
        process.stdin.flush()
        assert process.wait(10) == 9
    close(caches.open())
    assert not pending.exists()


def test_threads_share_a_cache_without_mixing_bodies(caches: Caches) -> None:
    """CACHE-17"""
    caches.origin.answer = lambda request: body(request.url.path.encode() * 1000)
    stack = caches.open()
    wrong: list[str] = []

    def work(seed: int) -> None:
        for number in range(40):
            path = f"/{(seed * 7 + number) % 10}"
            if ask(stack, f"https://a.org{path}").content != path.encode() * 1000:
                wrong.append(path)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert caches.origin.asked < 240


def test_an_unknown_backend_names_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'s4' is not available here; available: file"):
        build_cache_transport(
            httpx2.MockTransport(Origin()),
            settings=CacheSettings(tmp_path, backend="s4"),
            open_cas=lambda sha: None,
        )


def test_the_cache_can_be_off(caches: Caches) -> None:
    """CACHE-18"""
    stack = caches.open(enabled=False)
    assert stack.cache is None
    assert ask(stack).content == b"one"
    assert not os.path.exists(caches.base)


@pytest.mark.slow
@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("status", [200, 203, 206, 301, 302, 404, 410, 500])
@pytest.mark.parametrize(
    "headers",
    [
        FRESH,
        {},
        {"cache-control": "no-store"},
        {"cache-control": "private, max-age=5"},
        {"etag": '"a"'},
        {"vary": "*", **FRESH},
        {"vary": "accept", **FRESH},
        {"expires": "soon", "transfer-encoding": "chunked"},
        {"location": "https://b.org/?X-Amz-Signature=1", **FRESH},
    ],
)
def test_a_first_answer_is_kept_by_the_same_rules_as_any_other(
    tmp_path: Path, private: bool, status: int, headers: dict[str, str]
) -> None:
    """Where nothing is stored the request goes past the library; what is kept, and what is handed on, is the same."""
    seen = []
    for plainly in (True, False):
        caches = Caches(tmp_path / str(plainly))
        caches.origin.answer = lambda request: body(b"one", headers, status)
        stack = caches.open(cache_private=private)
        assert stack.cache is not None
        stack.cache.asks_plainly = plainly
        first = ask(stack)
        seen.append((first.content, dict(first.headers), flags(first), len(caches.files())))
        close(stack)
    assert seen[0] == seen[1]


def about(work_id: str) -> dict[str, str]:
    return {ABOUT_WORK: work_id}


def test_an_index_that_says_nothing_is_not_asked_twice_about_a_work_whose_file_is_known(caches: Caches) -> None:
    """SLO-05: kept for the time that is set, for whoever is named, and for nobody else."""
    caches.origin.answer = lambda request: body(b"record", {"content-type": "application/json"})
    stack = caches.open(metadata_ttl_seconds=3600)
    assert stack.cache is not None
    stack.cache.reuse_for(lambda work_id: work_id == "doi:known")
    ask(stack, **about("doi:known"))
    caches.clock.advance(3500)
    assert flags(ask(stack, **about("doi:known"))) == (True, False)
    assert caches.origin.asked == 1
    # A work that was missed asks anew, and so does a request that is about no work; both bring a newer answer.
    assert flags(ask(stack, **about("doi:missed"))) == (False, False)
    assert flags(ask(stack)) == (False, False)
    assert caches.origin.asked == 3
    caches.clock.advance(3700)
    assert flags(ask(stack, **about("doi:known"))) == (False, False)


def test_until_somebody_is_named_guessed_answers_are_given_to_nobody(caches: Caches) -> None:
    caches.origin.answer = lambda request: body(b"record", {})
    stack = caches.open(metadata_ttl_seconds=3600)
    for _ in range(3):
        ask(stack, **about("doi:known"))
    assert caches.origin.asked == 3
    assert stack.cache is not None
    assert asyncio.run(stack.cache.peek(httpx2.Request("GET", URL, extensions=about("doi:known")))) is None


@pytest.mark.parametrize(
    ("headers", "status", "sent"),
    [
        ({"cache-control": "no-store"}, 200, {}),
        ({"cache-control": "no-cache"}, 200, {}),
        ({"cache-control": "private"}, 200, {}),
        ({"cache-control": "max-age=0"}, 200, {}),
        ({"expires": "0"}, 200, {}),
        ({"pragma": "no-cache"}, 200, {}),
        ({"vary": "*"}, 200, {}),
        ({"set-cookie": "a=b"}, 200, {}),
        ({"etag": '"1"'}, 200, {}),
        ({"last-modified": "Tue, 01 Jan 2030 00:00:00 GMT"}, 200, {}),
        ({}, 200, {"authorization": "Bearer x"}),
        ({}, 404, {}),
        ({}, 410, {}),
        ({}, 503, {}),
        ({"location": "https://b.org/"}, 302, {}),
        ({"location": "https://b.org/"}, 301, {}),
    ],
)
def test_what_an_answer_says_of_itself_comes_before_any_guess(
    caches: Caches, headers: dict[str, str], status: int, sent: dict[str, str]
) -> None:
    """CACHE-08, CACHE-11, CACHE-15: asked again, at least whether it still holds."""
    caches.origin.answer = lambda request: body(b"record", headers, status)
    stack = caches.open(metadata_ttl_seconds=3600)
    assert stack.cache is not None
    stack.cache.reuse_for(lambda work_id: True)
    for _ in range(2):
        ask(stack, headers=sent, **about("doi:known"))
    assert caches.origin.asked == 2


def test_switched_off_nothing_is_guessed_and_what_was_kept_before_is_left_alone(caches: Caches) -> None:
    caches.origin.answer = lambda request: body(b"record", {})
    for ttl in (3600, 0, 0):
        stack = caches.open(metadata_ttl_seconds=ttl)
        assert stack.cache is not None
        stack.cache.reuse_for(lambda work_id: True)
        ask(stack, **about("doi:known"))
    assert caches.origin.asked == 3


# More headers of an answer than its kind is told by: none of them may change the verdict.
_BESIDE = {"date": formatdate(0, usegmt=True), "etag": '"1"', "vary": "accept", "pragma": "no-cache", "age": "3"}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("status", [200, 203, 204, 206, 300, 301, 302, 304, 308, 404, 405, 410, 414, 418, 500, 501])
def test_a_kind_of_answer_is_kept_exactly_when_the_whole_answer_would_be(
    tmp_path: Path, shared: bool, status: int
) -> None:
    settings = CacheSettings(tmp_path, cache_private=not shared)
    cache = build_cache_transport(httpx2.MockTransport(lambda _: body(b"")), settings=settings, open_cas=lambda _: None)
    assert isinstance(cache, CachedTransport)
    plain = (None, "", "no-store", "no-cache", "private", "public", "max-age=9", "s-maxage=9", "must-revalidate")
    mixed = ("private, no-cache", "Public,max-age=0", "no-cache ,\tmax-age=1", "no-transform", "stale-if-error=5", ",")
    odd = (
        "max-age",
        "max-age=x",
        "max-age=-1",
        'private="a"',
        'no-cache="set-cookie"',
        "must-understand",
        "x=no-store",
    )
    controls = (*plain, *mixed, *odd, "max-age=\u0665", "NO-STORE", '"no-store"', "no-store=1")
    for control, expires, authorized in itertools.product(controls, (False, True), (False, True)):
        said = {"cache-control": control} if control is not None else {}
        said |= {"expires": formatdate(9, usegmt=True)} if expires else {}
        sent = {"user-agent": "us"} | ({"authorization": "Bearer x"} if authorized else {})
        asked = hishel.Request("GET", "https://a.example/x.pdf", hishel.Headers(sent))
        whole = hishel.Response(status, hishel.Headers(_BESIDE | said), iter(()))
        options = hishel.CacheOptions(shared=shared, supported_methods=["GET"], allow_stale=False)
        verdict = isinstance(hishel.CacheMiss(request=asked, options=options).next(whole), hishel.StoreAndUse)
        assert cache.is_storable("GET", status, control, expires, authorized) == verdict
    asyncio.run(cache.aclose())
