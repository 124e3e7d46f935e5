"""Two nodes, each with folders of its own, keep one record on a PostgreSQL server. CAT-23, STO-08, EXT-01."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import psycopg
import pytest
from tests import needs
from tests.conformance.postgres_server import NoPostgres, PostgresServer
from tests.contentdownload.conftest import client_config, client_settings
from typer.testing import CliRunner

from DocsToKG.ContentDownload.bootstrap import open_catalog, run_from_config
from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.run_folder import RunFolder
from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORKS = 24
PROGRAM = str(Path(sys.executable).parent / "contentdownload")


@pytest.fixture
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as server:
        yield server


def node(sandbox: SandboxServer, database: str, place: Path, name: str, **more: Any) -> Path:
    """The settings of one node: own folder, own cache, files in one place."""
    storage = {"root_dir": str(place / "files"), "backend": "postgres", "connection_string": database}
    settings = client_settings(sandbox, place / name, storage=storage, **more)
    path = place / f"{name}.json"
    path.write_text(json.dumps(settings))
    return path


def run(*words: str, code: int = 0, stderr: bool = False) -> str:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.stderr if stderr else done.stdout


def dois(sandbox: SandboxServer) -> list[str]:
    return [work.doi for number in range(WORKS) if (work := sandbox.world.by_index(number)) is not None]


def test_two_nodes_keep_one_record(sandbox: SandboxServer, database: str, tmp_path: Path) -> None:
    configs = [node(sandbox, database, tmp_path, name) for name in ("one", "two")]
    wanted = dois(sandbox)
    (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in wanted))
    run("queue", "import", str(tmp_path / "works.jsonl"), "-c", str(configs[0]))
    nodes = [
        subprocess.Popen(
            [PROGRAM, "queue", "run", "--drain", *more, "-c", str(config)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for config, more in zip(configs, ((), ("--processes", "2")), strict=True)
    ]  # fmt: skip
    for started in nodes:
        _, said = started.communicate(timeout=400)
        assert started.returncode == 0, said
    with psycopg.connect(database) as connection:
        ends = connection.execute(
            "SELECT count(*), count(DISTINCT doc_id), count(DISTINCT lease_id) FROM docstokg_record.manifests"
            " WHERE outcome <> 'error' OR reason <> 'worker_exception'"
        ).fetchone()
        known = connection.execute("SELECT doc_id FROM docstokg_record.catalog_entries").fetchall()
        files = connection.execute("SELECT count(*), count(DISTINCT doc_id) FROM docstokg_record.downloads").fetchone()
        journals = connection.execute("SELECT count(*), sum(manifests) FROM docstokg_record.journals").fetchone()
        runs = connection.execute("SELECT count(*), count(finished_at) FROM docstokg_record.run_summary").fetchone()
    assert len(known) == len(set(wanted))
    assert ends is not None
    assert ends[0] == ends[2]
    assert files is not None
    assert files[0] == files[1] > WORKS // 2
    lines = sum(len((tmp_path / name / "manifest.jsonl").read_text().splitlines()) for name in ("one", "two"))
    assert journals == (2, lines)
    assert runs == (2, 2)


def test_what_one_node_holds_another_does_not_fetch(sandbox: SandboxServer, database: str, tmp_path: Path) -> None:
    """The queue knows nothing of it: it was lost, or is another one."""
    storage = {"root_dir": str(tmp_path / "files")}
    catalog = {"backend": "postgres", "connection_string": database}
    one, two = (client_config(sandbox, tmp_path / n, storage=storage, catalog=catalog) for n in ("one", "two"))
    first = run_from_config(one, dois(sandbox))
    assert first.successful > WORKS // 2
    before = sandbox.counters()
    obtained = [row.input for row in first.rows if row.outcome == "success"]
    second = run_from_config(two, obtained)
    assert second.successful == len(obtained)
    assert sandbox.counters() == before
    with open_catalog(one) as record:
        assert record.stats()[0]["obtained"] == first.successful


def test_every_command_reads_the_shared_record(sandbox: SandboxServer, database: str, tmp_path: Path) -> None:
    """From a machine that has no folder of a run, by the settings alone; and by the folder of a node."""
    one = node(sandbox, database, tmp_path, "one")
    (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in dois(sandbox)))
    run("queue", "import", str(tmp_path / "works.jsonl"), "-c", str(one))
    run("queue", "run", "--drain", "-c", str(one))
    admin = str(node(sandbox, database, tmp_path, "admin"))
    [counted] = json.loads(run("catalog", "stats", "--json", "-c", admin))
    assert [counted] == json.loads(run("catalog", "stats", "--json", "--run", str(tmp_path / "one")))
    assert counted["obtained"] > WORKS // 2
    listed = json.loads(run("catalog", "query", "--state", "obtained", "--json", "-c", admin))["works"]
    assert len(listed) == counted["obtained"]
    work = listed[0]
    asked = run("catalog", "query", "--sql", "SELECT count(*) AS n FROM downloads", "--json", "-c", admin)
    assert json.loads(asked) == [{"n": counted["obtained"]}]
    assert json.loads(run("catalog", "show", work["doc_id"], "--json", "-c", admin))["downloads"]
    assert str(tmp_path / "files") in run("catalog", "where", work["doc_id"], "-c", admin)
    exported = run("catalog", "export", "--format", "jsonl", "-c", admin).splitlines()
    assert len(exported) == counted["obtained"]
    assert json.loads(run("catalog", "dedup-report", "--json", "-c", admin))["works"] == counted["obtained"]
    told = json.loads(run("report", "--json", "--no-gates", "-c", admin))
    assert (told["obtained"], told["processes"]) == (counted["obtained"], 1)
    assert json.loads(run("catalog", "verify", "--quiet", "--json", "-c", admin))["ok"]
    nobodys = tmp_path / "files" / "cas" / "sha256" / "00" / ("0" * 62)
    nobodys.parent.mkdir(exist_ok=True)
    nobodys.write_bytes(b"nobody's")
    words = ("catalog", "gc", "--delete", "--other-run", str(tmp_path / "one"), "--json", "-c", admin)
    assert json.loads(run(*words))["removed"] == 1
    assert json.loads(run("catalog", "verify", "--quiet", "--json", "-c", admin))["ok"]


def test_damage_that_one_machine_finds_another_mends(sandbox: SandboxServer, database: str, tmp_path: Path) -> None:
    """The mark of a check is in the shared record alone, and the next run of any node reads it there."""
    one, two = (node(sandbox, database, tmp_path, name) for name in ("one", "two"))
    (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in dois(sandbox)))
    run("queue", "import", str(tmp_path / "works.jsonl"), "-c", str(one))
    run("queue", "run", "--drain", "-c", str(one))
    [work] = json.loads(run("catalog", "query", "--state", "obtained", "--limit", "1", "--json", "-c", str(two)))[
        "works"
    ]
    stored = tmp_path / "files" / work["path"]
    stored.chmod(0o644)
    stored.write_bytes(b"x" * stored.stat().st_size)
    found = json.loads(run("catalog", "verify", "--quiet", "--json", "-c", str(two), code=1))
    assert found["damaged"][0]["sha256"] == work["sha256"]
    assert json.loads(run("report", "--json", "--no-gates", "-c", str(one)))["corruption"] == 1
    run("catalog", "verify", "--repair", "--quiet", "-c", str(one))
    assert json.loads(run("report", "--json", "--no-gates", "-c", str(two)))["corruption"] == 0
    assert json.loads(run("catalog", "verify", "--quiet", "--json", "-c", str(two)))["ok"]


def test_files_in_a_bucket_are_looked_after_in_the_folder_of_a_worker_that_never_ends(
    sandbox: SandboxServer, database: str, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod has one folder, and its worker has that. STO-09."""
    parts, prefix = urlsplit(s3_url), f"t-{uuid4().hex}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{parts.hostname}:{parts.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", unquote(parts.username or ""))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", parts.password or "")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    bucket = Bucket(parts.path.strip("/"), prefix=prefix)
    files = {"backend": "s3", "s3_bucket": bucket.name, "s3_prefix": prefix, "root_dir": str(tmp_path / "staging")}
    server = {"backend": "postgres", "connection_string": database}
    settings = client_settings(sandbox, tmp_path / "one", storage=files, queue=server, catalog=server)
    one = str(tmp_path / "one.json")
    (tmp_path / "one.json").write_text(json.dumps(settings))
    (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in dois(sandbox)))
    run("queue", "import", str(tmp_path / "works.jsonl"), "-c", one)
    run("queue", "run", "--drain", "-c", one)
    work, other = json.loads(run("catalog", "query", "--state", "obtained", "--limit", "2", "--json", "-c", one))[
        "works"
    ]
    with RunFolder(Path(settings["telemetry"]["manifest_path"]).parent):
        assert json.loads(run("catalog", "verify", "--quiet", "--json", "-c", one))["ok"]
        assert "--alone" in run("catalog", "gc", "--delete", "-c", one, code=2, stderr=True)
        assert json.loads(run("catalog", "gc", "--delete", "--alone", "--json", "-c", one))["removed"] == 0
        run("takedown", work["doc_id"], "--reason", "asked", "-c", one)
        assert bucket.find(work["path"]) is None
        assert bucket.find(other["path"]) is not None
        [told] = json.loads(run("takedown", "list", "--json", "-c", one))
        assert told["doc_id"] == work["doc_id"]
        run("catalog", "where", work["doc_id"], "-c", one, code=1)
    run("queue", "retry-failed", "-c", one)
    run("queue", "run", "--drain", "-c", one)
    assert bucket.find(work["path"]) is None


