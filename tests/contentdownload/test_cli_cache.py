"""`contentdownload cache`: what it says of a cache, and what it leaves behind."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from DocsToKG.ContentDownload.net.build import build_http_stack
from DocsToKG.ContentDownload.net.cache import ARTIFACT, PENDING, CacheSettings

pytestmark = pytest.mark.slow  # seconds of real sockets and processes; part of `make test`

Command = Callable[..., subprocess.CompletedProcess[str]]
PLACES = {"file": "base_path", "sqlite": "sqlite_path"}


def fill(backend: str, place: Path) -> None:
    """A page of ten bytes, an answer of five, and a file of three that lies in the CAS."""
    contents = {"/page": (b"<p>page!!!", "text/html; charset=utf-8"), "/api": (b"[1,2]", "application/json")}

    def origin(request: httpx2.Request) -> httpx2.Response:
        content, kind = contents.get(request.url.path, (b"pdf", "application/pdf"))
        return httpx2.Response(200, headers={"cache-control": "max-age=60", "content-type": kind}, content=content)

    settings = CacheSettings(**{"base_path": place, PLACES[backend]: place, "backend": backend})  # type: ignore[arg-type]
    stack = build_http_stack(
        httpx2.MockTransport(origin), user_agent="t", cache=settings, open_cas=lambda sha: io.BytesIO(b"pdf")
    )

    async def ask_for_each() -> None:
        for path in ("/page", "/api", "/file"):
            request = httpx2.Request("GET", f"https://a.org{path}", extensions={ARTIFACT: path == "/file"})
            response = await stack.http.exchange(request)
            await response.aread()
            response.extensions[PENDING].confirm("ab" * 32)
            await response.aclose()
        await stack.aclose()

    asyncio.run(ask_for_each())


@pytest.fixture(params=["file", "sqlite"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a run whose cache holds three entries; its configuration is beside it."""
    backend: str = request.param
    place = tmp_path / "corpus" / "state" / ("cache" if backend == "file" else "cache.sqlite")
    place.parent.mkdir(parents=True)
    fill(backend, place)
    (tmp_path / "c.json").write_text(json.dumps({"hishel": {"backend": backend}}))
    return tmp_path / "corpus"


def test_stats_counts_entries_and_bytes_by_role(run: Path, content: Command) -> None:
    """CLI-22"""
    done = content("cache", "stats", "--run", str(run), "-c", "c.json", "--json", program="contentdownload")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["by_role"] == {
        "artifact": {"entries": 1, "body_bytes": 0},
        "landing": {"entries": 1, "body_bytes": 10},
        "metadata": {"entries": 1, "body_bytes": 5},
    }
    assert (said["entries"], said["body_bytes"], said["unreadable"]) == (3, 15, 0)
    assert said["oldest"] <= said["newest"]
    assert said["newest"].endswith("Z")


def test_stats_is_readable_for_people(run: Path, content: Command) -> None:
    done = content("cache", "stats", "--run", str(run), "-c", "c.json", program="contentdownload")
    assert done.returncode == 0, done.stderr
    assert "landing" in done.stdout
    assert "Oldest entry 2" in done.stderr


def test_clear_asks_first(run: Path, content: Command) -> None:
    words = ("cache", "clear", "--run", str(run), "-c", "c.json")
    refused = content(*words, program="contentdownload", stdin="n\n")
    assert refused.returncode == 1
    assert "Delete every entry" in refused.stderr
    unanswered = content(*words, program="contentdownload")
    assert unanswered.returncode == 2
    assert "--yes" in unanswered.stderr
    counted = content("cache", "stats", "--run", str(run), "-c", "c.json", "--json")
    assert json.loads(counted.stdout)["entries"] == 3


def test_clear_drops_the_entries_and_touches_nothing_else(run: Path, content: Command) -> None:
    """CLI-22"""
    (run / "paper.pdf").write_bytes(b"%PDF-")
    done = content("cache", "clear", "--run", str(run), "-c", "c.json", "--yes", "--json", program="contentdownload")
    assert (done.returncode, json.loads(done.stdout)["dropped"]) == (0, 3), done.stderr
    counted = content("cache", "stats", "--run", str(run), "-c", "c.json", "--json")
    assert json.loads(counted.stdout)["entries"] == 0
    assert (run / "paper.pdf").exists()


def test_looking_at_a_cache_that_is_not_there_makes_none(tmp_path: Path, content: Command) -> None:
    (tmp_path / "empty").mkdir()
    done = content("cache", "stats", "--run", "empty")
    assert done.returncode == 0, done.stderr
    assert "It is empty." in done.stderr
    assert content("cache", "clear", "--run", "empty", "--yes").returncode == 0
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_folder_that_is_not_there_is_said_so(content: Command) -> None:
    done = content("cache", "stats", "--run", "nowhere")
    assert done.returncode == 1
    assert "nowhere is not the folder of a run" in done.stderr


def test_the_configured_place_is_the_one_without_a_folder(tmp_path: Path, content: Command) -> None:
    fill("file", tmp_path / "elsewhere")
    (tmp_path / "c.json").write_text(json.dumps({"hishel": {"base_path": str(tmp_path / "elsewhere")}}))
    done = content("cache", "stats", "-c", "c.json", "--json")
    assert (json.loads(done.stdout)["entries"], json.loads(done.stdout)["backend"]) == (3, "file")


def test_a_server_that_is_away_is_named_without_its_password(tmp_path: Path, content: Command) -> None:
    url = "redis://:PLANTED@127.0.0.1:1/0"
    (tmp_path / "c.json").write_text(json.dumps({"hishel": {"backend": "redis", "redis_url": url}}))
    done = content("cache", "stats", "-c", "c.json")
    assert done.returncode == 1
    assert "redis://127.0.0.1:1/0" in done.stderr
    assert "PLANTED" not in done.stderr + done.stdout


def test_a_run_is_looked_at_with_the_settings_it_was_started_with(run: Path, content: Command, tmp_path: Path) -> None:
    saved = {"config_file": str(tmp_path / "c.json"), "overrides": {}, "movable": True, "database": "manifest.sqlite"}
    (run / "state" / "run.json").write_text(json.dumps(saved))
    assert json.loads(content("cache", "stats", "--run", str(run), "--json").stdout)["entries"] == 3
