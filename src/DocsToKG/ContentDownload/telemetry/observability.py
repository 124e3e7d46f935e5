"""Who listens to a run: metrics and where they are exposed, traces, the log.

Knows which of them are configured and in which order they close. With several processes the one that started them
exposes the metrics: the others send what they counted through the pipe they have to it anyway, so that one page stands
for the whole run. Promises: what is not configured is neither loaded nor called.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.telemetry.events import Events, Listener
from DocsToKG.ContentDownload.telemetry.otel import Providers, global_providers, send_to
from DocsToKG.core.clock import Clock

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.telemetry.logs import LogFormat
    from DocsToKG.ContentDownload.telemetry.tally import Counts, Tally
    from DocsToKG.ContentDownload.telemetry.traces import Download, JobTraces

_SEND_EVERY_S = 0.5

Share = Literal["host", "guest"] | None


@dataclass(frozen=True, slots=True)
class Exports:
    """What of a run is exported, and where to."""

    metrics_port: int | None = None
    metrics_file: Path | None = None
    every_s: float = 10.0
    most_hosts: int = 100
    otlp_endpoint: str | None = None
    insist: bool = True  # an endpoint that needs a missing library is an error, not a suggestion of the environment
    log_level: str = "off"
    log_format: LogFormat = "auto"
    log_file: Path | None = None

    @property
    def metrics(self) -> bool:
        return self.metrics_port is not None or self.metrics_file is not None


@dataclass(frozen=True, slots=True)
class Observability:
    """What is open. `address` is where the metrics are served; `tally` holds them."""

    listeners: tuple[Listener, ...] = ()
    address: str | None = None
    tally: Tally | None = None
    traces: JobTraces | None = None

    def merge(self, counts: Counts) -> None:
        """Add what another process of the run has counted."""
        if self.tally is not None:
            self.tally.merge(counts)

    def trace_of(self, work_id: str) -> str | None:
        """Begin the trace of a work that is enqueued: the context by which whoever works on it goes on."""
        return None if self.traces is None else self.traces.enqueue(work_id)

    def traced(self, download: Download) -> Download:
        return download if self.traces is None else self.traces.traced(download)

    @contextlib.contextmanager
    def sending(
        self, send: Callable[[dict[str, Any]], None], gauges: Callable[[], Mapping[str, int]]
    ) -> Iterator[None]:
        """As guest: send the host what was counted, now and then and at the end."""
        if self.tally is None:
            yield
            return
        over, tally = threading.Event(), self.tally

        def send_all() -> None:
            while not over.wait(_SEND_EVERY_S):
                send({"figures": tally.take(), **gauges()})

        thread = threading.Thread(target=send_all, name="figures", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            send({"figures": tally.take(), **gauges()})


@contextlib.contextmanager
def open_observability(
    exports: Exports, *, clock: Clock, run_id: str, worker_id: str, share: Share = None
) -> Iterator[Observability]:
    """Whoever listens to a run in this process; closed, and everything sent, when the block ends."""
    with ExitStack() as stack:
        providers = _providers(stack, exports, run_id, worker_id)
        listeners: list[Listener] = []
        tally, address, traces = None, None, None
        if providers.tracer is not None:
            traces = _traces(providers, worker_id)
            listeners.append(traces)
        if exports.log_level != "off":
            from DocsToKG.ContentDownload.telemetry.job_log import JobLog
            from DocsToKG.ContentDownload.telemetry.logs import open_log

            bound = {"run_id": run_id}
            log = stack.enter_context(
                open_log(level=exports.log_level, form=exports.log_format, path=exports.log_file, bound=bound)
            )
            listeners.append(JobLog(log, worker_id=worker_id, leases=share != "host"))
        if exports.metrics or providers.meter is not None:
            from DocsToKG.ContentDownload.telemetry.tally import Tally

            tally = Tally(most_hosts=exports.most_hosts)
            on_hide: Callable[[], None] | None = None
            if exports.metrics and share != "guest":
                address, on_hide = _expose(stack, exports, tally)
            listeners += _metrics(tally, providers, clock, on_hide=on_hide)
        yield Observability(tuple(listeners), address, tally if exports.metrics else None, traces)


def events_of_process(clock: Clock) -> Events:
    """For a process that set OpenTelemetry's providers by itself; where it set none, nobody listens."""
    found, listeners = global_providers(), list[Listener]()
    if found.tracer is not None:
        listeners.append(_traces(found, ""))
    if found.meter is not None:
        listeners += _metrics(None, found, clock)
    return Events(*listeners)


def _traces(providers: Providers, worker_id: str) -> JobTraces:
    from DocsToKG.ContentDownload.telemetry.traces import JobTraces
    from DocsToKG.Orchestrator.tracing import Tracing

    return JobTraces(Tracing(providers.tracer), worker_id=worker_id)


def _providers(stack: ExitStack, exports: Exports, run_id: str, worker_id: str) -> Providers:
    """Whoever set providers for the whole process has decided where everything goes."""
    found = global_providers()
    if found or exports.otlp_endpoint is None:
        return found
    about = {"service.name": "docstokg-contentdownload", "service.instance.id": worker_id, "docstokg.run_id": run_id}
    try:
        return stack.enter_context(send_to(exports.otlp_endpoint, about=about, every_s=exports.every_s))
    except ConfigError:
        if exports.insist:
            raise
        return found


def _metrics(
    tally: Tally | None, providers: Providers, clock: Clock, *, on_hide: Callable[[], None] | None = None
) -> list[Listener]:
    """Whoever counts events, into the tally and into the instruments of a meter."""
    from DocsToKG.ContentDownload.telemetry import metrics
    from DocsToKG.ContentDownload.telemetry.job_metrics import JobMetrics
    from DocsToKG.ContentDownload.telemetry.otel import figures_of

    listeners: list[Listener] = []
    if tally is not None:
        listeners.append(JobMetrics(tally, metrics.Gauges(tally), clock, on_hide=on_hide))
    if providers.meter is not None:
        # A meter keeps the first gauge of a name for good, so that of the whole process has one reader for all runs.
        meters, gauges = figures_of(providers.meter, providers.observation)
        listeners.append(JobMetrics(meters, gauges, clock))
        if providers.are_ours and tally is not None:
            for metric in (metrics.CACHE_HIT, metrics.YIELD):
                meters.observe(metric, partial(tally.readings, metric))
    return listeners


def _expose(stack: ExitStack, exports: Exports, tally: Tally) -> tuple[str | None, Callable[[], None] | None]:
    """Serve the metrics and keep their file; returns the address, and a function that writes the file now."""
    from DocsToKG.ContentDownload.telemetry import exposition

    registry = exposition.registry_of(tally)
    address, write = None, None
    if exports.metrics_port is not None:
        address = stack.enter_context(exposition.serve(registry, exports.metrics_port))
    if exports.metrics_file is not None:
        write = stack.enter_context(exposition.keep_file(registry, exports.metrics_file, every_s=exports.every_s))
    return address, write
