"""One suite for the four storages of the cache: the same promises on a folder, SQLite, Valkey and S3 (two servers)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest
from tests.contentdownload.asked_cache import FRESH, URL, Blocks, ask, asking, body, close, flags
from tests.waiting import eventually
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import ARTIFACT, PENDING, UNCACHED, CacheSettings
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.core.clock import ManualClock

pytestmark = pytest.mark.slow  # real servers or many restarts; part of `make test`

OLD = {"cache-control": "max-age=1", "date": formatdate(0, usegmt=True)}
PAPER = b"%PDF-paper"
DIGEST = hashlib.sha256(PAPER).hexdigest()


class Place(Protocol):
    """See conftest."""

    backend: str
    settings: dict[str, Any]
    environment: dict[str, str]

    def everything(self) -> dict[str, bytes]: ...
    def heads(self) -> list[bytes]: ...
    def bodies(self) -> list[bytes]: ...


class Shop:
    """Opens caches over one place and one origin, which counts what reaches it."""

    def __init__(self, place: Place, base: Path) -> None:
        self.place = place
        self.base = base
        self.requests: list[httpx2.Request] = []
        self.answer: Callable[[httpx2.Request], httpx2.Response] = lambda request: body(b"one")
        self.cas: dict[str, bytes] = {}
        self.clock = ManualClock(start=time.time())
        self.stacks: list[HttpStack] = []

    def origin(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self.answer(request)

    @property
    def asked(self) -> int:
        return len(self.requests)

    def open(self, credentials: dict[str, HostCredentials] | None = None, **knobs: Any) -> HttpStack:
        settings = {"base_path": self.base, **self.place.settings, **knobs}
        stack = build_http_stack(
            httpx2.MockTransport(self.origin),
            user_agent="t",
            credentials=credentials,
            cache=CacheSettings(backend=self.place.backend, **settings),
            open_cas=lambda sha: io.BytesIO(self.cas[sha]) if sha in self.cas else None,
            clock=self.clock,
        )
        self.stacks.append(stack)
        return stack

    def store_paper(self, stack: HttpStack) -> None:
        self.answer = lambda request: body(PAPER, FRESH | {"etag": '"v1"'})
        self.cas[DIGEST] = PAPER
        ask(stack, confirm=False, **{ARTIFACT: True}).extensions[PENDING].confirm(DIGEST)
        assert stack.cache is not None
        stack.cache.entries.settle()


@pytest.fixture
def shop(place: Place, tmp_path: Path) -> Iterator[Shop]:
    found = Shop(place, tmp_path / "cache")
    yield found
    for stack in found.stacks:
        close(stack)


MISS, HIT, SAME = (False, False), (True, False), (True, True)


def test_an_answer_is_stored_then_a_hit_then_found_unchanged(shop: Shop) -> None:
    """CACHE-01 to CACHE-04, CACHE-06: after the 304 its new headers hold."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("if-none-match") == '"v1"':
            return httpx2.Response(304, headers=FRESH | {"etag": '"v1"', "x-seen": "again"})
        return body(b"one", FRESH | {"etag": '"v1"'})

    shop.answer = answer
    stack = shop.open()
    assert [flags(ask(stack)), flags(ask(stack)), shop.asked] == [MISS, HIT, 1]
    asking = ask(stack, headers={"cache-control": "no-cache"})
    assert (asking.status_code, flags(asking), asking.content, shop.asked) == (200, SAME, b"one", 2)
    after = ask(stack)
    assert (flags(after), after.headers["x-seen"], after.content, shop.asked) == (HIT, "again", b"one", 2)


@pytest.mark.parametrize("place", ["swift"], indirect=True)
def test_a_server_that_checks_signatures_keeps_answers_too(shop: Shop) -> None:
    """CACHE-01: it has the other promises in the long runs; moto, which has them here, checks none."""
    test_an_answer_is_stored_then_a_hit_then_found_unchanged(shop)


def test_a_stale_answer_is_asked_about_by_date(shop: Shop) -> None:
    """CACHE-03: also If-Modified-Since."""
    shop.answer = lambda request: (
        httpx2.Response(304, headers=FRESH)
        if "if-modified-since" in request.headers
        else body(b"one", OLD | {"last-modified": formatdate(0, usegmt=True)})
    )
    stack = shop.open()
    assert [flags(ask(stack)), flags(ask(stack))] == [MISS, SAME]


