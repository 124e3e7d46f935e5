"""`docstokg-orchestrator audit`, as a new user and as an auditor meet it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.orchestrator.eventful import afternoon, morning
from typer.testing import CliRunner, Result

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.cli.app import app
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> Path:
    """A folder with a ledger in which things happened on 2025-06-15."""
    monkeypatch.chdir(tmp_path)
    with SqliteLedger(tmp_path / "state" / "workqueue.sqlite", clock=clock) as ledger:
        morning(ledger, clock)
        afternoon(ledger, clock)
    return tmp_path


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["audit", *words])
    assert result.exit_code == code, result.output
    return result


def only(here: Path, pattern: str) -> str:
    [found] = here.glob(pattern)
    return str(found)


def export(out: str, *words: str) -> Result:
    return run("export", "--from", "2025-06-15", "--to", "2025-06-16", "-o", out, *words)


@pytest.mark.slow
def test_from_no_key_to_a_proved_bundle(here: Path) -> None:
    assert "audit keys new" in run("export", "--from", "2025-06-15", "-o", "day.tar.zst", code=1).output
    run("keys", "new", "operations")
    assert "6 jobs" in export("day.tar.zst").output
    run("keys", "trust", only(here, "state/keys/*.pub.json"), "--trust", "trust.json")
    shutil.rmtree(here / "state")  # an auditor has neither ledger nor keys
    assert run("verify", "day.tar.zst", "--trust", "trust.json").output.startswith("proved  day.tar.zst")
    said = json.loads(run("verify", "day.tar.zst", "--trust", "trust.json", "--json").output)
    assert (said["proved"], said["problems"], said["signers"][0]["name"]) == (True, [], "operations")


def test_days_are_proved_in_their_order(here: Path) -> None:
    run("keys", "new", "operations")
    days = ["2025-06-15", "2025-06-15T15:30Z", "2025-06-16T00:00:00+00:00"]
    for n, (start, end) in enumerate(pairwise(days)):
        run("export", "--from", start, "--to", end, "-o", f"{n}.tar.zst")
    assert run("verify", "0.tar.zst", "1.tar.zst", "--trust", "state/keys").output.count("proved") == 2
    assert "begins at" in run("verify", "1.tar.zst", "0.tar.zst", "--trust", "state/keys", code=1).output


def test_a_changed_bundle_is_told_with_its_place(here: Path) -> None:
    run("keys", "new", "operations")
    export("day")
    history = here / "day" / "history.jsonl"
    history.write_text(history.read_text().replace('"event":"leased"', '"event":"\\u001b[2J"', 1))
    shown = run("verify", "day", "--trust", "state/keys", code=1).output
    assert "NOT PROVED  day" in shown
    assert "history.jsonl line" in shown
    assert "\x1b" not in shown


def test_a_rotated_key_is_trusted_by_those_who_trusted_the_old_one(here: Path) -> None:
    run("keys", "new", "operations")
    run("keys", "trust", only(here, "state/keys/*.pub.json"), "--trust", "trust.json")
    export("old.tar.zst")
    run("keys", "rotate", "operations")
    export("new.tar.zst")
    assert "untrusted" in run("verify", "new.tar.zst", "--trust", "trust.json", code=1).output
    run("keys", "trust", only(here, "state/keys/*.rotation.dsse.json"), "--trust", "trust.json")
    run("verify", "new.tar.zst", "--trust", "trust.json")
    run("verify", "old.tar.zst", "--trust", "trust.json")
    listed = run("keys", "list").output
    assert listed.count("retired") == listed.count("signs") == 1
    assert len(list(here.glob("state/keys/*.key"))) == 1


def test_a_rotation_that_nobody_trusted_vouches_for_is_refused(here: Path) -> None:
    run("keys", "new", "operations", "--keys", "theirs")
    run("keys", "rotate", "operations", "--keys", "theirs")
    run("keys", "new", "mine", "--keys", "mine")
    run("keys", "trust", only(here, "mine/*.pub.json"), "--trust", "trust.json")
    before = (here / "trust.json").read_text()
    refused = run("keys", "trust", only(here, "theirs/*.rotation.dsse.json"), "--trust", "trust.json", code=1)
    assert "untrusted" in refused.output
    assert (here / "trust.json").read_text() == before


def test_an_expired_key_neither_signs_nor_proves(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("keys", "new", "brief", "--days", "1")
    export("day.tar.zst")
    now = __import__("time").time()
    monkeypatch.setattr("DocsToKG.core.clock.SystemClock.now", lambda self: now + 2 * 86_400)
    expired = run("export", "--from", "2025-06-15", "--to", "2025-06-16", "-o", "late", code=1)
    assert "audit keys new brief" in expired.output
    assert "expired" in run("verify", "day.tar.zst", "--trust", "state/keys", code=1).output
    import datetime

    then = datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
    run("verify", "day.tar.zst", "--trust", "state/keys", "--at", then)


def test_two_signers_and_a_threshold(here: Path) -> None:
    run("keys", "new", "operations")
    run("keys", "new", "auditor")
    export("both.tar.zst")
    export("one.tar.zst", "--key", "auditor")
    run("verify", "both.tar.zst", "--trust", "state/keys", "--threshold", "2")
    shown = run("verify", "both.tar.zst", "--trust", only(here, "state/keys/auditor.*.pub.json")).output
    assert shown.count("not trusted") == 1  # whoever signs along may call itself anything
    assert "2 asked for" in run("verify", "one.tar.zst", "--trust", "state/keys", "--threshold", "2", code=1).output


def test_private_keys_are_in_no_output(here: Path) -> None:
    shown = run("keys", "new", "operations", "--json").output + run("keys", "list", "--json").output
    shown += export("day").output + run("keys", "rotate", "operations", "--keep").output
    for path in here.glob("state/keys/*.key"):
        assert path.read_text().splitlines()[1] not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "--from", "soon", "-o", "x"), "is no time"),
        (("export", "--from", "2025-06-15", "--to", "2999-01-01", "-o", "x"), "not over"),
        (("export", "--from", "0001-01-01", "-o", "x"), "between 1970-01-01"),
        (("export", "--from", "2025-06-15", "--to", "9999-12-31T23:00-12:00", "-o", "x"), "between 1970-01-01"),
        (("export", "--from", "2025-06-15", "-o", "x", "--ledger", "none.sqlite"), "there is no ledger"),
        (("export", "--from", "2025-06-15", "-o", "x", "--key", "nobody"), "no key 'nobody'"),
        (("export", "--from", "2025-06-15", "-o", "x.tar.gz"), "x.tar.gz would be a folder"),
        (("export", "--from", "2025-06-15", "-o", "x", "--tenant", "nobody"), "there is no tenant 'nobody'"),
        (("manifest", "--job", "1", "--job", "999", "-o", "x.json"), "there is no job 999"),
        (("verify", "x", "--trust", "none.json"), "cannot read none.json"),
        (("keys", "new", "a/b"), "is no name for a key"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(here: Path, words: tuple[str, ...], said: str) -> None:
    run("keys", "new", "operations", "--keys", "keys")
    shutil.copytree(here / "keys", here / "state" / "keys")
    result: Any = CliRunner().invoke(app, ["audit", *words])
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.output.split())


def test_a_trust_file_from_which_all_were_taken_takes_keys_again(here: Path) -> None:
    """A stolen key is often the only one."""
    run("keys", "new", "operations")
    key = only(here, "state/keys/*.pub.json")
    run("keys", "trust", key, "--trust", "trust.json")
    run("keys", "trust", key, "--trust", "trust.json", "--remove")
    export("day")
    assert "holds no public keys" in run("verify", "day", "--trust", "trust.json", code=1).output
    run("keys", "trust", key, "--trust", "trust.json")
    run("verify", "day", "--trust", "trust.json")


def test_a_folder_is_a_bundle_whatever_its_name(here: Path) -> None:
    run("keys", "new", "operations")
    export("day.json")
    (here / "latest").symlink_to("day.json")
    run("verify", "day.json", "--trust", "state/keys")
    run("verify", "latest", "--trust", "state/keys")


def test_an_export_that_is_told_to_end_leaves_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("keys", "new", "operations")
    deed = "DocsToKG.Orchestrator.audit.export.signed_manifest"
    monkeypatch.setattr(deed, lambda *words: os.kill(os.getpid(), signal.SIGTERM))
    assert run("export", "--from", "2025-06-15", "-o", "day", code=130)
    assert [path.name for path in here.iterdir()] == ["state"]
