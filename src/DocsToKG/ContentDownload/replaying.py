"""Do the downloads of a run again from its cache, offline, and compare what comes out with what came out then.

Knows replay manifests and the pipeline. Promises: nothing is sent and nothing of the run is changed; a job whose
answers the cache does not hold is told as such, not as different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from DocsToKG.ContentDownload.api.types import DownloadOutcome, WorkArtifact
from DocsToKG.ContentDownload.bootstrap import open_replaying
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.Orchestrator.ledger.base import DEFAULT_JOB_TYPE

Verdict = Literal["same", "different", "not kept", "not a download"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one job came out: the digest then, and now (None: no file)."""

    job_id: int
    artifact_id: str
    verdict: Verdict
    then: str | None
    now: str | None
    detail: str | None = None


def replay(cfg: ContentDownloadConfig, jobs: Sequence[Mapping[str, Any]]) -> Iterator[Replayed]:
    """Each job once more. Those that had ended without a file must end without one again."""
    with TemporaryDirectory(prefix="docstokg-replay-") as place, open_replaying(cfg, Path(place)) as pipeline:
        for job in jobs:
            if job["jobType"] != DEFAULT_JOB_TYPE:
                yield _replayed(job, "not a download", None)
                continue
            outcome = pipeline.process(WorkArtifact.from_dict(job["input"]))
            yield _judged(job, outcome)


def _judged(job: Mapping[str, Any], outcome: DownloadOutcome) -> Replayed:
    then, now = job["result"].get("sha256"), outcome.meta.get("sha256")
    if then == now:
        return _replayed(job, "same", now)
    if now is None:
        return _replayed(job, "not kept", None, "the cache no longer holds what is needed to obtain this file")
    return _replayed(job, "different", now, f"another file, from {outcome.meta.get('resolver')}")


def _replayed(job: Mapping[str, Any], verdict: Verdict, now: str | None, detail: str | None = None) -> Replayed:
    return Replayed(job["jobId"], job["artifactId"], verdict, job["result"].get("sha256"), now, detail)
