"""Which machine has which job: node ids in settings, worker ids, lists, stats and history. EXT-01."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import queue_app
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.runner.node import node_id, worker_id_of
from DocsToKG.core.ids import new_worker_id, node_of
from DocsToKG.Orchestrator.control.workers.liveness import Presence

SERVER = {"backend": "postgres", "connection_string": "postgresql://u@127.0.0.1/q"}


def config(**queue: Any) -> Any:
    return load_config(None, {"queue": queue}, environ={}, user_file=Path("no-such-file"))


@pytest.mark.parametrize("node", ["a", "harvester-1", "eu.example.org", "A_b-9.", "x" * 63])
def test_a_worker_id_tells_its_node_and_is_new_every_time(node: str, tmp_path: Path) -> None:
    first, second = new_worker_id(node), new_worker_id(node)
    assert first != second
    assert (node_of(first), node_of(second)) == (node, node)
    with Presence(tmp_path / "q", first), Presence(tmp_path / "q", second):
        assert len(list((tmp_path / "q.workers").iterdir())) == 2


@pytest.mark.parametrize("worker", [None, "", "cdw-", "other.1", "operator", "lease_1.2"])
def test_an_id_that_names_no_node_has_none(worker: str | None) -> None:
    assert node_of(worker) is None
    assert node_of(new_worker_id()) is None


def test_the_name_is_set_or_the_hosts_where_machines_share_a_queue() -> None:
    assert node_id(config()) is None
    assert node_id(config(node_id="harvester-1")) == "harvester-1"
    assert node_id(config(**SERVER, node_id="harvester-1")) == "harvester-1"
    assert (node_id(config(**SERVER)) or "").startswith(socket.gethostname()[:5])
    assert node_of(worker_id_of(config(node_id="harvester-1"))) == "harvester-1"


def test_a_host_name_that_is_no_name_is_made_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "_Läptop of nobody!" + "x" * 100)
    name = node_id(config(**SERVER))
    assert name is not None
    assert name.startswith("L-ptop-of-nobody-x")
    assert node_id(config(**SERVER, node_id=name)) == name, "it could have been set as well"


def test_the_environment_names_a_node_too() -> None:
    given = {"DOCSTOKG_CONTENT_QUEUE__NODE_ID": "pod-7"}
    assert load_config(None, environ=given, user_file=Path("no-such-file")).queue.node_id == "pod-7"


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "ä", "x" * 64, "a\n"])
def test_a_name_that_could_be_mistaken_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="node_id"):
        config(node_id=name)


def test_a_wrong_name_on_the_command_line_is_wrong_usage() -> None:
    result = CliRunner().invoke(queue_app, ["run", "--node-id", "a b"])
    assert result.exit_code == 2
    assert "letters, digits" in result.output


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two jobs held by one node, one by a worker without a node, one ended, one waiting."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "250")
    path, file = tmp_path / "q.sqlite", tmp_path / "c.yaml"
    file.write_text(f"queue: {{path: {path}}}\n")
    with WorkQueue(path) as queue:
        queue.bulk_import((f"local:{number}", {}, None) for number in range(1, 6))
        [ended] = queue.lease(new_worker_id("gone-2"), 1, 600)
        queue.ack(ended["id"], "done")
        queue.lease(new_worker_id("node-1"), 2, 600)
        queue.lease(new_worker_id(), 1, 600)

    def invoke(*words: str) -> str:
        result = CliRunner().invoke(queue_app, [*words, "-c", str(file)])
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


def test_a_list_tells_who_holds_what(run: Any) -> None:
    rows = [json.loads(line) for line in run("list", "--json").splitlines()]
    assert [row["node"] for row in rows] == [None, "node-1", "node-1", None, None]
    shown = run("list")
    assert "node" in shown
    assert shown.count("node-1") == 2


def test_a_list_without_nodes_has_no_column_for_them(run: Any) -> None:
    assert "node" not in run("list", "--state", "queued")


def test_stats_count_what_each_node_holds(run: Any) -> None:
    assert json.loads(run("stats", "--json"))["nodes"] == {"node-1": 2}
    assert "jobs held" in run("stats")


def test_the_history_tells_the_node_also_of_what_is_said_under_its_lease(run: Any) -> None:
    told = json.loads(run("show", "local:1", "--json"))
    assert [(row["event"], row["node"]) for row in told["history"]] == [
        ("enqueued", None),
        ("leased", "gone-2"),
        ("finished", "gone-2"),
    ]
    assert "gone-2" in run("show", "local:1")
    assert json.loads(run("show", "local:2", "--json"))["node"] == "node-1"
