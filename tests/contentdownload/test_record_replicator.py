"""What those who wait for the shared record are told when it cannot be reached for good."""

from __future__ import annotations

import threading
from typing import Any, cast

from DocsToKG.ContentDownload.errors import RunError
from DocsToKG.ContentDownload.telemetry.group_commit import Batch
from DocsToKG.ContentDownload.telemetry.replication import Replicator
from DocsToKG.core.clock import SystemClock

LONG_S = 30


def test_nobody_is_woken_before_the_reason_is_known() -> None:
    """Who is woken looks for a reason, and without one takes what it waited for as sent."""
    done = threading.Event()
    woken_early: list[bool] = []
    told: list[Batch] = []

    def fail(error: RunError, batch: Batch) -> None:
        woken_early.append(done.is_set())
        told.append(batch)

    replicator = Replicator(
        cast(Any, None), node="n1", clock=SystemClock(), fail=fail
    )  # never opened: nothing can be sent
    replicator.put(Batch(settled=[done]))
    replicator.start()
    replicator.stop()
    assert woken_early == [False]
    assert [batch.settled for batch in told] == [[done]]
    late = threading.Event()
    replicator.put(Batch(settled=[late]))
    assert late.wait(LONG_S)
