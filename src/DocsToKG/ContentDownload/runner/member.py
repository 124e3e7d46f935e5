"""One of several processes of a run: `python -m DocsToKG.ContentDownload.runner.member`, started by the run itself.

Leases and works like a run of its own, with its own worker id, as a guest in the run's record. It ends when it is told
to, and at once when the process that started it is gone. Its order comes from that process through a pipe.
"""

from __future__ import annotations

import pickle
import signal
import sys
import time
from contextlib import ExitStack
from typing import Any

from DocsToKG.ContentDownload.api.types import DownloadOutcome
from DocsToKG.ContentDownload.bootstrap import Parts, open_parts, open_queue
from DocsToKG.ContentDownload.errors import RecordError, RunError
from DocsToKG.ContentDownload.orchestrator.member import own_input, own_output, serve
from DocsToKG.ContentDownload.orchestrator.processes import Boss
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.ContentDownload.runner.node import reporter_of, worker_id_of
from DocsToKG.ContentDownload.runner.order import Order
from DocsToKG.ContentDownload.runner.suspects import Suspects, one_at_a_time
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.Orchestrator.control.workers.liveness import Presence
from DocsToKG.Orchestrator.errors import LedgerError

_PATIENCE_S = 30.0
_COME_BACK_S = 0.5


def load_all() -> None:
    """Load what every member needs beyond what this module loads, for those that are copied from this process."""
    from DocsToKG.ContentDownload.maintenance import takedowns
    from DocsToKG.ContentDownload.net.limits.stores import sqlite as limit_store
    from DocsToKG.ContentDownload.net.robots import check
    from DocsToKG.ContentDownload.orchestrator import reporting
    from DocsToKG.ContentDownload.validation import candidate
    from DocsToKG.Orchestrator.ledger import sqlite as ledger
    from DocsToKG.transport import curl

    del candidate, check, curl, ledger, limit_store, reporting, takedowns


def main() -> int:
    """The exit code: 0 after a stop, 1 after an error that stops the whole run."""
    boss = Boss(own_input(), own_output())
    order: Order = pickle.loads(boss.order())
    try:
        with ExitStack() as stack:
            telemetry = _work(stack, order, boss)
    except (RunError, LedgerError) as error:
        boss.say({"failed": {"kind": type(error).__name__, "text": str(error)}})
        return 1
    boss.say({"notes": list(telemetry.notes)})
    return 0


def _work(stack: ExitStack, order: Order, boss: Boss) -> RunTelemetry:
    alone = order.alone
    worker_id = worker_id_of(order.cfg) if alone is None else alone.worker_id
    queue = stack.enter_context(open_queue(order.cfg))
    inherited = None if alone is None else alone.presence
    here = stack.enter_context(Presence(order.cfg.queue.path, worker_id, inherits=inherited))
    stack.callback(here.give_back, queue.ledger)
    parts = _join(stack, order, worker_id)
    parts.refetch.update(order.refetch)
    in_hand = here.in_hand()
    suspects = None if alone is None else Suspects(queue.ledger, worker_id, order.cfg)
    if suspects is not None:
        parts.store.show_temps(worker_id)

    def on_outcome(work_id: str, outcome: DownloadOutcome) -> None:
        boss.gather("outcomes", (work_id, _plain(outcome)))
        if orchestrator.held <= 1:  # this one, and nobody comes after it
            boss.say_gathered()

    orchestrator = Orchestrator(
        order.cfg if suspects is None else one_at_a_time(order.cfg),
        queue,
        parts.pipeline,
        parts.telemetry,
        relative_path=parts.recorded_path,
        worker_id=worker_id,
        on_outcome=on_outcome,
        events=parts.events,
        in_hand=in_hand,
        lease=None if suspects is None else suspects.lease,
        note_stage=None if suspects is None else in_hand.note_stage,
    )
    if suspects is not None:
        suspects.when_idle = orchestrator.halt
    parts.store.on_stored(lambda seconds: orchestrator.pressure.took("storage", seconds))
    reports = reporter_of(order.cfg, queue.ledger, orchestrator, parts)
    with parts.observability.sending(boss.say, lambda: {"held": orchestrator.held}), reports:
        serve(orchestrator, boss)
    return parts.telemetry


def _join(stack: ExitStack, order: Order, worker_id: str) -> Parts:
    """The run goes on beside a record that is away for a while, so a process may come to it at such a time."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return stack.enter_context(open_parts(order.cfg, worker_id=worker_id, run_id=order.run_id, share="guest"))
        except RecordError:
            if time.monotonic() > until:
                raise
            time.sleep(_COME_BACK_S)


def _plain(outcome: DownloadOutcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in outcome.__slots__}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main())
