"""What a run shows of itself while it works: figures, traces and a log. Knows the settings, not what they start."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from DocsToKG.ContentDownload.config.section import Section


class ObservingConfig(Section):
    """Where figures, spans and log lines go. Everything is off unless it is asked for."""

    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65_535,
        description="Serve /metrics for Prometheus on this loopback port; 0: any free one.",
    )
    metrics_file: str | None = Field(
        default=None, min_length=1, description="Keep the figures in this file, for node_exporter (name it *.prom)."
    )
    metrics_every_seconds: float = Field(
        default=10.0, ge=0.1, le=3600, description="How often metrics_file is written, and figures are sent by OTLP."
    )
    metrics_hosts: int = Field(
        default=100, ge=1, le=10_000, description="Hosts that have figures of their own; all others are `other`."
    )
    otlp_endpoint: str | None = Field(
        default=None,
        description="Send spans and figures to this OpenTelemetry collector, like http://127.0.0.1:4318 (extra otel); "
        "default: OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    log_level: Literal["debug", "info", "warning", "error", "off"] = Field(
        default="off", description="Least level that is logged."
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
