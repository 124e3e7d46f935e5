"""The record of runs: attempts, manifest, files that follow them, and what to skip next time."""

from __future__ import annotations

from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.ContentDownload.telemetry.record import RunTelemetry
from DocsToKG.ContentDownload.telemetry.recovery import load_previous_manifest
from DocsToKG.ContentDownload.telemetry.resume import (
    CsvResumeLookup,
    JsonlResumeLookup,
    ResumeController,
    SharedResumeLookup,
    SqliteResumeLookup,
)
from DocsToKG.ContentDownload.telemetry.schema import ManifestSchemaMigrator
from DocsToKG.ContentDownload.telemetry.snapshots import Repair, ResultRow, write_results
from DocsToKG.ContentDownload.telemetry.writer import Counts

__all__ = [
    "Counts",
    "CsvResumeLookup",
    "JsonlResumeLookup",
    "ManifestRecord",
    "ManifestSchemaMigrator",
    "Repair",
    "ResultRow",
    "ResumeController",
    "RunTelemetry",
    "SharedResumeLookup",
    "SqliteResumeLookup",
    "load_previous_manifest",
    "write_results",
]
