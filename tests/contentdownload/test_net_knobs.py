"""Settings of the network do what they say: from a configuration to what a server on loopback sees."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from DocsToKG.ContentDownload import way_out
from DocsToKG.ContentDownload.api.ports import Call, NullSink, Page
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.config.rules import all_source_rules, source_rules
from DocsToKG.ContentDownload.errors import CandidateRejected, ConfigError, TransientFailure
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread
from DocsToKG.Sandbox.pdf import Paper, make_pdf

PDF = make_pdf(Paper(title="On settings", doi=None, year=2020, authors=("A. Author",)), size_bytes=300_000, key="k")


class Host(BaseHTTPRequestHandler):
    """Every host of the test; the path says how it behaves."""

    protocol_version = "HTTP/1.1"
    asked: list[str]
    over: Event

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path == "/robots.txt":
            return self._answer(200, b"User-agent: *\nDisallow: /private", {"Content-Type": "text/plain"})
        if self.path == "/busy":
            return self._answer(429, b"", {"Retry-After": "1"} if len(type(self).asked) == 1 else {})
        if self.path.startswith("/forbidden"):
            return self._answer(403, b"no", {"Content-Type": "text/plain"})
        if self.path == "/stall":
            return self._slowly(PDF[:2000], b"x", every_s=0.05)
        if self.path == "/long":
            return self._slowly(b"", PDF[:4096], every_s=0.05)
        return self._answer(200, PDF, {})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/pdf", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _slowly(self, first: bytes, then: bytes, *, every_s: float) -> None:
        self.close_connection = True
        self._answer(200, first, {"Content-Length": str(len(PDF))})
        for _ in range(200):
            if type(self).over.wait(every_s):
                return
            try:
                self.wfile.write(then)
            except OSError:
                return

    def log_message(self, format: str, *args: object) -> None:
        return None


Settings = Callable[..., ContentDownloadConfig]


@pytest.fixture
def host() -> Iterator[type[Host]]:
    host = type("Here", (Host,), {"asked": [], "over": Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), host)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    host.port = server.server_address[1]  # type: ignore[attr-defined]
    yield host
    host.over.set()
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def configured(host: Any, tmp_path: Path) -> Settings:
    def load(**settings: dict[str, Any]) -> ContentDownloadConfig:
        http = {"names": {"*": ["93.184.215.14"]}, "connect_to": {"*": f"plain://127.0.0.1:{host.port}"}}
        shipped: dict[str, dict[str, Any]] = {
            "http": http,
            "hishel": {"enabled": False},
            "robots": {"enabled": False},
            "limits": {"shared": False, "rate_factor": 1000},
            "policies": {"landing": {"max_retries": 0}},
        }
        merged = {name: {**shipped.get(name, {}), **settings.get(name, {})} for name in {*shipped, *settings}}
        merged["contact"] = "me@university.edu"  # type: ignore[assignment]
        return load_config(None, merged, environ={}, user_file=tmp_path / "none")

    return load


class Opened:
    """The way out as a run has it, and a thread for its tasks."""

    def __init__(self, network: way_out.Network, loop: LoopThread) -> None:
        self.network = network
        self._loop = loop

    def page(self, url: str, source: str = "landing") -> Page:
        return self._loop.run(self.network.clients[source].fetch(url, Role.LANDING, Call("w")))

    def file(self, url: str, source: str = "landing") -> list[bytes]:
        return self._loop.run(self._read(url, source))

    async def _read(self, url: str, source: str) -> list[bytes]:
        opened = await self.network.clients[source].open(url, Role.ARTIFACT, Call("w"))
        try:
            return [portion async for portion in opened.chunks()]
        finally:
            await opened.aclose()

    def seconds_until_given_up(self, url: str) -> float:
        began = time.monotonic()
        with pytest.raises(TransientFailure):
            self.file(url)
        return time.monotonic() - began


@contextmanager
def open_network(cfg: ContentDownloadConfig, root: Path) -> Iterator[Opened]:
    clock = SystemClock()
    limits = way_out.open_limits(cfg, clock)
    parts: dict[str, Any] = {"store": LocalStore(root), "attempts": NullSink(), "clock": clock, "limits": limits}
    with LoopThread() as loop, way_out.open_network(cfg, loop=loop, **parts) as network:
        yield Opened(network, loop)
    limits.close()


def test_a_file_that_brings_next_to_nothing_is_given_up(configured: Settings, tmp_path: Path) -> None:
    """http.timeout_stall_s"""
    with open_network(configured(http={"timeout_stall_s": 0.3}), tmp_path) as opened:
        assert 0.25 < opened.seconds_until_given_up("https://pub.org/stall") < 8.0  # of ten that it lasts


def test_a_file_that_takes_too_long_is_given_up_although_it_comes(configured: Settings, tmp_path: Path) -> None:
    """http.timeout_total_s"""
    with open_network(configured(http={"timeout_total_s": 0.4}), tmp_path) as opened:
        assert 0.3 < opened.seconds_until_given_up("https://pub.org/long") < 8.0


@pytest.mark.parametrize(("cap_s", "requests"), [(0.2, 1), (60.0, 2)])
@pytest.mark.slow
def test_a_pause_is_waited_out_up_to_the_cap(
    configured: Settings, host: type[Host], tmp_path: Path, cap_s: float, requests: int
) -> None:
    """NET-06: http.retry_after_cap_s"""
    cfg = configured(http={"retry_after_cap_s": cap_s}, policies={"landing": {"max_retries": 1}})
    with open_network(cfg, tmp_path) as opened, pytest.raises(TransientFailure) as caught:
        opened.page("https://pub.org/busy")
    assert len(host.asked) == requests
    assert caught.value.retry_after_s == (1.0 if requests == 1 else None)


def test_a_file_is_read_in_portions_of_the_size_set(configured: Settings, tmp_path: Path) -> None:
    """download.chunk_size_bytes"""
    cfg = configured(download={"chunk_size_bytes": 8192})
    with open_network(cfg, tmp_path) as opened:
        portions = [len(portion) for portion in opened.file("https://pub.org/x.pdf")]
    assert sum(portions) == len(PDF)
    assert max(portions) == 8192


@pytest.mark.parametrize("section", ["hosts", "default"])
def test_a_host_is_left_alone_after_a_429(configured: Settings, tmp_path: Path, section: str) -> None:
    """limits.hosts.<host>.pause_on_429_s, and limits.default for the others."""
    pause: dict[str, Any] = {"pause_on_429_s": 77}
    limits = {"shared": False, section: {"pub.org": pause} if section == "hosts" else pause}
    with open_network(configured(limits=limits), tmp_path) as opened, pytest.raises(TransientFailure) as caught:
        opened.page("https://pub.org/busy")
    assert caught.value.retry_after_s == 77.0


def test_the_archive_is_left_alone_for_a_minute_as_shipped(configured: Settings, tmp_path: Path) -> None:
    with open_network(configured(), tmp_path) as opened, pytest.raises(TransientFailure) as caught:
        opened.page("https://web.archive.org/busy")
    assert caught.value.retry_after_s == 60.0


@pytest.mark.parametrize(("stop", "requests"), [(True, 5), (False, 7)])
def test_a_house_that_refuses_five_times_in_a_row_is_asked_no_more_by_anybody(
    configured: Settings, host: type[Host], tmp_path: Path, stop: bool, requests: int
) -> None:
    """limits.hosts.<host>.stop_on_403"""
    limits = {"shared": False, "rate_factor": 1000, "hosts": {"a.org": {"stop_on_403": stop}}}
    with open_network(configured(limits=limits), tmp_path) as opened:
        for number in range(6):
            with pytest.raises(CandidateRejected):
                opened.file(f"https://a.org/forbidden/{number}")
        with pytest.raises(CandidateRejected) as caught:
            opened.file("https://a.org/forbidden/x", "arxiv")
        assert b"".join(opened.file("https://b.org/x.pdf")) == PDF
        assert opened.network.blocklist is not None
        assert len(opened.network.blocklist.notes) == int(stop)
    assert caught.value.http_status == 403
    assert len([path for path in host.asked if path.startswith("/forbidden")]) == requests


def test_a_house_that_refused_us_is_told_in_the_summary_once(configured: Settings, tmp_path: Path) -> None:
    cfg = configured(
        limits={"shared": False, "rate_factor": 1000, "hosts": {"pub.org": {"stop_on_403": True}}},
        storage={"root_dir": str(tmp_path), "min_free_bytes": 0},
        telemetry={"manifest_path": str(tmp_path / "manifest.jsonl")},
        queue={"path": str(tmp_path / "state" / "ledger.sqlite")},
    )
    with DownloadRun(cfg) as run:
        run.process_artifacts([f"https://pub.org/forbidden/{number}.pdf" for number in range(8)])
    notes = json.loads((tmp_path / "summary.json").read_text())["notes"]
    assert len([note for note in notes if note.startswith("pub.org answered 403 5 times")]) == 1, notes


def test_settings_of_one_source_alone_reach_it(configured: Settings) -> None:
    cfg = configured(resolvers={"arxiv": {"metadata": True}, "landing": {"max_pages": 2}})
    assert source_rules(cfg, "arxiv").options == {"metadata": True}
    assert source_rules(cfg, "landing").options == {"site_rules": None, "max_pages": 2}
    assert source_rules(cfg, "unpaywall").options == {}
    settings = way_out.resolver_settings(all_source_rules(cfg))
    assert settings["landing"].options["max_pages"] == 2


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"resolvers": {"landing": {"max_pages": 0}}}, "resolvers.landing.max_pages"),
        ({"resolvers": {"unpaywall": {"metadata": True}}}, "resolvers.unpaywall.metadata"),
        ({"http": {"timeout_stall_s": -1}}, "http.timeout_stall_s"),
        ({"http": {"max_connections": 0}}, "http.max_connections"),
        ({"limits": {"default": {"pause_on_429_s": -5}}}, "limits.default.pause_on_429_s"),
    ],
)
def test_a_setting_without_sense_is_refused_by_name(settings: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        load_config(None, settings, environ={}, user_file=tmp_path / "none")


def test_a_cache_that_failed_is_told_in_the_summary(configured: Settings, tmp_path: Path) -> None:
    cfg = configured(
        hishel={"enabled": True, "base_path": str(tmp_path / "cache")},
        storage={"root_dir": str(tmp_path), "min_free_bytes": 0},
        telemetry={"manifest_path": str(tmp_path / "manifest.jsonl")},
        queue={"path": str(tmp_path / "state" / "ledger.sqlite")},
    )
    (tmp_path / "cache" / "heads.sqlite").mkdir(parents=True)  # a folder where the cache wants a file
    with DownloadRun(cfg) as run:
        done = run.process_artifacts(["https://pub.org/x.pdf"])
    assert done.successful == 1
    notes = json.loads((tmp_path / "summary.json").read_text())["notes"]
    assert [note for note in notes if note.startswith("the cache failed")]


def test_what_robots_txt_forbade_is_told_in_the_summary(configured: Settings, tmp_path: Path) -> None:
    """ROB-06: decisions are counted."""
    cfg = configured(
        robots={"enabled": True},
        storage={"root_dir": str(tmp_path), "min_free_bytes": 0},
        telemetry={"manifest_path": str(tmp_path / "manifest.jsonl")},
        queue={"path": str(tmp_path / "state" / "ledger.sqlite")},
    )
    with DownloadRun(cfg) as run:
        run.process_artifacts(["https://pub.org/x.pdf", "https://pub.org/private.pdf"])
    notes = json.loads((tmp_path / "summary.json").read_text())["notes"]
    assert [note for note in notes if "robots.txt" in note and "allowed 1, blocked 1" in note], notes