def test_unproved_files_in_a_bucket_are_settled_for_every_machine(
    database: str, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, prefix = urlsplit(s3_url), f"t-{uuid4().hex}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{parts.hostname}:{parts.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", unquote(parts.username or ""))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", parts.password or "")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    bucket = Bucket(parts.path.strip("/"), prefix=prefix)
    files = {"backend": "s3", "s3_bucket": bucket.name, "s3_prefix": prefix, "root_dir": str(tmp_path / "staging")}
    server = {"backend": "postgres", "connection_string": database}
    scans = Files(renderings={"scan": 1.0}, cover=0.0)
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none(), files=scans) as sandbox:
        more = {"storage": files, "queue": server, "catalog": server, "proof": {"unproved": "quarantine"}}
        for name in ("one", "two"):
            settings = client_settings(sandbox, tmp_path / name, **more)
            (tmp_path / f"{name}.json").write_text(json.dumps(settings))
        one, two = (str(tmp_path / f"{name}.json") for name in ("one", "two"))
        (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in dois(sandbox)[:8]))
        run("queue", "import", str(tmp_path / "works.jsonl"), "-c", one)
        run("queue", "run", "--drain", "-c", one)
        waiting = json.loads(run("catalog", "unproved", "--json", "-c", two))
        works = sorted({file["doc_id"] for file in waiting})
        right, wrong = ([file for file in waiting if file["doc_id"] == doc_id] for doc_id in works[:2])
        assert all(bucket.find(file["path"]) is not None for file in (*right, *wrong))
        run("catalog", "unproved", right[0]["sha256"], "--accept", "-c", one)
        run("catalog", "unproved", wrong[0]["doc_id"], "--reject", "-c", one)
        [found] = json.loads(run("catalog", "where", right[0]["doc_id"], "--json", "-c", two))
        assert (found["sha256"], found["exists"]) == (right[0]["sha256"], True)
        left = {file["doc_id"] for file in json.loads(run("catalog", "unproved", "--json", "-c", two))}
        assert left == {file["doc_id"] for file in waiting} - {right[0]["doc_id"], wrong[0]["doc_id"]}
        assert bucket.find(wrong[0]["path"]) is None
        assert json.loads(run("catalog", "verify", "--quiet", "--json", "-c", two))["missing"] == []


