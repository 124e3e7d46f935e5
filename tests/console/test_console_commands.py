"""The commands around the console: `--console` beside a run, and `call` for what the console copies as a command."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.console.conftest import console_over
from typer.testing import CliRunner

from DocsToKG.Orchestrator.cli.app import app

pytestmark = pytest.mark.slow
DEMO = [sys.executable, "-c", "from DocsToKG.ContentDownload.cli.main import content; content()", "demo"]


def test_call_asks_what_the_api_has_and_says_what_it_refuses(tmp_path, monkeypatch):
    with console_over(tmp_path / "ledger.sqlite") as console:
        monkeypatch.setenv("DOCSTOKG_TOKEN", console.token)

        def call(*words: str):
            return CliRunner().invoke(app, ["call", *words, "--url", console.origin])

        for number in range(3):
            made = call("POST", "/jobs", "--body", json.dumps({"payload": {"n": number}, "artifactId": f"a:{number}"}))
            assert made.exit_code == 0, made.output
        refused = call("POST", "/jobs/1/cancel")
        assert (refused.exit_code, "reason" in refused.stderr) == (1, True)
        assert call("POST", "/jobs/1/cancel", "--reason", "it's a test", "--ticket", "T-1").exit_code == 0
        listed = json.loads(call("GET", "/jobs?status=queued&page_size=1").stdout)["jobs"]
        assert [job["id"] for job in listed] == [3], "the query counts"
        [decision] = json.loads(call("GET", "/actions?ticket=T-1").stdout)["actions"]
        assert decision["reason"] == "it's a test"
        assert call("PATCH", "/jobs").exit_code == 2
        monkeypatch.delenv("DOCSTOKG_TOKEN")
        assert "DOCSTOKG_TOKEN" in call("GET", "/jobs").stderr


def test_a_run_shows_itself_while_it_works_and_its_token_ends_with_it(tmp_path: Path):
    out = tmp_path / "corpus"
    words = [*DEMO, "--papers", "60", "--workers", "2", "--console", "--quiet", "--out", str(out)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            found = next(found for line in process.stderr if (found := re.match(r"Console: (\S+)#token=(\S+)", line)))
            address, token = found[1], found[2]
            with urllib.request.urlopen(address, timeout=30) as page:
                assert b"<title>Console</title>" in page.read()
            headers = {"Authorization": f"Bearer {token}"}
            asked = urllib.request.Request(address.replace("/console/", "/api/dashboard/metrics"), headers=headers)
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert sum(json.load(answer)["counts"].values()) <= 60
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            process.wait(60)
        finally:
            process.kill()
    kept = (out / "state" / "ledger.sqlite.tokens.json").read_text(encoding="utf-8")
    assert "console" not in kept
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)
