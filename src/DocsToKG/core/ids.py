"""Names for new things: runs, leases, workers. Time-ordered where order helps a reader."""

from __future__ import annotations

import uuid

from ulid import ULID


def new_run_id() -> str:
    """A ULID: sorts by the time the run began."""
    return str(ULID())


def new_lease_id() -> str:
    return f"lease_{uuid.uuid4().hex}"


def new_worker_id() -> str:
    """Unique per process start, because machine and pod names are used again."""
    return f"cdw-{uuid.uuid4()}"
