"""`doctor` without servers: a laptop, the settings themselves, and checks that hang, break or talk too much."""

from __future__ import annotations

import json
import os
import resource
import socket
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.config.loader import load_config, load_config_verbose
from DocsToKG.ContentDownload.doctor.checks import checks_for
from DocsToKG.ContentDownload.doctor.machine import (
    check_collector,
    check_machine,
    check_names,
    check_port,
    check_proxies,
)
from DocsToKG.ContentDownload.doctor.running import look_at_all
from DocsToKG.ContentDownload.doctor.settings import check_secrets, known_secrets
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.storage.check import check_folder
from DocsToKG.core import checks
from DocsToKG.core.checks import Finding, Level, failed, ok, warning
from DocsToKG.Orchestrator.ledger.drivers.sqlite.check import check_file
from DocsToKG.Orchestrator.notifications.check_nats import check_nats
from DocsToKG.Orchestrator.notifications.check_redis import check_redis

SECRET = "planted-secret-word"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, in an empty folder; names of the web have fixed answers, since tests ask no DNS."""
    for name in list(os.environ):
        if name.startswith(("DOCSTOKG_", "DTKG_", "AWS_", "OTEL_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, settings: dict[str, Any], mode: int = 0o600) -> Path:
    path.write_text(yaml.safe_dump({"http": {"names": {"*": ["127.0.0.1"]}}, **settings}))
    path.chmod(mode)
    return path


def examine(*words: str) -> tuple[int, dict[str, dict[str, dict[str, Any]]], str]:
    """The exit code, and what was found by check and subject."""
    result = CliRunner().invoke(app, ["doctor", *words, "--json"])
    told = json.loads(result.stdout)
    found = {one["check"]: {finding["subject"]: finding for finding in one["findings"]} for one in told["checks"]}
    return result.exit_code, found, result.stdout


def findings(check: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check}


def test_a_laptop_that_names_its_user_is_well(home: Path) -> None:
    file = write(home / "c.yaml", {"contact": "reader@university.edu"})
    code, found, _ = examine("-c", str(file))
    assert code == 0
    assert {"this machine", "queue", "folder of files", "manners", "secrets", "together"} <= set(found)
    assert "docstokg" in found["this machine"]["program"]["seen"]
    assert list(home.iterdir()) == [file], "looking makes nothing"


def test_what_is_worth_a_warning_leaves_three_and_says_what_to_do(home: Path) -> None:
    code, found, _ = examine("-c", str(write(home / "c.yaml", {})))
    assert code == 3
    assert found["manners"]["contact"]["level"] == "warning"
    assert "config set contact" in found["manners"]["contact"]["advice"]


def test_what_would_stop_a_run_leaves_one_and_is_shown_to_people_with_its_advice(home: Path) -> None:
    (home / "blocked").write_text("a file")
    settings = {"contact": "reader@university.edu", "storage": {"root_dir": str(home / "blocked" / "docs")}}
    result = CliRunner().invoke(app, ["doctor", "-c", str(write(home / "c.yaml", settings))])
    assert result.exit_code == 1
    assert "is a file" in result.stdout
    assert "failed: folder of files, folder: name a folder" in result.stdout
    assert "1 failed" in result.stderr


def test_quick_looks_only_at_what_is_needed_and_warns_nobody(home: Path) -> None:
    code, found, _ = examine("--quick", "-c", str(write(home / "c.yaml", {})))
    assert code == 0
    assert "manners" not in found
    assert [list(subjects) for subjects in found.values()] == [["file"], ["folder"], ["folder"], ["folder"], ["folder"]]


def test_a_settings_file_that_is_not_there_is_wrong_usage(home: Path) -> None:
    assert CliRunner().invoke(app, ["doctor", "-c", str(home / "none.yaml")]).exit_code == 2


@dataclass
class Hanging:
    """Tells one thing, then waits for something that never comes."""

    release: threading.Event
    name: str = "hanging"
    needed: bool = True

    def run(self) -> Iterator[Finding]:
        yield ok("first", "told")
        self.release.wait(60)
        yield ok("second", "too late")


@dataclass
class Telling:
    told: Finding | Exception
    name: str = "telling"
    needed: bool = True

    def run(self) -> Iterator[Finding]:
        if isinstance(self.told, Exception):
            raise self.told
        yield self.told


@pytest.mark.slow
def test_a_check_that_hangs_keeps_what_it_told_and_holds_up_nobody() -> None:
    release = threading.Event()
    try:
        hanging, telling = look_at_all([Hanging(release), Telling(ok("a", "b"))], each_s=3)
    finally:
        release.set()
    assert [finding.subject for finding in hanging.findings] == ["first", "time"]
    assert hanging.worst == Level.FAILED
    assert "3 s" in hanging.findings[-1].seen
    assert telling.worst == Level.OK


def test_all_checks_run_at_once() -> None:
    """Each waits until the other has begun, which one after the other never happens."""
    barrier = threading.Barrier(2, timeout=30)

    @dataclass
    class Meeting:
        name: str = "meeting"
        needed: bool = True

        def run(self) -> Iterator[Finding]:
            barrier.wait()
            yield ok("met", "yes")

    assert [answer.worst for answer in look_at_all([Meeting(), Meeting()], each_s=60)] == [Level.OK, Level.OK]


def test_what_a_check_raises_is_told_by_its_kind_alone() -> None:
    [answer] = look_at_all([Telling(RuntimeError(SECRET))], each_s=30)
    assert answer.worst == Level.FAILED
    assert "RuntimeError" in answer.findings[0].seen
    assert SECRET not in str(answer)


def test_known_secrets_and_keys_in_addresses_are_taken_out_of_every_word() -> None:
    text = f"refused {SECRET} at https://u:other@host/x?api_key=k1"
    [answer] = look_at_all([Telling(failed("a", text, text))], each_s=30, hide=lambda word: word.replace(SECRET, "***"))
    assert not {SECRET, "other", "k1"} & set(str(answer).replace("@", " ").replace(":", " ").replace("=", " ").split())
    assert SECRET not in str(answer)


def test_every_secret_is_known_by_its_parts(home: Path) -> None:
    settings = {
        "queue": {"backend": "postgres", "connection_string": "postgresql://u:pa%20ss@db.example.org/q"},
        "resolvers": {"core": {"api_key": "core-key-1"}},
    }
    cfg = load_config_verbose(write(home / "c.yaml", settings)).config
    words = known_secrets(cfg, {"AWS_SECRET_ACCESS_KEY": "aws-key-1"})
    assert {"pa%20ss", "pa ss", "core-key-1", "aws-key-1"} <= set(words)


def test_a_password_in_a_file_that_others_may_read_is_told_by_its_key(home: Path) -> None:
    settings = {
        "contact": "reader@university.edu",
        "rate_limit": {"backend": "redis", "redis_url": f"redis://:{SECRET}@127.0.0.1:1/0"},
    }
    _, found, shown = examine("--timeout", "20", "-c", str(write(home / "c.yaml", settings, mode=0o644)))
    assert found["secrets"]["place"]["level"] == "warning"
    assert "DOCSTOKG_CONTENT_RATE_LIMIT__REDIS_URL" in found["secrets"]["place"]["advice"]
    assert found["limits"]["reachable"]["level"] == "failed"
    assert SECRET not in shown
    _, found, _ = examine("--timeout", "20", "-c", str(write(home / "c.yaml", settings)))
    assert "place" not in found["secrets"]


def test_a_password_of_the_environment_is_fine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCSTOKG_CONTENT_RATE_LIMIT__REDIS_URL", f"redis://:{SECRET}@127.0.0.1:1/0")
    settings = {"contact": "reader@university.edu", "rate_limit": {"backend": "redis"}}
    _, found, shown = examine("--timeout", "20", "-c", str(write(home / "c.yaml", settings, mode=0o644)))
    assert "rate_limit.redis_url" in found["secrets"]["set"]["seen"]
    assert "place" not in found["secrets"]
    assert SECRET not in shown


@pytest.mark.slow
def test_machines_that_share_a_queue_are_told_what_they_do_not_share(home: Path) -> None:
    queue = {"backend": "postgres", "connection_string": "postgresql://u@127.0.0.1:1/q", "node_id": "node-7"}
    _, found, _ = examine("--timeout", "20", "-c", str(write(home / "c.yaml", {"queue": queue})))
    assert {"limits", "files", "record"} <= set(found["together"])
    assert found["this machine"]["node"]["seen"] == "node-7"
    assert found["queue"]["reachable"]["level"] == "failed"
    assert found["wake-ups"]["wake-ups"]["level"] == "warning", "work goes on without wake-ups"


def test_leases_that_one_lost_heartbeat_would_free_are_told(home: Path) -> None:
    settings = {"orchestrator": {"lease_ttl_seconds": 40, "heartbeat_seconds": 30}}
    _, found, _ = examine("-c", str(write(home / "c.yaml", settings)))
    assert found["together"]["leases"]["level"] == "warning"


def test_manners_are_looked_at(home: Path) -> None:
    settings = {"robots": {"enabled": False}, "limits": {"rate_factor": 3, "shared": False}}
    cfg = load_config_verbose(write(home / "c.yaml", settings)).config
    [manners] = [check for check in checks_for(cfg, origins={}, environ={}) if check.name == "manners"]
    said = [(finding.subject, finding.level) for finding in manners.run()]
    assert said == [(word, Level.WARNING) for word in ("contact", "robots.txt", "rates", "rates")]


def test_a_queue_file_is_looked_at_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "q.sqlite"
    with WorkQueue(path) as queue:
        queue.enqueue("local:1", {})
    before = path.read_bytes()
    found = findings(check_file(path, wal=True))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert "schema" in found["file"].seen
    assert path.read_bytes() == before


def test_a_queue_file_of_a_newer_program_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "q.sqlite"
    WorkQueue(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    found = findings(check_file(path, wal=True))
    assert found["file"].level == Level.FAILED
    assert "99" in found["file"].seen
    assert "newer version" in found["file"].advice


def test_a_queue_file_that_is_none_or_locked_is_told(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    assert findings(check_file(other, wal=True))["file"].level == Level.FAILED
    text = tmp_path / "text.sqlite"
    text.write_text("no database, and long enough to be seen as such" * 10)
    assert findings(check_file(text, wal=True))["file"].level == Level.FAILED


@pytest.mark.parametrize(
    ("need", "want", "level"), [(0, 0, Level.OK), (0, 2**62, Level.WARNING), (2**62, 2**62, Level.FAILED)]
)
def test_a_folder_is_tried_and_measured(tmp_path: Path, need: int, want: int, level: Level) -> None:
    found = findings(check_folder(tmp_path, need, want))
    assert (found["folder"].level, found["space"].level) == (Level.OK, level)
    assert found["inodes"].seen
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_ours_is_told(tmp_path: Path) -> None:
    # Root may write everywhere but there.
    place = Path("/proc") if os.geteuid() == 0 else tmp_path
    if place == tmp_path:
        tmp_path.chmod(0o500)
    try:
        found = findings(check_folder(place))["folder"]
    finally:
        tmp_path.chmod(0o700)
    assert found.level == Level.FAILED
    assert f"uid {os.getuid()}" in found.advice


def test_a_folder_that_we_may_not_look_into_is_told_as_such(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    try:
        folder = findings(check_folder(shut / "in"))["folder"]
        file = findings(check_file(shut / "q.sqlite", wal=True))["file"]
    finally:
        shut.chmod(0o700)
    if os.geteuid() != 0:  # root may look everywhere
        assert (folder.level, file.level) == (Level.FAILED, Level.FAILED)
    # What nobody can look at.
    assert findings(check_folder(tmp_path / ("x" * 300)))["folder"].seen
    file = findings(check_file(tmp_path / ("x" * 300), wal=True))["file"]
    assert (file.level, "name too long" in file.seen) == (Level.FAILED, True)


@pytest.mark.parametrize("address", ["[", "h:port"])
def test_an_address_that_is_none_is_told_as_such(home: Path, address: str) -> None:
    redis, nats = (f"{scheme}://{address}" for scheme in ("redis", "nats"))
    cfg = load_config(None, {"rate_limit": {"backend": "redis", "redis_url": redis}}, environ={})
    found = (check_redis(redis, "x", "limits"), check_nats(nats, "x"))
    told = [[finding.subject for finding in check] for check in found]
    assert told == [["address"], ["address"]]
    assert "set" in findings(check_secrets(cfg, {}, {}))


def test_too_few_open_files_are_told_with_the_way_out() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = findings(check_machine(files=soft + 1, node=None))
    assert found["open files"].level == Level.WARNING
    assert "LimitNOFILE" in found["open files"].advice


def test_names_are_looked_up() -> None:
    assert findings(check_names(["localhost"]))["names"].level == Level.OK
    assert findings(check_names(["localhost", "no-such-host.invalid"]))["names"].level == Level.WARNING
    assert findings(check_names(["no-such-host.invalid"]))["names"].level == Level.FAILED


def test_a_port_takes_connections_or_not() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert findings(check_port("127.0.0.1", port, "x"))["reachable"].level == Level.OK
    assert findings(check_port("127.0.0.1", port, "x"))["reachable"].level == Level.FAILED


def test_a_proxy_is_looked_at_as_requests_would_find_it() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        found = findings(check_proxies({"http_proxy": f"http://{address}", "https_proxy": address}))
    assert found == {"reachable": ok("reachable", address)}
    assert findings(check_proxies({"https_proxy": address, "no_proxy": "*"})) == {}, "nothing goes through it"


@pytest.mark.parametrize("address", ["ftp://127.0.0.1:1080", "http://proxy.example.org:port"])
def test_a_proxy_that_cannot_be_used_is_named_by_doctor_and_by_a_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    file = str(write(home / "c.yaml", {"contact": "reader@university.edu", "limits": {"shared": False}}))
    code, found, _ = examine("-c", file)
    assert (code, found["proxy"]["address"]["level"]) == (1, "failed")
    assert "https_proxy" in found["proxy"]["address"]["seen"]
    tried = CliRunner().invoke(app, ["plan", "10.1371/journal.pone.0000308", "-c", file])
    assert tried.exit_code == 1
    assert "Error: http.proxy: https_proxy" in tried.stderr
    assert "http://proxy.example.org:3128" in tried.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:port", "localhost:4317"])
def test_a_collector_that_has_no_address_is_told_as_such(address: str) -> None:
    assert findings(check_collector(address))["address"].level == Level.FAILED


@pytest.mark.parametrize(
    ("skew", "unsure", "level"),
    [
        (0.0, 0.01, Level.OK),
        (1.9, 0.0, Level.OK),
        (-30, 0.1, Level.WARNING),
        (5, 4, Level.OK),
        (4000, 1, Level.WARNING),
    ],
)
def test_clocks_that_differ_are_told_as_far_as_they_are_known(skew: float, unsure: float, level: Level) -> None:
    assert checks.clock(skew, unsure).level == level


def test_the_side_on_which_a_clock_is_wrong_is_told() -> None:
    assert "behind ours" in checks.clock(-30, 0).seen
    assert "ahead of ours" in checks.clock(30, 0).seen
    assert "certificates" in checks.clock(3000, 0).seen


@pytest.mark.parametrize("host", [None, "", "localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]", "/run/postgresql"])
def test_what_stays_on_this_machine_needs_no_encryption(host: str | None) -> None:
    assert checks.encryption(host, False, "x").level == Level.OK


@pytest.mark.parametrize("host", ["db.example.org", "10.0.0.7", "2001:db8::1"])
def test_what_leaves_this_machine_does(host: str) -> None:
    assert checks.encryption(host, False, "use TLS") == warning(
        "encryption", f"none on the way to {host}: passwords and data can be read there", "use TLS"
    )
    assert checks.encryption(host, True, "x").level == Level.OK
