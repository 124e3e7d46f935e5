"""`doctor` against a service that has the queue: it lets us in and gives work, or why not; no job is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import served
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.config import load_config
from DocsToKG.ContentDownload.doctor.checks import checks_for
from DocsToKG.ContentDownload.orchestrator.queue import token_in
from DocsToKG.core.checks import Finding, Level
from DocsToKG.Orchestrator.client.check import check_service
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

WORKER = ("orch:operate", "orch:read")


@pytest.fixture
def url(ledger: SqliteLedger) -> Iterator[str]:
    with served(app_over(ledger)) as port:
        yield f"http://127.0.0.1:{port}"


def look(url: str, place: Path, token: str, mode: int = 0o600) -> dict[str, Finding]:
    place.write_text(token + "\n")
    place.chmod(mode)
    return {finding.subject: finding for finding in check_service(url, str(place), token_in)}


def test_a_service_that_gives_work_is_well_and_keeps_its_jobs(url: str, ledger: SqliteLedger, tmp_path: Path) -> None:
    [job] = ledger.enqueue_many([NewJob("doi:10.1/a", {})])
    found = look(url, tmp_path / "token", token_for(*WORKER))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert list(found) == ["reachable", "encryption", "permissions", "clock"]
    assert "tenant default" in found["permissions"].seen
    assert [row.event for row in ledger.history(job.job_id)] == ["enqueued"]


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("nobody's token", "refuses it"),
        (token_for("orch:read"), "needs the scope orch:operate"),
        (token_for("orch:quota", tenant=None, tenants=("a", "b")), "it is for a, b"),
    ],
)
def test_a_token_that_gets_no_work_is_told_first_with_the_way_out(
    url: str, tmp_path: Path, token: str, said: str
) -> None:
    [(subject, finding)] = look(url, tmp_path / "token", token).items()
    assert (subject, finding.level) == ("token", Level.FAILED)
    assert said in finding.seen
    assert "token new" in finding.advice
    assert token not in str(finding)


def test_a_token_that_may_not_count_and_lies_open_is_worth_a_warning(url: str, tmp_path: Path) -> None:
    found = look(url, tmp_path / "token", token_for("orch:operate"), mode=0o644)
    warned = {subject: finding.advice for subject, finding in found.items() if finding.level == Level.WARNING}
    assert list(warned) == ["token", "permissions"]
    assert "chmod 600" in warned["token"]
    assert "orch:read" in warned["permissions"]


def test_a_file_without_a_token_is_named(tmp_path: Path) -> None:
    for file, said in ((None, "queue.token_file"), (str(tmp_path / "none"), str(tmp_path / "none"))):
        [finding] = check_service("http://127.0.0.1:1", file, token_in)
        assert (finding.subject, finding.level) == ("token", Level.FAILED)
        assert said in finding.seen


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://127.0.0.1:port", "http://no-such-host.invalid"])
def test_an_address_where_nobody_answers_is_named(tmp_path: Path, url: str) -> None:
    [(subject, finding)] = look(url, tmp_path / "token", token_for(*WORKER)).items()
    assert (subject, finding.level) == ("reachable", Level.FAILED)
    assert "queue.orchestrator_url" in finding.advice


def test_something_else_at_the_address_is_told_as_such(url: str, tmp_path: Path) -> None:
    found = look(f"{url}/elsewhere", tmp_path / "token", token_for(*WORKER))
    assert "does not answer as a queue" in found["reachable"].seen


def test_settings_that_name_a_service_are_looked_at_there_and_nowhere_else(url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token_for("orch:read"))
    queue = {"orchestrator_url": url, "token_file": str(tmp_path / "token"), "path": str(tmp_path / "q" / "l.sqlite")}
    settings: dict[str, Any] = {"contact": "reader@university.edu", "queue": queue}
    (tmp_path / "c.json").write_text(json.dumps(settings))
    result = CliRunner().invoke(app, ["doctor", "--quick", "--json", "-c", str(tmp_path / "c.json")])
    told = {one["check"]: one["findings"] for one in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 1
    assert [finding["subject"] for finding in told["queue"]] == ["token"]
    assert "folder of living workers" in told
    cfg = load_config(str(tmp_path / "c.json"))
    [together] = [check for check in checks_for(cfg, origins={}, environ={}) if check.name == "together"]
    assert {"limits", "files", "record"} <= {finding.subject for finding in together.run()}
