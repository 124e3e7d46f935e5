"""Answers and exports that an outsider can prove: saved to a file, checked with keys alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from tests.orchestrator.second_dsse import check
from tests.orchestrator_web.conftest import caller_of
from typer.testing import CliRunner

from DocsToKG.Orchestrator.api.audit_export import AuditExporter
from DocsToKG.Orchestrator.audit import bundle
from DocsToKG.Orchestrator.audit.saved_responses import verify_answer
from DocsToKG.Orchestrator.audit.verify import verify
from DocsToKG.Orchestrator.cli.app import app as command
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.current import ResponseSigner
from DocsToKG.Orchestrator.signing.keyring import KeyFolder
from DocsToKG.Orchestrator.signing.keys import Trust
from DocsToKG.Orchestrator.signing.statements import ANSWER, envelope_of


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    keys = KeyFolder(tmp_path / "keys")
    keys.new("service", datetime.now(UTC).timestamp())
    return keys


@pytest.fixture
def trust(folder: KeyFolder) -> Trust:
    return Trust(folder.all(), datetime.now(UTC).timestamp())


@pytest.fixture
def caller(make_app: Callable[..., Any], ledger: SqliteLedger, folder: KeyFolder, tmp_path: Path) -> Iterator[Any]:
    signer = ResponseSigner(folder)
    ledger.enqueue_many([NewJob(f"doi:10.1/{n}", {"n": n, "signatures": []}) for n in range(3)])
    reader = AuditExporter(lambda: SqliteLedger(tmp_path / "ledger.sqlite"), signer)
    with TestClient(make_app(sign=signer, audit_exporter=reader)) as client:
        yield caller_of(client)()


def saved(tmp_path: Path, answer: Any) -> Path:
    path = tmp_path / "answer.json"
    path.write_bytes(answer.content)
    return path


def test_a_job_is_proved_from_the_saved_answer(caller: Any, trust: Trust, tmp_path: Path, folder: KeyFolder) -> None:
    """DOC-05."""
    path = saved(tmp_path, caller.get("/jobs/1"))
    report = verify_answer(path, trust)
    assert (report.problems, report.rows) == ([], {"signed": 1, "whole": True})
    result = CliRunner().invoke(command, ["audit", "verify", str(path), "--trust", str(folder.path)])
    assert result.exit_code == 0
    assert result.output.startswith("proved")
    document = json.loads(path.read_text())
    check(envelope_of(document, ANSWER), {key.key_id: key.public for key in folder.all()})


def test_every_job_of_a_list_is_proved_by_itself(caller: Any, trust: Trust, tmp_path: Path) -> None:
    path = saved(tmp_path, caller.get("/jobs"))
    assert verify_answer(path, trust).rows == {"signed": 3, "whole": False}
    found = json.loads(path.read_text())
    found["jobs"][1]["priority"] = 7
    path.write_text(json.dumps(found))
    [problem] = verify_answer(path, trust).problems
    assert problem.startswith("answer.json/jobs/1: is not to be believed (bad-signature)")


def test_a_job_whose_signatures_were_taken_away_spoils_its_list(caller: Any, trust: Trust, tmp_path: Path) -> None:
    path = saved(tmp_path, caller.get("/jobs"))
    found = json.loads(path.read_text())
    del found["jobs"][1]["signatures"]
    found["jobs"][1]["status"] = "DONE"
    path.write_text(json.dumps(found))
    [problem] = verify_answer(path, trust).problems
    assert problem.startswith("answer.json/jobs/1: is not signed")


def test_a_name_told_twice_is_not_proved(caller: Any, trust: Trust, tmp_path: Path) -> None:
    """Some readers take the first, some the last."""
    path = saved(tmp_path, caller.get("/jobs/1"))
    path.write_text(path.read_text().replace("{", '{"status": "DONE", ', 1))
    [problem] = verify_answer(path, trust).problems
    assert "says a name twice" in problem


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [{"state": "done"}, {"payload": {}}, {"signatures": []}, {"more": 1}, {"history": []}, {"jobDigest": "x"}]
)
def test_a_changed_answer_is_not_proved(caller: Any, trust: Trust, tmp_path: Path, change: dict[str, Any]) -> None:
    path = saved(tmp_path, caller.get("/jobs/1"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert verify_answer(path, trust).problems


def test_what_others_put_into_a_payload_is_never_signed_for(caller: Any) -> None:
    assert caller.get("/jobs/1").json()["payload"]["signatures"] == []


def test_an_answer_and_a_bundle_name_a_job_by_the_same_digest(
    caller: Any, trust: Trust, tmp_path: Path, ledger: SqliteLedger
) -> None:
    now = datetime.now(UTC)
    span = {"from": (now - timedelta(days=1)).isoformat(), "to": now.isoformat()}
    answer = caller.get(f"/audit/export?{urlencode(span)}")
    assert answer.status_code == 200, answer.text
    path = tmp_path / "audit.tar.zst"
    path.write_bytes(answer.content)
    report = verify(path, trust)
    assert report.problems == []
    assert (report.manifest["tenant"], report.rows["jobs.jsonl"]) == ("default", 3)
    whole = caller.get(f"/audit/export/all?{urlencode(span)}")
    assert whole.status_code == 403
    with bundle.opened(path, lambda envelope, kind, where: base64.b64decode(envelope["payload"])) as files:
        content = {name: bundle.whole(stream, size, name) for name, size, stream in files}
    digests = [json.loads(line)["jobDigest"] for line in content["jobs.jsonl"].splitlines()]
    assert sorted(digests) == sorted(job["jobDigest"] for job in caller.get("/jobs").json()["jobs"])


def test_an_export_leaves_nothing_on_disk(caller: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    span = {"from": "2026-01-01T00:00:00Z", "to": datetime.now(UTC).isoformat()}
    assert caller.get(f"/audit/export?{urlencode(span)}").status_code == 200
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_export_says_what_is_wrong(caller: Any, make_app: Any) -> None:
    late = {"from": "2026-01-01T00:00:00Z", "to": "2999-01-01T00:00:00Z"}
    assert caller.get(f"/audit/export?{urlencode(late)}").json()["error"]["code"] == "BAD_RANGE"
    assert caller.get("/audit/export").status_code == 422
    with TestClient(make_app()) as client:
        assert caller_of(client)().get(f"/audit/export?{urlencode(late)}").status_code == 404


def test_without_keys_answers_are_as_before(make_app: Any, ledger: SqliteLedger, tmp_path: Path) -> None:
    ledger.enqueue_many([NewJob("doi:10.1/x", {})])
    with TestClient(make_app(sign=ResponseSigner(KeyFolder(tmp_path / "none")))) as client:
        assert caller_of(client)().get("/jobs/1").json()["signatures"] == []
