"""Works of a query in a real folder: the checkpoint, kills at the worst moments, filters on the list, duplicates."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import InputError, RecordError
from DocsToKG.ContentDownload.resolvers.openalex_query import WorksQuery, read_query
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.runner.query_pages import QueryPages, ServiceSilent
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
QUERY = read_query("is_oa:true")


@pytest.fixture(scope="module")
def server() -> Iterator[SandboxServer]:
    """Enough works for several pages, without faults."""
    with SandboxServer(works=330, seed=3, faults=Faults.none()) as running:
        yield running


@pytest.fixture(scope="module")
def whole(server: SandboxServer, make_config: MakeConfig, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The list as it is when nothing goes wrong."""
    return fill(make_config(server, tmp_path_factory.mktemp("whole")))


@pytest.fixture
def config(server: SandboxServer, make_config: MakeConfig, tmp_path: Path) -> ContentDownloadConfig:
    return make_config(server, tmp_path / "run", hishel={"enabled": False})


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The cursors that were asked for."""
    asked: list[str | None] = []
    original = QueryPages.page

    def page(self: QueryPages, query: WorksQuery, cursor: str | None):  # type: ignore[no-untyped-def]
        asked.append(cursor)
        return original(self, query, cursor)

    monkeypatch.setattr(QueryPages, "page", page)
    return asked


def listed(run: DownloadRun) -> list[str]:
    return [line.work_id or "" for line in run.folder.asked()]


def fill(config: ContentDownloadConfig, query: WorksQuery = QUERY, most: int | None = None) -> list[str]:
    with DownloadRun(config) as run:
        assert run.enqueue_query(query, most=most) is None
        works = listed(run)
        assert run.status().total == len(works)
        return works


def test_a_query_is_listed_page_by_page_and_told(config: ContentDownloadConfig, pages: list[str | None]) -> None:
    told: list[tuple[int, int | None]] = []
    with DownloadRun(config) as run:
        run.enqueue_query(QUERY, watch=lambda count, total: told.append((count, total)))
        works = listed(run)
    total = told[-1][1]
    assert total == len(works) == len(set(works)) > 200
    assert [count for count, _ in told] == [100, 200, 300, total][: len(told)]
    assert pages[0] is None
    assert len(pages) == len(set(pages)) == len(told)


CHILD = """
import os, signal, sys
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.resolvers.openalex_query import read_query
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.runner.listing import Listing

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

moment, settings = sys.argv[1:]
calls = []
fsync, add = os.fsync, Listing.add

def on_second(then, otherwise):
    def call(*words, **named):
        calls.append(1)
        return (then if len(calls) == 2 else otherwise)(*words, **named)
    return call

def of_lists(sync):
    # The disk is told to keep each page of a list before the cursor moves.
    is_list = lambda file: "/queries/" in (name := os.readlink(f"/proc/self/fd/{file}")) and name.endswith(".jsonl")
    os.fsync = lambda file: sync(file) if is_list(file) else fsync(file)

def page(file):
    sizes.append(os.fstat(file).st_size)
    fsync(file)

