"""`doctor` against real servers: all is well, something is wrong, somebody is away; and nothing is left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
import redis
import yaml
from tests import needs
from tests.conformance.conftest import (
    PASSWORD,
    nats_url,
    running,
    running_nats,
    running_valkey,
    s3_environment,
    valkey_url,
)
from tests.contentdownload.conftest import client_config
from tests.waiting import eventually
from typer.testing import CliRunner

from DocsToKG.ContentDownload.bootstrap import run_from_config
from DocsToKG.ContentDownload.catalog.shared.check import check_record
from DocsToKG.ContentDownload.catalog.shared.schema import prepare
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.doctor.running import look_at_all
from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.ContentDownload.storage.check import check_bucket
from DocsToKG.core.checks import Check, Finding, Level
from DocsToKG.Orchestrator.events.outbox import Outbox, Subscription
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.drivers.postgres import check as postgres_check
from DocsToKG.Orchestrator.ledger.drivers.postgres.check import check_listen, check_queue, versions_finding
from DocsToKG.Orchestrator.ledger.drivers.postgres.schema import migrations
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Orchestrator.notifications.check_nats import check_nats
from DocsToKG.Orchestrator.notifications.check_redis import RIGHTS, check_redis
from DocsToKG.Orchestrator.notifications.nats import NatsSignal
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow

SETTING = "queue.connection_string"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def queue(database: str, tmp_path: Path) -> str:
    """The same database with a queue of one job in it."""
    with PostgresLedger(database, local_path=tmp_path / "q") as ledger:
        ledger.enqueue_many([NewJob("local:1", {})])
    return database


@pytest.fixture
def bucket(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in s3_environment(s3_url).items():
        monkeypatch.setenv(name, value)
    return Bucket(urlsplit(s3_url).path.strip("/"), prefix=f"t-{uuid4().hex}")


def findings(check: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check}


def levels(check: Iterable[Finding]) -> dict[str, str]:
    return {subject: finding.level.word for subject, finding in findings(check).items()}


def queue_check(url: str) -> Iterator[Finding]:
    return check_queue(url, SETTING)


def state_of(url: str) -> list[Any]:
    """Everything that a check of a queue could have left behind."""
    with psycopg.connect(url, autocommit=True) as connection:
        jobs = connection.execute("SELECT * FROM orchestrator.jobs ORDER BY id").fetchall()
        history = connection.execute("SELECT count(*) FROM orchestrator.job_history").fetchall()
        last = connection.execute("SELECT last_value FROM orchestrator.jobs_id_seq").fetchall()
        schemas = connection.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()
    return [jobs, history, last, schemas]


def test_a_whole_set_up_is_well_and_nothing_is_left_behind(
    queue: str, redis_url: str, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state_of(queue)
    with running_nats() as nats:
        settings = {
            "contact": "reader@university.edu",
            "http": {"names": {"*": ["127.0.0.1"]}},
            "queue": {"backend": "postgres", "path": str(tmp_path / "q"), "signal": "nats"},
            "storage": {"root_dir": bucket.url, "min_free_bytes": 0, "staging_bytes": 16_777_216},
            "rate_limit": {"backend": "redis"},
            "hishel": {"backend": "redis"},
            "catalog": {"backend": "postgres"},
        }
        (tmp_path / "prod.yaml").write_text(yaml.safe_dump(settings))
        for key, value in {
            "STORAGE__CONNECTION_STRING": queue,
            "QUEUE__SIGNAL_URL": nats_url(nats),
            "RATE_LIMIT__REDIS_URL": redis_url,
        }.items():
            monkeypatch.setenv(f"DOCSTOKG_CONTENT_{key}", value)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(app, ["doctor", "-c", "prod.yaml", "--json", "--timeout", "60"])
        quick = CliRunner().invoke(app, ["doctor", "-c", "prod.yaml", "--quick", "--json", "--timeout", "60"])
    told = json.loads(result.stdout)
    by_name = {check["check"]: check for check in told["checks"]}
    for name in ("queue", "wake-ups", "record", "files", "limits", "cache", "together"):
        assert by_name[name]["level"] == "ok", by_name[name]
    assert (result.exit_code, quick.exit_code) == (0, 0)
    assert {check["check"] for check in json.loads(quick.stdout)["checks"]} >= {"queue", "record", "files", "limits"}
    assert PASSWORD not in result.stdout + result.stderr + quick.stdout
    assert state_of(queue) == before
    assert list(bucket.list("")) == []
    with redis.Redis.from_url(redis_url) as server:
        assert list(server.scan_iter("{docstokg:doctor}*")) == []


def test_a_queue_is_tried_by_a_job_that_nobody_sees(queue: str) -> None:
    found = findings(queue_check(queue))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert found["permissions"].seen == "a job was added, leased and rolled back"
    assert found["schema"].seen.startswith(str(len(migrations())))
    assert "PostgreSQL" in found["server"].seen


def test_events_that_gather_for_a_target_are_told(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is dropped while a target is away, so somebody must hear of it."""
    monkeypatch.setattr(postgres_check, "MANY_EVENTS", 2)
    with PostgresLedger(queue) as ledger:
        Outbox(ledger).register([Subscription("crm", "webhook")])
        ledger.enqueue_many([NewJob("local:2", {})])
        assert "events" not in findings(queue_check(queue))
        ledger.enqueue_many([NewJob("local:3", {})])
    found = findings(queue_check(queue))["events"]
    assert found.level is Level.WARNING
    assert "2 events or more wait for crm" in found.seen


