"""Figures as Prometheus reads them: a page on loopback, and a file for node_exporter.

Knows prometheus-client, which is loaded when a page or a file is wanted. The registry is the run's own and holds one
collector, which looks at the tally at the moment it is asked. Promises: names are exactly those of `metrics`, with no
`_created` beside them; the file is always whole; whoever asks slowly keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.telemetry.metrics import METRICS, Metric
from DocsToKG.ContentDownload.telemetry.tally import Tally

_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 10.0


def registry_of(tally: Tally) -> Any:
    """A `CollectorRegistry` of its own that shows the tally."""
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(TallyCollector(tally))
    return registry


class TallyCollector:
    """Looks at the tally whenever it is asked."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        for metric in METRICS:
            yield self._family(metric)

    def _family(self, metric: Metric) -> Any:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        if metric.kind == "counter":
            counter = CounterMetricFamily(metric.name, metric.text, labels=metric.labels)
            for values, n in self._tally.counters(metric).items():
                counter.add_metric(values, n)
            return counter
        if metric.kind == "gauge":
            gauge = GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)
            for values, n in self._tally.gauges(metric).items():
                gauge.add_metric(values, n)
            return gauge
        histogram = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
        for values, counts in self._tally.histograms(metric).items():
            histogram.add_metric(values, _buckets(metric, counts), counts[-1])
        return histogram


def _buckets(metric: Metric, counts: list[float]) -> list[tuple[str, float]]:
    so_far, buckets = 0.0, []
    for bound, n in zip((*(f"{float(edge):g}" for edge in metric.buckets), "+Inf"), counts[:-1], strict=True):
        so_far += n
        buckets.append((bound, so_far))
    return buckets


def text_of(registry: Any) -> bytes:
    """All figures in Prometheus' text format."""
    from prometheus_client import generate_latest

    return bytes(generate_latest(registry))


@contextlib.contextmanager
def serve(registry: Any, port: int) -> Iterator[str]:
    """A page `/metrics` on loopback, at any free port for 0. Gives its address."""
    from prometheus_client.exposition import choose_encoder

    class Page(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S
        server_version, sys_version = "docstokg", ""

        def do_GET(self) -> None:
            if urlsplit(self.path).path.rstrip("/") not in ("", "/metrics"):
                self.send_error(404, "the figures are at /metrics")
                return
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            body = encode(registry)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            return None

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *about: Any) -> None:
            """Who went away before the answer is nobody's trouble."""

    try:
        server = Server((_LOOPBACK, port), Page)
    except OSError as error:
        raise ConfigError(
            f"telemetry.metrics_port: port {port} cannot be opened ({error.strerror or error}); "
            "name another, or 0 for any that is free"
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{_LOOPBACK}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_file(path: Path, text: bytes) -> None:
    """Replace the file as a whole, readable for everybody, so that a collector never sees a part of it."""
    handle, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        os.chmod(temp, 0o644)
        os.replace(temp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temp)
        raise


@contextlib.contextmanager
def keep_file(registry: Any, path: Path, *, every_s: float) -> Iterator[Callable[[], None]]:
    """Keep a file of the figures up to date. Gives the way to write it at once; a disk that is full costs the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text_of(registry))
    except OSError as error:
        raise ConfigError(f"telemetry.metrics_file: {path} cannot be written: {error.strerror or error}") from None
    over, lock = threading.Event(), threading.Lock()

    def write() -> None:
        with lock, contextlib.suppress(OSError):
            write_file(path, text_of(registry))

    def keep() -> None:
        while not over.wait(every_s):
            write()

    thread = threading.Thread(target=keep, name="metrics-file", daemon=True)
    thread.start()
    try:
        yield write
    finally:
        over.set()
        thread.join()
