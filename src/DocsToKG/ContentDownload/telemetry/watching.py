"""Everything that watches a run, put together: figures, where they are shown, traces and the log.

Knows which parts are wanted and in which order they close. With several processes the one that started them shows the
figures: the others send what they counted through the pipe they have to it anyway, so that one page stands for the
whole run. Promises: where nothing is wanted, nothing is loaded and nothing stands in between.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.telemetry import exposition, metrics
from DocsToKG.ContentDownload.telemetry.logs import LogFormat, open_log
from DocsToKG.ContentDownload.telemetry.metrics import AllGauges, AllMeters, Gauges, Meters, NoMeters
from DocsToKG.ContentDownload.telemetry.otel import Providers, figures_of, global_providers, send_to
from DocsToKG.ContentDownload.telemetry.spans import JobWatch, NullWatch, WatchedJobs
from DocsToKG.ContentDownload.telemetry.tally import Counts, Tally
from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.tracing import Tracing

_TELL_EVERY_S = 0.5

Share = Literal["host", "guest"] | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be shown of a run, and where."""

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
    def figures(self) -> bool:
        return self.metrics_port is not None or self.metrics_file is not None


@dataclass(frozen=True, slots=True)
class Watching:
    """What is open. `address` is where the figures are served; `tally` holds them."""

    watch: JobWatch
    address: str | None = None
    tally: Tally | None = None

    def hear(self, counts: Counts) -> None:
        """What another process of the run has counted."""
        if self.tally is not None:
            self.tally.merge(counts)

    @contextlib.contextmanager
    def telling(self, say: Callable[[dict[str, Any]], None], gauges: Callable[[], Mapping[str, int]]) -> Iterator[None]:
        """As guest: tell the host what was counted, now and then and at the end."""
        if self.tally is None:
            yield
            return
        over, tally = threading.Event(), self.tally

        def tell() -> None:
            while not over.wait(_TELL_EVERY_S):
                say({"figures": tally.take(), **gauges()})

        thread = threading.Thread(target=tell, name="figures", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            say({"figures": tally.take(), **gauges()})


@contextlib.contextmanager
def open_watch(wanted: Wanted, *, clock: Clock, run_id: str, worker_id: str, share: Share = None) -> Iterator[Watching]:
    """What watches a run in this process; closed, and everything sent, when the block ends."""
    from DocsToKG.ContentDownload.telemetry.job_log import JobLog
    from DocsToKG.ContentDownload.telemetry.traces import JobTraces

    with ExitStack() as stack:
        providers = _providers(stack, wanted, run_id, worker_id)
        bound = {"run_id": run_id}
        log = stack.enter_context(
            open_log(level=wanted.log_level, form=wanted.log_format, path=wanted.log_file, bound=bound)
        )
        if not (wanted.figures or providers or log):
            yield Watching(NullWatch())
            return
        tally = Tally(most_hosts=wanted.most_hosts) if wanted.figures or providers.meter is not None else None
        meters, gauges = _meters(tally, providers)
        address, write = _show(stack, wanted, tally) if share != "guest" else (None, lambda: None)
        watch = WatchedJobs(
            meters=meters,
            gauges=gauges,
            clock=clock,
            traces=JobTraces(Tracing(providers.tracer), worker_id=worker_id) if providers.tracer is not None else None,
            log=JobLog(log, worker_id=worker_id, leases=share != "host") if log is not None else None,
            on_hide=write,
        )
        yield Watching(watch, address, tally if wanted.figures else None)


def _providers(stack: ExitStack, wanted: Wanted, run_id: str, worker_id: str) -> Providers:
    """Whoever set providers for the whole process has decided where everything goes."""
    found = global_providers()
    if found or wanted.otlp_endpoint is None:
        return found
    about = {"service.name": "docstokg-contentdownload", "service.instance.id": worker_id, "docstokg.run_id": run_id}
    try:
        return stack.enter_context(send_to(wanted.otlp_endpoint, about=about, every_s=wanted.every_s))
    except ConfigError:
        if wanted.insist:
            raise
        return found


def _meters(tally: Tally | None, providers: Providers) -> tuple[Meters, Gauges | AllGauges]:
    if tally is None:
        meters = NoMeters()
        return meters, Gauges(meters)
    shown = Gauges(tally)
    if providers.meter is None:
        return tally, shown
    # A meter keeps the first gauge of a name for good, so that of the whole process has one reader for all runs.
    other, others = figures_of(providers.meter, providers.observation)
    if providers.are_ours:
        for metric in (metrics.CACHE_HIT, metrics.YIELD):
            other.observe(metric, lambda metric=metric: _named(metric, tally))  # type: ignore[misc]
    return AllMeters([tally, other]), AllGauges([shown, others])


def _named(metric: metrics.Metric, tally: Tally) -> list[metrics.Reading]:
    return [(value, dict(zip(metric.labels, values, strict=True))) for values, value in tally.gauges(metric).items()]


def _show(stack: ExitStack, wanted: Wanted, tally: Tally | None) -> tuple[str | None, Callable[[], None]]:
    """Serve and keep the figures; gives the address, and the way to bring the file up to date."""
    if tally is None or not wanted.figures:
        return None, lambda: None
    registry = exposition.registry_of(tally)
    address, write = None, lambda: None
    if wanted.metrics_port is not None:
        address = stack.enter_context(exposition.serve(registry, wanted.metrics_port))
    if wanted.metrics_file is not None:
        write = stack.enter_context(exposition.keep_file(registry, wanted.metrics_file, every_s=wanted.every_s))
    return address, write
