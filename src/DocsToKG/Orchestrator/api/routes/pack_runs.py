"""Pack-runs: register, log, publish, heartbeat, finish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field

from DocsToKG.Orchestrator.api.context import Context
from DocsToKG.Orchestrator.api.routing import Resource
from DocsToKG.Orchestrator.api.schemas import BIG, Paging, Reason, RequestBody, Text
from DocsToKG.Orchestrator.control.pack_run_rows import Artifact, LogPage, PackRun, PackRunPage
from DocsToKG.Orchestrator.control.pack_runs import JOB_TYPE, Hints
from DocsToKG.Orchestrator.views import View

resource = Resource("pack-runs")
RunPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Id of the pack-run.")]
ProjectQuery = Annotated[Text | None, Query(description="Must be the run's project, where it is given.")]


@dataclass(frozen=True, slots=True)
class ArtifactList(View):
    artifacts: Sequence[Artifact]


@dataclass(frozen=True, slots=True)
class Appended(View):
    """The number of the last line."""

    last_seq: int


class PackRunRequest(RequestBody):
    """A run to register, and what a task runner is told of it."""

    payload: dict[str, Any] = Field(default_factory=dict)
    project: Text | None = None
    artifacts: Annotated[tuple[Text, ...], Field(max_length=1000)] = ()
    channel: Text | None = None
    heartbeat_seconds: Annotated[float, Field(ge=1, le=3600)] = 30.0
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    correlation_id: Text | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")] | None = None


class LogLineIn(RequestBody):
    stream: Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9._-]+$")] = "stdout"
    line: Annotated[str, Field(max_length=65_536)]


class LogRequest(RequestBody):
    lines: Annotated[tuple[LogLineIn, ...], Field(min_length=1, max_length=500)]


class ArtifactRequest(RequestBody):
    """An artifact: where it is, and its digest, which it keeps for good."""

    name: Text
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    uri: Annotated[str, Field(min_length=1, max_length=2048, pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+$")]
    mime: Text | None = None
    size: Annotated[int, Field(ge=0, le=BIG)] | None = None


class FinishRequest(RequestBody):
    status: Literal["succeeded", "failed", "canceled", "timed_out"]
    reason: Reason | None = None


@resource.post("/pack-runs", status=201)
def register_pack_run(ctx: Context, body: PackRunRequest) -> PackRun:
    """Register a run and enqueue its job."""
    with ctx.spans.enqueue(ctx.request.scope, **{"job.type": JOB_TYPE, "tenant": ctx.tenant}) as trace:
        return ctx.services.pack_runs.register(
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


@resource.get("/pack-runs")
def list_pack_runs(ctx: Context, paging: Paging) -> PackRunPage:
    """List the tenant's runs, newest first."""
    return ctx.services.pack_runs.list(ctx.tenant, **paging)


@resource.get("/pack-runs/{pack_run_id}")
def get_pack_run(ctx: Context, pack_run_id: RunPath, project: ProjectQuery = None) -> PackRun:
    """Show one run."""
    return ctx.services.pack_runs.get(ctx.tenant, pack_run_id, project=project)


@resource.post("/pack-runs/{pack_run_id}/heartbeat")
def heartbeat_pack_run(ctx: Context, pack_run_id: RunPath) -> PackRun:
    """Send the run's heartbeat."""
    run = ctx.services.pack_runs.heartbeat(ctx.tenant, pack_run_id)
    ctx.metrics.heartbeats.inc()
    return run


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
) -> LogPage:
    """Read lines of the run's log."""
    return ctx.services.pack_runs.logs(ctx.tenant, pack_run_id, after=after, limit=limit, project=project)


@resource.post("/pack-runs/{pack_run_id}/artifacts", status=201)
def publish_pack_run_artifact(ctx: Context, pack_run_id: RunPath, body: ArtifactRequest) -> Artifact:
    """Publish an artifact of the run."""
    published = ctx.services.pack_runs.publish(ctx.tenant, pack_run_id, **body.model_dump())
    ctx.metrics.artifacts.inc()
    return published


@resource.get("/pack-runs/{pack_run_id}/artifacts")
def list_pack_run_artifacts(ctx: Context, pack_run_id: RunPath, project: ProjectQuery = None) -> ArtifactList:
    """List what the run has published, by name."""
    return ArtifactList(ctx.services.pack_runs.artifacts(ctx.tenant, pack_run_id, project=project))


@resource.post("/pack-runs/{pack_run_id}/finish")
def finish_pack_run(ctx: Context, pack_run_id: RunPath, body: FinishRequest) -> PackRun:
    """Say how the run ended."""
    return ctx.services.pack_runs.finish(
        ctx.tenant, pack_run_id, body.status, actor=ctx.caller.actor, reason=body.reason
    )
