"""Events from the command line, as an operator meets them: one key, one file of settings, one command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.events_receiver import SECRET, Answer, Receiver, receiving
from tests.waiting import eventually
from typer.testing import CliRunner

from DocsToKG.Orchestrator.cli.app import app
from DocsToKG.Orchestrator.events.outbox import Outbox, Subscription
from DocsToKG.Orchestrator.ledger.base import Finish, JobState, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.keyring import KeyFolder

PROGRAM = [sys.executable, "-c", "from DocsToKG.Orchestrator.main import main; main()"]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(KeyFolder(tmp_path / "keys").new("events", 0.0).public) as one:
        yield one


@pytest.fixture
def settings(tmp_path: Path, receiver: Receiver) -> Path:
    (tmp_path / "secret").write_text(SECRET + "\n")
    file = tmp_path / "server.yaml"
    target = {"name": "hook", "url": receiver.url, "secret_file": str(tmp_path / "secret"), "max_tries": 1,
              "at_once": 1, "private_hosts": ["127.0.0.1"], "types": ["job.completed", "job.failed"]}  # fmt: skip
    events = {"targets": [target], "poll_seconds": 0.05, "retry_seconds": 0.05}
    file.write_text(json.dumps({"ledger": str(tmp_path / "ledger.sqlite"), "port": 0, "events": events}))
    return file


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


def work(ledger: Any, count: int) -> None:
    ledger.enqueue_many([NewJob(f"{time.monotonic_ns()}-{n}", {}) for n in range(count)])
    for job in ledger.lease("w", count, 60):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))


def test_what_waits_is_sent_listed_retried_and_forgotten(settings: Path, receiver: Receiver, tmp_path: Path) -> None:
    where = ["-c", str(settings)]
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        assert run("events", "status", *where).output == "No target: no event is recorded or sent.\n"
        assert run("events", "run", "--once", *where).output == "0 sent\n"
        work(ledger, 2)
        receiver.always = Answer(410)
        assert run("events", "run", "--once", *where).output == "0 sent\n"
        [dead] = [json.loads(line) for line in run("events", "list", "--dead", "--json", *where).output.splitlines()]
        assert (dead["event_type"], dead["tries"], dead["last_error"]) == ("job.completed", 1, "127.0.0.1 answers 410")
        [told] = json.loads(run("events", "status", "--json", *where).output)
        assert (told["waiting"], told["dead"], told["failures"]) == (1, 1, 1)
        assert "127.0.0.1 answers 410" in run("events", "status", *where).output
        receiver.always = None
        assert run("events", "retry", str(dead["number"]), *where).output == "1 wait again\n"
        assert run("events", "run", "--once", *where).output == "2 sent\n"
        assert len(set(receiver.ids)) == 2
        work(ledger, 1)
        assert "job.completed" in run("events", "list", *where).output
        assert run("events", "forget", "hook", "--yes", *where).output == "1 dropped\n"
        for words in (["forget", "hook", "--yes"], ["retry", "--target", "hook"], ["list", "--target", "hook"]):
            unknown = run("events", *words, *where)
            assert (unknown.exit_code, "no target 'hook'" in unknown.output) == (1, True)
    assert receiver.wrong == []


def test_the_commands_say_what_is_missing(tmp_path: Path) -> None:
    nowhere = run("events", "status", "--ledger", str(tmp_path / "none.sqlite"))
    assert nowhere.exit_code == 1
    assert "there is no ledger at" in nowhere.output
    SqliteLedger(tmp_path / "ledger.sqlite").close()
    without = run("events", "run", "--ledger", str(tmp_path / "ledger.sqlite"))
    assert without.exit_code == 2
    assert "events.targets" in without.output


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "events run"])
def test_events_arrive_while_it_runs_and_it_ends_when_told(
    command: str, settings: Path, receiver: Receiver, tmp_path: Path
) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        Outbox(ledger).register([Subscription("hook", "webhook", types=("job.completed",))])
        words = [*PROGRAM, *command.split(), "-c", str(settings)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ)
        try:
            work(ledger, 5)
            eventually(lambda: len(set(receiver.ids)) == 5 or process.poll() is not None)
            assert process.poll() is None, process.stdout and process.stdout.read()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    assert receiver.wrong == []
    assert {event["eventType"] for event in receiver.events} == {"job.completed"}
