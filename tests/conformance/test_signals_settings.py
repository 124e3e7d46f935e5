"""The setting `queue.signal` leads to the signal, in every command that opens the queue. (QUE-24)"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.conftest import PASSWORD, nats_url, running_nats, running_valkey, valkey_url
from tests.conformance.test_signals import ours
from tests.waiting import eventually
from typer.testing import CliRunner

from DocsToKG.ContentDownload.bootstrap import open_queue
from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.config import load_config
from DocsToKG.ContentDownload.config.models import config_hash, to_printable
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.telemetry.metrics import SIGNAL_LISTENING, SIGNAL_TROUBLES, Gauges, view_of
from DocsToKG.ContentDownload.telemetry.tally import Tally
from DocsToKG.core.clock import SystemClock
from DocsToKG.Orchestrator.errors import LedgerUnusable
from DocsToKG.Orchestrator.notifications.local import LocalSignal
from DocsToKG.Orchestrator.notifications.nats import NatsSignal
from DocsToKG.Orchestrator.notifications.redis_streams import RedisSignal


@pytest.fixture(params=["redis", "nats"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    running, url = {"redis": (running_valkey, valkey_url), "nats": (running_nats, nats_url)}[request.param]
    with running() as server:
        yield write(tmp_path, signal=request.param, signal_url=url(server))


def write(folder: Path, **queue: str) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps({"queue": {"path": str(folder / "queue.sqlite"), **queue}}))
    return path


def test_a_command_that_enqueues_wakes_a_queue_that_waits(settings):
    cfg = load_config(settings)
    with open_queue(cfg) as queue:
        assert isinstance(queue.signal, RedisSignal | NatsSignal)
        mark = queue.signal.mark()
        eventually(lambda: queue.signal.is_listening)
        began = time.monotonic()
        done = CliRunner().invoke(app, ["queue", "enqueue", "doi:10.1371/journal.pone.0000001", "-c", str(settings)])
        assert done.exit_code == 0, done.output
        eventually(lambda: queue.signal.notices >= 1)
        assert queue.signal.wait(0, since=mark)
        assert time.monotonic() - began < 20
        assert queue.stats()["queued"] == 1
    assert ours() == set()


def test_a_broker_that_is_lost_shows_in_the_metrics(tmp_path):
    with (
        running_valkey() as server,
        open_queue(load_config(write(tmp_path, signal="redis", signal_url=valkey_url(server)))) as queue,
    ):
        tally = Tally()
        view = view_of(queue.ledger, held=lambda: 0, active=lambda: 0, clock=SystemClock())
        Gauges(tally).show(view)
        queue.signal.mark()
        eventually(lambda: tally.gauges(SIGNAL_LISTENING) == {(): 1.0})
        assert tally.gauges(SIGNAL_TROUBLES) == {(): 0.0}
        server.stop()
        eventually(lambda: tally.gauges(SIGNAL_LISTENING) == {(): 0.0})
        eventually(lambda: tally.gauges(SIGNAL_TROUBLES)[()] >= 1)


def test_a_password_in_the_address_is_shown_nowhere(settings):
    cfg = load_config(settings)
    assert PASSWORD not in json.dumps(to_printable(cfg), default=str) + repr(cfg) + config_hash(cfg)
    assert PASSWORD in cfg.queue.signal_address


@pytest.mark.parametrize(
    ("kind", "wanted"), [("redis", "signal_url"), ("nats", "signal_url"), ("pg_notify", "queue.connection_string")]
)
def test_a_signal_without_its_address_is_refused(tmp_path, kind, wanted):
    with pytest.raises(ConfigError, match=wanted):
        load_config(write(tmp_path, signal=kind))


def test_a_signal_of_another_ledger_than_the_queue_s_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(ConfigError, match="pg_notify goes with backend postgres") as refused:
        load_config(write(tmp_path, signal="pg_notify", connection_string="postgresql://u:planted-word@h/d"))
    assert "redis or nats" in str(refused.value)
    assert "planted-word" not in str(refused.value)


def test_a_channel_of_one_s_own_keeps_the_wake_ups_of_others_away(tmp_path):
    with running_valkey() as server:
        url = valkey_url(server)
        mine = load_config(write(tmp_path, signal="redis", signal_url=url, signal_channel="corpus-1"))
        theirs = load_config(write(tmp_path, signal="redis", signal_url=url))
        with open_queue(mine) as one, open_queue(theirs) as other, open_queue(mine) as same:
            for queue in (one, other, same):
                queue.signal.mark()
            eventually(lambda: all(queue.signal.is_listening for queue in (one, other, same)))
            one.enqueue("a:1", {})
            eventually(lambda: same.signal.notices >= 1)
            assert other.signal.notices == 0


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a*", ">", "x" * 64])
def test_a_channel_that_a_broker_would_take_for_something_else_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="signal_channel"):
        load_config(write(tmp_path, signal_channel=name))


def test_an_unknown_signal_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="signal"):
        load_config(write(tmp_path, signal="smoke"))


@pytest.mark.parametrize(("queue", "kind"), [({}, type(None)), ({"signal": "local"}, LocalSignal)])
def test_without_a_broker_nothing_is_started(tmp_path, queue, kind):
    with open_queue(load_config(write(tmp_path, **queue))) as opened:
        assert isinstance(opened.signal, kind)
        opened.enqueue("a:1", {})
    assert ours() == set()


@pytest.mark.parametrize(("kind", "module"), [("redis", "redis"), ("nats", "nats")])
def test_a_driver_that_is_not_installed_is_named(tmp_path, monkeypatch, kind, module):
    monkeypatch.delitem(
        sys.modules, f"DocsToKG.Orchestrator.notifications.{'redis_streams' if kind == 'redis' else kind}"
    )
    for name in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    cfg = load_config(write(tmp_path, signal=kind, signal_url=f"{kind}://host:1"))
    with pytest.raises(LedgerUnusable, match=rf"docstokg\[{kind}\]"), open_queue(cfg):
        pass
