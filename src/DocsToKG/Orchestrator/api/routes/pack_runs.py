"""Pack-runs: register, log, publish, heartbeat, finish."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.routing import Context, Resource
from DocsToKG.Orchestrator.api.schemas import (
    BIG,
    Digest,
    Given,
    Moment,
    Page,
    PageSize,
    PageToken,
    Reason,
    Shown,
    Signature,
    Text,
)
from DocsToKG.Orchestrator.control.pack_runs import JOB_TYPE, Hints, PackRun

resource = Resource("pack-runs")
RunPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Id of the pack-run.")]
ProjectQuery = Annotated[Text | None, Query(description="Must be the run's project, where it is given.")]


class PackRunShown(Shown):
    """A run: `registered`, `running`, or how it ended."""

    pack_run_id: str
    tenant: str
    project: str | None
    job_id: int | None
    channel: str | None
    heartbeat_s: float = Field(serialization_alias="heartbeatSeconds")
    last_heartbeat_at: Moment | None
    state: str
    hints: dict[str, Any]
    correlation_id: str | None
    idempotency_key: str | None
    created_at: Moment
    updated_at: Moment
    ended_at: Moment | None
    signatures: list[Signature] = Field(default=[], description="DSSE signatures, where the ledger signs.")


class PackRunList(Page):
    """Runs, newest first."""

    pack_runs: list[PackRunShown]


class LogLineShown(Shown):
    seq: int
    at: Moment
    stream: str
    line: str


class LogLines(Shown):
    """Lines in order. After the last one of an ended run none follows."""

    lines: list[LogLineShown]
    ended: bool


class ArtifactShown(Shown):
    name: str
    digest: Digest
    uri: str
    mime: str | None
    size: int | None
    at: Moment


class ArtifactList(Shown):
    artifacts: list[ArtifactShown]


class PackRunRequest(Given):
    """A run to register, and what a task runner is told of it."""

    payload: dict[str, Any] = Field(default_factory=dict)
    project: Text | None = None
    artifacts: Annotated[tuple[Text, ...], Field(max_length=1000)] = ()
    channel: Text | None = None
    heartbeat_seconds: Annotated[float, Field(ge=1, le=3600)] = 30.0
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    correlation_id: Text | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")] | None = None


class LogLineGiven(Given):
    stream: Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9._-]+$")] = "stdout"
    line: Annotated[str, Field(max_length=65_536)]


class LogRequest(Given):
    lines: Annotated[tuple[LogLineGiven, ...], Field(min_length=1, max_length=500)]


class Appended(Shown):
    """The number of the last line."""

    last_seq: int


class ArtifactRequest(Given):
    """An artifact: where it is, and its digest, which it keeps for good."""

    name: Text
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    uri: Annotated[str, Field(min_length=1, max_length=2048, pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+$")]
    mime: Text | None = None
    size: Annotated[int, Field(ge=0, le=BIG)] | None = None


class FinishRequest(Given):
    status: Literal["succeeded", "failed", "canceled", "timed_out"]
    reason: Reason | None = None


@resource.post("/pack-runs", status=201)
def register_pack_run(ctx: Context, body: PackRunRequest) -> PackRunShown:
    """Register a run and enqueue its job."""
    with ctx.spans.enqueue(ctx.request.scope, **{"job.type": JOB_TYPE, "tenant": ctx.tenant}) as trace:
        run = ctx.services.pack_runs.register(
            ctx.tenant,
            payload=body.payload,
            hints=Hints(body.artifacts, body.channel, body.heartbeat_seconds),
            actor=ctx.caller.actor,
            project=body.project,
            priority=body.priority,
            correlation_id=body.correlation_id,
            idempotency_key=body.idempotency_key or ctx.request.headers.get("idempotency-key"),
            trace_context=trace,
        )
    return _shown(run)


@resource.get("/pack-runs")
def list_pack_runs(
    ctx: Context,
    page_size: Annotated[PageSize, Query()] = 50,
    page_token: Annotated[PageToken, Query()] = None,
) -> PackRunList:
    """List the tenant's runs, newest first."""
    page = ctx.services.pack_runs.list(ctx.tenant, page_size=page_size, page_token=page_token)
    return PackRunList(pack_runs=[_shown(run) for run in page.runs], next_page_token=page.next_page_token)


@resource.get("/pack-runs/{pack_run_id}")
def get_pack_run(ctx: Context, pack_run_id: RunPath, project: ProjectQuery = None) -> PackRunShown:
    """Show one run."""
    return _shown(ctx.services.pack_runs.get(ctx.tenant, pack_run_id, project=project))


@resource.post("/pack-runs/{pack_run_id}/heartbeat")
def heartbeat_pack_run(ctx: Context, pack_run_id: RunPath) -> PackRunShown:
    """Say that the run is alive."""
    run = ctx.services.pack_runs.heartbeat(ctx.tenant, pack_run_id)
    ctx.metrics.heartbeats.inc()
    return _shown(run)


@resource.post("/pack-runs/{pack_run_id}/logs")
def append_pack_run_logs(ctx: Context, pack_run_id: RunPath, body: LogRequest) -> Appended:
    """Add lines to the run's log."""
    lines = [(line.stream, line.line) for line in body.lines]
    return Appended(last_seq=ctx.services.pack_runs.append_logs(ctx.tenant, pack_run_id, lines))


@resource.get("/pack-runs/{pack_run_id}/logs")
def read_pack_run_logs(
    ctx: Context,
    pack_run_id: RunPath,
    after: Annotated[int, Query(ge=0, le=BIG, description="The number of the last line known.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
    project: ProjectQuery = None,
) -> LogLines:
    """Read lines of the run's log."""
    page = ctx.services.pack_runs.logs(ctx.tenant, pack_run_id, after=after, limit=limit, project=project)
    return LogLines(lines=[LogLineShown.model_validate(line) for line in page.lines], ended=page.ended)


@resource.post("/pack-runs/{pack_run_id}/artifacts", status=201)
def publish_pack_run_artifact(ctx: Context, pack_run_id: RunPath, body: ArtifactRequest) -> ArtifactShown:
    """Publish an artifact of the run."""
    published = ctx.services.pack_runs.publish(ctx.tenant, pack_run_id, **body.model_dump())
    ctx.metrics.artifacts.inc()
    return ArtifactShown.model_validate(published)


@resource.get("/pack-runs/{pack_run_id}/artifacts")
def list_pack_run_artifacts(ctx: Context, pack_run_id: RunPath, project: ProjectQuery = None) -> ArtifactList:
    """List what the run has published, by name."""
    found = ctx.services.pack_runs.artifacts(ctx.tenant, pack_run_id, project=project)
    return ArtifactList(artifacts=[ArtifactShown.model_validate(each) for each in found])


@resource.post("/pack-runs/{pack_run_id}/finish")
def finish_pack_run(ctx: Context, pack_run_id: RunPath, body: FinishRequest) -> PackRunShown:
    """Say how the run ended."""
    finished = ctx.services.pack_runs.finish(
        ctx.tenant, pack_run_id, body.status, actor=ctx.caller.actor, reason=body.reason
    )
    return _shown(finished)


def _shown(run: PackRun) -> PackRunShown:
    return PackRunShown.model_validate(run)