def test_a_database_without_a_queue_is_one_in_which_it_can_be_made(database: str) -> None:
    found = findings(queue_check(database))
    assert "none yet" in found["schema"].seen
    with psycopg.connect(database, autocommit=True) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ 'doctor|orchestr'").fetchall()
    assert rows == []


def test_a_record_is_told_by_its_version_and_its_rights(database: str) -> None:

    def check() -> Iterator[Finding]:
        return check_record(database, "catalog.connection_string", "docstokg_record")

    assert "none yet" in findings(check())["schema"].seen
    shared = SharedRecord(database)
    try:
        prepare(shared)
    finally:
        shared.close()
    found = findings(check())
    assert {finding.level for finding in found.values()} == {Level.OK}
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO docstokg_record.schema_version VALUES (98, 1)")
        assert findings(check())["schema"].level == Level.WARNING, "this version may still write"
        connection.execute("INSERT INTO docstokg_record.schema_version VALUES (99, 99)")
    found = findings(check())
    assert found["schema"].level == Level.FAILED
    assert "99" in found["schema"].seen


def test_whoever_may_only_add_to_the_record_is_told_what_is_missing(database: str) -> None:
    """Marks, journals and takedowns are changed too."""
    shared = SharedRecord(database)
    try:
        prepare(shared)
    finally:
        shared.close()
    with (
        poor_user(database, "docstokg_record", "SELECT, INSERT") as poor,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        check = partial(check_record, poor, "catalog.connection_string", "docstokg_record")
        found = findings(check())["permissions"]
        assert found.level == Level.FAILED
        assert "UPDATE, DELETE" in str(found.advice)
        user = urlsplit(poor).username
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA docstokg_record TO {user}")
        assert findings(check())["permissions"].level == Level.OK


@contextmanager
def poor_user(url: str, schema: str = "orchestrator", rights: str = "SELECT") -> Iterator[str]:
    """Somebody who may connect and little else."""
    name = f"poor_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
        connection.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {name}")
        parts = urlsplit(url)
        yield parts._replace(netloc=f"{name}@{parts.hostname}:{parts.port}").geturl()
        connection.execute(f"DROP OWNED BY {name}")
        connection.execute(f"DROP ROLE {name}")


def test_a_user_without_rights_is_told_which_to_ask_for(queue: str) -> None:
    with poor_user(queue) as url:
        found = findings(queue_check(url))
    assert found["permissions"].level == Level.FAILED
    assert "GRANT" in found["permissions"].advice


def make_newer(queue: str) -> None:
    """As if a version of the far future had been here, that lets no older one write."""
    with psycopg.connect(queue, autocommit=True) as connection:
        columns = connection.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = 'orchestrator' AND table_name = 'schema_version'"
        ).fetchall()
        names = ", ".join(name for (name,) in columns)
        connection.execute(
            f"INSERT INTO orchestrator.schema_version ({names}) VALUES ({', '.join(['99'] * len(columns))})"
        )