def test_another_process_of_today_or_tomorrow_finds_the_entry(shop: Shop) -> None:
    first = shop.open()
    ask(first)
    close(first)
    assert flags(ask(shop.open())) == HIT


def test_a_body_of_many_blocks_comes_back_whole(shop: Shop) -> None:
    blocks = [os.urandom(100_000) for _ in range(12)]
    shop.answer = lambda request: httpx2.Response(200, headers=FRESH, stream=Blocks(blocks))
    stack = shop.open()
    ask(stack)
    assert ask(stack).content == b"".join(blocks)
    assert shop.asked == 1


def test_an_empty_body_is_a_body(shop: Shop) -> None:
    shop.answer = lambda request: body(b"")
    stack = shop.open()
    ask(stack)
    again = ask(stack)
    assert (flags(again), again.content) == (HIT, b"")


def test_variants_are_kept_apart_and_a_star_is_not_kept(shop: Shop) -> None:
    """CACHE-08, also when the cache is forced."""
    shop.answer = lambda request: body(request.headers["accept"].encode(), FRESH | {"vary": "Accept"})
    for force in (False, True):
        stack = shop.open(force_cache=force)
        for accept in ("application/json", "text/html", "application/json"):
            assert ask(stack, headers={"accept": accept}).content == accept.encode()
        close(stack)
    assert shop.asked == 2
    shop.answer = lambda request: body(b"yours alone", FRESH | {"vary": "*"})
    stack = shop.open(force_cache=True)
    assert [flags(ask(stack, "https://a.org/star")) for _ in range(2)] == [MISS, MISS]


def test_variants_do_not_pile_up(shop: Shop) -> None:
    shop.answer = lambda request: body(b"one", FRESH | {"vary": "Accept"})
    stack = shop.open()
    for number in range(8):
        shop.clock.advance(1)
        ask(stack, headers={"accept": f"text/{number}"})
    assert (len(shop.place.heads()), len(shop.place.bodies())) == (4, 4)


def test_private_answers_are_kept_only_when_wanted(shop: Shop) -> None:
    """CACHE-12"""
    shop.answer = lambda request: body(b"one", {"cache-control": "private, max-age=600"})
    shared = shop.open(cache_private=False)
    assert [flags(ask(shared)) for _ in range(2)] == [MISS, MISS]
    assert shop.place.everything() == {}
    private = shop.open(cache_private=True)
    assert [flags(ask(private)) for _ in range(2)] == [MISS, HIT]


def test_freshness_is_guessed_only_when_allowed(shop: Shop) -> None:
    """CACHE-11: hishel always guesses."""
    weak = {"last-modified": formatdate(0, usegmt=True), "date": formatdate(usegmt=True)}
    shop.answer = lambda request: httpx2.Response(304) if "if-modified-since" in request.headers else body(b"one", weak)
    strict = shop.open()
    assert [flags(ask(strict)) for _ in range(3)] == [MISS, SAME, SAME]
    relaxed = shop.open(allow_heuristics=True)
    assert [flags(ask(relaxed, "https://a.org/other")) for _ in range(2)] == [MISS, HIT]


@pytest.mark.parametrize("status", [403, 404, 410, 429, 500, 503])
def test_errors_are_never_stored(shop: Shop, status: int) -> None:
    """CACHE-15: hishel replays them when they carry a max-age."""
    shop.answer = lambda request: body(b"no", status=status)
    stack = shop.open(force_cache=status == 503)
    assert [flags(ask(stack)) for _ in range(2)] == [MISS, MISS]
    assert shop.place.everything() == {}


def test_other_methods_and_ranges_are_never_stored(shop: Shop) -> None:
    """CACHE-13"""
    stack = shop.open()
    for method in ("HEAD", "HEAD", "POST", "PUT"):
        ask(stack, method=method)
    for _ in range(2):
        ask(stack, headers={"range": "bytes=0-1"})
    ask(stack, **{UNCACHED: True})
    assert shop.asked == 7
    assert shop.place.everything() == {}