def half(file):
    os.ftruncate(file, (sizes[0] + os.fstat(file).st_size) // 2)
    die()

sizes = []
if moment == "ledger written, list not":
    Listing.add = on_second(die, add)
elif moment == "half a list written":
    of_lists(on_second(half, page))
elif moment == "list written, cursor not":
    of_lists(on_second(die, page))
watch = (lambda count, total: count >= 200 and die()) if moment == "between two pages" else (lambda count, total: None)
with DownloadRun(load_config(settings, environ={})) as run:
    run.enqueue_query(read_query("is_oa:true"), watch=watch)
"""


@pytest.mark.parametrize(
    ("moment", "at"),
    [
        ("ledger written, list not", 100),
        ("half a list written", 100),
        ("list written, cursor not", 100),
        ("between two pages", 200),
    ],
)
@pytest.mark.slow
def test_killed_while_listing_the_same_query_goes_on_at_the_cursor(
    config: ContentDownloadConfig,
    whole: list[str],
    pages: list[str | None],
    tmp_path: Path,
    warm: WarmPrograms,
    moment: str,
    at: int,
) -> None:
    """Nothing lost, nothing twice, whatever was written last."""
    settings = tmp_path / "settings.json"
    settings.write_text(config.model_dump_json(exclude_none=True, exclude_defaults=True))
    killed = subprocess.run(
        [*warm.words("python"), "-c", CHILD, moment, str(settings)], capture_output=True, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with DownloadRun(config) as run:
        assert len(listed(run)) >= at
        assert run.queue.ledger.stats()["total"] == 200
    assert fill(config) == whole
    assert None not in pages
    assert len(pages) == -(-(len(whole) - at) // 100)


@pytest.mark.slow
def test_resume_goes_on_with_the_list_and_not_with_a_finished_one(
    config: ContentDownloadConfig, pages: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with DownloadRun(config) as run, pytest.raises(KeyboardInterrupt):
        run.enqueue_query(QUERY, most=210, watch=_interrupting(at=100))
    with DownloadRun(config) as run:
        assert run.take_up() == 100
        assert run.list_on() is None
        assert run.status().total == len(listed(run)) == 210
        pages.clear()
        run.take_up()
        assert run.list_on() is None
        assert pages == []


@pytest.mark.slow
def test_most_is_delivered_and_more_can_be_asked_for_later(
    config: ContentDownloadConfig, pages: list[str | None]
) -> None:
    first = fill(config, most=130)
    assert len(first) == len(set(first)) == 130
    more = fill(config, most=250)
    assert (len(more), more[:130]) == (250, first)
    assert len(pages) == 2 + 2  # the page that was cut is asked for again, the ones before it are not


@pytest.mark.slow
def test_another_query_in_the_same_folder_is_another_list(config: ContentDownloadConfig) -> None:
    first = fill(config, most=30)
    other = fill(config, read_query("is_oa:true", since="2015"), most=30)
    assert other != first
    assert fill(config, most=30) == first
    queries = Path(config.telemetry.manifest_path).parent / "state" / "queries"
    assert len(list(queries.glob("*.jsonl"))) == 2


def test_given_works_after_a_query_are_what_was_asked_for(config: ContentDownloadConfig, server: SandboxServer) -> None:
    fill(config, most=3)
    from DocsToKG.ContentDownload.inputs import coerce_works

    with DownloadRun(config) as run:
        run.enqueue(coerce_works(server.identifiers(2, mix=False)))
        assert len(listed(run)) == 2
        run.take_up()
        assert run.list_on() is None


@pytest.mark.slow
def test_a_list_that_was_worked_off_is_begun_anew(config: ContentDownloadConfig, pages: list[str | None]) -> None:
    """A query may match new works tomorrow; until its works have ended, the list is not asked for again."""
    for _ in range(2):
        with DownloadRun(config) as run:
            run.enqueue_query(QUERY, most=4)
            if len(pages) == 1:
                assert run.result().pending == 4
    assert pages == [None]
    with DownloadRun(config) as run:
        run.enqueue_query(QUERY, most=4)
        run.start()
        run.wait()
        run.stop()
        result = run.result()
        assert (result.pending, len(result.rows)) == (0, 4)
    pages.clear()
    with DownloadRun(config) as run:
        run.enqueue_query(QUERY, most=4)
        assert run.result().already == result.successful
    assert pages == [None]


@pytest.mark.slow
def test_works_that_the_filters_refuse_are_not_listed_and_do_not_count(
    server: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config(server, tmp_path / "run", filters={"year": "2015-2016"})
    years = {work["doi"].lower(): work["year"] for work in server.truth()["works"]}
    works = fill(config, most=20)
    assert len(works) == 20
    assert {years.get(work.removeprefix("doi:")) for work in works} <= {2015, 2016, None}


@pytest.mark.slow
def test_works_that_are_told_to_have_no_wanted_licence_do_not_count(
    server: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    licences = {work["doi"].lower(): work["licence"] for work in server.truth()["works"]}
    anything = fill(make_config(server, tmp_path / "any"), most=20)
    wanted = fill(make_config(server, tmp_path / "run", filters={"license": "cc-by"}), most=20)
    told = [{licences.get(work.removeprefix("doi:")) for work in works} for works in (anything, wanted)]
    assert len(wanted) == 20
    assert "cc-by-nc" in told[0]
    assert "cc-by" in told[1]
    assert wanted != anything


def test_a_service_that_falls_silent_leaves_what_is_listed(
    config: ContentDownloadConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = QueryPages.page

    def page(self: QueryPages, query: WorksQuery, cursor: str | None):  # type: ignore[no-untyped-def]
        if cursor is not None:
            raise ServiceSilent("OpenAlex answers 429")
        return original(self, query, cursor)

    monkeypatch.setattr(QueryPages, "page", page)
    with DownloadRun(config) as run:
        said = run.enqueue_query(QUERY)
        assert said is not None
        assert "100 works are listed" in said
        assert len(listed(run)) == 100
    monkeypatch.setattr(QueryPages, "page", lambda self, query, cursor: page(self, query, "any"))
    with DownloadRun(config) as run, pytest.raises(ServiceSilent):
        run.enqueue_query(read_query("is_oa:false"))


def test_a_cursor_that_leads_back_ends_the_list(config: ContentDownloadConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    original, asked = QueryPages.page, []

    def page(self: QueryPages, query: WorksQuery, cursor: str | None):  # type: ignore[no-untyped-def]
        from dataclasses import replace

        asked.append(cursor)
        assert len(asked) < 10
        return replace(original(self, query, None), next_cursor={None: "a", "a": "b", "b": "a"}[cursor])

    monkeypatch.setattr(QueryPages, "page", page)
    with DownloadRun(config) as run:
        run.enqueue_query(QUERY)
        assert len(listed(run)) == 100
    assert asked == [None, "a", "b"]


def test_a_refused_query_is_an_input_error(config: ContentDownloadConfig) -> None:
    with DownloadRun(config) as run, pytest.raises(InputError, match="nope"):
        run.enqueue_query(read_query("nope:1"))


def test_a_checkpoint_that_cannot_be_read_names_the_file(config: ContentDownloadConfig) -> None:
    fill(config, most=1)
    [checkpoint] = (Path(config.telemetry.manifest_path).parent / "state" / "queries").glob("*.json")
    saved = json.loads(checkpoint.read_text())
    for broken in ("{", json.dumps({**saved, "odd": 1}), "[]"):
        checkpoint.write_text(broken)
        with DownloadRun(config) as run, pytest.raises(RecordError, match=checkpoint.name):
            run.enqueue_query(QUERY)


def _interrupting(at: int) -> Callable[[int, int | None], None]:
    def watch(count: int, total: int | None) -> None:
        if count >= at:
            raise KeyboardInterrupt

    return watch


class _Refusing(BaseHTTPRequestHandler):
    """A service that answers every request alike."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, headers = self.server.answer  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def refusing(tmp_path: Path, make_config: MakeConfig, server: SandboxServer) -> Iterator[Callable[..., DownloadRun]]:
    """`refusing(status, headers)`: a run whose OpenAlex answers so."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()

        def run(status: int, headers: dict[str, str] | None = None, **openalex: str) -> DownloadRun:
            http.answer = (status, headers or {})  # type: ignore[attr-defined]
            own = {"allow_http_hosts": ["127.0.0.1"], "allow_private_hosts": ["127.0.0.1"], "connect_to": {}}
            section = {"base_url": f"http://127.0.0.1:{http.server_port}", "retry": {"max_attempts": 1}, **openalex}
            settings = {"http": own, "resolvers": {"openalex": section}, "limits": {"shared": False}}
            return DownloadRun(make_config(server, tmp_path / "run", **settings))

        yield run
        http.shutdown()
        thread.join()


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "40000"}])
def test_a_spent_budget_names_the_key_that_would_help(
    refusing: Callable[..., DownloadRun], headers: dict[str, str]
) -> None:
    with refusing(429, headers) as run, pytest.raises(ServiceSilent, match=r"midnight UTC.*resolvers.openalex.api_key"):
        run.enqueue_query(QUERY)


def test_who_has_a_key_is_not_told_to_get_one(refusing: Callable[..., DownloadRun]) -> None:
    with refusing(429, api_key="sesame") as run, pytest.raises(ServiceSilent) as caught:
        run.enqueue_query(QUERY)
    assert "midnight UTC" in str(caught.value)
    assert "api_key" not in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_a_wrong_key_is_told_by_the_name_of_its_setting(refusing: Callable[..., DownloadRun]) -> None:
    with refusing(401, api_key="sesame") as run, pytest.raises(InputError, match=r"resolvers.openalex.api_key"):
        run.enqueue_query(QUERY)


def test_a_service_that_is_away_is_told(refusing: Callable[..., DownloadRun]) -> None:
    with refusing(503) as run, pytest.raises(ServiceSilent, match="503"):
        run.enqueue_query(QUERY)
