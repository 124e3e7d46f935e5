"""A collector of spans and figures on loopback."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """As much of an OpenTelemetry collector as takes what is sent."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []  # with the process that sent them
        self.figures: dict[str, set[str]] = {}
        lock, collector = threading.Lock(), self

        class Takes(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                with lock:
                    collector.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                sender = _instance(group.resource)
                self.spans += [(sender, span) for scope in group.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for sent in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                names = {metric.name for scope in sent.scope_metrics for metric in scope.metrics}
                self.figures.setdefault(_instance(sent.resource), set()).update(names)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _instance(resource: Any) -> str:
    return next(pair.value.string_value for pair in resource.attributes if pair.key == "service.instance.id")