def test_a_request_that_wants_nothing_stored_is_obeyed(shop: Shop) -> None:
    """hishel stores it all the same."""
    stack = shop.open()
    assert [flags(ask(stack, headers={"cache-control": "no-store"})) for _ in range(2)] == [MISS, MISS]
    assert shop.place.everything() == {}


def test_a_request_that_wants_only_what_is_stored_sends_nothing(shop: Shop) -> None:
    """hishel asks the origin all the same."""
    stack = shop.open()
    wish = {"cache-control": "max-stale=0, only-if-cached"}
    assert ask(stack, headers=wish).status_code == 504
    assert shop.asked == 0
    ask(stack)
    assert flags(ask(stack, headers={"cache-control": "only-if-cached"})) == HIT
    assert shop.asked == 1


def test_force_cache_serves_what_headers_would_not_allow(shop: Shop) -> None:
    """CACHE-10"""
    shop.answer = lambda request: body(b"one", {"cache-control": "no-store"})
    forced, plain = shop.open(force_cache=True), shop.open()
    assert [flags(ask(forced)) for _ in range(2)] == [MISS, HIT]
    assert [flags(ask(plain, "https://a.org/2")) for _ in range(2)] == [MISS, MISS]


def test_always_revalidate_asks_every_time(shop: Shop) -> None:
    """CACHE-12; a second answer without validators is no revalidation, whatever hishel calls it."""
    shop.answer = lambda request: (
        httpx2.Response(304, headers=FRESH)
        if "if-none-match" in request.headers
        else body(b"one", FRESH | {"etag": '"v1"'})
    )
    stack = shop.open(always_revalidate=True)
    assert [flags(ask(stack)) for _ in range(3)] == [MISS, SAME, SAME]
    assert shop.asked == 3
    shop.answer = lambda request: body(b"plain")
    assert [flags(ask(stack, "https://a.org/plain")) for _ in range(2)] == [MISS, MISS]


def test_a_stale_entry_is_served_at_once_only_when_allowed(shop: Shop) -> None:
    """CACHE-12"""
    shop.answer = lambda request: body(b"one", OLD)
    strict, lax = shop.open(), shop.open(allow_stale=True)
    assert [flags(ask(strict)) for _ in range(2)] == [MISS, MISS]
    assert flags(ask(lax)) == HIT


def test_ttl_evicts_what_is_still_fresh(shop: Shop) -> None:
    """CACHE-14: an entry at the end of its time is a miss, though its freshness is a year."""
    shop.answer = lambda request: body(b"one", {"cache-control": "max-age=31536000"})
    stack = shop.open(ttl_seconds=100.0)
    ask(stack)
    shop.clock.advance(99)
    assert flags(ask(stack)) == HIT
    shop.clock.advance(2)
    assert flags(ask(stack)) == MISS


def test_ttl_does_not_make_a_stale_entry_fresh(shop: Shop) -> None:
    """CACHE-14"""
    shop.answer = lambda request: body(b"one", OLD)
    stack = shop.open(ttl_seconds=1e9)
    assert [flags(ask(stack)) for _ in range(2)] == [MISS, MISS]


def test_expired_entries_leave_the_place(shop: Shop) -> None:
    """CACHE-14: by the sweep, and on Valkey by the server itself."""
    if shop.place.backend == "redis":
        ask(shop.open(ttl_seconds=0.05))
        eventually(lambda: shop.place.everything() == {})
        return
    urls = (f"https://a.org/{number}" for number in range(10_000))
    first_shard = next(url for url in urls if hashlib.sha256(url.encode()).hexdigest().startswith("00"))
    stack = shop.open(ttl_seconds=100.0, check_ttl_every_seconds=25.6)
    ask(stack, first_shard)
    [old] = shop.place.heads()
    shop.clock.advance(200)
    shop.answer = lambda request: body(b"new")
    ask(stack, "https://b.org/new")
    assert old not in shop.place.heads()
    assert shop.place.bodies() == [b"new"]


def test_an_answer_is_seen_by_nobody_until_it_is_confirmed(shop: Shop) -> None:
    """CACHE-19: a challenge page with max-age must not be replayed on every retry."""
    stack = shop.open()

    async def confirm_late() -> None:
        response = await stack.http.exchange(httpx2.Request("GET", URL))
        await response.aread()
        assert flags(await asking(stack, confirm=False)) == MISS
        assert (shop.place.heads(), shop.place.bodies()) == ([], [])
        response.extensions[PENDING].confirm()
        await response.aclose()

    asyncio.run(confirm_late())
    assert flags(ask(stack)) == HIT