def test_what_one_machine_takes_down_every_machine_refuses(
    sandbox: SandboxServer, database: str, tmp_path: Path
) -> None:
    one, two = (node(sandbox, database, tmp_path, name) for name in ("one", "two"))
    (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in dois(sandbox)))
    run("queue", "import", str(tmp_path / "works.jsonl"), "-c", str(one))
    run("queue", "run", "--drain", "-c", str(one))
    [work] = json.loads(run("catalog", "query", "--state", "obtained", "--limit", "1", "--json", "-c", str(two)))[
        "works"
    ]
    taken = json.loads(run("takedown", "add", work["doc_id"], "--reason", "asked", "--json", "-c", str(two)))
    assert taken["sha256"] == [work["sha256"]]
    assert not (tmp_path / "files" / work["path"]).exists()
    assert run("catalog", "where", work["doc_id"], "-c", str(one), code=1) == ""
    [refused] = json.loads(run("takedown", "list", "--json", "-c", str(one)))
    assert refused["doc_id"] == work["doc_id"]
    storage, catalog = {"root_dir": str(tmp_path / "files")}, {"backend": "postgres", "connection_string": database}
    result = run_from_config(
        client_config(sandbox, tmp_path / "one", storage=storage, catalog=catalog), [work["doc_id"]]
    )
    assert result.taken_down == 1
    [shown] = json.loads(run("catalog", "query", "--state", "taken-down", "--json", "-c", str(one)))["works"]
    assert shown["doc_id"] == work["doc_id"]
    run("takedown", "undo", work["doc_id"], "-c", str(one))
    assert json.loads(run("takedown", "list", "--json", "-c", str(two))) == []


