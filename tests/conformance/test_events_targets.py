"""Events over real wires: a webhook receiver on loopback and a NATS server, proved by what they got."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.conformance.conftest import nats_url, running_nats
from tests.conformance.events_receiver import SECRET, Answer, Receiver, receiving

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.bootstrap import notifier_of
from DocsToKG.Orchestrator.events.outbox import Outbox, Subscription
from DocsToKG.Orchestrator.events.targets import Delivery, DeliveryFailed, SendLimits, delivery_of
from DocsToKG.Orchestrator.events.webhook import Webhook, checked_url, secret_bytes
from DocsToKG.Orchestrator.ledger.base import Finish, JobState, NewJob
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.settings import BadSettings, ServerSettings
from DocsToKG.Orchestrator.signing import current
from DocsToKG.Orchestrator.signing.keyring import KeyFolder
from DocsToKG.Orchestrator.signing.rotation import rotate

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/modules/orchestrator/event-envelope.schema.json").read_text())


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, str]:
    """A folder with a signing key, and its public half."""
    folder = KeyFolder(tmp_path / "keys")
    return folder.path, folder.new("events", 0.0).public


@pytest.fixture
def receiver(keys: tuple[Path, str]) -> Iterator[Receiver]:
    with receiving(keys[1]) as one:
        yield one


@pytest.fixture
def settings(tmp_path: Path, keys: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., ServerSettings]:
    monkeypatch.setenv("HOOK_SECRET", SECRET)

    def made(**target: Any) -> ServerSettings:
        words = {"name": "hook", "secret_env": "HOOK_SECRET", "private_hosts": ["127.0.0.1"], **target}
        values = {"ledger": tmp_path / "ledger.sqlite", "signing_keys": keys[0], "events": {"targets": [words]}}
        return ServerSettings.model_validate(values)

    return made


def work(ledger: Any, *names: str) -> None:
    ledger.enqueue_many([NewJob(name, {"n": name}, project="p") for name in names])
    for job in ledger.lease("worker-1", len(names), 60):
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))


def delivery() -> Delivery:
    return Delivery("urn:orch:event:1", "job.completed", "a.b *", "orch-1", b"{}")


def test_a_receiver_can_prove_what_it_gets_and_every_event_fits_the_published_schema(
    open_ledger: Callable[..., Any], settings: Callable[..., ServerSettings], receiver: Receiver
) -> None:
    ledger = open_ledger()
    notifier = notifier_of(settings(url=receiver.url), ledger)
    assert notifier is not None
    notifier.register()
    work(ledger, "a", "b")
    ledger.pause(actor="op", reason="lunch")
    assert notifier.run_once() == 7
    assert receiver.wrong == []
    for event in receiver.events:
        jsonschema.validate(event, SCHEMA)
    ends = [event for event in receiver.events if event["eventType"] == "job.completed"]
    for end in ends:
        assert end["job"]["taskRunnerId"] == "worker-1"
        assert re.fullmatch(r"lease_[0-9a-f]{32}_\d+", end["job"]["leaseId"])
        assert end["metrics"]["durationSeconds"] >= 0
    assert len(ends) == 2


def test_a_rotated_key_signs_from_then_on_and_without_a_key_events_wait(
    tmp_path: Path,
    settings: Callable[..., ServerSettings],
    keys: tuple[Path, str],
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(current, "LOOK_AGAIN_S", 0.0)
    folder = KeyFolder(keys[0])
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        notifier = notifier_of(settings(url=receiver.url), ledger)
        assert notifier is not None
        assert notifier.hold()
        notifier.register()
        [target] = notifier.targets
        with closing(target):
            work(ledger, "a")
            assert notifier.deliver(target) == 3
            key, _ = rotate(folder, "events", time.time(), None)
            receiver.public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public))
            work(ledger, "b")
            assert notifier.deliver(target) == 3
            folder.retire(key)
            work(ledger, "c")
            assert [notifier.deliver(target), notifier.deliver(target)] == [0, 0]
            assert [line.message.split(":")[0] for line in caplog.records] == ["events wait, as they are signed"]
            waiting = notifier.outbox.list()
            assert [(one.tries, one.last_error) for one in waiting] == [(0, None)] * 3
            receiver.public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(folder.new("events", 0.0).public))
            assert notifier.deliver(target) == 3
    assert receiver.wrong == []


def test_what_a_receiver_refused_comes_again_with_the_same_words(
    tmp_path: Path, settings: Callable[..., ServerSettings], receiver: Receiver
) -> None:
    clock = ManualClock()
    seen: list[str] = []

    def flaky(event: dict[str, Any]) -> Answer:
        seen.append(event["eventId"])
        return Answer(503, {"Retry-After": "120"}) if len(seen) == 1 else Answer(200)

    receiver.answers = flaky
    with SqliteLedger(tmp_path / "ledger.sqlite", clock=clock) as ledger:
        outbox = Outbox(ledger)
        outbox.register([Subscription("hook", "webhook")])
        ledger.enqueue_many([NewJob("a", {})])
        for wait in (0, 119, 2):
            clock.advance(wait)
            notifier = notifier_of(settings(url=receiver.url), ledger)
            assert notifier is not None
            notifier.run_once()
            if wait == 0:
                assert outbox.statuses()[0].last_error == "127.0.0.1 answers 503"
    assert len(seen) == 2
    assert seen[0] == seen[1] == receiver.ids[0]


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.always = Answer(307, {"Location": receiver.url})
    with closing(hook(receiver.url)) as target, pytest.raises(DeliveryFailed, match=r"127\.0\.0\.1 answers 307"):
        target.send(delivery())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "10.0.0.1", "0x7f.1"])
def test_private_addresses_are_refused_unless_allowed(host: str, receiver: Receiver) -> None:
    """The guard stands before the socket: the receiver, which would answer, is never asked."""
    port = receiver.url.rsplit(":", 1)[1].split("/")[0]
    target = Webhook("hook", f"https://{host}:{port}/", secret=SECRET.encode())
    with closing(target), pytest.raises(DeliveryFailed, match="AddressRefused"):
        target.send(delivery())
    assert receiver.heads == []
    assert receiver.wrong == []


def hook(url: str) -> Webhook:
    return Webhook("hook", url, secret=SECRET.encode(), private_hosts=["127.0.0.1"], limits=SendLimits(timeout_s=5))


def test_no_secret_and_no_address_is_in_what_is_said(
    tmp_path: Path, settings: Callable[..., ServerSettings], caplog: pytest.LogCaptureFixture
) -> None:
    wanted = settings(url="http://127.0.0.1:1/path-token", max_tries=1)
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        notifier = notifier_of(wanted, ledger)
        assert notifier is not None
        notifier.register()
        ledger.enqueue_many([NewJob("a", {})])
        assert notifier.run_once() == 0
        [dead] = Outbox(ledger).list(dead=True)
        assert dead.last_error is not None
        told = f"{dead.last_error} {caplog.text} {wanted!r} {Outbox(ledger).statuses()}"
    assert "dead after 1 tries" in caplog.text
    for secret in (SECRET, "path-token"):
        assert secret not in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"url": "http://example.org/x"}, "must begin with https"),
        ({"url": "ftp://example.org/x"}, "should look like https"),
        ({"url": "https://user:pw@example.org/x"}, "should look like https"),
        ({"url": "https://example.org/", "secret_env": None}, "secret_env or secret_file"),
        ({"url": "https://example.org/", "secret_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"url": "https://example.org/", "secret_env": None, "secret_file": "/nowhere"}, "cannot read /nowhere"),
        ({"url": "nats://127.0.0.1:4222", "kind": "nats", "subject": "a b"}, "a subject has words"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, settings: Callable[..., ServerSettings], words: dict[str, Any], message: str
) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger, pytest.raises(BadSettings, match=message) as refused:
        notifier_of(settings(**words), ledger)
    assert "events.targets.hook" in str(refused.value)
    assert "pw" not in str(refused.value)


def test_without_a_key_the_way_out_is_told(tmp_path: Path, settings: Callable[..., ServerSettings]) -> None:
    wanted = settings(url="https://example.org/")
    (keys := wanted.keys_path).rename(keys.with_name("elsewhere"))
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger, pytest.raises(BadSettings, match="audit keys new"):
        notifier_of(wanted, ledger)


def test_secrets_are_read_as_other_senders_write_them() -> None:
    assert secret_bytes("whsec_" + base64.b64encode(b"0123456789abcdef").decode() + "\n") == b"0123456789abcdef"
    for bad in ("short", "whsec_!!", "whsec_c2hvcnQ="):
        with pytest.raises(ValueError, match="secret"):
            secret_bytes(bad)
    assert checked_url("http://hooks.lan/x", ["*.lan"]) == "http://hooks.lan/x"


@pytest.mark.slow
def test_nats_keeps_each_event_once_under_its_subject(
    tmp_path: Path, settings: Callable[..., ServerSettings], keys: tuple[Path, str]
) -> None:
    with running_nats() as server, SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        wanted = settings(kind="nats", url=nats_url(server), secret_env=None)
        notifier = notifier_of(wanted, ledger)
        assert notifier is not None
        notifier.register()
        work(ledger, "a", "b")
        waiting = Outbox(ledger, holder="gone").claim("hook", limit=100, hold_s=600)
        assert notifier.run_once() == 6
        again = notifier_of(wanted, ledger)
        assert again is not None
        [target] = again.targets
        from DocsToKG.Orchestrator.events.envelope import envelopes

        told = envelopes(ledger, [one.row for one in waiting])
        for event in told:  # the process died before it could say that they were sent
            target.send(delivery_of(event, again.signers()))
        target.close()
        stored = asyncio.run(_stored(nats_url(server)))
    events = [json.loads(base64.b64decode(json.loads(body)["payload"])) for _, body in stored]
    # Jobs are told beside each other, so only the order within a job is sure.
    assert sorted(events, key=itemgetter("eventId")) == sorted(told, key=itemgetter("eventId"))
    for (subject, _), event in zip(stored, events, strict=True):
        assert subject == f"orch.events.default.{event['eventType']}"


async def _stored(url: str) -> list[tuple[str, bytes]]:
    import nats

    client = await nats.connect(url)
    stream = client.jetstream()
    info = await stream.stream_info("orch-events")
    found = []
    for number in range(1, info.state.last_seq + 1):
        message = await stream.get_msg("orch-events", number)
        found.append((str(message.subject), bytes(message.data or b"")))
    await client.close()
    return found


@pytest.mark.slow
def test_nats_that_is_away_is_a_failure_and_not_the_end(
    tmp_path: Path, settings: Callable[..., ServerSettings]
) -> None:
    with running_nats() as server, SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        server.stop()
        wanted = settings(kind="nats", url=nats_url(server), secret_env=None, timeout_seconds=3)
        notifier = notifier_of(wanted, ledger)
        assert notifier is not None
        notifier.register()
        ledger.enqueue_many([NewJob("a", {})])
        assert notifier.run_once() == 0
        [waiting] = Outbox(ledger).list()
        assert (waiting.last_error or "").startswith("NATS: ")
        server.start()
        Outbox(ledger).retry()
        ledger.write(lambda tx: tx.execute("UPDATE events_outbox SET next_at = 0"))
        second = notifier_of(wanted, ledger)
        assert second is not None
        assert second.run_once() == 1