def test_what_is_discarded_or_breaks_off_leaves_nothing(shop: Shop) -> None:
    """CACHE-16"""
    stack = shop.open()
    ask(stack, confirm=False)
    shop.answer = lambda request: httpx2.Response(200, headers=FRESH, stream=Blocks([b"half"], httpx2.ReadError("cut")))
    with pytest.raises(httpx2.ReadError):
        ask(stack)
    shop.answer = lambda request: httpx2.Response(200, headers=FRESH, stream=Blocks([b"a", b"b"]))

    async def read_half() -> None:
        response = await stack.http.exchange(httpx2.Request("GET", URL))
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        assert await anext(aiter(response.stream)) == b"a"
        response.extensions[PENDING].confirm()
        await response.aclose()

    asyncio.run(read_half())
    assert stack.cache is not None
    stack.cache.entries.settle()
    assert shop.place.everything() == {}


def test_a_changed_answer_takes_the_place_of_the_old_one(shop: Shop) -> None:
    """hishel would keep both until their time is up."""
    stack = shop.open(always_revalidate=True)
    shop.answer = lambda request: body(b"one", FRESH | {"etag": '"v1"'})
    ask(stack)
    shop.answer = lambda request: body(b"two", FRESH | {"etag": '"v2"'})
    for _ in range(3):
        assert ask(stack).content == b"two"
    assert shop.place.bodies() == [b"two"]
    assert len(shop.place.heads()) == 1


def test_a_files_entry_is_its_headers_and_its_digest(shop: Shop) -> None:
    """CACHE-19: on every backend the body is in the CAS alone."""
    stack = shop.open()
    shop.store_paper(stack)
    [head] = shop.place.heads()
    assert (json.loads(head)["sha256"], shop.place.bodies()) == (DIGEST, [])
    assert all(PAPER not in content for content in shop.place.everything().values())
    again = ask(stack, **{ARTIFACT: True})
    assert (flags(again), again.content, shop.asked) == (HIT, PAPER, 1)


def test_a_file_that_was_refused_leaves_no_entry(shop: Shop) -> None:
    """CACHE-19"""
    stack = shop.open()
    ask(stack, confirm=False, **{ARTIFACT: True}).extensions[PENDING].discard()
    assert shop.place.everything() == {}
    assert flags(ask(stack, **{ARTIFACT: True})) == MISS


def test_a_files_entry_is_a_miss_when_the_file_is_gone(shop: Shop) -> None:
    """CACHE-19: no conditional request goes out for it, and a new proof makes it good again."""
    stack = shop.open()
    shop.store_paper(stack)
    shop.cas.clear()
    assert flags(ask(stack, **{ARTIFACT: True})) == MISS
    assert "if-none-match" not in shop.requests[-1].headers
    fetched = ask(stack, confirm=False, **{ARTIFACT: True})
    shop.cas[DIGEST] = PAPER
    fetched.extensions[PENDING].confirm(DIGEST)
    assert flags(ask(stack, **{ARTIFACT: True})) == HIT
    assert stack.cache is not None
    assert len(list(stack.cache.entries.walk())) == 1


def test_what_one_machine_lacks_stays_for_the_others(shop: Shop) -> None:
    """CACHE-17: a shared entry is not dropped because this machine does not hold the file."""
    stack = shop.open()
    shop.store_paper(stack)
    held, shop.cas = shop.cas, {}
    ask(stack, confirm=False, **{ARTIFACT: True})
    shop.cas = held
    shared = shop.place.backend in ("redis", "s3")
    assert flags(ask(stack, **{ARTIFACT: True})) == (HIT if shared else MISS)


