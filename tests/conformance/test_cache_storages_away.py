"""A storage that cannot be used: at the start a clear error, later a miss that is counted, never a failed request."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest
from tests.contentdownload import asked_cache

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.pending import PendingBody
from DocsToKG.ContentDownload.net.stores import sqlite as sqlite_storage
from DocsToKG.core.clock import ManualClock

pytestmark = pytest.mark.slow  # real servers or many restarts; part of `make test`

FRESH = {"cache-control": "max-age=600"}
PASSWORD = "planted-password"
Open = Callable[..., HttpStack]


class Server(Protocol):
    """See conftest."""

    port: int

    def stop(self) -> None: ...
    def start(self) -> None: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start=time.time())


@pytest.fixture
def open_cache(tmp_path: Path, clock: ManualClock) -> Iterator[Open]:
    stacks: list[HttpStack] = []

    def open_one(backend: str, **settings: Any) -> HttpStack:
        origin = httpx2.MockTransport(lambda request: httpx2.Response(200, headers=FRESH, content=b"one"))
        cache = CacheSettings(base_path=tmp_path / "cache", backend=backend, **settings)
        stacks.append(build_http_stack(origin, user_agent="t", cache=cache, clock=clock))
        return stacks[-1]

    yield open_one
    for stack in stacks:
        asyncio.run(stack.aclose())


def ask(stack: HttpStack) -> tuple[bytes, bool]:
    response = asked_cache.ask(stack, "https://a.org/w")
    return response.content, response.extensions["from_cache"]


def troubles(stack: HttpStack) -> int:
    assert stack.cache is not None
    return stack.cache.troubles.total()


def test_valkey_going_away_costs_hits_and_nothing_else(
    own_valkey: tuple[Server, str], open_cache: Open, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """CACHE-16, CACHE-17: each failure is counted, the server is then left alone a while, and used again later."""
    server, url = own_valkey
    stack = open_cache("redis", redis_url=url)
    assert [ask(stack), ask(stack)] == [(b"one", False), (b"one", True)]
    server.stop()
    with caplog.at_level(logging.WARNING):
        assert ask(stack) == (b"one", False)
    counted = troubles(stack)
    assert counted > 0
    assert PASSWORD not in caplog.text
    assert "cache did not find" in caplog.text
    assert ask(stack) == (b"one", False)
    assert troubles(stack) == counted
    server.start()
    clock.advance(6)
    assert [ask(stack), ask(stack)] == [(b"one", False), (b"one", True)]


@pytest.mark.slow
def test_s3_going_away_costs_hits_and_nothing_else(
    own_s3: tuple[Server, str], open_cache: Open, caplog: pytest.LogCaptureFixture
) -> None:
    server, bucket = own_s3
    stack = open_cache("s3", s3_bucket=bucket)
    assert [ask(stack), ask(stack)] == [(b"one", False), (b"one", True)]
    server.stop()
    with caplog.at_level(logging.WARNING):
        assert ask(stack) == (b"one", False)
    assert troubles(stack) > 0
    assert PASSWORD not in caplog.text


def test_an_sqlite_file_that_another_holds_is_a_miss(
    open_cache: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_storage, "BUSY_TIMEOUT_S", 0.01)
    stack = open_cache("sqlite", sqlite_path=tmp_path / "c.sqlite")
    other = sqlite3.connect(tmp_path / "c.sqlite", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert ask(stack) == (b"one", False)
        assert troubles(stack) == 1
        other.execute("COMMIT")
    finally:
        other.close()
    assert [ask(stack), ask(stack)] == [(b"one", False), (b"one", True)]


def test_what_others_wrote_among_the_entries_is_a_miss(
    own_valkey: tuple[Server, str], open_cache: Open, tmp_path: Path
) -> None:
    import redis

    path, url = tmp_path / "c.sqlite", own_valkey[1]
    in_file, on_server = open_cache("sqlite", sqlite_path=path), open_cache("redis", redis_url=url)
    for stack in (in_file, on_server):
        assert [ask(stack), ask(stack)] == [(b"one", False), (b"one", True)]
    other = sqlite3.connect(path)
    other.execute("INSERT INTO entries (key, id, stored_at, head) SELECT key, 'no id', 0, 'x' FROM entries")
    other.commit()
    other.close()
    with redis.Redis.from_url(url) as client:
        [name] = list(client.scan_iter(match="*:heads"))
        client.hset(name, "no id", "x")
    for stack in (in_file, on_server):
        assert ask(stack) == (b"one", False)
        assert troubles(stack) > 0


async def passed_on(copy: PendingBody, *blocks: bytes) -> bytes:
    return b"".join([block async for block in copy.copying(aiter(asked_cache.Blocks(list(blocks))))])


def test_a_body_too_large_for_the_storage_is_passed_on_and_not_kept(open_cache: Open, tmp_path: Path) -> None:
    body = PendingBody.spooled(largest=10)
    assert asyncio.run(passed_on(body, b"12345678", b"90123")) == b"1234567890123"
    assert not body.complete
    whole = PendingBody.spooled(largest=10)
    assert asyncio.run(passed_on(whole, b"1234567890")) == b"1234567890"
    assert (whole.complete, whole.content()) == (True, b"1234567890")
    whole.discard()


def test_no_valkey_at_the_start_is_an_error_that_names_the_address(open_cache: Open) -> None:
    """Without the password."""
    url = f"redis://me:{PASSWORD}@127.0.0.1:1/3"
    with pytest.raises(ConfigError, match=r"redis://127\.0\.0\.1:1/3") as caught:
        open_cache("redis", redis_url=url)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_wrong_valkey_password_is_an_error_that_does_not_repeat_it(
    own_valkey: tuple[Server, str], open_cache: Open
) -> None:
    server, _ = own_valkey
    with pytest.raises(ConfigError, match=r"AuthenticationError\); see to user and password") as caught:
        open_cache("redis", redis_url=f"redis://:not-{PASSWORD}@127.0.0.1:{server.port}/0")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("url", ["http://a.org", "nonsense", "redis://127.0.0.1:port/0"])
def test_an_address_that_is_none_is_an_error(open_cache: Open, url: str) -> None:
    with pytest.raises(ConfigError, match=r"hishel\.redis_url"):
        open_cache("redis", redis_url=url)


def test_no_s3_at_the_start_is_an_error_that_names_bucket_and_endpoint(
    open_cache: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    with pytest.raises(ConfigError, match=r"'papers' cannot be used at http://127\.0\.0\.1:1") as caught:
        open_cache("s3", s3_bucket="papers")
    assert PASSWORD not in str(caught.value)


def test_a_bucket_that_is_not_there_is_an_error(own_s3: tuple[Server, str], open_cache: Open) -> None:
    with pytest.raises(ConfigError, match=r"'no-such-bucket' cannot be used"):
        open_cache("s3", s3_bucket="no-such-bucket")


def test_a_file_that_is_no_database_is_an_error(open_cache: Open, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_text("These are notes, not a database. " * 40)
    with pytest.raises(ConfigError, match=r"c\.sqlite cannot be used as a cache .*remove this one"):
        open_cache("sqlite", sqlite_path=path)


@pytest.mark.parametrize(("backend", "driver"), [("redis", "redis"), ("s3", "obstore")])
def test_a_missing_driver_names_the_extra(
    open_cache: Open, monkeypatch: pytest.MonkeyPatch, backend: str, driver: str
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    monkeypatch.delitem(sys.modules, f"DocsToKG.ContentDownload.net.stores.{backend}", raising=False)
    with pytest.raises(ConfigError, match=rf"pip install 'docstokg\[{backend}\]'"):
        open_cache(backend, redis_url="redis://127.0.0.1:1", s3_bucket="b")


def test_a_shared_backend_without_its_address_is_an_error(open_cache: Open) -> None:
    with pytest.raises(ConfigError, match="needs redis_url"):
        open_cache("redis")
    with pytest.raises(ConfigError, match="needs s3_bucket"):
        open_cache("s3")


def test_settings_do_not_show_the_address_with_its_password() -> None:
    assert PASSWORD not in repr(CacheSettings(Path("c"), redis_url=f"redis://:{PASSWORD}@h"))
