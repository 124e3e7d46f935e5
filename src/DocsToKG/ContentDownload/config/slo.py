"""The service levels that a run is held to, as settings.

Knows each level with its default. Does not know how it is measured, nor what follows when it is missed.
"""

from __future__ import annotations

from pydantic import Field

from DocsToKG.ContentDownload.config.section import Section


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