def test_no_secret_is_in_what_is_stored(shop: Shop) -> None:
    """SEC-04: neither credentials, nor keys in URLs, nor cookies, nor signed links, nor what servers echo."""
    held = {"a.org": HostCredentials({"authorization": "Bearer PLANTED"}, {"api_key": "PLANTED"})}

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/signed":
            location = {"location": "https://cdn.org/f?X-Amz-Signature=PLANTED"}
            return httpx2.Response(302, headers=FRESH | location, stream=Blocks([b""]))
        echo = {"content-location": "https://a.org/w?token=PLANTED", "set-cookie": "session=PLANTED"}
        return body(b"one", FRESH | echo | {"vary": "Cookie, Authorization, User-Agent", "etag": '"v1"'})

    shop.answer = answer
    stack = shop.open(held)
    addressed = {"user-agent": "t (+mailto:PLANTED@uni.edu)"}
    ask(stack, "https://a.org/w?email=PLANTED&x=1", headers=addressed)
    ask(stack, "https://a.org/signed")
    ask(stack, "https://a.org/cookie", headers={"cookie": "session=PLANTED"})
    shop.cas[DIGEST] = PAPER
    file = ask(stack, "https://a.org/f.pdf?token=PLANTED", confirm=False, **{ARTIFACT: True})
    file.extensions[PENDING].confirm(DIGEST)
    assert stack.cache is not None
    stack.cache.entries.settle()
    assert shop.requests[0].headers["authorization"] == "Bearer PLANTED"
    stored = shop.place.everything()
    assert len(shop.place.heads()) == 2
    assert not [name for name, content in stored.items() if b"PLANTED" in content or "PLANTED" in name]
    assert flags(ask(stack, "https://a.org/w?email=PLANTED&x=1", headers=addressed)) == HIT


