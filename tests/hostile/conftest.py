"""A loopback server that does harm on purpose, the product's whole network stack pointed at it, and a look at what is
left of memory, threads, descriptors and temporary files afterwards."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests import needs
from tests.contentdownload.polite_rig import reach
from tests.raw_server import RawServer, Side

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.api.types import Attempt, Role
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.net.build import HttpStack, build_http_stack
from DocsToKG.ContentDownload.net.cache import CacheSettings
from DocsToKG.ContentDownload.net.client import RateRetryClient, SourcePolicy
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimit, HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.net.policy import UrlPolicy
from DocsToKG.ContentDownload.net.robots.check import Robots
from DocsToKG.ContentDownload.validation.pdf.worker_pool import shared_engine
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.transport.curl.trust import TrustStore

T = TypeVar("T")

PDF = b"%PDF-1.7\n" + b"x" * 4000 + b"\n%%EOF\n"
MOST_BYTES = 2_000_000
PUBLIC = "93.184.216.34"
_AUTHORITY = """
[ca]
default_ca = own
[own]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
basicConstraints = critical, CA:true
subjectAltName = DNS:{host}
"""
MOST_GROWTH_BYTES = 96 * 1024 * 1024


class Talk(Side):
    """The server's side of one connection that is for one request."""

    def __init__(self, sock: socket.socket, server: EvilServer) -> None:
        super().__init__(sock, server)
        self._server = server

    def read_request(self) -> tuple[str, str]:
        """Host and target of the next request; empty when the client has gone."""
        head = b""
        while b"\r\n\r\n" not in head:
            data = self.sock.recv(65536)
            if not data:
                return "", ""
            head += data
        lines = head.decode("latin-1").split("\r\n")
        host = next(line[5:].strip() for line in lines if line.lower().startswith("host:"))
        self._server.requests.append(head)
        return host, lines[0].split(" ")[1]

    def answer(self, body: bytes = b"", *lines: bytes, status: bytes = b"200 OK", length: bool = True) -> None:
        """A whole answer; the connection ends after it."""
        head = [b"HTTP/1.1 " + status, b"Connection: close", *lines]
        if length:
            head.append(b"Content-Length: %d" % len(body))
        self.send(b"\r\n".join(head) + b"\r\n\r\n" + body)

    def pause(self, seconds: float) -> None:
        self._server.closing.wait(seconds)

    def drip(self, piece: bytes, every_s: float = 0.02) -> None:
        """One piece after another, until the client leaves."""
        while not self._server.closing.wait(every_s):
            self.send(piece)

    def flood(self, block: bytes) -> None:
        while not self._server.closing.is_set():
            self.send(block)

    def hold(self) -> None:
        """Say nothing more until the client leaves."""
        while self.sock.recv(65536):
            pass


Script = Callable[[Talk], None]


class EvilServer(RawServer):
    """Plays a script to each connection; without one it reads requests and plays what `pages` has for host and path."""

    def __init__(self, script: Script | None = None) -> None:
        self.pages: dict[tuple[str, str], Script] = {}
        self.closing = threading.Event()
        super().__init__(lambda sock: Talk(sock, self), lambda number: script or self._answer)

    def _answer(self, talk: Talk) -> None:
        host, target = talk.read_request()
        path = target.partition("?")[0]
        script = self.pages.get((host, path)) or self.pages.get(("*", path))
        if script is not None:
            script(talk)
        elif host:
            talk.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def close(self) -> None:
        self.closing.set()
        super().close()


