"""`docstokg-orchestrator serve` and `token`, as processes and as commands."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from DocsToKG.Orchestrator import bootstrap
from DocsToKG.Orchestrator.cli.app import app
from DocsToKG.Orchestrator.cli.options import settings_of
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.settings import BadSettings, ServerSettings, load_settings

PROGRAM = [sys.executable, "-c", "from DocsToKG.Orchestrator.main import main; main()"]


def run(*words: str):
    return CliRunner().invoke(app, list(words))


@pytest.mark.slow
def test_serve_without_settings_opens_the_local_queue_and_ends_gently(tmp_path):
    """The address and a first token are printed; the token works, is kept as a digest, and is made once."""
    serving = [*PROGRAM, "serve", "--port", "0"]
    with subprocess.Popen(serving, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url, token = process.stdout.readline().strip(), process.stdout.readline().split()[1]
            assert url.startswith("http://127.0.0.1:")
            with ask(f"{url}/api/jobs", token, {"payload": {"n": 1}}) as answer:
                assert answer.status == 201
            with pytest.raises(urllib.error.HTTPError) as refused, ask(f"{url}/api/jobs", "dtk_nonsense"):
                pass
            assert json.load(refused.value)["error"]["code"] == "UNAUTHENTICATED"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            process.kill()
    tokens = tmp_path / "state" / "workqueue.sqlite.tokens.json"
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    assert token not in tokens.read_text()
    assert (tmp_path / "state" / "workqueue.sqlite").is_file()


def ask(url: str, token: str, body: object = None):
    content = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(url, content, headers), timeout=30)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": "0.0.0.0"}, "behind_tls_proxy"),
        ({"host": "::"}, "behind_tls_proxy"),
        ({"host": "example.org"}, "behind_tls_proxy"),
        ({"host": "10.0.0.1", "behind_tls_proxy": True}, r"auth\.keys"),
    ],
)
def test_a_public_address_needs_a_proxy_and_keys(settings, words):
    with pytest.raises(BadSettings, match=words):
        bootstrap.refuse_unsafe(ServerSettings.model_validate(settings))


def test_a_public_address_with_both_is_taken(tmp_path):
    auth = {"jwks_file": tmp_path / "keys.json"}
    bootstrap.refuse_unsafe(ServerSettings.model_validate({"host": "0.0.0.0", "behind_tls_proxy": True, "auth": auth}))
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert bootstrap.is_loopback(host)


def test_settings_are_read_from_a_file_and_never_shown(tmp_path):
    file = tmp_path / "server.yaml"
    file.write_text("port: 9000\nlimits: {burst: 5}\nconnection_string: postgresql://u:planted@h/d\n")
    settings = load_settings(file, {"port": 9001})
    assert (settings.port, settings.limits.burst) == (9001, 5)
    assert "planted" not in repr(settings)
    file.write_text("connection_string: [planted]\n")
    for text, words in (
        ("connection_string: [planted]\n", "connection_string"),
        ("surprise: planted\n", "surprise is not a setting$"),
        ("ledgr: planted\n", "ledgr is not a setting; did you mean ledger"),
        ("auth: {keys: [{file: x, algorithm: none}]}", "algorithm"),
        ("[", "neither YAML nor JSON"),
        ("[" * 5000, "neither YAML nor JSON"),
        ("- a\n", "keys and values"),
    ):
        file.write_text(text)
        with pytest.raises(BadSettings, match=words) as refused:
            load_settings(file)
        assert "planted" not in str(refused.value)
    with pytest.raises(BadSettings, match="cannot read"):
        load_settings(tmp_path / "none.yaml")


def test_a_port_that_is_taken_is_named(tmp_path):
    """And nothing is left behind: no log goes to where this command wrote."""
    root = logging.getLogger("DocsToKG.Orchestrator")
    before = root.handlers[:], root.level, root.propagate
    with bootstrap.listening_socket(ServerSettings(port=0)) as taken:
        port = str(taken.getsockname()[1])
        result = run("serve", "--ledger", str(tmp_path / "l.sqlite"), "--port", port)
    assert result.exit_code == 1
    assert f"port {port}: Address already in use; choose another with --port" in result.stderr
    assert (root.handlers, root.level, root.propagate) == before


@pytest.mark.slow
def test_tokens_are_made_listed_and_taken_back(tmp_path):
    ledger = ["--ledger", str(tmp_path / "q.sqlite")]
    out = tmp_path / "worker.token"
    made = run("token", "new", "worker-1", "--scope", "orch:operate", "--out", str(out), *ledger)
    assert (made.exit_code, made.stdout) == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    shown = run("token", "new", "reader", "--tenant", "*", "--hours", "2", *ledger).stdout.strip()
    assert shown.startswith("dtk_")
    rows = [json.loads(line) for line in run("token", "list", "--json", *ledger).stdout.splitlines()]
    assert [(row["name"], row["scopes"]) for row in rows] == [("worker-1", ["orch:operate"]), ("reader", ["orch:read"])]
    assert "digest" not in rows[0]
    assert "reader" in run("token", "list", *ledger).stdout
    assert run("token", "revoke", rows[0]["token_id"], *ledger).exit_code == 0
    assert run("token", "revoke", rows[0]["token_id"], *ledger).exit_code == 1
    assert len(run("token", "list", *ledger).stdout.splitlines()) == 1


@pytest.mark.parametrize("words", [["--scope", "root"], ["--tenant", "../x"], ["--hours", "0"]])
def test_a_token_without_sense_is_not_made(tmp_path, words):
    assert run("token", "new", "x", *words, "--ledger", str(tmp_path / "q")).exit_code != 0
    assert not list(Path(tmp_path).iterdir())


@pytest.mark.slow
def test_without_the_server_extra_it_says_what_is_missing(tmp_path):
    hidden = (
        "import sys; sys.modules.update(fastapi=None, uvicorn=None, joserfc=None, anyio=None)\n"
        "from DocsToKG.Orchestrator.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden, "serve", "--port", "0"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (done.returncode, "docstokg[server]" in done.stderr) == (1, True)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["true", "head -c 1"])
def test_a_reader_that_goes_away_ends_a_command_without_a_word(tmp_path, reader):
    """CLI-24: as with the other programs."""
    jobs = [NewJob(f"test:{n}", {}) for n in range(100)]
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        ledger.enqueue_many(jobs)
    listing = shlex.join([*PROGRAM, "jobs", "list", "--ledger", str(tmp_path / "l.sqlite")])
    script = f"set -o pipefail; for n in $(seq 3); do {listing}; done | {reader}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, "")


def test_help_does_not_load_the_server():
    look = "print([name for name in ('fastapi', 'uvicorn', 'pydantic') if name in sys.modules])"
    script = f"import sys, DocsToKG.Orchestrator.cli.app; {look}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("files", "served"),
    [
        ([], "state/workqueue.sqlite"),
        (["state/ledger.sqlite"], "state/ledger.sqlite"),
        (["state/ledger.sqlite", "state/workqueue.sqlite"], "state/workqueue.sqlite"),
    ],
)
def test_the_ledger_of_a_folder_is_found(tmp_path, monkeypatch, files, served):
    """A pull's folder is served as well as a queue's, from inside and by its name."""
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert settings_of(str(tmp_path), None).ledger == tmp_path / served
    monkeypatch.chdir(tmp_path)
    assert settings_of(None, None).ledger == Path(served)
    assert settings_of("other.sqlite", None).ledger == Path("other.sqlite")
