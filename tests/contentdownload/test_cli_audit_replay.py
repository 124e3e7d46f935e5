"""A run can be repeated from its cache, offline, and comes out the same; what cannot be is told."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.Orchestrator.cli.app import app as ledger_app

PAPERS = 8
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "corpus"
    done = CliRunner().invoke(app, ["demo", "--papers", str(PAPERS), "--out", str(folder), "--quiet"])
    assert done.exit_code == 0, done.output
    assert (
        CliRunner().invoke(ledger_app, ["audit", "keys", "new", "lab", "--keys", str(folder / "keys")]).exit_code == 0
    )
    run("manifest", "--run", str(folder), "-o", str(folder / "replay.json"), "--keys", str(folder / "keys"))
    return folder


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["audit", *words])
    assert result.exit_code == code, result.output
    return result


def check(corpus: Path, *words: str, code: int = 0) -> Result:
    return run("replay-check", str(corpus / "replay.json"), "--run", str(corpus), *words, code=code)


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix in (".pdf", ".jsonl", ".csv"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_run_comes_out_the_same_without_a_packet(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = everything(corpus)
    said = check(corpus, "--trust", str(corpus / "keys")).output
    assert f"{PAPERS} jobs: {PAPERS} same" in said
    assert everything(corpus) == before


def test_the_manifest_tells_inputs_settings_versions_and_outcomes(corpus: Path) -> None:
    document = json.loads((corpus / "replay.json").read_text())
    assert document["about"]["configHash"].startswith("sha256:")
    assert document["versions"]["producer"].startswith("docstokg")
    job = document["jobs"][0]
    assert {"jobDigest", "payloadDigest", "input", "state", "outcome", "notes", "result"} <= set(job)
    verified = CliRunner().invoke(
        ledger_app, ["audit", "verify", str(corpus / "replay.json"), "--trust", str(corpus / "keys")]
    )
    assert verified.exit_code == 0, verified.output


def test_a_changed_manifest_is_refused(corpus: Path, tmp_path: Path) -> None:
    document = json.loads((corpus / "replay.json").read_text())
    document["jobs"][0]["input"]["doi"] = "10.1/other"
    changed = tmp_path / "replay.json"
    changed.write_text(json.dumps(document))
    signed = run("replay-check", str(changed), "--run", str(corpus), "--trust", str(corpus / "keys"), code=1)
    assert "bad-signature" in signed.output
    unsigned = run("replay-check", str(changed), "--run", str(corpus), code=1)
    assert "is not the one that was digested" in unsigned.output


def test_another_file_than_then_is_told_as_different(corpus: Path, tmp_path: Path) -> None:
    document = json.loads((corpus / "replay.json").read_text())
    document["jobs"][0]["result"]["sha256"] = "0" * 64
    changed = tmp_path / "replay.json"
    changed.write_text(json.dumps(document))
    lines = run("replay-check", str(changed), "--run", str(corpus), "--json", code=1).output.splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["different"] + ["same"] * (PAPERS - 1)


def test_what_the_cache_no_longer_holds_is_told_as_not_kept(corpus: Path, tmp_path: Path) -> None:
    copy = tmp_path / "corpus"
    shutil.copytree(corpus, copy)
    shutil.rmtree(copy / "state" / "cache")
    assert f"{PAPERS} not kept" in check(copy, code=3).output