class Rig:
    """The product's network stack over real sockets, with one slot per host."""

    def __init__(self, server: EvilServer, base_path: Path) -> None:
        self.server = server
        self.attempts: list[Attempt] = []
        self.places: dict[str, str] = {}
        self.names: dict[str, list[str]] = {}
        self._base_path = base_path
        self._stacks: list[HttpStack] = []
        self.clock = SystemClock()
        self._loop = LoopThread("rig")

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def rate_wait(self, key: str, delay_ms: int, *, why: str, **about: str | None) -> None:
        return None

    def client(
        self,
        *,
        robots: bool = False,
        trust: TrustStore | None = None,
        cached: bool = True,
        retries: int = 0,
        patient: bool = True,
        deadline_s: float | None = None,
        trickle_s: float = 10.0,
    ) -> RateRetryClient:
        """Who is not `patient` leaves a server that says nothing within a second, which a busy machine may need."""
        clock, wait_s = self.clock, 5.0 if patient else 0.3
        transport = reach(self.server.port, names=self.names, places=self.places, trust=trust)
        cache = CacheSettings(self._base_path) if cached else None
        stack = build_http_stack(
            transport, user_agent="DocsToKG/test", timeout_connect_s=2 * wait_s, timeout_read_s=wait_s, cache=cache
        )
        self._stacks.append(stack)
        limits = HostLimits(clock=clock, default_host=HostLimit(1))
        shared: dict[str, Any] = {
            "http": stack.http,
            "gates": PermitQueues(limits, clock=clock),
            "limits": limits,
            "url_policy": UrlPolicy(),
            "attempts": self,
            "clock": clock,
            "random": lambda: 0.5,
        }
        rules = Robots(**shared, timeout_s=2 * wait_s, retry=RetryPolicy(max_attempts=1)) if robots else None
        retry = RetryPolicy(max_attempts=1 + retries, base_s=0.01, jitter_s=0.0)
        policy = SourcePolicy(
            "landing",
            timeout_s=2 * wait_s,
            deadline_s=2 * wait_s if deadline_s is None else deadline_s,
            trickle_s=trickle_s,
            retry=retry,
            max_page_bytes=MOST_BYTES,
        )
        return RateRetryClient("landing", robots=rules, policy=policy, cache=stack.cache, **shared)

    def play(self, script: Script, host: str = "evil.example", path: str = "/paper.pdf") -> str:
        self.server.pages[host, path] = script
        return f"https://{host}{path}"

    def lead(self, host: str, port: int, *, tls: bool = False) -> None:
        """Connections to `host` go to `port`. Call it before `client`."""
        self.places[host] = f"{'tls' if tls else 'plain'}://127.0.0.1:{port}"

    def download(self, client: RateRetryClient, url: str) -> bytes:
        async def download() -> bytes:
            body = await client.open(url, Role.ARTIFACT, Call("doi:10.1/x"), max_bytes=MOST_BYTES)
            try:
                return b"".join([chunk async for chunk in body.chunks()])
            finally:
                await body.aclose()

        return self.run(download())

    def page(self, client: RateRetryClient, url: str, role: Role = Role.LANDING) -> Page:
        return self.run(client.fetch(url, role, Call("doi:10.1/x")))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def goes_on(self, client: RateRetryClient) -> bool:
        """The next candidate, on the same host with its one slot, is obtained."""
        return self.obtains(client, self.play(lambda talk: talk.answer(PDF), path="/next.pdf"))

    def obtains(self, client: RateRetryClient, url: str) -> bool:
        """At once, but for a machine that is too busy to answer within what an impatient client waits."""
        for _ in range(3):
            with contextlib.suppress(TransientFailure):
                return self.download(client, url) == PDF
        return False

    def close(self) -> None:
        for stack in self._stacks:
            self.run(stack.aclose())
        self._loop.close()
        self.server.pages.clear()
        self.server.requests.clear()


@pytest.fixture(scope="module")
def evil() -> Iterator[EvilServer]:
    server = EvilServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "cache"


@pytest.fixture
def rig(evil: EvilServer, cache_folder: Path) -> Iterator[Rig]:
    made = Rig(evil, cache_folder)
    yield made
    made.close()


@pytest.fixture
def raw() -> Iterator[Callable[[Script], EvilServer]]:
    """Servers whose script has the connection from the first moment."""
    with contextlib.ExitStack() as stack:

        def start(script: Script) -> EvilServer:
            server = EvilServer(script)
            stack.callback(server.close)
            return server

        yield start


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module", autouse=True)
def nothing_left_behind(cache_folder: Path) -> Iterator[None]:
    """SEC, FAIL: after a module's harm, memory, threads, descriptors and temporary files are where they were."""
    if not os.path.isdir("/proc/self/fd"):
        yield
        return
    engine = shared_engine()  # the whole program's, and its workers end with that
    for reading in [engine.read(b"%PDF-") for _ in range(engine.limits.worker_count())]:
        reading.result(60)
    gc.collect()
    # A first look-up and the like are paid for once, so a small remainder is no leak.
    threads, files, resident = set(threading.enumerate()), _descriptors(), _resident_bytes()
    yield
    gc.collect()
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up and (set(threading.enumerate()) - threads or _descriptors() > files + 3):
        time.sleep(0.05)
    assert {thread for thread in threading.enumerate() if thread.is_alive()} <= threads
    assert _descriptors() <= files + 3
    assert _resident_bytes() - resident < MOST_GROWTH_BYTES
    assert [path for path in cache_folder.glob("pending/**/*") if path.is_file()] == []


@pytest.fixture(scope="session")
def make_certificate(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A self-signed certificate in a folder of its own: cert.pem and key.pem."""
    openssl = shutil.which("openssl")
    if openssl is None:
        needs.lacks("the openssl command, to make certificates")

    def make(host: str, *, expired: bool = False) -> Path:
        folder = tmp_path_factory.mktemp("tls")
        (folder / "ca.cnf").write_text(_AUTHORITY.format(host=host))
        (folder / "index.txt").touch()
        (folder / "serial").write_text("01")
        end = "20200102000000Z" if expired else "20990101000000Z"
        for command in (
            f"req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={host}"
            " -keyout key.pem -out req.pem",
            "ca -batch -notext -selfsign -config ca.cnf -keyfile key.pem -in req.pem -out cert.pem"
            f" -startdate 20200101000000Z -enddate {end}",
        ):
            subprocess.run([openssl, *command.split()], cwd=folder, check=True, capture_output=True, timeout=30)
        return folder

    return make