def test_a_server_that_is_restarted_in_the_middle_of_a_run_costs_time_alone(
    sandbox: SandboxServer, tmp_path: Path
) -> None:
    """Queue and record are on it. Nothing is fetched twice, and the run ends by itself."""
    try:
        server = PostgresServer()
    except NoPostgres as error:
        needs.lacks(str(error))
    with contextlib.closing(server):
        one = node(sandbox, server.url, tmp_path, "one", orchestrator={"max_workers": 2})
        wanted = dois(sandbox)
        (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in wanted))
        run("queue", "import", str(tmp_path / "works.jsonl"), "-c", str(one))
        words = [PROGRAM, "queue", "run", "--drain", "--processes", "2", "-c", str(one)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as started:
            for lines in (3, 9):
                _wait_for_lines(tmp_path / "one" / "manifest.jsonl", lines, started)
                server.stop(kill=lines == 9)
                server.start()
            _, said = started.communicate(timeout=400)
            assert started.returncode == 0, said
        with psycopg.connect(server.url) as connection:
            ask = "SELECT count(*), count(DISTINCT doc_id) FROM docstokg_record.manifests WHERE status = 'ok'"
            assert connection.execute(ask).fetchone() == (obtained := _obtained(tmp_path), obtained)
            known = connection.execute("SELECT count(*) FROM docstokg_record.catalog_entries").fetchone()
            assert known == (len(set(wanted)),)


def _wait_for_lines(manifest: Path, count: int, started: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 200
    while started.poll() is None and time.monotonic() < deadline:
        if manifest.exists() and len(manifest.read_bytes().splitlines()) >= count:
            return
        time.sleep(0.02)


def _obtained(place: Path) -> int:
    lines = map(json.loads, (place / "one" / "manifest.jsonl").read_text().splitlines())
    return sum(line["status"] == "ok" for line in lines)