def test_a_newer_queue_that_this_program_cannot_use_is_told_with_both_versions(queue: str) -> None:
    make_newer(queue)
    found = findings(queue_check(queue))
    assert found["schema"].level == Level.FAILED
    assert "99" in found["schema"].seen
    assert str(len(migrations())) in found["schema"].seen
    assert "permissions" not in found


@pytest.mark.parametrize("words", [["run", "--drain"], ["stats"], ["enqueue", "10.1371/journal.pone.0262026"]])
def test_a_program_that_is_too_old_for_the_queue_says_so_and_takes_nothing(
    queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    make_newer(queue)
    before = state_of(queue)
    monkeypatch.setenv("DOCSTOKG_CONTENT_QUEUE__CONNECTION_STRING", queue)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prod.yaml").write_text("queue: {backend: postgres}\n")
    result = CliRunner().invoke(app, ["queue", *words, "-c", "prod.yaml"])
    assert result.exit_code == 1
    assert "99" in result.stderr
    assert "install the version of the program that the other workers run" in result.stderr
    assert state_of(queue) == before


@pytest.mark.parametrize(
    ("have", "known", "owner", "level"),
    [(2, 2, False, "ok"), (3, 2, False, "warning"), (1, 2, True, "warning"), (1, 2, False, "failed")],
)
def test_versions_that_differ_say_who_has_to_do_something(have: int, known: int, owner: bool, level: str) -> None:
    finding = versions_finding(have, known, owner)
    assert finding.level.word == level
    assert bool(finding.advice) == (level != "ok")


def test_a_database_that_is_not_there_is_told(postgres_url: str) -> None:
    found = findings(queue_check(urlsplit(postgres_url)._replace(path="/no_such_database").geturl()))
    assert found["reachable"].level == Level.FAILED
    assert found["reachable"].advice == "create the database, or name another"


def test_an_address_that_cannot_be_read_is_told_without_its_words() -> None:
    found = findings(queue_check(f"postgresql://u:{PASSWORD}@[broken/db"))
    assert found["address"].level == Level.FAILED
    assert PASSWORD not in str(found)


def test_a_notify_is_heard(postgres_url: str) -> None:
    assert levels(check_listen(postgres_url, SETTING)) == {"wake-ups": "ok"}


@pytest.mark.parametrize("purpose", ["limits", "cache", "wake-ups"])
def test_a_valkey_is_tried_for_each_purpose(redis_url: str, purpose: Any) -> None:
    found = findings(check_redis(redis_url, "rate_limit.redis_url", purpose))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert {"reachable", "server", "encryption", "clock", "permissions"} <= set(found)


def test_a_wrong_password_a_full_memory_and_missing_rights_are_told() -> None:
    with running_valkey() as server:
        url = valkey_url(server)
        wrong = url.replace(PASSWORD, "planted-wrong-word")
        found = findings(check_redis(wrong, "rate_limit.redis_url", "limits"))
        assert found["reachable"].level == Level.FAILED
        assert "planted" not in str(found)
        with redis.Redis.from_url(url) as client:
            client.config_set("maxmemory", "100mb")
            client.config_set("maxmemory-policy", "allkeys-lru")
            client.acl_setuser(
                "poor", enabled=True, passwords=["+word"], keys=["*"], commands=["+ping", "+info", "+time"]
            )
        found = findings(check_redis(url, "rate_limit.redis_url", "limits"))
        assert (found["memory"].level, found["permissions"].level) == (Level.WARNING, Level.OK)
        poor = f"redis://poor:word@127.0.0.1:{server.port}/0"
        found = findings(check_redis(poor, "rate_limit.redis_url", "limits"))
        assert found["permissions"].level == Level.FAILED
        assert "ACL" in found["permissions"].advice
        server.stop()
        assert levels(check_redis(url, "rate_limit.redis_url", "limits")) == {"reachable": "failed"}


def test_the_rights_that_are_advised_are_enough_for_the_check_and_for_the_work(tmp_path: Path) -> None:
    """A user who has them, and a whole pull with limits, robots.txt, breakers, cache and wake-ups on the server: the
    server has refused nothing."""
    howto = DOCS / "howto"
    assert RIGHTS["limits"] == RIGHTS["cache"]
    assert RIGHTS["limits"] in (howto / "share-limits-with-redis.md").read_text()
    assert RIGHTS["wake-ups"] in (howto / "wake-ups.md").read_text()
    with running_valkey() as server, redis.Redis.from_url(valkey_url(server)) as client:
        urls = {}
        for purpose, words in RIGHTS.items():
            client.execute_command("ACL", "SETUSER", purpose, "reset", "on", ">word", *words.split())
            urls[purpose] = f"redis://{purpose}:word@127.0.0.1:{server.port}/0"
            assert set(levels(check_redis(urls[purpose], "a.setting", purpose)).values()) == {"ok"}
        with SandboxServer(works=4, seed=7, faults=Faults.none(), rate_factor=20) as sandbox:
            cfg = client_config(
                sandbox,
                tmp_path,
                rate_limit={"backend": "redis", "redis_url": urls["limits"]},
                hishel={"enabled": True, "backend": "redis", "redis_url": urls["cache"]},
                queue={"signal": "redis", "signal_url": urls["wake-ups"]},
            )
            wanted = [work.doi for number in range(4) if (work := sandbox.world.by_index(number)) is not None]
            assert run_from_config(cfg, wanted).successful > 0
        assert client.execute_command("ACL", "LOG") == []
        kept = {bytes(name).split(b":")[1] for name in client.scan_iter(count=1000)}
    assert kept >= {b"limits}", b"robots}", b"cache", b"signal"}


def test_nats_with_and_without_a_stream_and_away() -> None:
    with running_nats() as server:
        assert set(levels(check_nats(nats_url(server), "queue.signal_url")).values()) == {"ok"}
        wrong = nats_url(server).replace(PASSWORD, "planted-wrong-word")
        found = findings(check_nats(wrong, "queue.signal_url"))
        assert found["reachable"].level == Level.FAILED
        assert "planted" not in str(found)
        url = nats_url(server)
    assert levels(check_nats(url, "queue.signal_url")) == {"reachable": "failed"}
    with running_nats(jetstream=False) as server:
        found = findings(check_nats(nats_url(server), "queue.signal_url"))
        assert (found["permissions"].level, found["jetstream"].level) == (Level.OK, Level.WARNING)


def test_the_rights_that_are_documented_for_nats_are_enough(tmp_path: Path) -> None:
    """For the check, and for two nodes that wake each other by the stream."""
    told = " ".join((DOCS / "howto" / "wake-ups.md").read_text().split())
    assert "publish and subscribe to `docstokg-signal.>`, and for the stream to publish to `$JS.API.>`" in told
    assert "subscribe to `_INBOX.>`" in told
    rights = 'publish: ["docstokg-signal.>", "$JS.API.>"], subscribe: ["docstokg-signal.>", "_INBOX.>"]'
    user = f"authorization {{ users: [ {{ user: poor, password: word, permissions: {{ {rights} }} }} ] }}"
    (tmp_path / "nats.conf").write_text(f'jetstream {{ store_dir: "{tmp_path / "js"}" }}\n{user}\n')
    words = [needs.program("nats-server"), "-c", str(tmp_path / "nats.conf"), "-a", "127.0.0.1", "-p"]
    with running(lambda port: [*words, str(port)]) as server:
        url = f"nats://poor:word@127.0.0.1:{server.port}"
        assert set(levels(check_nats(url, "queue.signal_url")).values()) == {"ok"}
        with closing(NatsSignal(url)) as here, closing(NatsSignal(url)) as there:
            here.mark()
            mark = there.mark()
            eventually(lambda: here.is_listening and there.is_listening)
            assert (here.mode, there.mode) == ("jetstream", "jetstream")
            eventually(lambda: there.mark() > mark)
            mark = there.mark()
            here.notify("lane")
            assert there.wait(20, since=mark)


def test_a_bucket_is_written_read_and_left_as_it_was(bucket: Bucket) -> None:
    found = findings(check_bucket(bucket.name, bucket.prefix, "storage.s3_bucket"))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert set(found) == {"reachable", "encryption", "permissions", "clock"}
    assert list(bucket.list("")) == []


def test_a_bucket_that_is_not_there_and_a_service_that_is_away_are_told(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings(check_bucket("no-such-bucket-here", "", "storage.s3_bucket"))
    assert found["reachable"].level == Level.FAILED
    assert "AWS_ENDPOINT_URL" in found["reachable"].advice
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    found = findings(check_bucket(bucket.name, "", "storage.s3_bucket"))
    assert found["reachable"].level == Level.FAILED


def test_a_server_that_takes_connections_and_never_answers_costs_the_time_of_one_check() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(20)
        port = silent.getsockname()[1]
        checks = [
            Check("queue", partial(queue_check, f"postgresql://u@127.0.0.1:{port}/q")),
            Check("limits", partial(check_redis, f"redis://127.0.0.1:{port}/0", "rate_limit.redis_url", "limits")),
            Check("wake-ups", partial(check_nats, f"nats://127.0.0.1:{port}", "queue.signal_url")),
        ]
        answers = look_at_all(checks, each_s=0.5)
    assert [answer.worst for answer in answers] == [Level.FAILED] * 3
    assert {answer.findings[-1].subject for answer in answers} == {"time"}


def test_the_production_settings_start_as_they_are_shipped(
    database: str, redis_url: str, bucket: Bucket, tmp_path: Path
) -> None:
    """OPS-09: deploy/prod.yaml with its variables, in an empty folder; the queue is empty, so the worker ends."""
    shipped = Path(__file__).parents[2] / "deploy" / "prod.yaml"
    with running_nats() as nats:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DOCSTOKG_", "DTKG_"))},
            "DOCSTOKG_CONTENT_STORAGE__CONNECTION_STRING": database,
            "DOCSTOKG_CONTENT_QUEUE__SIGNAL_URL": nats_url(nats),
            "DOCSTOKG_CONTENT_RATE_LIMIT__REDIS_URL": redis_url,
            "DOCSTOKG_CONTENT_STORAGE__S3_BUCKET": bucket.name,
            "DOCSTOKG_CONTENT_STORAGE__MIN_FREE_BYTES": "0",
            "HOME": str(tmp_path),
        }
        for words in (["doctor", "--quick", "--timeout", "60"], ["queue", "run", "--drain"], ["queue", "stats"]):
            done = subprocess.run(
                [str(Path(sys.executable).parent / "contentdownload"), *words, "-c", str(shipped)],
                capture_output=True, text=True, timeout=100, check=False, env=environment, cwd=tmp_path,
            )  # fmt: skip
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            assert PASSWORD not in done.stdout + done.stderr
    assert (tmp_path / "state" / "metrics.prom").is_file()


def test_a_service_that_checks_signatures_refuses_wrong_keys_and_the_advice_says_which(
    swift_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_environment(swift_url).items():
        monkeypatch.setenv(name, value)
    name, prefix = urlsplit(swift_url).path.strip("/"), f"t-{uuid4().hex}"
    found = findings(check_bucket(name, prefix, "storage.s3_bucket"))
    assert {finding.level for finding in found.values()} == {Level.OK}
    assert list(Bucket(name, prefix=prefix).list("")) == []
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-wrong-word")
    found = findings(check_bucket(name, prefix, "storage.s3_bucket"))
    assert found["reachable"].level == Level.FAILED
    assert "s3:ListBucket" in found["reachable"].advice
    assert "planted" not in str(found)
