"""Names for new things: runs and workers. Time-ordered where order helps a reader."""

from __future__ import annotations

import uuid

from ulid import ULID

_WORKER = "cdw-"


def new_run_id() -> str:
    """A ULID: sorts by the time the run began."""
    return str(ULID())


def new_worker_id(node: str | None = None) -> str:
    """Unique per process start, because machine and pod names are used again; `node` tells a reader where it runs."""
    return f"{_WORKER}{uuid.uuid4()}" if node is None else f"{_WORKER}{node}.{uuid.uuid4().hex[:16]}"


def node_of(worker_id: str | None) -> str | None:
    """The node that a worker id names; None where it names none."""
    node = (worker_id or "").removeprefix(_WORKER).rpartition(".")[0]
    return node if node and worker_id is not None and worker_id.startswith(_WORKER) else None