def test_an_entry_that_cannot_be_read_is_a_miss(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = shop.open()
    assert stack.cache is not None
    backend: Any = stack.cache.entries.backend
    ask(stack)
    heads = backend.heads
    for text in (b"", b"{", b"[]", b'{"url": 1}', b"\xff" * 100, b"[" * 100_000):
        monkeypatch.setattr(backend, "heads", lambda key, text=text: [(id_, text) for id_, _ in heads(key)])
        assert flags(ask(stack, confirm=False)) == MISS


def test_a_stored_body_that_was_damaged_is_not_served(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter or longer is a miss everywhere; the same length is one wherever the body is read at once."""
    stack = shop.open()
    assert stack.cache is not None
    backend: Any = stack.cache.entries.backend
    damaged = [b"on", b"longer", b"two"] if shop.place.backend != "file" else [b"on", b"longer"]
    for content in damaged:
        ask(stack)
        with monkeypatch.context() as patched:
            patched.setattr(backend, "body", lambda key, id_, content=content: io.BytesIO(content))
            answer = ask(stack, confirm=False)
        assert (flags(answer), answer.content) == (MISS, b"one")


def test_threads_share_a_cache_without_mixing_bodies(shop: Shop) -> None:
    """CACHE-17"""
    shop.answer = lambda request: body(request.url.path.encode() * 500)
    stack = shop.open()
    wrong: list[str] = []

    def work(seed: int) -> None:
        for number in range(12):
            path = f"/{(seed * 7 + number) % 6}"
            if ask(stack, f"https://a.org{path}").content != path.encode() * 500:
                wrong.append(path)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert shop.asked < 72
    assert stack.cache is not None
    assert stack.cache.troubles == {}


CROWD = """
import asyncio, json, pathlib, sys
import httpx2
from DocsToKG.ContentDownload.net.build import build_http_stack
from DocsToKG.ContentDownload.net.cache import PENDING, CacheSettings

backend, knobs, seed = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
paths = {name: pathlib.Path(value) for name, value in knobs.items() if name.endswith("_path")}
asked, wrong, hits = [], [], []

def origin(request):
    asked.append(1)
    name, etag = request.url.path.encode() * 300, '"' + request.url.path + '"'
    if request.headers.get("if-none-match") == etag:
        return httpx2.Response(304, headers={"etag": etag})
    return httpx2.Response(200, headers={"etag": etag, "cache-control": "max-age=600"}, content=name)

stack = build_http_stack(httpx2.MockTransport(origin), user_agent="t",
    cache=CacheSettings(**({"base_path": pathlib.Path("cache"), "backend": backend} | knobs | paths)))

async def work(number):
    for turn in range(10):
        path = f"/{(seed + number * 5 + turn) % 5}"
        headers = {"cache-control": "no-cache"} if turn % 4 == 3 else {}
        response = await stack.http.exchange(httpx2.Request("GET", "https://crowd.org" + path, headers=headers))
        if await response.aread() != path.encode() * 300:
            wrong.append(path)
        if response.extensions["from_cache"]:
            hits.append(1)
        elif response.extensions.get(PENDING) is not None:
            response.extensions[PENDING].confirm()
        await response.aclose()

async def crowd():
    await asyncio.gather(*(work(number) for number in range(4)))
    await stack.aclose()

asyncio.run(crowd())
troubles = dict(stack.cache.troubles)
print(json.dumps({"wrong": wrong, "hits": len(hits), "asked": len(asked), "troubles": troubles}))
"""


@pytest.mark.slow
def test_two_processes_share_a_cache_without_mixing_bodies(place: Place, tmp_path: Path) -> None:
    """CACHE-17"""
    knobs = json.dumps({name: str(value) for name, value in place.settings.items()})
    environment = {**os.environ, **place.environment}
    with contextlib.ExitStack() as stack:
        crowd = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-W", "error", "-c", CROWD, place.backend, knobs, str(seed)],
                    stdout=subprocess.PIPE,
                    cwd=tmp_path,
                    env=environment,
                )
            )
            for seed in range(2)
        ]
        results = [json.loads(process.communicate(timeout=250)[0]) for process in crowd]
    assert [(result["wrong"], result["troubles"]) for result in results] == [([], {})] * 2
    assert all(result["hits"] > 0 for result in results)
    assert len(place.bodies()) >= 5


KILLED = """
import asyncio, json, os, pathlib, sys
import httpx2
from DocsToKG.ContentDownload.net.build import build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings

backend, knobs = sys.argv[1], json.loads(sys.argv[2])
paths = {name: pathlib.Path(value) for name, value in knobs.items() if name.endswith("_path")}
answer = lambda request: httpx2.Response(200, headers={"cache-control": "max-age=600"}, content=b"x" * 2_000_000)
stack = build_http_stack(httpx2.MockTransport(answer), user_agent="t",
    cache=CacheSettings(**({"base_path": pathlib.Path("cache"), "backend": backend} | knobs | paths)))

async def ask():
    response = await stack.http.exchange(httpx2.Request("GET", "https://a.org/w?x=1"))
    await response.aread()
    os._exit(9)

asyncio.run(ask())
"""


def test_a_process_killed_before_it_confirms_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    """CACHE-16: what its folder held is swept at the next start."""
    knobs = json.dumps({name: str(value) for name, value in shop.place.settings.items()})
    command = [sys.executable, "-c", KILLED, shop.place.backend, knobs]
    environment = {**os.environ, **shop.place.environment, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, timeout=60)
    assert done.returncode == 9
    stack = shop.open()
    assert shop.place.everything() == {}
    assert flags(ask(stack)) == MISS
    known = ("cache", "cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm")
    assert [path for path in tmp_path.iterdir() if path.name not in known] == []


def test_clearing_drops_every_entry_and_says_how_many(shop: Shop) -> None:
    """CLI-22"""
    stack = shop.open()
    for number in range(3):
        ask(stack, f"https://a.org/{number}")
    shop.store_paper(stack)
    assert stack.cache is not None
    entries = stack.cache.entries
    assert len([answer for answer in entries.walk() if answer is not None]) == 4
    assert entries.clear() == 4
    assert shop.place.everything() == {}
    assert flags(ask(stack)) == MISS


def test_the_commands_count_and_clear_any_storage(shop: Shop, tmp_path: Path) -> None:
    """CLI-22"""
    stack = shop.open()
    ask(stack, "https://a.org/page")
    shop.store_paper(stack)
    knobs = {name: str(value) for name, value in shop.place.settings.items()}
    settings = tmp_path / "c.json"
    settings.write_text(json.dumps({"hishel": {"backend": shop.place.backend, **knobs}}))

    def said(*words: str) -> Any:
        done = CliRunner().invoke(app, ["cache", *words, "-c", str(settings), "--json"])
        assert done.exit_code == 0, done.output
        assert "planted-password" not in done.output
        return json.loads(done.stdout)

    assert said("stats")["entries"] == 2
    assert said("clear", "--yes")["dropped"] == 2
    assert said("stats")["entries"] == 0
    assert flags(ask(stack)) == MISS
