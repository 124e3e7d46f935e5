"""SQL of pack-runs: runs, log lines and artifacts, in statements that both databases accept.

Every function runs inside a transaction of the caller, who has checked the tenant of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.control.records import Record
from DocsToKG.Orchestrator.errors import BadJob, Conflict
from DocsToKG.Orchestrator.ledger.control import ControlTx
from DocsToKG.Orchestrator.views import Digest, SignedView, Timestamp, View

MAX_LINE = 8192
MAX_LINES = 500
MAX_ARTIFACTS = 1000
_AT_ONCE = 100
_CUT = " [cut]"


@dataclass(frozen=True, slots=True)
class PackRun(SignedView):
    """A pack-run. Its state is `registered`, `running`, or how it ended."""

    pack_run_id: str
    tenant: str
    project: str | None
    job_id: int | None
    channel: str | None
    heartbeat_s: float
    last_heartbeat_at: Timestamp | None
    state: str
    hints: Mapping[str, Any]
    correlation_id: str | None
    idempotency_key: str | None
    created_at: Timestamp
    updated_at: Timestamp
    ended_at: Timestamp | None


_RUN = Record(PackRun, "pack_runs")


@dataclass(frozen=True, slots=True)
class PackRunPage(View):
    """Pack-runs, newest first."""

    pack_runs: Sequence[PackRun]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class LogLine(View):
    seq: int
    at: Timestamp
    stream: str
    line: str


@dataclass(frozen=True, slots=True)
class LogPage(View):
    """Lines in order. After the last line of an ended run none follows."""

    lines: Sequence[LogLine]
    ended: bool


@dataclass(frozen=True, slots=True)
class Artifact(View):
    name: str
    digest: Digest
    uri: str
    mime: str | None
    size: int | None
    at: Timestamp


def add(tx: ControlTx, row: Mapping[str, Any], actor: str) -> PackRun:
    """The new run, or the one that came with the same key before."""
    added = tx.execute(
        f"INSERT INTO pack_runs ({_RUN.columns}) VALUES (:id, :tenant, :project, NULL, :channel, :heartbeat_s, NULL,"
        " 'registered', :hints, :correlation_id, :key, :now, :now, NULL)"
        f" ON CONFLICT DO NOTHING RETURNING {_RUN.columns}",
        {**row, "now": tx.now_ms},
    )
    if not added:
        [known] = tx.execute(
            f"{_RUN.select} WHERE tenant = :tenant AND idempotency_key = :key",
            {"tenant": row["tenant"], "key": row["key"]},
        )
        return _RUN.of(known)
    run = _RUN.of(added[0])
    _note(tx, run, "pack_run_registered", actor)
    return run


def set_job(tx: ControlTx, pack_run_id: str, job_id: int) -> None:
    tx.execute(
        "UPDATE pack_runs SET job_id = :job_id WHERE pack_run_id = :id AND job_id IS NULL",
        {"id": pack_run_id, "job_id": job_id},
    )


def find(tx: ControlTx, tenant: str, pack_run_id: str, lock: bool = False) -> PackRun | None:
    return _RUN.find(tx, lock=lock, pack_run_id=pack_run_id, tenant=tenant)


def page(tx: ControlTx, tenant: str, size: int, page_token: str | None) -> PackRunPage:
    rows = _RUN.page(tx, "tenant = :tenant", {"tenant": tenant}, by="created_at", size=size, token=page_token)
    return PackRunPage(*rows)


def beat(tx: ControlTx, run: PackRun) -> None:
    """The run was heard of just now."""
    tx.execute(
        "UPDATE pack_runs SET last_heartbeat_at = :now, updated_at = :now, state = 'running' WHERE pack_run_id = :id",
        {"id": run.pack_run_id, "now": tx.now_ms},
    )
    if run.state == "registered":
        _note(tx, run, "pack_run_started", "task-runner")


def end(tx: ControlTx, run: PackRun, state: str, actor: str, reason: str | None) -> None:
    tx.execute(
        "UPDATE pack_runs SET state = :state, ended_at = :now, updated_at = :now"
        " WHERE pack_run_id = :id AND ended_at IS NULL",
        {"id": run.pack_run_id, "state": state, "now": tx.now_ms},
    )
    _note(tx, run, f"pack_run_{state}", actor, reason)


def overdue(tx: ControlTx, missed: int, limit: int) -> list[PackRun]:
    """Runs that have begun and were not heard of for so many heartbeats, the longest silent first."""
    rows = tx.execute(
        f"{_RUN.select} WHERE ended_at IS NULL AND last_heartbeat_at IS NOT NULL"
        " AND last_heartbeat_at + heartbeat_s * :span < :now ORDER BY last_heartbeat_at LIMIT :limit /* lock */",
        {"span": missed * 1000, "now": tx.now_ms, "limit": limit},
    )
    return [_RUN.of(row) for row in rows]


def checked_lines(lines: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    if not 1 <= len(lines) <= MAX_LINES:
        raise BadJob(f"send between 1 and {MAX_LINES} lines at once")
    return [(plain_name("stream", stream, 32), _line(line)) for stream, line in lines]


def _line(text: str) -> str:
    """A line as it is kept: bounded, of one line, and of signs that can be stored."""
    kept = text.replace("\0", "\ufffd").rstrip("\r\n").encode("utf-8", "replace").decode()
    kept = kept.replace("\r", "\u240d").replace("\n", "\u2424")
    return kept if len(kept) <= MAX_LINE else kept[: MAX_LINE - len(_CUT)] + _CUT


def append(tx: ControlTx, pack_run_id: str, added: Sequence[tuple[str, str]]) -> int:
    """Write lines after those that are there; the run is locked, so nobody else does at this moment."""
    [(last,)] = tx.execute(
        "SELECT coalesce(max(seq), 0) FROM pack_run_logs WHERE pack_run_id = :id", {"id": pack_run_id}
    )
    for start in range(0, len(added), _AT_ONCE):
        some = added[start : start + _AT_ONCE]
        values: dict[str, Any] = {"id": pack_run_id, "now": tx.now_ms}
        for place, (stream, line) in enumerate(some):
            values |= {f"n{place}": last + 1 + start + place, f"s{place}": stream, f"l{place}": line}
        rows = ", ".join(f"(:id, :n{place}, :now, :s{place}, :l{place})" for place in range(len(some)))
        tx.execute(f"INSERT INTO pack_run_logs (pack_run_id, seq, at, stream, line) VALUES {rows}", values)
    return int(last) + len(added)


def lines(tx: ControlTx, pack_run_id: str, after: int, limit: int) -> list[LogLine]:
    rows = tx.execute(
        "SELECT seq, at, stream, line FROM pack_run_logs WHERE pack_run_id = :id AND seq > :after"
        " ORDER BY seq LIMIT :limit",
        {"id": pack_run_id, "after": min(max(0, after), 2**62), "limit": limit},
    )
    return [LogLine(seq, at / 1000, stream, line) for seq, at, stream, line in rows]


def publish(tx: ControlTx, run: PackRun, row: Mapping[str, Any]) -> Artifact:
    known = {artifact.name: artifact for artifact in artifacts(tx, run.pack_run_id)}
    before = known.get(row["name"])
    if before is not None:
        if before.digest != row["digest"]:
            raise Conflict(f"the artifact {row['name'][:80]} was published with another digest")
        return before
    if len(known) >= MAX_ARTIFACTS:
        raise BadJob(f"a run has at most {MAX_ARTIFACTS} artifacts")
    tx.execute(
        "INSERT INTO pack_run_artifacts (pack_run_id, name, digest, uri, mime, size, at)"
        " VALUES (:id, :name, :digest, :uri, :mime, :size, :now)",
        {**row, "now": tx.now_ms},
    )
    beat(tx, run)
    _note(tx, run, "pack_run_artifact", "task-runner", detail={"name": row["name"], "digest": row["digest"]})
    return Artifact(row["name"], row["digest"], row["uri"], row["mime"], row["size"], tx.now_ms / 1000)


def artifacts(tx: ControlTx, pack_run_id: str) -> list[Artifact]:
    rows = tx.execute(
        "SELECT name, digest, uri, mime, size, at FROM pack_run_artifacts WHERE pack_run_id = :id ORDER BY name",
        {"id": pack_run_id},
    )
    return [Artifact(name, digest, uri, mime, size, at / 1000) for name, digest, uri, mime, size, at in rows]


def _note(
    tx: ControlTx,
    run: PackRun,
    event: str,
    actor: str,
    reason: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """One row of the history for each change of a run, with where it comes from."""
    provenance = {
        "packRunId": run.pack_run_id,
        "project": run.project,
        "correlationId": run.correlation_id,
        "idempotencyKey": run.idempotency_key,
    }
    said = None if reason is None else reason[:500]
    tx.note(
        run.tenant, event=event, actor=actor, reason=said, detail={**provenance, **(detail or {})}, job_id=run.job_id
    )
