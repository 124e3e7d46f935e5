"""`content sandbox`: serves, says how to use it, and writes the client's configuration."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys

import pytest
import typer
import yaml
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.sandbox import sandbox
from DocsToKG.Sandbox import World
from DocsToKG.Sandbox.__main__ import main
from DocsToKG.Sandbox.examples import curl_examples

RUN = "import typer; from DocsToKG.ContentDownload.cli.sandbox import sandbox; typer.run(sandbox)"


def _serve(*words):
    """Run the command until it has said where it is, then press Ctrl+C."""
    command = [sys.executable, "-c", RUN, "--works", "40", *words]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said += process.stdout.read()
        return process.wait(timeout=20), said


@pytest.mark.slow
@pytest.mark.parametrize(("name", "load"), [("p.json", json.loads), ("p.yaml", yaml.safe_load)])
def test_it_serves_until_interrupted_and_writes_the_profile(tmp_path, name, load):
    code, said = _serve("--profile", str(tmp_path / name), "--rate-factor", "5")
    assert code == 0
    assert "A scholarly web of 40 works answers on http://127.0.0.1:" in said
    assert f"--config {tmp_path / name}" in said
    profile = load((tmp_path / name).read_text())
    assert profile["limits"] == {"rate_factor": 5.0}
    assert profile["http"]["connect_to"]["*"].startswith("plain://127.0.0.1:")


def test_wrong_options_are_explained():
    app = typer.Typer()
    app.command()(sandbox)
    wrong = CliRunner().invoke(app, ["--fault", "rain=1"])
    assert wrong.exit_code == 2
    assert "is no fault" in wrong.output
    for factor in ("nan", "inf", "0", "-1"):
        assert CliRunner().invoke(app, ["--rate-factor", factor]).exit_code == 2
        assert main(["--rate-factor", factor]) == 2


def test_a_profile_that_cannot_be_written_is_named(tmp_path):
    app = typer.Typer()
    app.command()(sandbox)
    wrong = CliRunner().invoke(
        app, ["--works", "5", "--profile", str(tmp_path / "no" / "p.yaml")], env={"COLUMNS": "300"}
    )
    assert wrong.exit_code == 2
    assert "cannot be written" in wrong.output


def test_there_is_a_command_to_try_for_each_service(calm, ask):
    examples = curl_examples(calm.world, calm.port)
    names = [example.split()[0] for example in examples]
    assert names == [
        "unpaywall", "openalex", "crossref", "doi", "semanticscholar",
        "publisher", "repository", "arxiv", "pmc", "europepmc", "wayback", "truth",
    ]  # fmt: skip
    for example in examples:
        words = shlex.split(example)
        host = words[words.index("-H") + 1].removeprefix("Host: ")
        target = words[-1].removeprefix(f"http://127.0.0.1:{calm.port}")
        assert ask(calm, f"https://{host}{target}").status in (200, 302), example


def test_examples_leave_out_what_a_small_world_has_not():
    assert 6 <= len(curl_examples(World(count=1), 8080)) < 12
