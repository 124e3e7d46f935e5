"""A pack-run's log, followed by SSE and by WebSocket."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import EventStream, served
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.api.routes.pack_logs import log_lines
from DocsToKG.Orchestrator.control.pack_runs import PackRunService


@pytest.fixture
def runs(ledger):
    return PackRunService(ledger)


@pytest.fixture
def run(runs):
    return runs.register("default", payload={}, actor="test", project="p").pack_run_id


@pytest.fixture
def port(ledger):
    with served(app_over(ledger)) as port:
        yield port


def path(run: str) -> str:
    return f"{HOME}/pack-runs/{run}/logs"


def by_socket(port, run, query="", *, token=None, **more):
    headers = {"Authorization": f"Bearer {token or token_for()}"}
    return connect(f"ws://127.0.0.1:{port}{path(run)}/ws{query}", additional_headers=headers, **more)


def test_both_doors_tell_the_same_lines_up_to_the_end(runs, run, port):
    """PACK-02."""
    runs.append_logs("default", run, [("stdout", f"line {n}") for n in range(3)])
    with EventStream(port, f"{path(run)}/follow", token_for()) as stream, by_socket(port, run) as socket:
        seen = [stream.next_event() for _ in range(3)]
        told = [json.loads(socket.recv(30)) for _ in range(3)]
        runs.append_logs("default", run, [("stderr", "late")])
        seen.append(stream.next_event())
        told.append(json.loads(socket.recv(30)))
        runs.finish("default", run, "succeeded", actor="test")
        assert stream.next_event()[0] == "pack_run.end"
        assert list(stream.blocks()) == []
        assert json.loads(socket.recv(30)) == {"end": True}
    assert [data for _, _, data in seen] == told
    assert [(name, place) for name, place, _ in seen] == [("pack_run.log", str(n)) for n in range(1, 5)]
    assert [line["line"] for line in told] == ["line 0", "line 1", "line 2", "late"]


def test_how_far_readers_are_behind_is_a_figure(ledger, runs, run):
    """MET-23: a reader that was told all there is, is not behind; one that takes nothing falls behind."""

    def lag() -> float:
        [line] = [
            line for line in app.state.api.metrics.page().decode().splitlines() if line.startswith("pack_run_logs")
        ]
        return float(line.split()[1])

    async def read() -> None:
        lines = log_lines(app.state.api.streams, app.state.api.services, "default", run, None, 0)
        assert (await anext(lines)).line == "old"
        await asyncio.sleep(0.3)
        assert 0.3 <= await asyncio.to_thread(lag) < 30
        runs.finish("default", run, "succeeded", actor="test")
        assert [line async for line in lines] == []
        assert await asyncio.to_thread(lag) == 0

    app = app_over(ledger)
    runs.append_logs("default", run, [("stdout", "old")])
    assert lag() == 0
    asyncio.run(read())


def test_a_reader_goes_on_after_its_last_line(runs, run, port):
    runs.append_logs("default", run, [("stdout", f"line {n}") for n in range(500)])
    runs.append_logs("default", run, [("stdout", f"line {n}") for n in range(500, 800)])
    runs.finish("default", run, "failed", actor="test")
    with EventStream(port, f"{path(run)}/follow", token_for(), Last_Event_ID="100") as stream:
        assert [fields.get("id") for fields in stream.events()] == [*map(str, range(101, 801)), None]
    with by_socket(port, run, "?after=799&project=p") as socket:
        assert json.loads(socket.recv(30))["seq"] == 800


def test_browsers_offer_their_token_as_a_protocol(runs, run, port):
    runs.finish("default", run, "succeeded", actor="test")
    words = ["docstokg", f"bearer.{token_for()}"]
    with connect(f"ws://127.0.0.1:{port}/api/pack-runs/{run}/logs/ws", subprotocols=words) as socket:
        assert socket.subprotocol == "docstokg"
        assert json.loads(socket.recv(30)) == {"end": True}


@pytest.mark.parametrize(
    ("token", "query", "status", "code"),
    [
        ("nonsense", "", 401, "UNAUTHENTICATED"),
        (("orch:operate",), "", 403, "SCOPE_REQUIRED"),
        ("theirs", "", 404, "NOT_FOUND"),
        (("orch:read",), "?project=other", 404, "NOT_FOUND"),
        (("orch:read",), "?after=-1", 422, "VALIDATION_FAILED"),
    ],
)
def test_both_doors_refuse_alike(run, port, token, query, status, code):
    word = token_for(tenant="theirs") if token == "theirs" else token if isinstance(token, str) else token_for(*token)
    with pytest.raises(InvalidStatus) as refused, by_socket(port, run, query, token=word):
        pass
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["code"] == code
    with EventStream(port, f"{path(run)}/follow{query}", word) as stream:
        assert (stream.status, stream.body()["error"]["code"]) == (status, code)


def test_followers_are_let_go_when_the_service_ends(run, ledger):
    app = app_over(ledger)
    with served(app) as port, by_socket(port, run) as socket:
        app.state.api.streams.close_soon()
        assert json.loads(socket.recv(30)) == {"end": True}
