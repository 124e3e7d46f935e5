"""Metrics of this instance for Prometheus, and the depth of the ledger's queues.

Knows names and labels. Promises: gauges are read from the ledger at each scrape, so that they cannot drift; counters
count what this instance did, and add up over instances.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from DocsToKG.Orchestrator.api.sse import LogReader
from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.events.outbox import Outbox

_BUCKETS_S = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one application."""

    def __init__(self, ledger: ServedLedger, log_readers: Collection[LogReader]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Depths(ledger))
        self._registry.register(_LogLag(ledger, log_readers))
        self._registry.register(_Backlogs(ledger))
        self.latency = Histogram(
            "job_latency_seconds",
            "From when a job could run to its acknowledged end.",
            buckets=_BUCKETS_S,
            registry=self._registry,
        )
        self.failures = self._counter("job_failures", "Tries that failed, by what became of the job.", "end")
        self.retries = self._counter("job_retry", "Tries that failed and come again.")
        self.extensions = self._counter("lease_extensions", "Leases that were renewed.")
        self.heartbeats = self._counter("pack_run_heartbeats", "Heartbeats of pack-runs.")
        self.artifacts = self._counter("pack_run_artifacts", "Artifacts that pack-runs published.")

    def page(self) -> bytes:
        return generate_latest(self._registry)

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(name, words, labels, registry=self._registry)


class _Depths(Collector):
    """How many jobs wait, by job type and tenant."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("job_queue_depth", "Jobs that wait.", labels=["jobType", "tenant"])
        for (job_type, tenant), waiting in self._ledger.depths().items():
            family.add_metric([job_type, tenant], waiting)
        yield family


class _LogLag(Collector):
    """How long ago the line was written that the slowest open reader of a pack-run's log is being told."""

    def __init__(self, ledger: ServedLedger, readers: Collection[LogReader]) -> None:
        self._ledger = ledger
        self._readers = readers

    def collect(self) -> Iterator[Metric]:
        told = [reader.sending_from for reader in list(self._readers) if reader.sending_from is not None]
        lag_s = self._ledger.read(lambda tx: tx.now_ms) / 1000 - min(told) if told else 0.0
        yield GaugeMetricFamily(
            "pack_run_logs_stream_lag_seconds", "How far readers of a pack run's log are behind.", max(0.0, lag_s)
        )


class _Backlogs(Collector):
    """What has gathered for targets of events. Nothing is dropped while one is away, so somebody must see it grow."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._outbox = Outbox(ledger)

    def collect(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily("event_outbox_waiting", "Events that wait for a target.", labels=["target"])
        dead = GaugeMetricFamily("event_outbox_dead", "Events that a target refused for good.", labels=["target"])
        oldest = GaugeMetricFamily(
            "event_outbox_oldest_seconds", "How long the first event waits for a target.", labels=["target"]
        )
        for found in self._outbox.backlogs():
            waiting.add_metric([found.target], found.waiting)
            dead.add_metric([found.target], found.dead)
            oldest.add_metric([found.target], found.oldest_s)
        yield from (waiting, dead, oldest)
