"""What a run shows of itself, as settings: metrics, traces, a log, and the service levels that it is held to.

Knows the settings with their defaults. Does not know what they start, how a level is measured, or what a missed one
leads to.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from DocsToKG.ContentDownload.config.section import Section


class ObservingConfig(Section):
    """Where metrics, spans and log lines go. Everything is off by default."""

    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Serve /metrics for Prometheus on this loopback port; 0: any free port.",
    )
    metrics_file: str | None = Field(
        default=None, min_length=1, description="Write the metrics to this file, for node_exporter (name it *.prom)."
    )
    metrics_every_seconds: float = Field(
        default=10.0, ge=0.1, le=3600, description="How often metrics_file is written, and metrics are sent by OTLP."
    )
    metrics_hosts: int = Field(
        default=100, ge=1, le=10_000, description="Hosts that have metrics of their own; all others are `other`."
    )
    otlp_endpoint: str | None = Field(
        default=None,
        description="Send spans and metrics to this OpenTelemetry collector, like http://127.0.0.1:4318 (extra otel); "
        "default: OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    log_level: Literal["debug", "info", "warning", "error", "off"] = Field(
        default="off", description="Lowest level that is logged."
    )
    log_format: Literal["auto", "human", "json"] = Field(
        default="auto", description="auto: for people on a terminal, lines of JSON everywhere else."
    )
    log_file: str | None = Field(
        default=None, min_length=1, description="Append the log to this file; default: standard error."
    )

    @field_validator("otlp_endpoint")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("an endpoint begins with http:// or https://")
        return value


class SloConfig(Section):
    """Service levels that `content report` judges; null switches one off. Better than the target is always kept."""

    yield_min: float | None = Field(default=0.85, ge=0, le=1, description="Files obtained of works tried, at least.")
    ttfp_p50_seconds: float | None = Field(
        default=3.0, ge=0, description="Median time to a file, waits for our own limits left out, at most."
    )
    ttfp_p95_seconds: float | None = Field(default=10.0, ge=0, description="The same for 95 of 100 files, at most.")
    ratio_429_below: float | None = Field(
        default=0.01, ge=0, le=1, description="Requests answered with 429 (too many requests), fewer than this share."
    )
    corrupt_files_max: int | None = Field(default=0, ge=0, description="Stored files found damaged, at most.")
    rerun_cache_hit_min: float | None = Field(
        default=0.4, ge=0, le=1, description="Answers from the cache when works are obtained again, at least."
    )
    catalog_write_p95_ms: float | None = Field(
        default=50.0, ge=0, description="Time of 95 of 100 writes to the catalog, at most."
    )
    works_per_worker_hour_min: float | None = Field(
        default=500.0, ge=0, description="Works an hour for each worker, on a load of the first tier, at least."
    )
    works_needed: int = Field(default=10, ge=1, description="Fewer works or files than this are not judged.")
    requests_needed: int = Field(
        default=100, ge=1, description="With fewer requests than this the share of 429 is not judged."
    )
    throughput_works_needed: int = Field(
        default=200, ge=1, description="With fewer works than this neither works an hour nor writes are judged."
    )
